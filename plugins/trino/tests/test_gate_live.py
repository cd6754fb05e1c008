"""The gate on a live server, as a user who may do everything: what is allowed runs, what is refused leaves no trace."""

import contextlib
import dataclasses
import itertools
from collections.abc import AsyncGenerator

import pytest
from dragoman import Database, DragomanError, Gateway, SchemaNotFound, TableNotFound, UnsafeSql
from dragoman.testing.asking import ask
from dragoman.testing.corpus import cases, setup
from dragoman_trino import doctor
from dragoman_trino.client import Client
from dragoman_trino.executor import TrinoExecutor
from dragoman_trino.reserved import RESERVED
from dragoman_trino.rules import load_allowed, read_policy, sort_out
from dragoman_trino.testing import Server

CASES = cases("trino")
SETUP = [
    statement.strip()
    for statement in "\n".join(line for line in setup("trino").splitlines() if line[:2] != "--").split(";")
]
_numbers = itertools.count(1)


def parameters(sql: str) -> list[object]:
    """Values for the corpus' statements with parameters."""
    values: dict[int, list[object]] = {0: [], 1: [1], 5: [1, "x", 1, 20, 3], 7: ["A%", "!", 1, 2, 3, 0, 5]}
    return values[sql.count("?") if "PATTERN" not in sql and "'lax" not in sql else 0]


@pytest.fixture(scope="module")
async def schema(trino_server: Server) -> AsyncGenerator[str]:
    async with trino_server.schema() as made:
        await trino_server.run(*SETUP, schema=made)
        yield made


@pytest.fixture(scope="module")
async def gateway(trino_server: Server, schema: str) -> AsyncGenerator[Gateway]:
    async with Gateway.open([trino_server.configure(*schema.split("."))]) as opened:
        yield opened


@pytest.fixture(scope="module")
async def executor(trino_server: Server, schema: str) -> AsyncGenerator[TrinoExecutor]:
    """The read-only transaction alone: nothing judges what it is given."""
    opened = TrinoExecutor(trino_server.configure(*schema.split(".")))
    yield opened
    await opened.aclose()


async def snapshot(server: Server, schema: str) -> list[object]:
    """What the corpus would change: the catalogs it names, and what the schema holds, to the last row."""
    catalog, name = schema.split(".")
    named = f"('evil', 'memory', 'tpch', 'seen_{name}')"
    catalogs = f"SELECT * FROM system.metadata.catalogs WHERE catalog_name IN {named} ORDER BY 1"
    columns = f"SELECT * FROM {catalog}.information_schema.columns WHERE table_schema = '{name}' ORDER BY 3, 4"
    comments = (
        f"SELECT * FROM system.metadata.table_comments WHERE catalog_name = '{catalog}' AND schema_name = '{name}'"
    )
    tables = [row[0] for row in await server.run(f"SHOW TABLES FROM {schema}")]
    state: list[object] = [
        await server.run(catalogs),
        await server.run(columns),
        sorted(map(str, await server.run(comments))),
        await server.run(f"SELECT * FROM {catalog}.information_schema.views WHERE table_schema = '{name}'"),
        await server.run(f"SHOW FUNCTIONS FROM {schema}"),
    ]
    return state + [sorted(map(str, await server.run(f'SELECT * FROM {schema}."{table}"'))) for table in tables]


async def test_every_allowed_statement_of_the_corpus_runs(gateway: Gateway):
    failed: dict[str, str] = {}
    for case in CASES:
        if case.allow:
            try:
                await gateway.query(None, case.sql, parameters(case.sql))
            except DragomanError as error:
                failed[case.sql] = f"{error.code}: {error.message}"
    assert failed == {}


async def test_no_refused_statement_of_the_corpus_leaves_a_trace(gateway: Gateway, trino_server: Server, schema: str):
    before = await snapshot(trino_server, schema)
    passed: list[str] = []
    for case in CASES:
        if not case.allow:
            try:
                await gateway.query(None, case.sql)
            except DragomanError:
                continue
            passed.append(case.sql)
    assert passed == []
    assert await snapshot(trino_server, schema) == before


CHANGES = [
    "CREATE TABLE {schema}.extra (a integer)",
    "COMMENT ON TABLE {schema}.extra IS 'new'",
    "INSERT INTO {schema}.extra VALUES 1",
    "TRUNCATE TABLE {schema}.extra",
    "CREATE FUNCTION {schema}.f() RETURNS bigint RETURN 1",
    "CREATE OR REPLACE VIEW {schema}.v AS SELECT 1 AS a",
    "CREATE OR REPLACE VIEW {schema}.v AS SELECT 2 AS a",
    "CREATE CATALOG {catalog} USING memory",
    "DROP CATALOG {catalog}",
    "DROP VIEW {schema}.v",
    "DROP FUNCTION {schema}.f()",
    "DROP TABLE {schema}.extra",
]


async def test_the_snapshot_sees_every_kind_of_change(trino_server: Server, schema: str):
    catalog = f"seen_{schema.split('.')[1]}"
    state = await snapshot(trino_server, schema)
    for change in CHANGES:
        await trino_server.run(change.format(schema=schema, catalog=catalog))
        after = await snapshot(trino_server, schema)
        assert after != state, change
        state = after


WRITES = [
    "INSERT INTO customers VALUES (9, 'x', 'y')",
    "TRUNCATE TABLE customers",
    "DELETE FROM customers",
    "UPDATE customers SET name = 'x'",
    "MERGE INTO customers USING orders ON customers.id = orders.id WHEN MATCHED THEN DELETE",
    "CREATE TABLE x (a integer)",
    "CREATE TABLE x AS SELECT 1 AS a",
    "CREATE OR REPLACE VIEW big_orders AS SELECT 1 AS a",
    "CREATE FUNCTION f() RETURNS bigint RETURN 1",
    "CREATE SCHEMA another",
    "DROP TABLE customers",
    "DROP VIEW big_orders",
    "ALTER TABLE customers RENAME TO clients",
    "ALTER TABLE customers ADD COLUMN x integer",
    "ALTER TABLE customers DROP COLUMN name",
    "COMMENT ON TABLE customers IS 'x'",
    "COMMENT ON COLUMN customers.name IS 'x'",
    "EXPLAIN ANALYZE INSERT INTO customers VALUES (9, 'x', 'y')",
    "EXECUTE IMMEDIATE 'INSERT INTO customers VALUES (9, ''x'', ''y'')'",
    "CALL system.runtime.kill_query('20010101_000000_00000_aaaaa', 'x')",
]


@pytest.fixture(scope="module")
async def unchanged(trino_server: Server, schema: str) -> list[object]:
    """The state before the first write: what one leaves as it was is the state before the next."""
    return await snapshot(trino_server, schema)


@pytest.mark.parametrize("statement", WRITES)
async def test_the_server_itself_refuses_to_change_tables(
    executor: TrinoExecutor, trino_server: Server, schema: str, statement: str, unchanged: list[object]
):
    with pytest.raises(DragomanError):
        await ask(executor, statement)
    assert await snapshot(trino_server, schema) == unchanged


async def test_the_server_itself_does_not_refuse_to_change_catalogs(
    executor: TrinoExecutor, gateway: Gateway, trino_server: Server
):
    """Why the gate must: a read-only transaction does not reach so far."""
    catalog = f"made_by_a_test_{next(_numbers)}"
    statement = f"CREATE CATALOG {catalog} USING memory"
    with pytest.raises(DragomanError):
        await gateway.query(None, statement)
    assert [catalog] not in await trino_server.run("SHOW CATALOGS")
    await ask(executor, statement)
    assert [catalog] in await trino_server.run("SHOW CATALOGS")
    await trino_server.run(f"DROP CATALOG {catalog}")


SESSION = [
    "SET SESSION query_max_run_time = '1ns'",
    "SET TIME ZONE 'Asia/Tokyo'",
    "SET PATH system.metadata",
    "USE tpch.tiny",
    "PREPARE p FROM SELECT 1",
]


@pytest.mark.parametrize("statement", SESSION)
async def test_what_a_statement_sets_does_not_reach_the_next_one(executor: TrinoExecutor, statement: str):
    """The server leaves sessions to its clients, and ours keeps none."""
    asked = "SELECT current_catalog, current_schema, current_timezone()"
    before = await ask(executor, asked)
    with contextlib.suppress(DragomanError):  # some are refused as well
        await ask(executor, statement)
    assert await ask(executor, asked) == before
    with pytest.raises(DragomanError):
        await ask(executor, "EXECUTE p")


async def test_the_shipped_functions_are_what_the_policy_makes_of_this_server(trino_server: Server):
    listed = await trino_server.run("SHOW FUNCTIONS")
    lists = sort_out(read_policy(), [(row[0], row[3], row[4]) for row in listed])
    assert set().union(*lists.values()) <= load_allowed().functions


async def test_every_shipped_function_of_the_engine_is_one_of_this_server(trino_server: Server):
    listed = {row[0].lower() for row in await trino_server.run("SHOW FUNCTIONS")}
    added = {name for kind in ("forms", "plugins") for group in read_policy()[kind] for name in group["names"].split()}
    assert load_allowed().functions - added <= listed


async def test_the_doctor_tells_where_the_lists_and_the_server_differ(
    trino_server: Server, monkeypatch: pytest.MonkeyPatch
):
    database = trino_server.configure()
    client = Client(database)
    try:
        same = {finding.subject for finding in await doctor.examine(client, database)}
        shorter = dataclasses.replace(load_allowed(), functions=load_allowed().functions - {"lower", "upper"})
        policy = {**read_policy(), "changing": [{"reason": "tables", "names": "sequence exclude_columns"}]}
        monkeypatch.setattr(doctor, "load_allowed", lambda: shorter)
        monkeypatch.setattr(doctor, "read_policy", lambda: policy)
        found = {finding.subject: finding.message for finding in await doctor.examine(client, database)}
    finally:
        await client.aclose()
    assert same.isdisjoint({"unlisted_functions", "changed_functions"})
    assert found["unlisted_functions"].endswith("lower, upper.")
    assert found["changed_functions"].endswith("rand, random, shuffle, uuid.")


async def test_reserved_words_are_no_names_and_the_others_are(trino_server: Server):
    for word in sorted(RESERVED):
        with pytest.raises(Exception, match="SYNTAX_ERROR"):
            await trino_server.run(f"SELECT 1 AS {word}")
    free = "date time update set limit offset filter over map row array all if first show use call grant session"
    names = [word for word in free.split() if word not in RESERVED]
    assert len(names) == len(free.split())
    assert (await trino_server.run("SELECT " + ", ".join(f"1 AS {word}" for word in names)))[0] == [1] * len(names)


async def test_only_the_configured_schemas_answer(trino_server: Server, schema: str):
    narrow: Database = trino_server.configure(*schema.split("."), schemas=(schema,))
    async with Gateway.open([narrow]) as gateway:
        assert (await gateway.query(None, "SELECT count(*) FROM customers")).rows == [[3]]
        assert ["customers"] in (await gateway.query(None, "SHOW TABLES")).rows
        with pytest.raises(UnsafeSql, match="open to queries"):
            await gateway.query(None, "SHOW SCHEMAS")
        with pytest.raises(SchemaNotFound):
            await gateway.query(None, "SELECT * FROM tpch.tiny.nation")
        with pytest.raises(TableNotFound):
            await gateway.query(None, "SELECT * FROM information_schema.tables")
