"""docs/delegation.md, followed on Postgres: its statements make the roles, its configuration opens the database."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from dragoman import Gateway
from dragoman.audit import records, verify_files
from dragoman.config import load
from dragoman.errors import DragomanError
from dragoman.model import Claims, Principal
from dragoman_postgres.testing import Server

PAGE = (Path(__file__).parents[2] / "docs" / "delegation.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Row-level security on Postgres")[1].split("\n## ")[0]
SHOP = """
CREATE SCHEMA sales;
CREATE TABLE sales.orders (id int PRIMARY KEY, tenant text);
INSERT INTO sales.orders VALUES (1, 'acme'), (2, 'other'), (3, 'acme');
"""
SELLER = Principal("ann", subject="ann", groups=frozenset({"sellers"}), claims=Claims({"tenant": "acme"}))


def shown(language: str) -> str:
    (block,) = re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)
    return block


@pytest.fixture(scope="module")
async def address(anyio_backend: str) -> AsyncIterator[str]:
    """The database that the page's statements were run in, as the one who signs in."""
    server = Server.start()
    try:
        name = await server.create(SHOP)
        await server.run(shown("sql"), name)
        yield server.address(name, user="dragoman", password="SECRET").replace("SECRET", "${SHOP_PASSWORD}")
    finally:
        server.stop()


@pytest.fixture
def folder(address: str, tmp_path: Path) -> Path:
    """The page's configuration, with this machine's address and an audit."""
    text = re.sub(r'^url = ".*"$', lambda _: f'url = "{address}"', shown("toml"), flags=re.MULTILINE)
    (tmp_path / "dragoman.toml").write_text(f'{text}[audit]\npath = "calls.jsonl"\n')
    return tmp_path


def dragoman(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "dragoman", *words]
    environment = os.environ | {"SHOP_PASSWORD": "secret"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


async def test_a_caller_has_the_rows_of_its_tenant_and_the_audit_names_the_role(folder: Path) -> None:
    configuration = load(folder / "dragoman.toml", environ={"SHOP_PASSWORD": "secret"}, folder=folder)
    async with Gateway.open(configuration) as gateway:
        rows = (await gateway.query("shop", "SELECT id FROM sales.orders ORDER BY id", principal=SELLER)).rows
        with pytest.raises(DragomanError):
            await gateway.query("shop", "DELETE FROM sales.orders", principal=SELLER)
    assert rows == [[1], [3]]
    read, refused = [each for each in records(folder / "calls.jsonl") if each.event == "call"]
    assert (read.acting, read.outcome) == ("role seller (app.tenant)", "ok")
    assert (refused.acting, refused.verdict) == ("", "refused")
    assert verify_files(folder / "calls.jsonl").faults == []
    assert "acme" not in "".join(each.read_text() for each in folder.glob("calls*"))
    assert "role seller (app.tenant)" in dragoman(folder, "audit", "tail")
    assert "role seller (app.tenant) 1" in dragoman(folder, "audit", "report")


async def test_the_page_s_command_says_as_whom_the_database_acts(folder: Path) -> None:
    (command,) = re.findall(r"`dragoman (may .*)` says", PAGE)
    told = dragoman(folder, *command.replace("USER:GROUP", "ann:sellers").split())
    assert "seller" in told
    assert "sales.orders" in told
    assert "error" not in told
