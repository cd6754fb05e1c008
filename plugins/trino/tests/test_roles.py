"""Roles on Trino: what is not granted does not exist, whatever statement names it."""

import json

import pytest
from dragoman import Gateway, Principal
from dragoman.catalog.watch import Watch
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.tools import Toolbox

READER = Principal("rita", subject="rita", groups=frozenset({"readers"}))


@pytest.fixture(scope="module")
async def toolbox(trino_server, anyio_backend):
    database = trino_server.configure("tpch", "tiny")
    grant = Grant(
        database=database.name,
        tables=("tpch.tiny.*",),
        deny=("tpch.tiny.orders",),
        deny_columns=("tpch.tiny.customer.phone",),
        key="roles.reader.grants.0",
    )
    role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
    async with Gateway.open(Configuration(databases={database.name: database}, roles={"reader": role})) as gateway:
        yield Toolbox(gateway)


async def ask(toolbox, tool, **arguments):
    return json.loads((await toolbox.call(tool, arguments, principal=READER)).text)


async def test_lists_show_what_is_granted(toolbox):
    tables = (await ask(toolbox, "list_tables"))["tables"]
    assert "orders" not in str(tables)
    assert "customer" in str(tables)
    assert "phone" not in str(await ask(toolbox, "describe_table", table_name="customer", detail="full"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM orders",
        "SELECT * FROM tpch.tiny.orders",
        "SELECT * FROM tpch.sf1.customer",
        "SELECT phone FROM customer",
        "SELECT custkey FROM customer WHERE phone > ''",
        "DESCRIBE customer",
        "SELECT x FROM customer AS c(a, b, x, d, e, f, g, h)",
        "WITH customer AS (SELECT * FROM tpch.tiny.customer) SELECT phone FROM customer",
        "SHOW TABLES FROM tpch.sf1",
        "SELECT table_name FROM information_schema.tables",
        'SELECT * FROM "orders$partitions"',
        'SELECT * FROM "orders$snapshots"',
        'SELECT * FROM tpch.tiny."orders$files@1"',
        'SELECT * FROM "customer$files"',
    ],
)
async def test_what_is_not_granted_is_read_by_no_statement(toolbox, sql):
    assert "error" in await ask(toolbox, "execute_query", sql=sql)


async def test_what_is_granted_is_read(toolbox):
    sql = "SELECT c.custkey FROM customer c JOIN nation n ON n.nationkey = c.nationkey ORDER BY 1 LIMIT 1"
    assert (await ask(toolbox, "execute_query", sql=sql))["rows"] == [[1]]


@pytest.mark.parametrize("sql", ["SELECT * FROM customer", "TABLE customer"])
async def test_every_column_means_those_that_are_granted(toolbox, sql):
    columns = (await ask(toolbox, "execute_query", sql=sql))["columns"]
    assert len(columns) == 7
    assert "phone" not in columns


async def test_a_view_that_is_replaced_is_there_for_what_it_reads_now(trino_server, monkeypatch):
    async with trino_server.schema() as schema:
        await trino_server.run(
            "CREATE TABLE shown AS SELECT 1 AS id",
            "CREATE TABLE hidden AS SELECT 2 AS id",
            "CREATE VIEW few AS SELECT id FROM shown",
            schema=schema,
        )
        grant = Grant(database="shop", tables=(f"{schema}.*",), deny=(f"{schema}.hidden",), key="roles.reader.grants.0")
        role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
        database = trino_server.configure(*schema.split("."), name="shop", schemas=(schema,))
        async with Gateway.open(Configuration(databases={"shop": database}, roles={"reader": role})) as gateway:
            toolbox = Toolbox(gateway)
            assert (await ask(toolbox, "execute_query", sql="SELECT * FROM few"))["rows"] == [[1]]
            await trino_server.run("CREATE OR REPLACE VIEW few AS SELECT id FROM hidden", schema=schema)
            monkeypatch.setattr(Watch, "is_due", True)
            assert "error" in await ask(toolbox, "execute_query", sql="SELECT * FROM few")
            await trino_server.run("CREATE OR REPLACE VIEW few AS SELECT id FROM shown", schema=schema)
            assert (await ask(toolbox, "execute_query", sql="SELECT * FROM few"))["rows"] == [[1]]
