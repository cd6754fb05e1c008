"""The toolset `knowledge` over a real SQLite file: a schema as text, a row along its keys, facts of a database."""

import sqlite3

import pytest
from dragoman.tools import Toolbox

TOOLS = ("read_schema", "get_row", "server_info")


@pytest.fixture
async def knowing(database, scripts, open_toolbox):
    async with open_toolbox(database("shop", scripts["shop"]), profile="full") as toolbox:
        yield toolbox


async def test_full_has_the_toolset_and_standard_does_not(knowing: Toolbox):
    assert {tool.name for tool in knowing.tools} >= set(TOOLS)
    assert not {tool.name for tool in Toolbox(knowing.gateway).tools} & set(TOOLS)


async def test_the_schema_as_sql_builds_the_same_tables(knowing: Toolbox, ask):
    told = await ask(knowing, "read_schema", tables=["users", "branches", "orders"])
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(told["schema"])
        keys = connection.execute("PRAGMA foreign_key_list(orders)").fetchall()
    connection.close()
    assert {row[2] for row in keys} == {"users", "branches"}
    assert "user_id integer NOT NULL REFERENCES users (id)" in told["schema"]


async def test_the_whole_schema_is_told_without_names(knowing: Toolbox, ask):
    schema = (await ask(knowing, "read_schema"))["schema"]
    assert schema.count("CREATE TABLE") == 5
    assert "CREATE VIEW big_orders" in schema


async def test_the_schema_as_a_diagram_draws_keys(knowing: Toolbox, ask):
    schema = (await ask(knowing, "read_schema", format="mermaid"))["schema"]
    assert schema.startswith("erDiagram\n")
    assert '"users" ||--o{ "orders" : "user_id"' in schema
    assert "integer id PK" in schema


async def test_the_schema_as_json_has_objects(knowing: Toolbox, ask):
    (table,) = (await ask(knowing, "read_schema", tables=["users"], format="json"))["schema"]
    assert table["name"] == "users"


async def test_a_row_comes_with_what_it_refers_to(knowing: Toolbox, ask):
    told = await ask(knowing, "get_row", table_name="orders", key=2, follow=2)
    assert told["row"]["total"] == 250
    assert told["refers_to"]["user_id"]["row"]["email"] == "grace@example.com"
    assert told["refers_to"]["user_id"]["refers_to"]["manager_id"]["row"]["id"] == 1
    assert told["refers_to"]["region, branch"]["table"] == "branches"
    assert "refers_to" not in await ask(knowing, "get_row", table_name="orders", key=2, follow=0)


KEYS = [f"r{n} INTEGER REFERENCES wide(id)" for n in range(9)]
WIDE = f"""
CREATE TABLE wide (id INTEGER PRIMARY KEY, note TEXT, {", ".join(KEYS)});
WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 29)
INSERT INTO wide SELECT n, printf('%.300c', 'x'), {", ".join(f"(7 * n + {n}) % 30" for n in range(9))} FROM numbers;
"""


def rows_in(told) -> int:
    """Return the number of rows of an answer, with those that they refer to."""
    return 1 + sum(map(rows_in, told.get("refers_to", {}).values()))


@pytest.mark.parametrize("limits", [{"max_bytes": 9_000}, {"max_rows": 20, "default_rows": 5}])
@pytest.mark.parametrize("follow", [0, 1, 2, 3])
async def test_a_row_with_what_it_refers_to_is_no_longer_than_any_answer(database, open_toolbox, follow, limits):
    async with open_toolbox(database("shop", WIDE, **limits), profile="full") as toolbox:
        answer = await toolbox.call("get_row", {"table_name": "wide", "key": 5, "follow": follow})
    told = answer.structured
    assert len(answer.text.encode()) <= limits.get("max_bytes", 100_000)
    assert 1 + 9 * (follow > 0) <= rows_in(told) <= limits.get("max_rows", 10_000) + 1
    assert ("notices" in told) == (follow > 1)


async def test_a_key_of_several_columns_is_an_object(knowing: Toolbox, ask, fail):
    key = {"region": "north", "id": 1}
    assert (await ask(knowing, "get_row", table_name="branches", key=key))["row"] == key
    error = await fail(knowing, "get_row", {"table_name": "branches", "key": 1})
    assert "region, id" in error["suggestion"]
    shouted = {"REGION": "north", "Id": 1}
    assert (await ask(knowing, "get_row", table_name="branches", key=shouted))["row"] == key
    error = await fail(knowing, "get_row", {"table_name": "branches", "key": {"regoin": "north"}})
    assert (error["code"], error["suggestion"]) == ("COLUMN_NOT_FOUND", 'Did you mean "region"?')
    assert (await fail(knowing, "get_row", {"table_name": "branches", "key": {}}))["code"] == "PARAMETER_ERROR"


async def test_a_row_that_is_not_there_is_an_error(knowing: Toolbox, fail):
    assert (await fail(knowing, "get_row", {"table_name": "orders", "key": 99}))["code"] == "PARAMETER_ERROR"


async def test_the_facts_of_a_database(knowing: Toolbox, ask):
    told = await ask(knowing, "server_info")
    assert (told["name"], told["dialect"], told["status"], told["placeholder"]) == ("shop", "sqlite", "ready", "?")
    assert "statistics" in told["abilities"]


BINARY = """
CREATE TABLE files (id BLOB PRIMARY KEY, name TEXT);
INSERT INTO files VALUES (x'00FF', 'of bytes'), ('AAAA', 'of a text'), ('?', 'odd');
"""


@pytest.mark.parametrize(("key", "name"), [("AP8=", "of bytes"), ("AAAA", "of a text"), ("?", "odd")])
async def test_a_binary_key_is_base64_as_answers_give_it(database, open_toolbox, ask, key, name):
    async with open_toolbox(database("shop", BINARY), profile="full") as toolbox:
        assert (await ask(toolbox, "get_row", table_name="files", key=key))["row"]["name"] == name
