"""Each wall alone, the others taken away: what changes is looked for in the whole database, not in error texts."""

import contextlib
from collections.abc import AsyncGenerator

import asyncpg
import pytest
from dragoman import Database, DragomanError, InvalidSql, UnsafeSql
from dragoman.testing.asking import ask
from dragoman.testing.corpus import cases, setup
from dragoman.validators import check_text
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.plugin import PostgresPlugin
from dragoman_postgres.testing import Server

CASES = cases("postgres") + cases("any")
# They end the work of the role's own sessions, or wait: beside what a SELECT-only role is kept from.
ATTACKS = [case.sql for case in CASES if not case.allow and "pg_terminate_backend" not in case.sql]
# Every object and every row with the transaction that made it, roles, settings, large objects and what sessions leave.
SNAPSHOT = """
SELECT md5(string_agg(part, '|' ORDER BY part)) FROM (
  SELECT 'class' || c.oid || c.relname || c.relfilenode || c.xmin FROM pg_class c
    WHERE relnamespace <> 'pg_toast'::regnamespace
  UNION ALL SELECT 'proc' || oid || proname || xmin FROM pg_proc
  UNION ALL SELECT 'type' || oid || typname FROM pg_type
  UNION ALL SELECT 'schema' || oid || nspname || coalesce(nspacl::text, '') FROM pg_namespace
    WHERE nspname !~ '^pg_(toast_)?temp_'
  UNION ALL SELECT 'role' || oid || rolname || coalesce(rolpassword, '') FROM pg_authid
  UNION ALL SELECT 'setting' || s.setdatabase || s.setconfig::text FROM pg_db_role_setting s
  UNION ALL SELECT 'database' || datname FROM pg_database
  UNION ALL SELECT 'extension' || extname FROM pg_extension
  UNION ALL SELECT 'large object' || oid FROM pg_largeobject_metadata
  UNION ALL SELECT 'slot' || slot_name FROM pg_replication_slots
  UNION ALL SELECT 'prepared' || gid FROM pg_prepared_xacts
  UNION ALL SELECT 'sequence' || last_value || is_called FROM counters_id_seq
  UNION ALL SELECT 'row' || t.xmin || t.xmax || t::text FROM customers t
  UNION ALL SELECT 'row' || t.xmin || t.xmax || t::text FROM orders t
  UNION ALL SELECT 'row' || t.xmin || t.xmax || t::text FROM documents t
  UNION ALL SELECT 'row' || t.xmin || t.xmax || t::text FROM "update" t
) AS parts (part)
"""
# What a session could keep for the next caller.
SESSION = """
SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
    + (SELECT count(*) FROM pg_listening_channels()) + (SELECT count(*) FROM pg_cursors WHERE name <> '')
    + (SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relnamespace = pg_my_temp_schema())
    + (SELECT count(*) FROM pg_prepared_statements WHERE from_sql), current_user,
    current_setting('default_transaction_read_only')
"""


@pytest.fixture
async def shop(server: Server, anyio_backend: str) -> AsyncGenerator[Database]:
    """A database of the test's own, as its superuser."""
    name = await server.create(setup("postgres"))
    yield server.configure(name)
    await server.drop(name)


@pytest.fixture
async def watcher(server: Server, shop: Database) -> AsyncGenerator[asyncpg.Connection]:
    connection = await asyncpg.connect(server.address(shop.name))
    yield connection
    await connection.close()


@pytest.fixture
async def reader(server: Server, shop: Database) -> AsyncGenerator[Database]:
    """The same database, as a role that may only SELECT."""
    role = f"walls_{shop.name}"
    await server.run(f"CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}", shop.name)
    yield server.configure(shop.name, user=role)
    await server.run(f"DROP OWNED BY {role}; DROP ROLE {role}", shop.name)


@pytest.mark.full
async def test_the_session_alone_keeps_a_reader_from_changing_anything(reader: Database, watcher: asyncpg.Connection):
    before = await watcher.fetchval(SNAPSHOT)
    executor = PostgresExecutor(reader)
    for attack in ATTACKS:
        with contextlib.suppress(DragomanError):
            await ask(executor, attack, max_rows=10, timeout=0.5)
    await executor.aclose()
    assert await watcher.fetchval(SNAPSHOT) == before


LEFTOVERS = [
    "SET default_transaction_read_only = off",
    "SET SESSION AUTHORIZATION DEFAULT",
    "SELECT set_config('default_transaction_read_only', 'off', false)",
    "PREPARE kept AS SELECT 1",
    "LISTEN something",
    "DECLARE kept CURSOR WITH HOLD FOR SELECT 1",
    "CREATE TEMP TABLE kept (a integer)",
    "COMMIT",
    "ROLLBACK",
    "DISCARD ALL",
    "DEALLOCATE ALL",
]


@pytest.mark.parametrize("attack", LEFTOVERS)
async def test_nothing_of_a_statement_is_left_to_the_next_one(reader: Database, attack: str):
    executor = PostgresExecutor(reader)
    before = await ask(executor, SESSION)
    with contextlib.suppress(DragomanError):
        await ask(executor, attack)
    assert await ask(executor, SESSION) == before
    with pytest.raises(DragomanError):
        await ask(executor, "SELECT nextval('counters_id_seq')")
    await executor.aclose()


async def test_what_the_gate_lets_pass_changes_nothing_for_a_superuser_whose_writes_are_kept(
    shop: Database, server: Server, watcher: asyncpg.Connection
):
    dialect = PostgresPlugin.dialect
    before = await watcher.fetchval(SNAPSHOT)
    session = await asyncpg.connect(server.address(shop.name))
    passed = 0
    for case in CASES:
        with contextlib.suppress(DragomanError):
            check_text(dialect, case.sql)
            passed += 1
            with contextlib.suppress(asyncpg.PostgresError):
                await session.execute(case.sql)
    await session.close()
    assert passed > len(CASES) / 4
    assert await watcher.fetchval(SNAPSHOT) == before


async def test_without_any_wall_the_same_attacks_do_change_it(
    shop: Database, server: Server, watcher: asyncpg.Connection
):
    before = await watcher.fetchval(SNAPSHOT)
    session = await asyncpg.connect(server.address(shop.name))
    await session.execute("DELETE FROM orders")
    await session.close()
    assert await watcher.fetchval(SNAPSHOT) != before


STACKED = ["SELECT 1; DELETE FROM orders", "DELETE FROM orders; SELECT 1", "SELECT 1;; DELETE FROM orders"]


@pytest.mark.parametrize("attack", STACKED)
async def test_the_protocol_alone_takes_one_statement(
    shop: Database, server: Server, watcher: asyncpg.Connection, attack: str
):
    before = await watcher.fetchval(SNAPSHOT)
    session = await asyncpg.connect(server.address(shop.name))
    with pytest.raises(asyncpg.PostgresSyntaxError, match="multiple commands"):
        await session.fetch(attack)
    await session.close()
    executor = PostgresExecutor(shop)
    with pytest.raises((InvalidSql, UnsafeSql)):
        await ask(executor, attack)
    await executor.aclose()
    assert await watcher.fetchval(SNAPSHOT) == before
