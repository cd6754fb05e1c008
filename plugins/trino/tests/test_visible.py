"""With `schemas`, what lies outside does not exist: neither other schemas nor other catalogs, by whatever statement."""

import json

import pytest
from dragoman import Gateway
from dragoman.tools import Toolbox

MARK, ABSENT = "zyxmark", "zyxmurk"
"""A word that is in every name of the secret schema, and one that is nowhere."""


@pytest.fixture(scope="module")
async def place(trino_server, anyio_backend):
    """The name of a visible schema of the catalog memory; the secret one's has the mark before it."""
    async with trino_server.schema() as made:
        name = made.rpartition(".")[2]
        secret = f"memory.{MARK}_{name}"
        await trino_server.run(
            f"CREATE SCHEMA {secret}",
            f"CREATE TABLE {secret}.{MARK}_t (id integer, {MARK}_c varchar)",
            f"CREATE TABLE {made}.orders (id integer)",
            f"CREATE VIEW {made}.over_secret AS SELECT id FROM {secret}.{MARK}_t",
            f"CREATE VIEW {made}.plain AS SELECT id FROM {made}.orders",
        )
        yield name
        await trino_server.run(f"DROP TABLE {secret}.{MARK}_t", f"DROP SCHEMA {secret}")


@pytest.fixture(scope="module")
async def toolbox(trino_server, place: str, anyio_backend):
    async with Gateway.open([trino_server.configure("memory", place, schemas=(f"memory.{place}",))]) as gateway:
        yield Toolbox(gateway)


async def told(toolbox: Toolbox, tool: str, **arguments: object) -> str:
    return (await toolbox.call(tool, arguments)).text


STATEMENTS = """
SELECT * FROM memory.MARK_HERE.MARK_t
SELECT * FROM MARK_HERE.MARK_t
SELECT * FROM MARK_t
SELECT MARK_c FROM memory.MARK_HERE.MARK_t
SHOW TABLES FROM memory.MARK_HERE
SHOW COLUMNS FROM memory.MARK_HERE.MARK_t
DESCRIBE memory.MARK_HERE.MARK_t
SHOW CREATE TABLE memory.MARK_HERE.MARK_t
SHOW STATS FOR memory.MARK_HERE.MARK_t
SHOW STATS FOR (SELECT * FROM memory.MARK_HERE.MARK_t)
SHOW GRANTS ON TABLE memory.MARK_HERE.MARK_t
SHOW FUNCTIONS FROM memory.MARK_HERE
SHOW CREATE SCHEMA memory.MARK_HERE
EXPLAIN SELECT * FROM memory.MARK_HERE.MARK_t
SELECT * FROM "MARK_t$properties"
SELECT * FROM TABLE(system.table_changes(schema_name => 'MARK_HERE', table_name => 'MARK_t', since_snapshot_id => 1))
SHOW CREATE VIEW over_secret
EXPLAIN SELECT * FROM over_secret
SHOW SCHEMAS
SHOW SCHEMAS FROM memory
SHOW CATALOGS
SHOW SESSION
SHOW FUNCTIONS
SELECT * FROM over_secret
SELECT nothing FROM over_secret
SELECT * FROM tpch.tiny.nation
SELECT * FROM information_schema.tables
SELECT * FROM information_schema.columns
SELECT * FROM information_schema.views
SELECT * FROM information_schema.schemata
SELECT * FROM memory.information_schema.tables WHERE table_schema <> 'x'
SELECT * FROM system.information_schema.tables
SELECT * FROM system.metadata.table_comments WHERE catalog_name = 'memory'
SELECT * FROM system.metadata.catalogs
SELECT * FROM system.metadata.schema_properties
SELECT * FROM system.metadata.materialized_views
SELECT * FROM system.jdbc.tables
SELECT * FROM system.jdbc.columns
SELECT * FROM system.jdbc.schemas
SELECT * FROM system.jdbc.catalogs
SELECT * FROM system.runtime.nodes
SHOW TABLES
SHOW COLUMNS FROM over_secret
"""


@pytest.mark.parametrize("text", STATEMENTS.strip().splitlines())
async def test_no_statement_tells_what_is_outside(toolbox: Toolbox, place: str, text: str):
    sql = text.replace("HERE", place)
    hidden = await told(toolbox, "execute_query", sql=sql.replace("MARK", MARK))
    if "MARK" not in text:
        assert MARK not in hidden
        return
    absent = await told(toolbox, "execute_query", sql=sql.replace("MARK", ABSENT))
    assert hidden.replace(MARK, "x") == absent.replace(ABSENT, "x")


async def test_no_tool_tells_what_is_outside(toolbox: Toolbox, place: str):
    for tool, arguments in (
        ("list_schemas", {"include_system": True}),
        ("list_databases", {}),
        ("list_tables", {"detail": "full"}),
        ("search_catalog", {"query": ""}),
        ("search_catalog", {"query": "zyx"}),
        ("describe_table", {"table_name": ["over_secret", "plain"], "detail": "full"}),
        ("explain_query", {"sql": "SELECT * FROM over_secret"}),
        ("explain_query", {"sql": "SELECT * FROM over_secret", "format": "json", "verbose": True}),
        ("explain_query", {"sql": "SELECT * FROM over_secret", "analyze": True}),
    ):
        assert MARK not in await told(toolbox, tool, **arguments), (tool, arguments)
    described = json.loads(await told(toolbox, "describe_table", table_name="plain", detail="full"))
    assert "orders" in described["tables"][0]["definition"]
    assert "orders" in await told(toolbox, "explain_query", sql="SELECT * FROM plain")
