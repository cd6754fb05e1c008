"""A data lake: Iceberg's partitions, materialized views and hidden tables, and a metastore that does not answer."""

import json

import pytest
from dragoman import (
    Database,
    DragomanError,
    ExplainOptions,
    Gateway,
    NotFound,
    Principal,
    ProfileBudget,
    Request,
    Scope,
    Unsupported,
)
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.tools import Toolbox
from dragoman_trino.client import Client
from dragoman_trino.executor import TrinoExecutor
from dragoman_trino.inspector import TrinoInspector
from dragoman_trino.testing.fixtures import start_server
from dragoman_trino.testing.server import CATALOGS, free_port

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

FILL = """
INSERT INTO logs
SELECT n, TIMESTAMP '2024-01-01 00:00:00' + n % 3 * INTERVAL '1' DAY, 'r' || CAST(n % 2 AS varchar), n % 10, 'text'
FROM UNNEST(sequence(1, 10000)) AS t (n)
"""
LAKE = (
    "CREATE SCHEMA lake.web",
    "CREATE TABLE logs (id bigint, at timestamp(6), region varchar, visit_day integer, note varchar)"
    " WITH (partitioning = ARRAY['day(at)', 'region', 'bucket(id, 4)', 'visit_day', 'truncate(note, 2)'])",
    FILL,
    FILL,
    "CREATE TABLE plain (id bigint)",
    "CREATE VIEW latest AS SELECT id FROM logs",
    "CREATE MATERIALIZED VIEW per_region COMMENT 'Visits'"
    " AS SELECT region, count(*) AS visits FROM logs GROUP BY region",
)
FILTERS = ("tenant = 'a'", "part = 'seen'", "n < 9", "rand() < 2 AND part = 'seen'", "tenant IN (SELECT 'a')", "false")
SHOWN = ("'***'", "tenant", "upper(part)", "IF(tenant = 'a', part)", "CAST(NULL AS varchar)", "part || ''")
RULED = (
    *({"table": f"filtered_{place}", "filter": rule} for place, rule in enumerate(FILTERS)),
    *({"table": f"masked_{place}", "columns": [{"name": "part", "mask": mask}]} for place, mask in enumerate(SHOWN)),
    {"table": "partial", "columns": [{"name": "n", "allow": False}]},
)
"""What the server itself shows two users of tables."""
RULES = {
    "catalogs": [{"allow": "all"}],
    "tables": [
        {"user": "stranger", "catalog": "system", "privileges": []},
        *({"user": "(limited|bound)", "schema": "ruled", "privileges": ["SELECT"], **rule} for rule in RULED),
        {"privileges": ["SELECT", "INSERT", "DELETE", "UPDATE", "OWNERSHIP", "GRANT_SELECT"]},
    ],
    "system_session_properties": [
        {"user": "bound", "property": "allow_pushdown_into_connectors", "allow": False},
        {"allow": True},
    ],
}
"""One user may not read what the server says about itself, and one may not set how the server plans."""
PARTS = ("day(at)", "region", "bucket(id)", "visit_day", "truncate(note)")


@pytest.fixture(scope="module")
async def lake(tmp_path_factory, anyio_backend):
    """A server with an Iceberg catalog, and one whose metastore is not there."""
    folder = tmp_path_factory.mktemp("lake")
    iceberg = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "TESTING_FILE_METASTORE",
        "hive.metastore.catalog.dir": "local:///warehouse",
        "fs.native-local.enabled": "true",
        "local.location": str(folder),
    }
    gone = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "HIVE_METASTORE",
        "hive.metastore.uri": f"thrift://127.0.0.1:{free_port()}",
        "hive.metastore.thrift.client.max-retries": "0",
    }
    rules = {
        "access-control.properties": "access-control.name=file\nsecurity.config-file={etc}/rules.json\n",
        "rules.json": json.dumps(RULES),
    }
    server = start_server(catalogs={**CATALOGS, "lake": iceberg, "gone": gone}, files=rules)
    await server.run(LAKE[0])
    await server.run(*LAKE[1:], schema="lake.web")
    await server.run("CREATE SCHEMA lake.empty")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def database(lake) -> Database:
    return lake.configure("lake", "web", timeout=15.0)


def alone(lake, schema, **fields) -> Database:
    """A schema as the whole database: the other catalogs, and the one that does not answer, are not read."""
    return lake.configure("lake", schema, schemas=(f"lake.{schema}",), **fields)


@pytest.fixture(scope="module")
async def inspector(database):
    client = Client(database)
    yield TrinoInspector(database, client)
    await client.aclose()


@pytest.fixture(scope="module")
async def executor(database):
    running = TrinoExecutor(database)
    yield running
    await running.aclose()


@pytest.fixture(scope="module")
async def tables(inspector):
    scope = Scope(catalogs=frozenset({"lake"}), schemas=frozenset({"web"}))
    inspection = await inspector.tables(scope)
    assert inspection.notices == ()
    return {table.relation.name: table for table in await inspector.details(inspection.tables)}


async def test_kinds_comments_and_queries_are_told(tables):
    assert {name: table.type for name, table in tables.items()} == {
        "logs": "partitioned table",
        "plain": "table",
        "latest": "view",
        "per_region": "materialized view",
    }
    assert tables["per_region"].comment == "Visits"
    assert "GROUP BY region" in tables["per_region"].definition
    assert tables["latest"].definition.split()[:2] == ["SELECT", "id"]


async def test_what_a_table_is_partitioned_by_is_told(tables):
    assert tables["logs"].partitioned_by == PARTS
    assert tables["plain"].partitioned_by == ()


async def test_rows_are_estimated_from_the_table_s_own_statistics(tables):
    assert (tables["logs"].row_estimate, tables["plain"].row_estimate) == (20_000, 0)


async def test_a_catalog_whose_metastore_does_not_answer_keeps_nobody_from_the_others(inspector):
    assert "lake" in {schema.catalog for schema in await inspector.schemas()}
    inspection = await inspector.tables(Scope())
    assert {"lake.web.logs", "tpch.tiny.nation"} <= {str(table.relation) for table in inspection.tables}
    (notice,) = inspection.notices
    assert notice.startswith("Catalog gone (iceberg) could not be read: ")
    assert "127.0.0.1" not in notice


async def explained(executor, condition):
    return await executor.explain(Request(statement=f"SELECT count(*) FROM logs{condition}"), ExplainOptions())


async def test_partitions_tell_all_values_of_their_columns_and_statistics_the_ranges_of_others(inspector, tables):
    told = await inspector.profiles([tables["logs"], tables["plain"]], ProfileBudget())
    logs = {profile.name: profile for profile in told[tables["logs"].relation]}
    region, day = logs["region"], logs["visit_day"]
    assert (set(region.values), region.kind, region.source) == ({"r0", "r1"}, "all", "statistics")
    assert region.fractions == (0.5, 0.5)
    assert sorted(map(int, day.values)) == list(range(10))
    assert (day.kind, day.fractions) == ("all", (0.1,) * 10)
    assert (logs["id"].minimum, logs["id"].maximum, logs["id"].values) == ("1", "10000", ())
    assert logs["note"].null_fraction == 0
    assert logs["note"].values == ()  # partitioned by a part of it


@pytest.mark.parametrize("user", ["limited", "bound"])
async def test_values_of_a_table_that_the_server_filters_or_masks_are_not_told(lake, user):
    """Its statistics and partitions tell of every row."""
    rows = "VALUES (1, VARCHAR 'a', 5, VARCHAR 'seen', 1, 2, 3), (2, 'b', 7777, 'secret', 1, 2, 3)"
    columns = 'id, tenant, n, part, line_1, line_2, "the line"'
    select = f"WITH (partitioning = ARRAY['part']) AS SELECT * FROM ({rows}) AS t ({columns})"
    names = ["plain", *(str(rule["table"]) for rule in RULED)]
    await lake.run("CREATE SCHEMA IF NOT EXISTS lake.ruled")
    await lake.run(*(f"CREATE TABLE IF NOT EXISTS lake.ruled.{name} {select}" for name in names))
    database = alone(lake, "ruled", user=user)
    client = Client(database)
    inspector = TrinoInspector(database, client)
    inspection = await inspector.tables(Scope(catalogs=frozenset({"lake"}), schemas=frozenset({"ruled"})))
    assert {table.relation.name for table in inspection.tables} == set(names)
    profiles = await inspector.profiles(inspection.tables, ProfileBudget())
    await client.aclose()
    told = {relation.name: {each.name: each for each in columns} for relation, columns in profiles.items()}
    assert set(told) == {"plain", "partial"}
    assert set(told["plain"]["part"].values) == {"seen", "secret"}
    assert told["plain"]["n"].maximum == "7777"
    assert {"line_1", "line_2", "the line"} <= set(told["plain"])
    assert "n" not in told["partial"]


@pytest.mark.parametrize("condition", ["", " WHERE upper(region) = 'R1'"])
async def test_reading_every_partition_is_warned_of(executor, condition):
    (warning,) = (await explained(executor, condition)).warnings
    assert warning.startswith("Every partition of lake.web.logs is read (about 20000 rows): limit at or region or id")


@pytest.mark.parametrize(
    "condition",
    [" WHERE region = 'r1'", " WHERE at >= TIMESTAMP '2024-01-03 00:00:00'", " WHERE id = 5", " WHERE visit_day = 3"],
)
async def test_reading_few_partitions_is_not(executor, condition):
    assert (await explained(executor, condition)).warnings == ()


FACTS = ("properties", "history", "snapshots", "manifests", "all_manifests", "partitions", "files", "entries", "refs")


@pytest.fixture(scope="module")
async def places(lake, anyio_backend):
    """A gateway of those who see the table, and one of those who see another schema."""
    async with Gateway.open([alone(lake, "web")]) as one, Gateway.open([alone(lake, "empty")]) as other:
        yield one, other


@pytest.mark.parametrize("fact", [*FACTS, "all_entries", "metadata_log_entries"])
async def test_facts_of_a_table_are_seen_by_those_who_see_the_table(places, fact):
    shown, elsewhere = places
    sql = f'SELECT * FROM lake.web."logs${fact}"'
    assert (await shown.query(None, sql)).columns
    with pytest.raises(DragomanError) as refused:
        await elsewhere.query(None, sql)
    with pytest.raises(DragomanError) as absent:
        await elsewhere.query(None, sql.replace("logs", "murk"))
    assert refused.value.message.replace("logs", "x") == absent.value.message.replace("murk", "x")


READER = Principal("rita", subject="rita", groups=frozenset({"readers"}))
SECRET = "only-in-the-past"
EVOLVED = (
    "CREATE SCHEMA lake.past",
    *(
        statement
        for name, change in {
            "dropped": "DROP COLUMN ssn",
            "renamed": "RENAME COLUMN ssn TO other",
            "replaced": "DROP COLUMN ssn",
        }.items()
        for statement in (
            f"CREATE TABLE lake.past.{name} (id bigint, ssn varchar)",
            f"INSERT INTO lake.past.{name} VALUES (1, '{SECRET}')",
            f"ALTER TABLE lake.past.{name} {change}",
        )
    ),
    "ALTER TABLE lake.past.replaced ADD COLUMN other varchar",
    "UPDATE lake.past.renamed SET other = NULL",
)
ASPECTS = "$files $entries $all_entries $partitions $manifests $snapshots $history $refs $properties".split()
HIDING = {
    "denied": {"deny_columns": ("*.ssn",)},
    "denied by pattern": {"deny_columns": ("lake.past.*.s*",)},
    "listed": {"columns": ("id", "other")},
    "masked": {"masks": {"*.ssn": "null"}},
}


@pytest.fixture(scope="module")
async def past(lake):
    """The statements that read the past of tables which had a column that they no longer have."""
    await lake.run(*EVOLVED)
    statements = []
    for name in ("dropped", "renamed", "replaced"):
        told = await lake.run(f'SELECT snapshot_id, committed_at FROM lake.past."{name}$snapshots" ORDER BY 2')
        for snapshot, at in told:
            statements.append(f"SELECT * FROM {name} FOR VERSION AS OF {snapshot}")
            statements.append(f"SELECT * FROM {name} FOR TIMESTAMP AS OF TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f} UTC'")
        statements.append(f"SELECT * FROM {name} AS a JOIN {name} FOR VERSION AS OF 'main' AS b ON a.id = b.id")
        statements += [f'SELECT * FROM "{name}{aspect}"' for aspect in ASPECTS]
    (snapshot, *_), *_ = await lake.run('SELECT max(snapshot_id) FROM lake.past."dropped$snapshots"')
    await lake.run(
        f"CREATE VIEW lake.past.older AS SELECT * FROM lake.past.dropped FOR VERSION AS OF {snapshot}",
        'CREATE VIEW lake.past.files AS SELECT * FROM lake.past."dropped$files"',
    )
    yield [*statements, "SELECT * FROM older", "SELECT * FROM files"]
    await lake.run("DROP SCHEMA lake.past CASCADE")


def reading(lake, **hiding):
    grant = Grant(database="lake", tables=("lake.past.*",), key="roles.reader.grants.0", **hiding)
    role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
    return Gateway.open(Configuration(databases={"lake": alone(lake, "past")}, roles={"reader": role}))


@pytest.mark.parametrize("hiding", HIDING)
async def test_a_column_that_a_role_hides_is_hidden_in_the_past_too(lake, past, hiding):
    async with reading(lake, **HIDING[hiding]) as gateway:
        # Each refused name makes the gateway read the catalog again. One way to hide a column is tried on every table.
        for statement in past if hiding == "denied" else [each for each in past if "renamed" in each]:
            with pytest.raises((NotFound, Unsupported)):
                await gateway.query("lake", statement, principal=READER)


async def test_the_past_of_a_table_is_open_to_those_who_see_whatever_it_had(lake, past):
    async with reading(lake) as gateway:
        answers = [
            await gateway.query("lake", statement, principal=READER) for statement in past if " FOR " in statement
        ]
    assert any([1, SECRET] in answer.rows for answer in answers)


async def test_the_definition_of_a_view_of_the_past_is_not_shown_to_callers_with_roles(lake, past):
    """It may name columns that the table no longer has."""
    tables = ("lake.past.older", "lake.past.dropped")
    grant = Grant(database="lake", tables=tables, key="roles.reader.grants.0")
    role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
    configuration = Configuration(databases={"lake": alone(lake, "past")}, roles={"reader": role})
    async with Gateway.open(configuration) as gateway:
        arguments = {"table_name": "older", "detail": "full"}
        answer = await Toolbox(gateway).call("describe_table", arguments, principal=READER)
        assert "older" in answer.text
        assert "VERSION AS OF" not in answer.text


LISTED = "SELECT table_name FROM lake.system.iceberg_tables"


@pytest.mark.parametrize("pattern", ["*", "lake.*.*"])
async def test_the_catalog_s_list_of_tables_is_granted_to_nobody(lake, pattern):
    """It names tables that a role denies. So does a view of it, unless the view is granted by its own name."""
    await lake.run(
        "CREATE SCHEMA IF NOT EXISTS lake.told",
        "CREATE TABLE IF NOT EXISTS lake.told.zyx (id bigint)",
        f"CREATE OR REPLACE VIEW lake.told.listing AS {LISTED}",
    )
    tables = (pattern, "lake.told.*")
    grant = Grant(database="lake", tables=tables, deny=("lake.told.zyx",), key="roles.reader.grants.0")
    role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
    configuration = Configuration(databases={"lake": lake.configure("lake", "web")}, roles={"reader": role})
    async with Gateway.open(configuration) as gateway:
        for statement in (LISTED, "SELECT * FROM lake.told.listing"):
            with pytest.raises(NotFound):
                await gateway.query("lake", statement, principal=READER)
        toolbox = Toolbox(gateway)
        for tool, arguments in (("list_tables", {}), ("search_catalog", {}), ("list_schemas", {})):
            told = await toolbox.call(tool, arguments, principal=READER)
            assert "zyx" not in told.text
            assert "iceberg_tables" not in told.text
            assert "listing" not in told.text


async def test_the_catalog_s_list_of_tables_may_be_read_where_nothing_is_hidden(lake):
    async with Gateway.open([lake.configure("lake", "web")]) as gateway:
        assert ["logs"] in (await gateway.query(None, LISTED)).rows
        listed = await Toolbox(gateway).call("list_tables", {})
        assert "iceberg_tables" not in listed.text


@pytest.fixture(scope="module")
async def copies(lake, anyio_backend):
    """Materialized views of a table that a role hides, and of one that it grants."""
    await lake.run(
        "CREATE SCHEMA lake.kept",
        "CREATE TABLE lake.kept.zyx AS SELECT 1 AS id",
        "CREATE TABLE lake.kept.shown AS SELECT 2 AS id",
        "CREATE MATERIALIZED VIEW lake.kept.all_zyx AS SELECT id FROM lake.kept.zyx",
        "CREATE MATERIALIZED VIEW lake.kept.all_shown AS SELECT id FROM lake.kept.shown",
        "CREATE VIEW lake.kept.above AS SELECT id FROM lake.kept.all_zyx",
        "REFRESH MATERIALIZED VIEW lake.kept.all_zyx",
    )


def open_copies(lake, user, *named):
    tables = ("lake.kept.*", *named)
    grant = Grant(database="lake", tables=tables, deny=("lake.kept.zyx",), key="roles.reader.grants.0")
    role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
    database = alone(lake, "kept", user=user)
    return Gateway.open(Configuration(databases={"lake": database}, roles={"reader": role}))


@pytest.mark.parametrize("user", ["admin", "stranger"])
async def test_a_materialized_view_is_granted_by_a_pattern_only_if_what_it_reads_is(lake, copies, user):
    """The server lists it among the tables. The stranger may not read the list of materialized views."""
    async with open_copies(lake, user) as gateway:
        for name in ("all_zyx", "above"):
            with pytest.raises(NotFound):
                await gateway.query("lake", f"SELECT * FROM {name}", principal=READER)
    async with open_copies(lake, user, "lake.kept.all_zyx") as gateway:
        assert (await gateway.query("lake", "SELECT * FROM all_zyx", principal=READER)).rows == [[1]]


async def test_where_materialized_views_are_not_told_a_notice_says_how_to_tell_them(lake, copies):
    async with Gateway.open([alone(lake, "kept", user="stranger")]) as gateway:
        assert (await gateway.query("lake", "SELECT * FROM all_shown")).rows == [[2]]
        told = (await Toolbox(gateway).call("search_catalog", {})).text
    assert "Let the user read system.metadata.materialized_views" in told
