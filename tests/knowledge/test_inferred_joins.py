"""Joins that nobody declared: over public schemas whose keys are hidden, and on databases with values."""

import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dragoman import Database, Gateway, Scope
from dragoman.knowledge.joins import suggest
from dragoman.tools import Answer, Toolbox

SCHEMAS = sorted((Path(__file__).parent / "schemas").glob("*.sql"))
Make = Callable[..., Database]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(name: str, script: str) -> Database:
        with sqlite3.connect(tmp_path / f"{name}.db") as connection:
            connection.executescript(script)
        connection.close()
        return Database(name=name, dialect="sqlite", database=f"{name}.db", folder=tmp_path)

    return made


async def test_suggested_joins_are_right_and_few_are_missed(make: Make):
    right = wrong = missed = 0
    for schema in SCHEMAS:
        async with Gateway.open([make(schema.stem, schema.read_text())]) as gateway:
            tables = (await gateway.database().inspector.tables(Scope())).tables
        true = {(key.relation, key.columns, key.references) for table in tables for key in table.foreign_keys}
        found = {
            (key.relation, key.columns, key.references)
            for key in suggest([replace(table, foreign_keys=()) for table in tables])
        }
        right, wrong, missed = right + len(found & true), wrong + len(found - true), missed + len(true - found)
    assert len(SCHEMAS) >= 10
    assert right / (right + wrong) >= 0.95
    assert right / (right + missed) >= 0.9


HIDDEN = """
CREATE TABLE customer (id integer PRIMARY KEY, segment text);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer, status_id integer);
CREATE TABLE status (id integer PRIMARY KEY, label text);
CREATE TABLE shipment (id integer PRIMARY KEY, order_id integer REFERENCES orders);
INSERT INTO customer VALUES (1, 'a'), (2, 'b');
INSERT INTO orders VALUES (1, 1, 71), (2, 2, 72), (3, 2, 73);
INSERT INTO status VALUES (1, 'open');
"""


async def described(toolbox: Toolbox, **arguments: object) -> dict:
    answer = await toolbox.call("describe_table", arguments)
    assert not answer.is_error, answer.text
    return structured(answer)["tables"]


def structured(answer: Answer) -> dict[str, Any]:
    assert answer.structured is not None
    return answer.structured


async def test_a_suggested_join_is_marked_and_one_that_values_speak_against_is_not_told(make: Make):
    async with Gateway.open([make("shop", HIDDEN)]) as gateway:
        toolbox = Toolbox(gateway)
        lines = (await described(toolbox, table_name="orders"))["orders"]
        assert lines[1:3] == ["customer_id integer NULL ~> customer.id", "status_id integer NULL"]
        (table,) = await described(toolbox, table_name="orders", detail="full")
    told = next(column["inferred"] for column in table["columns"] if column["name"] == "customer_id")
    assert told == [
        {
            "referenced_schema": "main",
            "referenced_table": "customer",
            "referenced_column": "id",
            "evidence": "by name; 100 % of 2 values found",
        }
    ]


async def test_a_path_uses_them_only_where_no_declared_key_leads_and_says_so(make: Make):
    async with Gateway.open([make("shop", HIDDEN)]) as gateway:
        toolbox = Toolbox(gateway)
        answer = await toolbox.call("find_join_path", {"from_table": "shipment", "to_table": "customer"})
        declared = await toolbox.call("find_join_path", {"from_table": "shipment", "to_table": "orders"})
        (path,) = structured(answer)["paths"]
        result = await gateway.query(None, path["sql"])
    assert [re.sub("[0-9].*", "", step.get("inferred", "")) for step in path["steps"]] == ["", "by name; "]
    assert "inferred" in structured(answer)["notices"][0]
    assert result.columns
    assert "notices" not in structured(declared)


async def test_they_can_be_switched_off(make: Make):
    database = make("shop", HIDDEN)
    quiet = replace(database, knowledge=replace(database.knowledge, infer_joins=False))
    async with Gateway.open([quiet]) as gateway:
        toolbox = Toolbox(gateway)
        assert "~>" not in "".join((await described(toolbox, table_name="orders"))["orders"])
        answer = await toolbox.call("find_join_path", {"from_table": "orders", "to_table": "customer"})
    assert answer.is_error
