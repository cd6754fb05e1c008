"""A row by its key, for a caller to whom a column of it is hidden: DuckDB refuses `SELECT *` of such a table."""

import json
from pathlib import Path

import duckdb
import pytest
from dragoman import Database, Gateway
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.model import Principal
from dragoman.tools import Toolbox

ANN = Principal("ann", subject="ann")
TABLES = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, pin INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, person INTEGER REFERENCES people (id), pin INTEGER);
INSERT INTO people VALUES (1, 'Ada', 77);
INSERT INTO orders VALUES (5, 1, 78);
"""
BINARY = r"""
CREATE TABLE people (id BLOB PRIMARY KEY, name TEXT);
CREATE TABLE orders (id BLOB PRIMARY KEY, person BLOB REFERENCES people (id));
INSERT INTO people VALUES ('\x00\xFF', 'Ada');
INSERT INTO orders VALUES ('\x01', '\x00\xFF');
"""


@pytest.mark.parametrize("follow", [0, 1])
async def test_a_row_and_what_it_refers_to_have_the_columns_that_are_granted(tmp_path: Path, follow: int) -> None:
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.execute(TABLES)
    database = Database(name="shop", dialect="duckdb", database="shop.duckdb", folder=tmp_path)
    grant = Grant(database="shop", tables=("*",), deny_columns=("*.pin",), key="roles.r.grants.0")
    roles = {"r": Role(name="r", principals=frozenset({"ann"}), grants=(grant,))}
    asked = {"table_name": "orders", "key": 5, "follow": follow}
    async with Gateway.open(Configuration(databases={"shop": database}, roles=roles)) as gateway:
        answer = json.loads((await Toolbox(gateway, profile="full").call("get_row", asked, principal=ANN)).text)
    assert answer["row"] == {"id": 5, "person": 1}
    assert [each["row"] for each in answer.get("refers_to", {}).values()] == [{"id": 1, "name": "Ada"}][:follow]


async def test_a_row_is_found_by_a_binary_key_and_refers_to_others_by_one(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.execute(BINARY)
    database = Database(name="shop", dialect="duckdb", database="shop.duckdb", folder=tmp_path)
    async with Gateway.open(Configuration(databases={"shop": database})) as gateway:
        asked = {"table_name": "orders", "key": "AQ==", "follow": 1}
        answer = json.loads((await Toolbox(gateway, profile="full").call("get_row", asked)).text)
    assert answer["row"] == {"id": "AQ==", "person": "AP8="}
    assert [each["row"] for each in answer["refers_to"].values()] == [{"id": "AP8=", "name": "Ada"}]
