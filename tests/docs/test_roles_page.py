"""docs/roles.md, followed: its role over a database with its tables, and the commands that tell what somebody may."""

import json
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.errors import ConfigurationError
from dragoman.model import Principal
from dragoman.tools import Toolbox
from dragoman.tools.toolbox import UnknownTool

PAGE = (Path(__file__).parents[2] / "docs" / "roles.md").read_text(encoding="utf-8")
ROLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
ANN = Principal("ann", subject="ann", groups=frozenset({"analysts"}))
SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, ssn TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers);
CREATE TABLE salaries (id INTEGER PRIMARY KEY, amount INTEGER);
INSERT INTO customers VALUES (1, 'Ada', '123');
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript(SHOP)
    connection.close()
    (tmp_path / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{ROLES}')
    return tmp_path


@pytest.fixture
async def toolbox(folder: Path) -> AsyncIterator[Toolbox]:
    async with Gateway.open(load(folder / "dragoman.toml", environ={}, folder=folder)) as gateway:
        yield Toolbox(gateway)


async def open_in(folder: Path) -> None:
    async with Gateway.open(load(folder / "dragoman.toml", environ={}, folder=folder)) as gateway:
        Toolbox(gateway)


async def ask(toolbox: Toolbox, tool: str, principal: Principal = ANN, **arguments: Any) -> Any:
    return json.loads((await toolbox.call(tool, arguments, principal=principal)).text)


async def test_the_page_s_role_sees_what_it_grants_and_nothing_else(toolbox: Toolbox) -> None:
    assert await ask(toolbox, "list_tables") == {"tables": {"main": ["customers", "orders"]}}
    assert (await ask(toolbox, "execute_query", sql="SELECT * FROM customers"))["rows"] == [[1, "Ada"]]
    for sql, code in (("SELECT * FROM salaries", "TABLE_NOT_FOUND"), ("SELECT ssn FROM customers", "COLUMN_NOT_FOUND")):
        assert (await ask(toolbox, "execute_query", sql=sql))["error"]["code"] == code
    with pytest.raises(UnknownTool):
        await ask(toolbox, "list_databases", principal=Principal("eve", subject="eve"))


async def test_the_page_s_limits_bound_its_holders(toolbox: Toolbox) -> None:
    most = int(re.findall(r"calls_per_minute = (\d+)", ROLES)[0])
    for _ in range(most):
        assert "error" not in await ask(toolbox, "execute_query", sql="SELECT 1")
    refused = (await ask(toolbox, "execute_query", sql="SELECT 1"))["error"]
    assert refused["code"] == "QUOTA_EXCEEDED"
    assert "seconds" in json.dumps(refused)


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("main.salaries", "main.salary", r"roles\.analyst\.grants\.0.*salar"),
        ('"shop"', '"shopp"', r"roles\.analyst\.grants\.0.*shop"),
        ("*.ssn", "main.customers.snn", r"roles\.analyst\.grants\.0.*ssn"),
        ('"standard"', '"standart"', r"roles\.analyst.*standard"),
        ("max_cost", "max_costs", r"roles\.analyst\.limits.*max_cost"),
    ],
)
async def test_what_names_nothing_stops_the_start_with_the_nearest_name(
    folder: Path, right: str, wrong: str, told: str
) -> None:
    file = folder / "dragoman.toml"
    written = file.read_text()
    assert right in written
    file.write_text(written.replace(right, wrong, 1))
    with pytest.raises(ConfigurationError) as raised:
        await open_in(folder)
    words = f"{raised.value.message} {raised.value.suggestion}"
    assert "dragoman.toml" in words
    assert re.search(told, words, re.DOTALL), words


def test_the_page_s_commands_tell_what_somebody_may(folder: Path) -> None:
    found = re.findall(r"`(dragoman may ann:analysts)`", PAGE) + re.findall(r"^(dragoman may .*)$", PAGE, re.MULTILINE)
    runs = [
        subprocess.run(
            [sys.executable, "-m", *shlex.split(command)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        for command in found
    ]
    whole, refused = runs
    assert whole.returncode == 0
    assert "main.customers (id, name)" in whole.stdout
    assert (refused.returncode, "TABLE_NOT_FOUND" in refused.stdout) == (1, True)
