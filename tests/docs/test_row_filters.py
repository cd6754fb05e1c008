"""docs/row-filters.md, followed: its roles over a database with its tables, and the command that shows them."""

import re
import sqlite3
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.errors import ConfigurationError, PermissionDenied
from dragoman.model import Claims, Principal
from dragoman_postgres.testing import Server

PAGE = (Path(__file__).parents[2] / "docs" / "row-filters.md").read_text(encoding="utf-8")
ROLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, email TEXT, birthday TEXT, ssn TEXT, phone TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT);
INSERT INTO customers VALUES (1, 'ada@x.example', '1990-05-06', '123', '555-1234');
INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'a');
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript(SHOP)
    connection.close()
    (tmp_path / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{ROLES}')
    return tmp_path


def opened(folder: Path) -> AbstractAsyncContextManager[Gateway]:
    return Gateway.open(load(folder / "dragoman.toml", environ={}, folder=folder))


def caller(**claims: str) -> Principal:
    return Principal("ann", subject="ann", groups=frozenset({"support"}), claims=Claims(claims))


async def test_the_page_s_role_sees_its_rows_and_masks(folder: Path) -> None:
    async with opened(folder) as gateway:
        ann = caller(tenant="a")
        assert (await gateway.query("shop", "SELECT id FROM orders ORDER BY id", principal=ann)).rows == [[1], [3]]
        customers = await gateway.query("shop", "SELECT email, birthday, ssn FROM customers", principal=ann)
        assert customers.rows == [["a***", "1990-01-01", None]]
        with pytest.raises(PermissionDenied):
            await gateway.query("shop", "SELECT id FROM orders", principal=caller())


async def test_the_page_s_role_sees_the_same_on_postgres(folder: Path) -> None:
    server = Server.start()
    try:
        tables = (
            SHOP.replace("TABLE ", "TABLE main.")
            .replace("INTO ", "INTO main.")
            .replace("birthday TEXT", "birthday DATE")
        )
        name = await server.create(f"CREATE SCHEMA main; {tables}")
        configuration = load(folder / "dragoman.toml", environ={}, folder=folder)
        shop = server.configure(name, name="shop")
        async with Gateway.open(replace(configuration, databases={"shop": shop})) as gateway:
            ann = caller(tenant="a")
            orders = await gateway.query("shop", "SELECT id FROM main.orders ORDER BY id", principal=ann)
            assert orders.rows == [[1], [3]]
            customers = await gateway.query("shop", "SELECT email, birthday, ssn FROM main.customers", principal=ann)
            assert customers.rows == [["a***", "1990-01-01", None]]
            with pytest.raises(PermissionDenied):
                await gateway.query("shop", "SELECT id FROM main.orders", principal=caller())
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("mask", "shown"),
    [
        ("null", None),
        ("partial", "5***"),
        ("hash", "24886b1e9942f612a3e4cdf5898f9b89987fe8cc6ba4ca6996ef1affa15cdf27"),
        ("substr(phone, 1, 4)", "555-"),
    ],
)
async def test_each_mask_of_the_table_shows_what_it_says(folder: Path, mask: str, shown: str | None) -> None:
    assert f"`{mask}`" in PAGE or f'"{mask}"' in PAGE
    changed = ROLES.replace('"email" = "partial"', f'"phone" = "{mask}"')
    (folder / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{changed}')
    async with opened(folder) as gateway:
        found = await gateway.query("shop", "SELECT phone FROM customers", principal=caller(tenant="a"))
    assert found.rows == [[shown]]


async def test_a_filter_with_an_unknown_column_stops_the_start(folder: Path) -> None:
    file = folder / "dragoman.toml"
    file.write_text(file.read_text().replace("tenant = $claim", "tennant = $claim"))
    with pytest.raises(ConfigurationError, match=r"roles\.support\.grants\.0.*tennant"):
        async with opened(folder):
            raise AssertionError("it opened")


def test_the_page_s_command_shows_filters_and_masks(folder: Path) -> None:
    (command,) = re.findall(r"`dragoman (may USER:GROUP shop)`", PAGE)
    words = [sys.executable, "-m", "dragoman", *command.replace("USER:GROUP", "ann:support").split()]
    told = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "tenant = $claim.tenant" in told
    assert "email" in told
