"""Statements that are kept prepared while what they use is altered: each answer is that of a new connection.

A generator alters tables, types, views, functions and operators at random, between two runs of the same statements.
"""

import random
from collections.abc import Iterator
from contextlib import suppress

import anyio
import asyncpg
import pytest
from dragoman import DragomanError, ParameterError, ResultTooLarge
from dragoman.testing.asking import ask, failure_of, value_of
from dragoman_postgres.executor import SMALL, PostgresExecutor
from dragoman_postgres.wrapping import SLACK

pytestmark = pytest.mark.usefixtures("lasting")

STORED = {
    "integer": "7",
    "bigint": "3000000000",
    "smallint": "7",
    "numeric": "0.1",
    "numeric(10,2)": "1.50",
    "numeric(12,4)": "1.50",
    "real": "0.1",
    "double precision": "0.1",
    "text": "ab ",
    "varchar(9)": "a",
    "char(5)": "ab",
    'text COLLATE "C"': "7",
    "name": "ab",
    '"char"': "a",
    "date": "2024-05-05",
    "timestamp": "2024-05-05 10:00",
    "timestamptz": "2024-05-05 10:00+02",
    "timestamp(0)": "2024-05-05 10:00",
    "time": "10:00",
    "interval": "1 day",
    "boolean": "t",
    "bytea": "ab",
    "json": '{"a": 1}',
    "jsonb": '{"a": 1}',
    "uuid": "00000000-0000-0000-0000-000000000001",
    "inet": "10.0.0.0/8",
    "cidr": "10.0.0.0/8",
    "money": "7",
    "bit(3)": "101",
    "integer[]": "{1,7}",
    "numeric[]": "{0.1}",
    "text[]": "{1,7}",
    "date[]": "{2024-05-05}",
    "int4range": "[1,8)",
    "numrange": "[1,7]",
    "mood": "glad",
    "mood[]": "{glad}",
    "dom": "7",
    "dom[]": "{7}",
    "pair": "(1,7)",
    "pair[]": '{"(1,7)"}',
    "held": "(1,7)",
    "nest": '("(1,7)","{""(1,7)""}")',
    "span": "[1,8)",
    "citext": "AB",
}
"""Types of a column, with a value of each."""
ALIKE = (
    ("integer", "bigint", "smallint", "numeric", "numeric(10,2)", "real", "double precision", "dom"),
    ("text", "varchar(9)", "char(5)", 'text COLLATE "C"', "name", "citext"),
    ("date", "timestamp", "timestamptz", "timestamp(0)"),
    ("time", "interval"),
    ("integer[]", "numeric[]"),
    ("inet", "cidr"),
    tuple(STORED),
)
"""Types that compare with each other: what follows one of them is often another one."""
GIVEN = (None, "7", 7, 0.1, 1.5, 3000000000, "ab ", "a ", "AB", "ab", "2024-05-05", "2024-05-05 10:00", "glad", [7])
"""Values of parameters."""
FIRST = """
DROP SCHEMA IF EXISTS made, other CASCADE; CREATE SCHEMA made; CREATE SCHEMA other;
SET search_path = made, public;
CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN dom AS integer;
CREATE TYPE pair AS (a integer, b integer); CREATE TYPE second AS (b integer, a integer); CREATE DOMAIN held AS pair;
CREATE TYPE nest AS (p pair, ps pair[]); CREATE TYPE span AS RANGE (subtype = integer);
CREATE TABLE t (id integer, c integer, d text); INSERT INTO t VALUES (1, 7, 'seven');
CREATE TABLE u (id integer, c text, d integer); INSERT INTO u VALUES (2, 'seven', 8);
CREATE VIEW v AS SELECT c, id FROM t; CREATE VIEW w AS SELECT * FROM v;
CREATE FUNCTION f(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION g() RETURNS TABLE (x integer, y integer) LANGUAGE sql STABLE AS 'SELECT 1, 2';
CREATE FUNCTION h(integer, integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 < $2';
CREATE OPERATOR === (leftarg = integer, rightarg = integer, function = h);
"""
COMPARING = (
    "SELECT id FROM t WHERE c = $1",
    "SELECT id FROM t WHERE c <= $1",
    "SELECT count(*) FROM t WHERE c IN ($1, $1)",
    "SELECT c FROM t WHERE c = ANY (ARRAY[$1, $1])",
    "SELECT coalesce(c, $1) FROM t",
    "SELECT id FROM u WHERE c = $1",
    "SELECT * FROM w WHERE c = $1",
)
ASKED = (
    "SELECT * FROM t",
    "SELECT * FROM made.u",
    "SELECT c FROM t",
    "SELECT c, d, c FROM t",
    "SELECT CASE WHEN id > $1 THEN c END FROM t",
    "SELECT c + $1 FROM t",
    "SELECT c || $1 FROM t",
    "SELECT c FROM t UNION ALL SELECT c FROM u",
    "SELECT t FROM t",
    "SELECT array_agg(t) FROM t",
    "SELECT ROW(c, d), ARRAY[ROW(c)] FROM t",
    "SELECT row_to_json(t)::text FROM t",
    "SELECT ARRAY[c], ARRAY[c, NULL] FROM t",
    "SELECT max(c), count(c) FROM t",
    "SELECT (SELECT c FROM t LIMIT 1) AS x, id FROM u",
    "SELECT t.c, u.c FROM t JOIN u ON t.id <= u.id",
    "SELECT * FROM v",
    "SELECT v FROM v",
    "SELECT f(1), f($1)",
    "SELECT f(id) FROM t",
    "SELECT * FROM g()",
    "SELECT g()",
    "SELECT 1 === 2, id === $1 FROM t",
    "SELECT '7'::dom, $1::dom",
    "SELECT id::dom, ARRAY[id]::dom[] FROM t",
    "SELECT 'glad'::mood, enum_range(NULL::mood), $1::mood",
    "SELECT ROW(1, 7)::pair, (ROW(1, 7)::pair).a, ARRAY[ROW(1, 7)::pair, NULL]",
    "SELECT ROW(ROW(1, 7), ARRAY[ROW(1, 7)::pair])::nest",
    "SELECT ROW(1, 7)::pair::held, ARRAY[ROW(1, 7)::pair::held]",
    "SELECT '[1,8)'::span, ARRAY['[1,8)'::span], $1::span",
    "SELECT 'A'::citext = 'a', 'A'::citext, $1 = 'a'::citext",
    "SELECT 'A'::text::citext",
    "TABLE t",
)
CALLED = "DROP FUNCTION IF EXISTS {0} CASCADE; CREATE FUNCTION {0} RETURNS {1} LANGUAGE sql IMMUTABLE AS $$SELECT {2}$$"
WRITTEN_ANEW = (
    "BEGIN; ALTER TABLE t RENAME TO x; ALTER TABLE u RENAME TO t; ALTER TABLE x RENAME TO u; COMMIT",
    "BEGIN; ALTER TABLE t RENAME c TO x; ALTER TABLE t RENAME d TO c; ALTER TABLE t RENAME x TO d; COMMIT",
    "ALTER TABLE t DROP COLUMN c, ADD COLUMN c integer DEFAULT 5",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS e numeric DEFAULT 1.5",
    "ALTER TABLE t DROP COLUMN IF EXISTS e",
    "DROP TABLE t CASCADE; CREATE TABLE t (id bigint, c numeric, d text); INSERT INTO t VALUES (1, 0.10, 'x')",
    "DROP TABLE t CASCADE; CREATE VIEW t AS SELECT 1 AS id, 'ab '::text AS c, 1.5 AS d",
    "DROP VIEW t CASCADE; CREATE TABLE t AS SELECT 1 AS id, 7 AS c, 'x' AS d",
    "ALTER TABLE t SET SCHEMA other; CREATE TABLE t AS SELECT id, d AS c, c AS d FROM other.t;"
    "DROP TABLE other.t CASCADE",
    "BEGIN; ALTER SCHEMA made RENAME TO gone; ALTER SCHEMA other RENAME TO made; ALTER SCHEMA gone RENAME TO other;"
    "COMMIT",
    "CREATE TABLE child () INHERITS (t); INSERT INTO child (id) VALUES (9)",
    "DROP TABLE IF EXISTS child",
    "CREATE OR REPLACE VIEW v AS SELECT c, id + 1 AS id FROM t",
    "DROP VIEW IF EXISTS v CASCADE; CREATE VIEW v AS SELECT id AS c, c AS id FROM t; CREATE VIEW w AS SELECT * FROM v",
    "DROP VIEW IF EXISTS v CASCADE; CREATE VIEW v AS SELECT d AS c, id FROM t; CREATE VIEW w AS SELECT c FROM v",
    "DROP VIEW IF EXISTS v CASCADE; CREATE TABLE v AS SELECT 1.50 AS c, 2 AS id",
    "DROP TABLE IF EXISTS v CASCADE; CREATE VIEW v AS SELECT c, id FROM u",
    "ALTER TYPE mood RENAME VALUE 'glad' TO 'merry'",
    "ALTER TYPE mood RENAME VALUE 'merry' TO 'glad'",
    "ALTER TYPE mood ADD VALUE IF NOT EXISTS 'bad' BEFORE 'sad'",
    "DROP TYPE mood CASCADE; CREATE TYPE mood AS ENUM ('glad', 'sad')",
    "DROP TYPE mood CASCADE; CREATE DOMAIN mood AS text",
    "DROP DOMAIN mood CASCADE; CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "ALTER TYPE mood RENAME TO temper; CREATE TYPE mood AS ENUM ('glad'); DROP TYPE temper CASCADE",
    "ALTER TYPE pair RENAME ATTRIBUTE a TO x CASCADE",
    "ALTER TYPE pair RENAME ATTRIBUTE x TO a CASCADE",
    "ALTER TYPE pair ADD ATTRIBUTE z text CASCADE",
    "ALTER TYPE pair DROP ATTRIBUTE IF EXISTS z CASCADE",
    "ALTER TYPE pair DROP ATTRIBUTE b CASCADE, ADD ATTRIBUTE b numeric CASCADE",
    "ALTER TYPE pair ALTER ATTRIBUTE b TYPE text CASCADE",
    "ALTER TYPE pair ALTER ATTRIBUTE b TYPE numeric(6,2) CASCADE",
    "BEGIN; ALTER TYPE pair RENAME TO x; ALTER TYPE second RENAME TO pair; ALTER TYPE x RENAME TO second; COMMIT",
    "DROP TYPE pair CASCADE; CREATE TYPE pair AS (b numeric, a text)",
    "DROP DOMAIN IF EXISTS held CASCADE; CREATE DOMAIN held AS pair",
    "DROP DOMAIN IF EXISTS held CASCADE; CREATE DOMAIN held AS second",
    "DROP TYPE IF EXISTS nest CASCADE; CREATE TYPE nest AS (p pair, ps pair[])",
    "DROP TYPE IF EXISTS nest CASCADE; CREATE TYPE nest AS (ps second, p pair[])",
    "DROP DOMAIN dom CASCADE; CREATE DOMAIN dom AS integer",
    "DROP DOMAIN dom CASCADE; CREATE DOMAIN dom AS numeric(6,2)",
    "DROP DOMAIN dom CASCADE; CREATE DOMAIN dom AS text",
    "DROP DOMAIN dom CASCADE; CREATE DOMAIN dom AS pair",
    "DROP DOMAIN dom CASCADE; CREATE DOMAIN dom AS integer[]",
    "ALTER DOMAIN dom ADD CONSTRAINT few CHECK (VALUE < '5')",
    "ALTER DOMAIN dom DROP CONSTRAINT IF EXISTS few",
    "DROP TYPE span CASCADE; CREATE TYPE span AS RANGE (subtype = integer)",
    "DROP TYPE span CASCADE; CREATE TYPE span AS RANGE (subtype = numeric)",
    "DROP TYPE span CASCADE; CREATE TYPE span AS RANGE (subtype = text)",
    CALLED.format("f(integer)", "integer", "$1 + 1"),
    CALLED.format("f(integer)", "numeric", "$1 + 0.5"),
    CALLED.format("f(integer)", "text", "$1::text"),
    CALLED.format("f(integer)", "pair", "NULL::pair"),
    "CREATE FUNCTION f(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1'",
    "DROP FUNCTION IF EXISTS f(text)",
    CALLED.format("g()", "TABLE (x integer, y integer)", "3, 4"),
    CALLED.format("g()", "TABLE (y integer, x integer)", "3, 4"),
    CALLED.format("g()", "TABLE (x numeric(6,2), y text)", "1.5, 'a'::text"),
    CALLED.format("g()", "SETOF pair", "NULL::pair"),
    CALLED.format("g()", "SETOF t", "* FROM t"),
    CALLED.format("g()", "SETOF record", "1, 2"),
    CALLED.format("h(integer, integer)", "boolean", "$1 > $2")
    + "; CREATE OPERATOR === (leftarg = integer, rightarg = integer, function = h)",
    CALLED.format("h(integer, integer)", "numeric", "$1 + $2 + 0.5")
    + "; CREATE OPERATOR === (leftarg = integer, rightarg = integer, function = h)",
    "DROP OPERATOR IF EXISTS === (integer, integer)",
    "CREATE EXTENSION IF NOT EXISTS citext SCHEMA public",
    "DROP EXTENSION IF EXISTS citext CASCADE",
    "DROP EXTENSION citext CASCADE; CREATE EXTENSION citext SCHEMA public",
    "DROP EXTENSION IF EXISTS citext CASCADE; CREATE DOMAIN citext AS text",
    "DROP DOMAIN IF EXISTS citext CASCADE",
)
STEPS = 30


def changes(rng: random.Random) -> Iterator[tuple[str, str | None]]:
    """Yield scripts without end, each with what is stored then.

    Most of them give a column another type, the others are one of those above.
    """
    alike = ALIKE[0]
    while True:
        if rng.random() < 0.4:
            yield rng.choice(WRITTEN_ANEW), None
            continue
        alike = rng.choice(ALIKE) if rng.random() < 0.3 else alike
        type_name = rng.choice(alike)
        table, column = rng.choice("tttu"), rng.choice("cccd")
        stored = STORED[type_name]
        bare = type_name.partition(" COLLATE")[0]
        yield (
            f"DROP VIEW IF EXISTS v CASCADE; ALTER TABLE {table} ALTER {column} TYPE {type_name} USING NULL;"
            f"UPDATE {table} SET {column} = '{stored}'::{bare};"
            "CREATE VIEW v AS SELECT c, id FROM t; CREATE VIEW w AS SELECT * FROM v",
            stored,
        )


async def answer(executor, sql, value):
    try:
        columns, rows = await ask(executor, sql, *([value] if "$1" in sql else []))
    except DragomanError as error:
        return error.code, error.message
    return [(column.name, column.type, column.kind) for column in columns], rows


def configured(server, name, **fields):
    return server.configure(name, pool_size=1, catalog_ttl=10_000, **fields)


@pytest.fixture
async def altered(server, anyio_backend):
    """The name of a database, and a connection that alters it."""
    name = await server.create()
    await server.run(f'ALTER DATABASE "{name}" SET search_path = made, public')
    connection = await asyncpg.connect(server.address(name))
    await connection.execute(FIRST)
    yield name, connection
    await connection.close()
    await server.drop(name)


COMPARED = (
    ("real", "double precision", "0.1", 0.1),
    ("integer", "bigint", "3000000000", 3000000000),
    ("integer", "numeric", "1.5", 1.5),
    ("integer[]", "numeric[]", "{1.5}", [1.5]),
    ("date", "timestamp", "2024-05-05 10:00", "2024-05-05 10:00"),
    ("timestamp", "timestamptz", "2024-05-05 10:00+02", "2024-05-05 10:00+02"),
    ("time", "interval", "36:00", "36:00"),
    ("char(3)", "text", "ab ", "ab "),
    ("varchar", "char(5)", "a", "a  "),
)
"""The types of a column before and after a change, what it stores then, and a value that is equal to it then."""


@pytest.mark.parametrize(("before", "after", "stored", "value"), COMPARED)
async def test_a_parameter_has_the_type_of_the_column_that_it_is_compared_with_now(
    server, altered, before, after, stored, value
):
    name, admin = altered
    executor = PostgresExecutor(configured(server, name))
    await admin.execute(f"CREATE TABLE compared (c {before})")
    for sql in ("SELECT count(*) FROM compared WHERE c = $1", "SELECT count(*) FROM compared WHERE c <= $1"):
        for _ in range(2):
            assert await value_of(executor, sql, None) == 0
    await admin.execute(
        f"ALTER TABLE compared ALTER c TYPE {after} USING NULL; INSERT INTO compared VALUES ('{stored}')"
    )
    for sql in ("SELECT count(*) FROM compared WHERE c = $1", "SELECT count(*) FROM compared WHERE c <= $1"):
        for _ in range(2):
            assert await value_of(executor, sql, value) == 1
    await executor.aclose()


async def test_an_answer_that_is_too_large_is_told_as_such_after_a_change(server, altered):
    """Its connection is lost, and cannot prepare the statement anew."""
    name, admin = altered
    executor = PostgresExecutor(configured(server, name))
    asked = "SELECT repeat('x', 5000000) FROM compared WHERE c <= $1"
    await admin.execute("CREATE TABLE compared (c real)")
    for _ in range(2):
        await ask(executor, asked, 1, max_bytes=1000)
    await admin.execute("ALTER TABLE compared ALTER c TYPE double precision; INSERT INTO compared VALUES (0.1)")
    assert isinstance(await failure_of(executor, asked, 1, max_bytes=1000), ResultTooLarge)
    await executor.aclose()


async def test_a_wrong_value_is_told_as_such_after_an_answer_of_nearly_all_bytes(server, altered):
    """The statement is prepared anew over the connection that has few bytes left."""
    executor = PostgresExecutor(configured(server, altered[0]))
    sql = "SELECT repeat('x', $1)"
    for length in range(SMALL - 800, SMALL, 40):
        for _ in range(2):
            with suppress(ResultTooLarge):
                await ask(executor, sql, length, max_bytes=SMALL // SLACK)
        assert isinstance(await failure_of(executor, sql, "x", max_bytes=SMALL // SLACK), ParameterError)
    await executor.aclose()


@pytest.mark.parametrize("seed", [0, 1, 2, 40])
async def test_each_answer_after_a_change_is_that_of_a_new_connection(server, altered, seed):
    name, admin = altered
    rng = random.Random(seed)
    script = changes(rng)
    # Each statement has a connection of its own: what one of them notices makes a connection forget all of them.
    kept = [PostgresExecutor(configured(server, name)) for _ in range(9)]
    history: list[str] = []
    try:
        for _ in range(STEPS):
            asked = [*rng.sample(COMPARING, 5), *rng.sample(ASKED, len(kept) - 5)]
            for executor, sql in zip(kept, asked, strict=True):
                await answer(executor, sql, None)
            change, stored = next(script)
            with suppress(asyncpg.PostgresError):
                await admin.execute(change)
                history.append(change)
            await admin.execute("ROLLBACK")
            new = PostgresExecutor(configured(server, name))
            for executor, sql in zip(kept, asked, strict=True):
                value = rng.choice((stored, rng.choice(GIVEN)))
                assert await answer(executor, sql, value) == await answer(new, sql, value), (sql, value, history)
            await new.aclose()
    finally:
        for executor in kept:
            await executor.aclose()


UNNOTICED = (
    ("SELECT c FROM t", "CREATE TABLE nearer.t AS SELECT 'another' AS c"),
    ("SELECT count(*) FROM t AS x, t AS y", "CREATE VIEW nearer.t AS SELECT 1 AS c UNION ALL SELECT 2"),
    ("SELECT f(1)", "CREATE FUNCTION nearer.f(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 100'"),
    ("SELECT f(1::smallint)", "CREATE FUNCTION f(smallint) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 100'"),
    (
        "SELECT 2 === 1",
        "CREATE OPERATOR nearer.=== (leftarg = integer, rightarg = integer, function = pg_catalog.int4gt)",
    ),
    ("SELECT '1'::dom::text", "CREATE DOMAIN nearer.dom AS numeric(4,2)"),
    (
        "SELECT (p).a FROM held_pairs",
        "ALTER TYPE pair RENAME ATTRIBUTE a TO c; ALTER TYPE pair RENAME ATTRIBUTE b TO a",
    ),
    ("SELECT (p).b FROM held_pairs", "ALTER TYPE pair DROP ATTRIBUTE b"),
)
"""Statements, with what changes their meaning and makes the server plan no kept statement anew."""


@pytest.mark.parametrize(("sql", "change"), UNNOTICED)
async def test_a_name_that_means_something_else_by_now_is_looked_up_again(server, altered, sql, change):
    """The server keeps what a statement's names meant when it was prepared."""
    name, admin = altered
    await server.run(f'ALTER DATABASE "{name}" SET search_path = nearer, made, public')
    await admin.execute("CREATE SCHEMA nearer; CREATE TABLE held_pairs (p pair)")
    await admin.execute("INSERT INTO held_pairs VALUES ((1, 2))")
    kept, new = PostgresExecutor(configured(server, name)), PostgresExecutor(configured(server, name))
    before = [await answer(kept, sql, None) for _ in range(3)]
    await admin.execute(change)
    after = await answer(new, sql, None)
    assert after not in before
    with anyio.fail_after(30):
        while await answer(kept, sql, None) != after:
            await anyio.sleep(0.1)
    for executor in (kept, new):
        await executor.aclose()
