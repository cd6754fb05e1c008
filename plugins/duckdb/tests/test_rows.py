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
