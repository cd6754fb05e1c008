"""What the inspector tells of a real server's catalogs."""

import pytest
from dragoman import ConnectionFailed, Relation, Scope
from dragoman_trino import inspector as inspecting
from dragoman_trino.client import Client
from dragoman_trino.inspector import TrinoInspector
from dragoman_trino.tables import is_system
from dragoman_trino.testing.server import free_port

TABLES = """
CREATE TABLE orders (
  id bigint NOT NULL,
  "Order Day" date COMMENT 'When it was ordered',
  code char(3),
  name varchar(25),
  total decimal(12, 2),
  at timestamp(3),
  exactly timestamp(12) with time zone,
  tags array(varchar(9)),
  address row(street varchar(20), number decimal(38, 0)),
  prices map(varchar, real)
);
INSERT INTO orders (id) SELECT n FROM UNNEST(sequence(1, 40)) AS t (n);
COMMENT ON TABLE orders IS 'Customers'' orders';
CREATE TABLE "odd name" ("a.b" integer);
CREATE VIEW v_orders COMMENT 'In short' AS SELECT id FROM orders
"""


@pytest.fixture(scope="module")
async def schema(trino_server, anyio_backend):
    async with trino_server.schema() as name:
        statements = TABLES.split(";")
        await trino_server.run(*statements, schema=name)
        yield name


@pytest.fixture(scope="module")
async def inspector(trino_server, schema):
    database = trino_server.configure(*schema.split("."))
    client = Client(database)
    yield TrinoInspector(database, client)
    await client.aclose()


@pytest.fixture(scope="module")
def scope(schema):
    catalog, name = schema.split(".")
    return Scope(catalogs=frozenset({catalog}), schemas=frozenset({name}))


@pytest.fixture(scope="module")
async def tables(inspector, scope):
    """The relations of the module's schema, by name."""
    inspection = await inspector.tables(scope)
    assert inspection.notices == ()
    return {table.relation.name: table for table in inspection.tables}


def column(table, name):
    return next(column for column in table.columns if column.name == name)


async def test_the_version_is_the_server_s_own(inspector):
    assert (await inspector.version()).isdigit()


async def test_schemas_are_told_with_their_catalog_and_those_of_the_system_marked(inspector, schema):
    schemas = {f"{found.catalog}.{found.name}": found.system for found in await inspector.schemas()}
    assert schemas["tpch.tiny"] is False
    assert schemas[schema] is False
    assert all(schemas[name] for name in ("tpch.information_schema", "system.runtime", "system.jdbc"))


async def test_every_catalog_is_told(inspector, schema):
    inspection = await inspector.tables(Scope())
    told = {str(table.relation): table for table in inspection.tables}
    assert {f"{schema}.orders", "tpch.sf1.lineitem"} <= told.keys()
    assert told["tpch.information_schema.tables"].system
    assert told["system.runtime.queries"].system
    assert not told["tpch.tiny.nation"].system


async def test_tables_and_views_are_told_as_what_they_are(tables):
    kinds = {name: table.type for name, table in tables.items()}
    assert kinds == {"orders": "table", "odd name": "table", "v_orders": "view"}
    assert tables["v_orders"].definition.split() == ["SELECT", "id", "FROM", "orders"]
    assert tables["orders"].definition is None


async def test_comments_are_told(tables):
    assert tables["orders"].comment == "Customers' orders"
    assert tables["v_orders"].comment == "In short"
    assert column(tables["orders"], "order day").comment == "When it was ordered"
    assert column(tables["orders"], "id").comment is None


async def test_columns_come_in_order_with_their_nullability(tables):
    nullable = {column.name: column.nullable for column in tables["orders"].columns}
    assert list(nullable)[:3] == ["id", "order day", "code"]
    assert [name for name, may in nullable.items() if not may] == ["id"]


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("code", "char"),
        ("name", "varchar"),
        ("total", "decimal(12,2)"),
        ("at", "timestamp"),
        ("exactly", "timestamp(12) with time zone"),
        ("tags", "array(varchar)"),
        ("address", "row(street varchar, number decimal(38,0))"),
        ("prices", "map(varchar, real)"),
    ],
)
async def test_types_have_their_shortest_spelling_and_the_server_accepts_it(tables, trino_server, name, spelling):
    assert column(tables["orders"], name).type == spelling
    assert await trino_server.run(f"SELECT CAST(NULL AS {spelling})") == [[None]]


async def test_rows_are_estimated_where_there_are_few_tables(tables):
    assert {name: table.row_estimate for name, table in tables.items()} == {
        "orders": 40,
        "odd name": 0,
        "v_orders": None,
    }


async def test_of_many_tables_only_those_of_the_default_schema_are_estimated(inspector, schema, monkeypatch):
    monkeypatch.setattr(inspecting, "MOST_ESTIMATED", 5)
    told = {str(table.relation): table.row_estimate for table in (await inspector.tables(Scope())).tables}
    assert told[f"{schema}.orders"] == 40
    assert told["tpch.tiny.nation"] is None


async def test_details_estimate_the_rows_of_what_is_looked_at(inspector, monkeypatch):
    monkeypatch.setattr(inspecting, "MOST_ESTIMATED", 0)
    wanted = Scope(catalogs=frozenset({"tpch"}), schemas=frozenset({"tiny"}), names=frozenset({"nation", "region"}))
    plain = (await inspector.tables(wanted)).tables
    assert {table.row_estimate for table in plain} == {None}
    told = await inspector.details(plain)
    assert [(table.relation.name, table.row_estimate) for table in told] == [
        (table.relation.name, {"nation": 25, "region": 5}[table.relation.name]) for table in plain
    ]


async def test_a_table_that_cannot_be_estimated_spoils_no_other(inspector, schema):
    catalog, name = schema.split(".")
    known, gone = Relation("orders", name, catalog), Relation("gone", name, catalog)
    assert await inspector._estimates([known, gone, Relation("nation", "tiny", "tpch")]) == {
        known: 40,
        Relation("nation", "tiny", "tpch"): 25,
    }


async def test_statistics_that_are_not_there_are_no_estimate(inspector):
    big = Relation("lineitem", "sf1000", "tpch")
    assert await inspector._estimates([big]) == {}


@pytest.mark.parametrize(
    ("restricted", "names"),
    [
        ({"names": frozenset({"orders"})}, {"orders"}),
        ({"names": frozenset({"odd name", "orders", "none"})}, {"odd name", "orders"}),
        ({"names": frozenset({"x' OR '1'='1"})}, set()),
        ({"schemas": frozenset({"no such"})}, set()),
        ({"catalogs": frozenset({"nowhere"})}, set()),
    ],
)
async def test_a_scope_restricts(inspector, scope, restricted, names):
    asked = {"catalogs": scope.catalogs, "schemas": scope.schemas, **restricted}
    inspection = await inspector.tables(Scope(**asked))
    assert ({table.relation.name for table in inspection.tables}, inspection.notices) == (names, ())


async def test_several_schemas_are_asked_for_together(inspector):
    wanted = Scope(catalogs=frozenset({"tpch"}), schemas=frozenset({"tiny", "sf1", "sf100"}))
    told = (await inspector.tables(wanted)).tables
    assert len(told) == 24
    assert all(table.columns for table in told)


async def test_a_server_that_is_down_is_an_error(trino_server):
    client = Client(trino_server.configure(port=free_port()))
    try:
        inspector = TrinoInspector(client.connector.database, client)
        with pytest.raises(ConnectionFailed):
            await inspector.tables(Scope())
        with pytest.raises(ConnectionFailed):
            await inspector.schemas()
    finally:
        await client.aclose()


SYSTEM = [
    ("mysql", "performance_schema"),
    ("mariadb", "performance_schema"),
    ("cassandra", "system_schema"),
    ("cassandra", "system_virtual_schema"),
    ("vertica", "v_catalog"),
    ("druid", "sys"),
    ("ignite", "sys"),
    ("phoenix5", "system"),
    ("singlestore", "memsql"),
    ("oracle", "sys"),
    ("iceberg", "system"),
    ("postgresql", "pg_catalog"),
]


@pytest.mark.parametrize(("connector", "schema"), SYSTEM)
def test_a_schema_that_describes_the_database_behind_a_connector_is_the_systems(connector, schema):
    assert is_system(schema, "lake", connector)
    assert is_system(schema, "lake", None), "the connector is not known"
    assert not is_system(schema, "lake", "memory")
    assert not is_system("sales", "lake", connector)


@pytest.mark.parametrize("connector", ["memory", "mysql", None])
def test_every_catalog_describes_itself(connector):
    assert is_system("information_schema", "lake", connector)
    assert is_system("runtime", "system", connector)
    assert not is_system("sales", "lake", connector)
