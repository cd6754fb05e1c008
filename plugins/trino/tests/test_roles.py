"""Roles on Trino: what is not granted does not exist, whatever statement names it."""

import itertools
import json
from contextlib import AsyncExitStack

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
        "SELECT current_schema",
        "SELECT name FROM nation WHERE name IN (current_schema, current_path)",
    ],
)
async def test_what_is_not_granted_is_read_by_no_statement(toolbox, sql):
    assert "error" in await ask(toolbox, "execute_query", sql=sql)


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT c.nam FROM customer c", "'c.nam'"),
        ("SELECT c.phone FROM customer c", "'c.phone'"),
        ("SELECT c.name, count(*) FROM customer c", "'c.name'"),
    ],
)
async def test_a_mistake_is_told_by_the_names_that_the_caller_wrote(toolbox, sql, named):
    error = (await ask(toolbox, "execute_query", sql=sql))["error"]
    assert named in error["message"]
    assert "(hidden)" not in json.dumps(error)


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
            f"CREATE VIEW few AS SELECT id FROM {schema}.shown",
            schema=schema,
        )
        grant = Grant(database="shop", tables=(f"{schema}.*",), deny=(f"{schema}.hidden",), key="roles.reader.grants.0")
        role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
        database = trino_server.configure(*schema.split("."), name="shop", schemas=(schema,))
        async with Gateway.open(Configuration(databases={"shop": database}, roles={"reader": role})) as gateway:
            toolbox = Toolbox(gateway)
            assert (await ask(toolbox, "execute_query", sql="SELECT * FROM few"))["rows"] == [[1]]
            await trino_server.run(f"CREATE OR REPLACE VIEW few AS SELECT id FROM {schema}.hidden", schema=schema)
            monkeypatch.setattr(Watch, "is_due", True)
            assert "error" in await ask(toolbox, "execute_query", sql="SELECT * FROM few")
            await trino_server.run(f"CREATE OR REPLACE VIEW few AS SELECT id FROM {schema}.shown", schema=schema)
            assert (await ask(toolbox, "execute_query", sql="SELECT * FROM few"))["rows"] == [[1]]


async def test_views_that_swap_their_queries_are_there_for_what_they_read_now(trino_server, monkeypatch):
    async with trino_server.schema() as schema:
        queries = {name: f"SELECT id FROM {schema}.{name}" for name in ("shown", "hidden")}
        views = {"few": "shown", "many": "hidden"}
        create = "CREATE OR REPLACE VIEW {} AS {}".format
        await trino_server.run(
            "CREATE TABLE shown AS SELECT 1 AS id",
            "CREATE TABLE hidden AS SELECT 2 AS id",
            *(create(view, queries[table]) for view, table in views.items()),
            schema=schema,
        )
        denied = (f"{schema}.hidden", f"{schema}.many")
        grant = Grant(database="shop", tables=(f"{schema}.*",), deny=denied, key="roles.reader.grants.0")
        role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
        database = trino_server.configure(*schema.split("."), name="shop", schemas=(schema,))
        async with Gateway.open(Configuration(databases={"shop": database}, roles={"reader": role})) as gateway:
            toolbox = Toolbox(gateway)
            assert (await ask(toolbox, "execute_query", sql="SELECT * FROM few"))["rows"] == [[1]]
            swapped = zip(views, reversed(views.values()), strict=True)
            await trino_server.run(*(create(view, queries[table]) for view, table in swapped), schema=schema)
            monkeypatch.setattr(Watch, "is_due", True)
            assert "error" in await ask(toolbox, "execute_query", sql="SELECT * FROM few")


@pytest.fixture(scope="module")
async def authored(trino_server, anyio_backend):
    """A caller of a granted schema, and the views in it, by whether they read that schema alone.

    Views were made from several sessions, and name tables in every way that the session allows.
    """
    async with trino_server.schema() as granted, trino_server.schema() as other:
        views = {}
        for home in (granted, other):
            await trino_server.run(f"CREATE TABLE {home}.people AS SELECT '{home}' AS place")
        for home, author in itertools.product((granted, other), repeat=2):
            catalog, schema = home.split(".")
            for name in (home + ".people", f"{schema}.people", *(["people"] if home == author else [])):
                view = f"{granted}.v{len(views)}"
                await trino_server.run(f"CREATE VIEW {view} AS SELECT place FROM {name}", schema=author)
                views[view] = home == granted and name.startswith(catalog)
        grant = Grant(database="shop", tables=(f"{granted}.*",), key="roles.reader.grants.0")
        role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
        database = trino_server.configure(*granted.split("."), name="shop")
        async with Gateway.open(Configuration(databases={"shop": database}, roles={"reader": role})) as gateway:
            yield Toolbox(gateway), views, other


async def test_a_view_shows_what_it_reads_and_not_what_its_names_mean_here(authored):
    toolbox, views, other = authored
    listed = str(await ask(toolbox, "list_tables"))
    for view, readable in views.items():
        answer = await ask(toolbox, "execute_query", sql=f"SELECT * FROM {view}")
        assert ("rows" in answer) == readable, view
        assert (f"'{view.rpartition('.')[2]}'" in listed) == readable
        assert other not in json.dumps(answer)


async def test_a_view_whose_names_are_not_full_is_granted_by_its_name(trino_server):
    async with trino_server.schema() as schema:
        await trino_server.run("CREATE TABLE t AS SELECT 1 AS id", "CREATE VIEW v AS TABLE t", schema=schema)
        grant = Grant(database="shop", tables=(f"{schema}.v",), key="roles.reader.grants.0")
        role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
        database = trino_server.configure(*schema.split("."), name="shop")
        async with Gateway.open(Configuration(databases={"shop": database}, roles={"reader": role})) as gateway:
            assert (await ask(Toolbox(gateway), "execute_query", sql="SELECT * FROM v"))["rows"] == [[1]]


@pytest.fixture(scope="module")
async def alike(trino_server, anyio_backend):
    """Gateways whose caller sees the schema `home` alone, and tables of TPC-H's schema `tiny` in another catalog.

    By the place where names without a schema are looked up. In `memory.tiny` there is a hidden table `nation`.
    """
    async with trino_server.schema() as home, AsyncExitStack() as stack:
        await trino_server.run(
            f"CREATE TABLE {home}.shown AS SELECT 1 AS id",
            "CREATE SCHEMA IF NOT EXISTS memory.tiny",
            "CREATE TABLE IF NOT EXISTS memory.tiny.nation AS SELECT 1 AS id",
        )
        grant = Grant(database="shop", tables=(f"{home}.*", "tpch.tiny.*"), key="roles.reader.grants.0")
        role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
        places = {"home": home.split("."), "hidden": ["memory", "tiny"], "catalog": ["memory"], "nowhere": []}
        opened = {}
        for name, place in places.items():
            database = trino_server.configure(*place, name="shop")
            configuration = Configuration(databases={"shop": database}, roles={"reader": role})
            opened[name] = Toolbox(await stack.enter_async_context(Gateway.open(configuration)))
        yield opened
        await trino_server.run("DROP SCHEMA memory.tiny CASCADE")


@pytest.mark.parametrize("place", ["home", "hidden", "catalog", "nowhere"])
@pytest.mark.parametrize(
    "names",
    [
        ("supplier", "suppliex"),  # in nine schemas, of which one is visible
        ("sf1.region", "sf1.regiox"),
        ("tiny.nation", "tiny.region"),  # in two catalogs, and in the visible one alone
        ("nation", "region"),
        ("information_schema.tables", "information_schema.tablez"),
    ],
)
async def test_a_name_is_told_as_one_that_is_not_there_however_many_hidden_tables_have_it(
    alike, place, names, monkeypatch
):
    # On a busy machine it takes longer than that to find out which part of a name is wrong.
    monkeypatch.setattr("dragoman.gateway.failures.PATIENCE", 60.0)
    errors = [(await ask(alike[place], "execute_query", sql=f"SELECT * FROM {name}"))["error"] for name in names]
    told = [(each["code"], each["message"].replace(name, "NAME")) for each, name in zip(errors, names, strict=True)]
    assert told[0] == told[1]
    assert "memory.tiny" not in str(errors)
    assert "sf100" not in str(errors)


async def test_a_table_of_another_catalog_is_read_by_its_whole_name(alike):
    for toolbox in alike.values():
        assert (await ask(toolbox, "execute_query", sql="SELECT count(*) FROM tpch.tiny.nation"))["rows"] == [[25]]
