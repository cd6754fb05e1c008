"""The gate on live servers, as a superuser: what is allowed runs, what is refused leaves no trace."""

from collections.abc import AsyncGenerator

import asyncpg
import pytest
from dragoman import Database, DragomanError, Gateway, SchemaNotFound, TableNotFound, UnsafeSql
from dragoman.testing.corpus import cases, setup
from dragoman_postgres.closure import REACHED
from dragoman_postgres.testing import Server

CASES = cases("postgres")
MORE = """
CREATE SCHEMA hidden;
CREATE TABLE hidden.secrets (id integer);
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE remote (id integer) SERVER elsewhere;
CREATE VIEW over_remote AS SELECT * FROM remote;
CREATE VIEW over_over_remote AS SELECT count(*) FROM over_remote;
CREATE TABLE parts (id integer) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (9) SERVER elsewhere;
CREATE FUNCTION lower(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION spend(customers) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION waste(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1 FROM pg_am LIMIT 1';
CREATE FUNCTION check_it(integer) RETURNS boolean LANGUAGE sql AS 'SELECT EXISTS (SELECT FROM pg_am)';
CREATE DOMAIN checked AS integer CHECK (check_it(VALUE));
CREATE FUNCTION pair_of(integer) RETURNS pair LANGUAGE sql AS 'SELECT 1, NULL::text';
CREATE CAST (integer AS pair) WITH FUNCTION pair_of;
CREATE FUNCTION plus(box, integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE OPERATOR |>> (leftarg = box, rightarg = integer, function = plus);
CREATE VIEW acting AS SELECT waste(id) FROM customers;
CREATE OPERATOR >= (leftarg = box, rightarg = integer, function = plus);
CREATE OPERATOR = (leftarg = box, rightarg = integer, function = plus);
CREATE VIEW waiting AS SELECT pg_sleep(0)::text AS waited;
CREATE VIEW over_waiting AS SELECT count(waited) FROM waiting;
CREATE VIEW ticking AS SELECT clock_timestamp() AS now;
CREATE DOMAIN checked_twice AS checked;
CREATE TYPE holder AS (c checked_twice);
CREATE TABLE held (c checked);
CREATE TYPE badge AS ENUM ('gold');
CREATE FUNCTION shown(badge) RETURNS text LANGUAGE sql AS 'SELECT current_user::text';
CREATE CAST (badge AS text) WITH FUNCTION shown AS IMPLICIT;
CREATE TABLE badges AS SELECT 'gold'::badge AS b;
CREATE FUNCTION similarity(text, text) RETURNS real LANGUAGE sql AS 'SELECT 1::real';
CREATE TYPE odd;
CREATE FUNCTION odd_in(cstring) RETURNS odd LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION odd_out(odd) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE odd (input = odd_in, output = odd_out, internallength = 4, passedbyvalue, alignment = int4);
CREATE FUNCTION differ(odd, odd) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR <> (leftarg = odd, rightarg = odd, function = differ);
CREATE FUNCTION upper(odd) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE TABLE odds AS SELECT '1'::odd AS o;
CREATE FUNCTION hidden.reverse(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE OPERATOR hidden.+ (leftarg = box, rightarg = integer, function = plus);
CREATE FUNCTION "json_scalar"(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION "json_object"(text, text) RETURNS integer LANGUAGE sql AS 'SELECT 1';
"""
# What a database consists of: every row, every object, every role, setting, large object, lock and prepared statement.
SNAPSHOT = """
SELECT md5(string_agg(part, '|' ORDER BY part)) FROM (
  SELECT 'class' || c.oid || c.relname || c.relfilenode FROM pg_class c WHERE relnamespace <> 'pg_toast'::regnamespace
  UNION ALL SELECT 'proc' || oid || proname FROM pg_proc
  UNION ALL SELECT 'type' || oid || typname FROM pg_type
  UNION ALL SELECT 'role' || oid || rolname || coalesce(rolpassword, '') FROM pg_authid
  UNION ALL SELECT 'setting' || s.setdatabase || s.setconfig::text FROM pg_db_role_setting s
  UNION ALL SELECT 'database' || datname FROM pg_database
  UNION ALL SELECT 'large object' || oid FROM pg_largeobject_metadata
  UNION ALL SELECT 'lock' || objid FROM pg_locks WHERE locktype = 'advisory'
  UNION ALL SELECT 'slot' || slot_name FROM pg_replication_slots
  UNION ALL SELECT 'prepared' || gid FROM pg_prepared_xacts
  UNION ALL SELECT 'sequence' || last_value || is_called FROM counters_id_seq
  UNION ALL SELECT 'row' || t::text FROM customers t
  UNION ALL SELECT 'row' || t::text FROM orders t
  UNION ALL SELECT 'row' || t::text FROM documents t
) AS parts (part)
"""


@pytest.fixture(scope="module")
async def database(server: Server, database_name: str) -> Database:
    await server.run(setup("postgres") + MORE, database_name)
    return server.configure(database_name)


def name_of(database: Database) -> str:
    assert database.database is not None
    return database.database


@pytest.fixture(scope="module")
async def plain(server: Server, database_name: str) -> AsyncGenerator[Database]:
    name = await server.create(setup("postgres"))
    yield server.configure(name)
    await server.drop(name)


@pytest.fixture(scope="module")
async def gateway(database: Database, plain: Database) -> AsyncGenerator[Gateway]:
    async with Gateway.open([database, plain]) as opened:
        yield opened


@pytest.fixture
async def connection(server: Server, plain: Database) -> AsyncGenerator[asyncpg.Connection]:
    opened = await asyncpg.connect(server.address(plain.name))
    yield opened
    await opened.close()


async def not_run(gateway: Gateway, database: Database) -> dict[str, str]:
    """The allowed queries of the corpus that failed though this server knows what they use, with their errors."""
    failed: dict[str, str] = {}
    ((version,),) = (await gateway.query(database.name, "SHOW server_version_num")).rows
    for case in CASES:
        if case.allow and case.since <= int(version) // 10000:
            try:
                await gateway.query(database.name, case.sql)
            except DragomanError as error:
                if "unsupported XML feature" not in error.message:  # the embedded server is built without
                    failed[case.sql] = f"{error.code}: {error.message}"
    return failed


async def test_every_allowed_query_of_the_corpus_runs(gateway: Gateway, plain: Database):
    assert await not_run(gateway, plain) == {}


async def test_every_allowed_query_of_the_corpus_runs_for_a_reader(server: Server, plain: Database):
    role = f"reader_{plain.name}"
    grant = f"CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"
    await server.run(grant, plain.name)
    try:
        async with Gateway.open([server.configure(plain.name, user=role)]) as gateway:
            assert await not_run(gateway, plain) == {}
    finally:
        await server.run(f"DROP OWNED BY {role}; DROP ROLE {role}", plain.name)


async def test_no_refused_statement_of_the_corpus_leaves_a_trace(
    gateway: Gateway, plain: Database, connection: asyncpg.Connection
):
    before = await connection.fetchval(SNAPSHOT)
    passed = []
    for case in CASES:
        if not case.allow:
            try:
                await gateway.query(plain.name, case.sql)
            except DragomanError:
                continue
            passed.append(case.sql)
    assert passed == []
    assert await connection.fetchval(SNAPSHOT) == before


async def test_the_snapshot_sees_a_change(plain: Database, connection: asyncpg.Connection):
    before = await connection.fetchval(SNAPSHOT)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("SELECT lo_create(0)")
    assert await connection.fetchval(SNAPSHOT) != before
    await transaction.rollback()
    assert await connection.fetchval(SNAPSHOT) == before


MADE_BY_USERS = [
    "SELECT * FROM remote",
    "SELECT * FROM over_remote",
    "SELECT 1 WHERE EXISTS (SELECT * FROM over_over_remote)",
    "SELECT * FROM parts",
    "SELECT * FROM acting",
    "SELECT lower(1)",
    "SELECT c.spend FROM customers c",
    "SELECT (c).spend FROM customers c",
    "SELECT (1).waste",
    "SELECT g.waste FROM generate_series(1, 2) AS g",
    "SELECT 5::checked",
    "SELECT CAST(5 AS pair)",
    "SELECT box '((0,0),(1,1))' |>> 5",
    "SELECT 1 BETWEEN 0 AND 2",
    "SELECT 1 IN (2)",
    "SELECT 1 IN (SELECT 2)",
    "SELECT CASE 1 WHEN 2 THEN 3 END",
    "SELECT * FROM customers NATURAL JOIN orders",
    "SELECT * FROM customers JOIN orders USING (id)",
    "SELECT * FROM waiting",
    "SELECT * FROM over_waiting",
    "SELECT 5::checked_twice",
    "SELECT '{5}'::_checked",
    "SELECT '(5)'::holder",
    "SELECT json_populate_record(NULL::held, '{}')",
    "SELECT * FROM json_to_record('{}') AS t (h holder)",
    "SELECT lower(b) FROM badges",
    "SELECT to_json('gold'::badge)",
    "SELECT public.similarity('a', 'b')",
    "SELECT upper(o) FROM odds",
    "SELECT '1'::odd <> '2'",
    "SELECT 1 FROM odds WHERE o <> o",
    "SELECT pg_input_is_valid('5', 'checked')",
    "SELECT pg_input_is_valid('5', 'public . Checked')",
    "SELECT * FROM pg_input_error_info('{5}', 'checked array')",
    "SELECT json_scalar(1)",
    "SELECT json_object('a', 'b')",
]


@pytest.mark.parametrize("text", MADE_BY_USERS)
async def test_what_users_made_is_refused_though_its_name_is_harmless(gateway: Gateway, database: Database, text: str):
    with pytest.raises(UnsafeSql):
        await gateway.query(database.name, text)


MADE_LATER = [
    ("SELECT initcap('later')", "CREATE FUNCTION initcap(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'"),
    ("SELECT 7 # 3", "CREATE OPERATOR # (leftarg = box, rightarg = integer, function = plus)"),
    ("SELECT '5'::small", "ALTER DOMAIN small ADD CHECK (check_it(VALUE))"),
    ("SELECT * FROM lately", "CREATE OR REPLACE VIEW lately AS SELECT waste(1) AS id"),
]


@pytest.mark.parametrize(("text", "script"), MADE_LATER)
async def test_what_users_make_later_ends_the_verdict_of_before(
    server: Server, database: Database, text: str, script: str
):
    await server.run(
        "DROP DOMAIN IF EXISTS small; CREATE DOMAIN small AS integer; DROP VIEW IF EXISTS lately;"
        " CREATE VIEW lately AS SELECT 1 AS id",
        name_of(database),
    )
    async with Gateway.open([server.configure(name_of(database), catalog_ttl=0.0)]) as gateway:
        for _ in range(2):
            assert (await gateway.query(None, text)).rows
        await server.run(script, name_of(database))
        with pytest.raises(UnsafeSql):
            await gateway.query(None, text)


BESIDE = [
    "SELECT pg_catalog.lower('A')",
    "SELECT c.name FROM customers c",
    "SELECT x.waste FROM (SELECT 1 AS waste) AS x",
    "SELECT upper('a'), 1 + 1",
    "SELECT * FROM big_orders",
    "SELECT 'happy'::mood",
    "SELECT * FROM ticking",
    "SELECT 1 <> 2, upper('a')",
    "SELECT c FROM held",
    "SELECT EXISTS (SELECT 1), ARRAY(SELECT 2)",
    "SELECT reverse('a'), 1 + 1",
]


async def test_a_policy_that_acts_closes_its_table_to_whom_it_binds(server: Server, database: Database):
    role = f"bound_{name_of(database)}"
    await server.run(
        f"CREATE ROLE {role} LOGIN; CREATE TABLE guarded (id integer); GRANT SELECT ON guarded TO {role};"
        " ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; CREATE POLICY wasting ON guarded USING (waste(id) > 0)",
        name_of(database),
    )
    try:
        async with Gateway.open([server.configure(name_of(database), user=role)]) as gateway:
            with pytest.raises(UnsafeSql):
                await gateway.query(None, "SELECT * FROM guarded")
        async with Gateway.open([database]) as gateway:
            assert (await gateway.query(None, "SELECT * FROM guarded")).rows == []
    finally:
        await server.run(f"DROP TABLE guarded; DROP OWNED BY {role}; DROP ROLE {role}", name_of(database))


@pytest.mark.parametrize("text", BESIDE)
async def test_what_stands_beside_the_users_names_runs(gateway: Gateway, database: Database, text: str):
    assert (await gateway.query(database.name, text)).columns


async def test_configuration_opens_what_users_made(server: Server, database: Database):
    opened = server.configure(
        database.name,
        allow_functions=frozenset({"lower", "spend", "waste"}),
        allow_relations=frozenset({"public.acting"}),
    )
    async with Gateway.open([opened]) as gateway:
        assert (await gateway.query(None, "SELECT lower(1), (1).waste")).rows == [[1, 1]]
        assert (await gateway.query(None, "SELECT c.spend FROM customers c LIMIT 1")).rows == [[1]]
        assert (await gateway.query(None, "SELECT * FROM acting LIMIT 1")).rows == [[1]]


OUTSIDE = [
    ("SELECT * FROM hidden.secrets", SchemaNotFound),
    ("SELECT * FROM pg_class", TableNotFound),
    ("SELECT * FROM information_schema.tables", TableNotFound),
    ("WITH secrets AS (SELECT 1) SELECT * FROM hidden.secrets", SchemaNotFound),
    ("SELECT 1 FROM customers c WHERE EXISTS (SELECT 1 FROM hidden.secrets)", SchemaNotFound),
]


async def test_the_configured_schemas_are_where_the_server_looks_too(server: Server, database: Database):
    """What the gate reads as public.twin must not run as hidden.twin, whatever path the database has."""
    await server.run(
        "CREATE TABLE public.twin AS SELECT 'open' AS side; CREATE TABLE hidden.twin AS SELECT 'secret' AS side;"
        f' ALTER DATABASE "{name_of(database)}" SET search_path = hidden, public',
        name_of(database),
    )
    async with Gateway.open([server.configure(database.name, schemas=("public",))]) as gateway:
        assert (await gateway.query(None, "SELECT side FROM twin")).rows == [["open"]]


@pytest.mark.parametrize(("text", "error"), OUTSIDE)
async def test_relations_outside_the_configured_schemas_are_refused(
    server: Server, database: Database, text: str, error: type[DragomanError]
):
    narrow = server.configure(database.name, schemas=("public",))
    async with Gateway.open([narrow]) as gateway:
        with pytest.raises(error):
            await gateway.query(narrow.name, text)
        with pytest.raises(TableNotFound):
            await gateway.query(narrow.name, "SELECT * FROM secrets")
        assert (await gateway.query(narrow.name, "SELECT count(*) FROM customers")).rows == [[3]]


@pytest.mark.anyio
async def test_all_trees_are_searched_once_and_not_for_each_object_that_is_reached(admin: asyncpg.Connection):
    plan = await admin.fetch(f"EXPLAIN {REACHED}", [], False, ["public"], *([[]] * 9))
    assert any(line.strip() == "CTE returned" for (line,) in plan)


@pytest.mark.anyio
async def test_a_view_of_thousands_of_calls_keeps_no_statement_waiting(server: Server, admin: asyncpg.Connection):
    columns = ", ".join(f"abs(a) + abs(a) + abs(a) AS c{number}" for number in range(1600))
    await admin.execute(f"CREATE TABLE narrow (a integer); CREATE VIEW wide AS SELECT {columns} FROM narrow")
    database = server.configure(await admin.fetchval("SELECT current_database()"))
    try:
        async with Gateway.open([database]) as gateway:
            assert (await gateway.query(database.name, "SELECT count(c1) FROM wide")).rows == [[0]]
    finally:
        await admin.execute("DROP VIEW wide; DROP TABLE narrow")
