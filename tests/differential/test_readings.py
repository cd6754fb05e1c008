"""What the gates read in random queries is what the databases themselves find in them."""

import re
import sqlite3
from collections.abc import AsyncGenerator, Callable, Iterator
from random import Random

import asyncpg
import pytest
from dragoman import Relation, Statement
from dragoman_postgres.plugin import plugin as postgres
from dragoman_postgres.reading import read
from dragoman_postgres.testing import Server
from dragoman_sqlite.plugin import plugin as sqlite
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

TABLES = """
CREATE TABLE plain (x integer);
CREATE TABLE other (x integer);
CREATE TABLE "Odd" (x integer);
"""
FUNCTIONS = "".join(
    f"CREATE FUNCTION {name}(integer) RETURNS {result} LANGUAGE sql AS 'SELECT 1';"
    for name, result in (
        ("probe_a", "integer"),
        ("probe_b", "integer"),
        ("probe_c", "integer"),
        ("probe_set", "SETOF integer"),
    )
)
SIDE = "CREATE SCHEMA side; CREATE TABLE side.plain (x integer);"
# Whatever the tree of a view refers to, but what the system itself brings.
RELATIONS = """
SELECT DISTINCT n.nspname, c.relname FROM pg_depend d JOIN pg_class c ON c.oid = d.refobjid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND c.relname <> 'probe'
  AND d.objid IN (SELECT oid FROM pg_rewrite WHERE ev_class = 'probe'::regclass)
"""
# A call that was written has the format 0; casts have others. Aggregates and window functions are nodes of their own.
CALLS = """
SELECT DISTINCT p.proname FROM pg_rewrite r CROSS JOIN LATERAL (
  SELECT found[1]::oid FROM regexp_matches(r.ev_action::text,
    ':funcid ([0-9]+) :funcresulttype [0-9]+ :funcretset [a-z]+ :funcvariadic [a-z]+ :funcformat 0', 'g') AS found
  UNION SELECT found[1]::oid FROM regexp_matches(r.ev_action::text, ':(?:aggfnoid|winfnoid) ([0-9]+)', 'g') AS found
) AS called (oid) JOIN pg_proc p ON p.oid = called.oid WHERE r.ev_class = 'probe'::regclass
"""
HEALTH = (HealthCheck.filter_too_much, HealthCheck.too_slow)
Query = Callable[..., str]


@pytest.fixture(scope="module")
async def connection(server: Server, anyio_backend: str) -> AsyncGenerator["asyncpg.Connection"]:
    name = await server.create(TABLES + FUNCTIONS + SIDE)
    opened = await asyncpg.connect(server.address(name))
    yield opened
    await opened.close()
    await server.drop(name)


@settings(max_examples=150, suppress_health_check=HEALTH)
@given(seed=st.integers(0, 2**64 - 1))
async def test_postgres_finds_what_its_gate_reads(connection: asyncpg.Connection, query: Query, seed: int):
    text = query(Random(seed), qualified="side.plain", wide=True)
    transaction = connection.transaction()
    await transaction.start()
    try:
        try:
            await connection.execute(f"CREATE VIEW probe AS {text}")
        except asyncpg.PostgresError:
            assume(False)
        relations = {Relation(name, schema) for schema, name in await connection.fetch(RELATIONS)}
        calls = {name for (name,) in await connection.fetch(CALLS)}
    finally:
        await transaction.rollback()
    parsed = read(Statement.parse(text, sqlglot="postgres", lexicon=postgres.dialect.lexicon))
    assert {Relation(each.name, each.schema or "public") for each in parsed.names} == relations
    assert {call.name for call in parsed.calls if call.kind == "function"} == calls


class Reports:
    """What SQLite asks leave for."""

    def __init__(self) -> None:
        self.tables: set[str] = set()
        self.functions: set[str] = set()

    def __call__(self, action: int, one: str | None, two: str | None, schema: str | None, view: str | None) -> int:
        if action == sqlite3.SQLITE_READ and schema:
            self.tables.add(str(one))
        elif action == sqlite3.SQLITE_FUNCTION:
            self.functions.add(str(two))
        return sqlite3.SQLITE_OK


@pytest.fixture(scope="module")
def file() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    for name in ("probe_a", "probe_b", "probe_c"):
        connection.create_function(name, 1, lambda value: value)
    yield connection
    connection.close()


@settings(max_examples=150, suppress_health_check=HEALTH)
@given(seed=st.integers(0, 2**64 - 1))
def test_sqlite_asks_leave_for_what_its_gate_reads(file: sqlite3.Connection, query: Query, seed: int):
    text = query(Random(seed), qualified="main.plain", wide=False)
    reports = Reports()
    file.set_authorizer(reports)
    try:
        file.execute(f"EXPLAIN {text}").fetchall()
    except sqlite3.OperationalError:
        assume(False)
    finally:
        file.set_authorizer(None)
    statement = Statement.parse(text, sqlglot="sqlite", lexicon=sqlite.dialect.lexicon)
    # There a member of WITH sees itself and those after it, with RECURSIVE and without: what we take for a table then
    # is none. A table too many may be shown, one too few never.
    hidden = set(re.findall(r"(\w+) AS \(", text))
    read = {each.name for each in statement.relations()}
    assert reports.tables <= read <= reports.tables | hidden
    assert set(statement.functions()) == reports.functions
