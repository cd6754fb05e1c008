"""The executor on live servers: bounds, deadlines, cancellation, lost connections, round trips, parallel plans."""

import asyncio
import contextlib
import itertools
import json
import math
import os
import signal
import struct
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import anyio
import asyncpg
import pytest
from dragoman import (
    Busy,
    ConnectionFailed,
    Encoded,
    Gateway,
    InvalidSql,
    Limits,
    ParameterError,
    QueryTimeout,
    Request,
    ResultTooLarge,
    TableNotFound,
    WriteDenied,
)
from dragoman.gateway.breaker import FAILURES
from dragoman.testing.asking import ask, failure_of, part_of, value_of
from dragoman_postgres import pool
from dragoman_postgres.driver import Connection
from dragoman_postgres.executor import LARGE, PostgresExecutor
from dragoman_postgres.failures import translate_errors
from dragoman_postgres.pool import Connections
from dragoman_postgres.testing import Server

SLEEP = "SELECT pg_sleep(60)"
BUSY = "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid() AND datname = $1"


async def assert_ended(admin, name):
    """Soon no backend of the database works any more, nor holds a transaction."""
    with anyio.fail_after(30):
        while await admin.fetchval(BUSY, name):
            await admin.execute("SELECT pg_sleep(0.02)")


async def until_asleep(admin, name):
    """A backend of the database runs pg_sleep, not what comes before it."""
    with anyio.fail_after(20):
        while not await admin.fetchval(f"{BUSY} AND wait_event = 'PgSleep'", name):
            await admin.execute("SELECT pg_sleep(0.02)")


# Rows, columns and bytes


async def test_wrapping_keeps_names_duplicates_and_order(executor):
    sql = 'SELECT n AS "A b", n AS "A b", -n FROM generate_series(1, 50) AS n ORDER BY n DESC -- end'
    columns, rows = await ask(executor, sql, max_rows=3)
    assert [column.name for column in columns] == ["A b", "A b", "?column?"]
    assert rows == [[50, 50, -50], [49, 49, -49], [48, 48, -48], [47, 47, -47]]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("VALUES (1, 'a'), (2, 'b')", [[1, "a"], [2, "b"]]),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 FROM a) SELECT * FROM a, b", [[1, 2]]),
        ("(SELECT 2 AS x UNION SELECT 1) ORDER BY x LIMIT 1", [[1]]),
        ("SELECT", [[]]),
        ("SHOW standard_conforming_strings", [["on"]]),
        ("  show timezone", [["UTC"]]),
        ("SELECT 1 WHERE false", []),
        ("SELECT 'line\nbreak' AS x -- a comment", [["line\nbreak"]]),
    ],
)
async def test_every_kind_of_query_is_answered(executor, sql, rows):
    assert (await ask(executor, sql))[1] == rows


READING = """
import asyncio, resource, sys
from dragoman import Limits, Request
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.testing import Server

STATEMENTS = (
    "SELECT repeat('x', 500000) FROM generate_series(1, 300)",
    "SELECT n, body FROM never_analyzed",
    "SELECT repeat('x', 30000000), 1",
    "SELECT to_jsonb(repeat('x', 30000000))",
    "SELECT convert_to(repeat('x', 30000000), 'UTF8')",
    "SELECT ARRAY[repeat('x', 30000000)]",
)

async def first_batch(executor, sql, most):
    async with executor.open(Request(statement=sql, limits=Limits(max_rows=1001, max_bytes=most))) as stream:
        async for batch in stream.batches:
            oversized = getattr(batch, "oversized", False)
            return "oversized" if oversized else sum(len(str(value)) for row in batch for value in row)

async def main():
    executor = PostgresExecutor(Server(sys.argv[1]).configure(sys.argv[2]))
    await first_batch(executor, "SELECT repeat('x', 400000)", 500_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for sql in STATEMENTS * 2:
        size = await first_batch(executor, sql, 100_000)
        assert size == "oversized" or 100_000 < size < 2_000_000, (sql, size)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    await executor.aclose()

asyncio.run(main())
"""


async def test_an_answer_never_costs_much_more_memory_than_its_limit(server, database_name, admin):
    """Hundreds of megabytes are asked for, whose width nobody can estimate: a few more megabytes are ever taken."""
    await admin.execute("CREATE TABLE never_analyzed (n integer, body text)")
    await admin.execute("INSERT INTO never_analyzed SELECT n, repeat('x', 500000) FROM generate_series(1, 300) AS n")
    command = [sys.executable, "-c", READING, server.url, database_name]
    reading = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    told, _ = await reading.communicate()
    assert int(told) * 1024 < 20_000_000


@pytest.mark.usefixtures("lasting")
async def test_a_statement_whose_answer_was_too_wide_once_is_counted_by_the_server(server, database_name):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    sql = "SELECT repeat('x', $1) FROM generate_series(1, 500)"
    pids = []
    for width in (100, 10_000, 100):
        async with executor.open(Request(statement=sql, parameters=(width,), limits=Limits(max_bytes=100_000))) as s:
            rows = await anext(s.batches)
        assert not isinstance(rows, Encoded)
        assert len(rows) == 500 if width == 100 else 10 < len(rows) < 100
        pids.append(await value_of(executor, "SELECT pg_backend_pid()"))
    assert pids[0] != pids[1] == pids[2]
    await executor.aclose()


async def test_a_row_too_large_for_a_large_answer_is_told(server, database_name):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    error = await failure_of(executor, "SELECT repeat('x', 60000000)", max_bytes=2 * LARGE)
    assert isinstance(error, ResultTooLarge)
    assert await value_of(executor, "SELECT 1") == 1
    await executor.aclose()


async def test_a_reader_who_goes_on_beyond_what_was_sent_is_told(executor):
    error = await failure_of(executor, "SELECT repeat('x', 500000) FROM generate_series(1, 100)", max_bytes=100_000)
    assert isinstance(error, ResultTooLarge)


async def test_a_large_answer_comes_in_pieces_and_whole(executor):
    sql = "SELECT n, repeat('x', n % 5000) FROM generate_series(1, 20000) AS n"
    request = Request(statement=sql, limits=Limits(max_rows=20_000, max_bytes=LARGE * 8))
    async with executor.open(request) as stream:
        pieces = [(len(batch), sum(len(row[1]) for row in batch)) async for batch in stream.batches]
    assert sum(count for count, _ in pieces) == 20_000
    assert max(size for _, size in pieces) < 4 * 1024 * 1024


async def test_short_rows_are_bounded_by_the_bytes_they_must_take(executor):
    _, rows = await ask(executor, "SELECT 1 FROM generate_series(1, 1000000)", max_rows=1_000_000, max_bytes=4000)
    assert len(rows) == 1001


async def test_columns_are_told_without_running(executor):
    columns = await executor.describe(Request(statement="SELECT pg_sleep(60), 1 AS a, $1::text"))
    assert [(column.name, column.type) for column in columns] == [
        ("pg_sleep", "void"),
        ("a", "integer"),
        ("text", "text"),
    ]


async def test_columns_are_those_of_the_tables_as_they_are_now(executor, admin):
    request = Request(statement="SELECT a FROM described")
    await admin.execute("CREATE TABLE described (a int)")
    assert [column.type for column in await executor.describe(request)] == ["integer"]
    await admin.execute("ALTER TABLE described ALTER a TYPE text")
    assert [column.type for column in await executor.describe(request)] == ["text"]
    await admin.execute("DROP TABLE described")
    with pytest.raises(TableNotFound):
        await executor.describe(request)


# The session


async def test_nothing_a_statement_does_outlives_it(executor, admin):
    await admin.execute("CREATE TABLE kept (n integer); CREATE SEQUENCE counter")
    for sql in (
        "SELECT set_config('timezone', 'Asia/Tokyo', false)",
        "SELECT set_config('default_transaction_read_only', 'off', false)",
        "SELECT set_config('transaction_read_only', 'on', false)",
    ):
        await ask(executor, sql)
    assert await value_of(executor, "SHOW timezone") == "UTC"
    assert isinstance(await failure_of(executor, "SELECT nextval('counter')"), WriteDenied)
    for sql in ("INSERT INTO kept VALUES (1)", "SELECT 1; INSERT INTO kept VALUES (1)", "SELECT 1) AS q; COMMIT; --"):
        assert isinstance(await failure_of(executor, sql), InvalidSql | WriteDenied)
    assert await admin.fetchval("SELECT count(*) FROM kept") == 0


async def test_a_statement_prepared_before_its_table_changed_is_prepared_anew(executor, admin):
    await admin.execute("CREATE TABLE altered (a integer); INSERT INTO altered VALUES (1)")
    for _ in range(2):
        assert (await ask(executor, "SELECT * FROM altered"))[1] == [[1]]
    # What stands in the place of another is not taken for it.
    await admin.execute(
        "ALTER TABLE altered ADD COLUMN b text DEFAULT 'x', DROP COLUMN a, ADD COLUMN a integer DEFAULT 1"
    )
    columns, rows = await ask(executor, "SELECT a, b FROM altered")
    assert ([column.name for column in columns], rows) == (["a", "b"], [[1, "x"]])
    for type_name, value in (("double precision", 1.0), ("text", "1"), ("bigint", 1)):
        await admin.execute(f"ALTER TABLE altered ALTER COLUMN a TYPE {type_name} USING a::{type_name}")
        for _ in range(2):
            assert (await ask(executor, "SELECT a FROM altered"))[1] == [[value]]
            assert (await ask(executor, "SELECT a, b, b FROM altered"))[1] == [[value, "x", "x"]]
    await admin.execute("DROP TABLE altered")
    assert isinstance(await failure_of(executor, "SELECT a FROM altered"), TableNotFound)


TURNS = (
    ("integer", "1", 1, "integer"),
    ("numeric(10,2)", "1", "1.00", "numeric(10,2)"),
    ("integer", "1", 1, "integer"),
    ("numeric(12,4)", "1", "1.0000", "numeric(12,4)"),
    ("numeric(12,6)", "1", "1.000000", "numeric(12,6)"),
    ("text", "'{\"a\": 1}'", '{"a": 1}', "text"),
    ("jsonb", "'{\"a\": 1}'", {"a": 1}, "jsonb"),
    ("text", "'{\"a\": 1}'", '{"a": 1}', "text"),
    ("timestamptz", "'2026-01-02 03:04:05+00'", "2026-01-02 03:04:05+00", "timestamptz"),
    ("date", "'2026-01-02'", "2026-01-02", "date"),
    ("integer[]", "'{1,2}'", [1, 2], "integer[]"),
    ("text[]", "'{1,2}'", ["1", "2"], "text[]"),
    ("boolean", "'t'", True, "boolean"),
    ("bytea", "'\\x01'", "AQ==", "bytea"),
    ("money", "'2'", "$2.00", "money"),
    ("double precision", "1", 1.0, "double precision"),
)
"""Types of a column, one after the other: what it stores, and what is answered."""


@pytest.mark.parametrize("most", [100_000, 100_000_000])
async def test_whatever_type_a_column_turns_into_the_next_answer_has_it(server, database_name, admin, most):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    try:
        for type_name, stored, value, told in TURNS + TURNS[::-1]:
            await admin.execute(
                f"CREATE TABLE IF NOT EXISTS turned (a integer); TRUNCATE turned;"
                f"ALTER TABLE turned ALTER a TYPE {type_name} USING NULL; INSERT INTO turned VALUES ({stored})"
            )
            for sql in ("SELECT a FROM turned", "SELECT a, a AS b FROM (SELECT * FROM turned) AS t"):
                for _ in range(2):
                    columns, rows = await ask(executor, sql, max_bytes=most)
                    assert [column.type for column in columns] == [told] * len(columns)
                    assert rows == [[value] * len(columns)]
    finally:
        await admin.execute("DROP TABLE IF EXISTS turned")
        await executor.aclose()


async def test_a_type_keeps_its_name_when_it_is_asked_for_anew_meanwhile(server, database_name):
    # What is known of types is let go while a statement is compiled: its own types stay known to it.
    executor = PostgresExecutor(server.configure(database_name, catalog_ttl=0.0))
    try:
        async with executor.open(Request(statement="SELECT ROW(1, 'a') AS r, ARRAY[1] AS a", limits=Limits())) as rows:
            assert [column.type for column in rows.columns] == ["record", "integer[]"]
            batches = [batch async for batch in rows.batches if not isinstance(batch, Encoded)]
            assert [row for batch in batches for row in batch] == [([1, "a"], [1])]
    finally:
        await executor.aclose()


async def test_a_new_column_is_seen_as_soon_as_the_catalog_is_read_anew(server, database_name, admin):
    executor = PostgresExecutor(server.configure(database_name, catalog_ttl=0.0))
    await admin.execute("CREATE TABLE growing AS SELECT 1 AS a")
    assert (await ask(executor, "SELECT * FROM growing"))[1] == [[1]]
    await admin.execute("ALTER TABLE growing ADD COLUMN b text DEFAULT 'x'")
    assert (await ask(executor, "SELECT * FROM growing"))[1] == [[1, "x"]]
    await executor.aclose()


async def test_a_pool_of_five_answers_fifty_callers(server, database_name, admin):
    executor = PostgresExecutor(server.configure(database_name, pool_size=5))
    answers = await asyncio.gather(*(value_of(executor, f"SELECT {n} FROM pg_sleep(0.005)") for n in range(50)))
    assert answers == list(range(50))
    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'dragoman'"
    own = await admin.fetchval(count + " AND pid <> pg_backend_pid()", database_name)
    assert own <= 5 + 8  # the module's executor keeps its own
    await executor.aclose()


@pytest.mark.parametrize(("most", "worth", "opened"), [(0.0, 0.0, 3), (math.inf, 0.0, 1), (0.0, math.inf, 1)])
async def test_a_connection_that_has_worked_for_long_enough_is_replaced(
    server, database_name, monkeypatch, most, worth, opened
):
    """A backend keeps what a query made it read, such as each of a hundred thousand time zones, until it ends."""
    monkeypatch.setattr(pool, "MOST_WORK", most)
    monkeypatch.setattr(pool, "WORTH", worth)
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    assert len({await value_of(executor, "SELECT pg_backend_pid()") for _ in range(3)}) == opened
    await executor.aclose()


@pytest.mark.usefixtures("lasting")
async def test_opening_connects_lazily_and_keeps_one_connection_for_one_caller(server, database_name, admin):
    name = await server.create()
    executor = PostgresExecutor(server.configure(name))
    pids = {await value_of(executor, "SELECT pg_backend_pid()") for _ in range(5)}
    assert len(pids) == 1
    await executor.aclose()
    await server.drop(name)


HOSTILE = (Path(__file__).parent / "hostile.sql").read_text()
TYPES = """
CREATE TYPE pair AS (a integer, b text);
CREATE TYPE nested AS (p pair, ps pair[], at timestamptz);
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TYPE span AS RANGE (subtype = float8);
"""


async def test_looking_types_up_runs_nobody_s_functions(server):
    """The search path begins with a schema whose functions and operators fit better than the system's."""
    name = await server.create(HOSTILE + TYPES)
    executor = PostgresExecutor(server.configure(name, schema="hostile"))
    for sql, parameters, wanted in (
        ("SELECT ROW(ROW(1, 'x')::pair, NULL, NULL)::nested", (), {"p": {"a": 1, "b": "x"}, "ps": None, "at": None}),
        ("SELECT ARRAY['sad'::mood]", (), ["sad"]),
        ("SELECT $1::mood", ("glad",), "glad"),
        ("SELECT $1::positive[] IS NULL", (None,), True),
        ("SELECT '[1,2)'::span", (), "[1,2)"),
        ("SELECT $1::numeric, 1", ("1.50",), "1.50"),
        ("SELECT 1.5::numeric(4,2)", (), "1.50"),
    ):
        assert (await ask(executor, sql, *parameters))[1][0][0] == wanted, sql
    assert await value_of(executor, "SHOW search_path") == "hostile, public, pg_temp"
    await executor.aclose()
    await server.drop(name)


# Ending


async def test_a_deadline_ends_the_statement_in_the_server(executor, admin, database_name):
    with anyio.fail_after(20):
        assert isinstance(await failure_of(executor, SLEEP, timeout=0.3), QueryTimeout)
    await assert_ended(admin, database_name)


async def test_waiting_for_a_lock_ends_and_says_so(executor, admin):
    await admin.execute("CREATE TABLE IF NOT EXISTS locked (n integer)")
    async with admin.transaction():
        await admin.execute("LOCK TABLE locked")
        error = await failure_of(executor, "SELECT * FROM locked", timeout=0.5)
    assert isinstance(error, QueryTimeout)
    assert "lock" in error.message


@pytest.mark.usefixtures("lasting")
async def test_a_cancelled_statement_ends_in_the_server_and_its_connection_is_used_again(server, database_name, admin):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    pid = await value_of(executor, "SELECT pg_backend_pid()")
    for _ in range(3):
        task = asyncio.ensure_future(ask(executor, SLEEP))
        await until_asleep(admin, database_name)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        await assert_ended(admin, database_name)
    assert await value_of(executor, "SELECT pg_backend_pid()") == pid
    await executor.aclose()


async def test_a_scope_that_cancels_every_await_leaves_nothing_behind(server, database_name, admin):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    for _ in range(3):
        with anyio.move_on_after(0.1):
            await ask(executor, SLEEP)
        await assert_ended(admin, database_name)
        assert await value_of(executor, "SELECT 1") == 1
    await executor.aclose()


async def test_leaving_a_stream_early_leaves_a_clean_connection(server, database_name, admin):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    big = "SELECT generate_series(1, 100000000) AS n, repeat('x', 1000) AS t"
    for _ in range(2):
        request = Request(statement=big, limits=Limits(max_rows=100_000_000, max_bytes=LARGE * 8))
        async with executor.open(request) as stream:
            async for _ in stream.batches:
                break
        await assert_ended(admin, database_name)
    assert await value_of(executor, "SELECT 1") == 1
    await executor.aclose()


async def test_a_gateway_that_is_killed_leaves_no_statement_behind(server, database_name, admin):
    """PostgreSQL 13 does not notice that its client is gone: there the statement ends at its own deadline."""
    timeout = 30 if await admin.fetchval("SELECT current_setting('server_version_num')::int >= 140000") else 4
    program = f"""
        import asyncio
        from dragoman import Limits, Request
        from dragoman_postgres.executor import PostgresExecutor
        from dragoman_postgres.testing import Server

        async def main():
            executor = PostgresExecutor(Server({server.url!r}).configure({database_name!r}))
            limits = Limits(timeout={timeout})
            async with executor.open(Request(statement="SELECT pg_sleep(60)", limits=limits)):
                pass

        asyncio.run(main())
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)])
    try:
        await until_asleep(admin, database_name)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    await assert_ended(admin, database_name)


# Lost connections


async def test_connections_that_were_killed_are_replaced(server, database_name, admin):
    executor = PostgresExecutor(server.configure(database_name, pool_size=3))
    await asyncio.gather(*(ask(executor, "SELECT pg_sleep(0.05)") for _ in range(3)))
    others = "FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()"
    await admin.fetch("SELECT pg_terminate_backend(pid) " + others, database_name)
    with anyio.fail_after(30):
        while await admin.fetchval("SELECT count(*) " + others, database_name):
            await admin.execute("SELECT pg_sleep(0.02)")
    answers = await asyncio.gather(*(value_of(executor, f"SELECT {n}") for n in range(6)))
    assert answers == list(range(6))
    await executor.aclose()


FIELDS = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
FAREWELL = b"E" + struct.pack("!I", len(FIELDS) + 4) + FIELDS
"""What a server says before it closes a connection, as it may arrive while nothing is asked."""


@pytest.mark.usefixtures("lasting")
async def test_a_connection_that_said_farewell_and_is_not_closed_yet_is_replaced(server, database_name):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    pid = await value_of(executor, "SELECT pg_backend_pid()")
    (session,) = executor._connections.idle
    session.connection._counting.data_received(FAREWELL)
    assert await value_of(executor, "SELECT pg_backend_pid()") != pid
    await executor.aclose()


async def test_a_farewell_between_two_messages_is_a_clear_error(server, database_name):
    connections = Connections(server.configure(database_name, pool_size=1))
    async with connections.borrow() as connection:
        connection._counting.data_received(FAREWELL)
        with pytest.raises(ConnectionFailed), translate_errors("shop"):
            await connection.fetch("SELECT 1")
    async with connections.borrow() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await connections.aclose()


@pytest.mark.usefixtures("lasting")
async def test_a_connection_killed_in_the_middle_is_a_clear_error(server, database_name, admin):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    pid = await value_of(executor, "SELECT pg_backend_pid()")
    task = asyncio.ensure_future(failure_of(executor, SLEEP))
    await until_asleep(admin, database_name)
    await admin.fetchval("SELECT pg_terminate_backend($1)", pid)
    error = await task
    assert isinstance(error, ConnectionFailed)
    assert await value_of(executor, "SELECT 1") == 1
    await executor.aclose()


async def test_statements_that_lose_their_connections_close_the_database_for_nobody(server, database_name, admin):
    """A proxy, a deadline of the server's or an administrator may end what runs too long."""
    database = server.configure(database_name, allow_functions=frozenset({"pg_sleep"}))
    others = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1 AND wait_event = 'PgSleep'"
    )
    async with Gateway.open([database]) as gateway:
        assert (await gateway.query(None, "SELECT 1")).rows == [[1]]
        for _ in range(FAILURES):
            task = asyncio.ensure_future(gateway.query(None, SLEEP))
            await until_asleep(admin, database_name)
            while not task.done():
                await admin.fetchval(others, database_name)
            with pytest.raises(ConnectionFailed, match="broke"):
                await task
        assert (await gateway.query(None, "SELECT 1")).rows == [[1]]


async def test_a_server_that_restarts_is_used_again():
    server = Server.start()
    executor = PostgresExecutor(server.configure("postgres", pool_size=2))
    try:
        assert await value_of(executor, "SELECT 1") == 1
        slow = asyncio.ensure_future(failure_of(executor, SLEEP))
        await asyncio.wait({slow}, timeout=0.2)
        server.halt()
        assert isinstance(await slow, ConnectionFailed)
        assert isinstance(await failure_of(executor, "SELECT 1"), ConnectionFailed)
        server.resume()
        assert await value_of(executor, "SELECT 1") == 1
    finally:
        await executor.aclose()
        server.stop()


async def _all(batches):
    return [batch async for batch in batches]


async def test_a_server_that_stops_in_the_middle_of_an_answer_is_a_clear_error():
    server = Server.start()
    executor = PostgresExecutor(server.configure("postgres", pool_size=1))
    request = Request(
        statement="SELECT n, repeat('x', 1000) FROM generate_series(1, 1000000) AS n",
        limits=Limits(max_rows=1_000_000, max_bytes=100 * LARGE),
    )
    try:
        async with executor.open(request) as stream:
            assert await anext(stream.batches)
            server.halt()
            with pytest.raises(ConnectionFailed):
                await _all(stream.batches)
        server.resume()
        assert await value_of(executor, "SELECT 1") == 1
    finally:
        await executor.aclose()
        server.stop()


# What it costs


class Meter:
    """A proxy before the server that counts round trips: changes of direction, from us to the server."""

    def __init__(self, path):
        self._path = path
        self.trips = 0
        self._sent = False
        self._passing = asyncio.Event()
        self._passing.set()
        self._left = math.inf

    def silence(self, left):
        """Pass on so many more pieces of what the server says, and then nothing until `resume`."""
        self._left = left

    def resume(self):
        """Pass on everything."""
        self._left = math.inf
        self._passing.set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _serve(self, reader, writer):
        there, back = await asyncio.open_unix_connection(self._path)
        with contextlib.suppress(ConnectionError):  # whoever drops a connection may reset it
            await asyncio.gather(self._pump(reader, back, out=True), self._pump(there, writer, out=False))

    async def _pump(self, reader, writer, *, out):
        while data := await reader.read(65536):
            if out and not self._sent:
                self.trips += 1
            self._sent = out
            if not out:
                self._left -= 1
                if self._left < 0:
                    self._passing.clear()
                    await self._passing.wait()
            writer.write(data)
        writer.close()


@pytest.mark.parametrize("pieces", [0, 2, *(pytest.param(more, marks=pytest.mark.full) for more in (1, 3, 4, 5))])
async def test_a_server_that_goes_silent_anywhere_holds_nobody_beyond_the_deadline(server, database_name, pieces):
    """While the gate asks which functions users have made, too: nothing is remembered here."""
    config = server.configure(database_name, timeout=1, pool_size=1, catalog_ttl=0)
    if not str(config.host).startswith("/"):
        pytest.skip("needs the server's Unix socket")
    async with Meter(f"{config.host}/.s.PGSQL.{config.port}") as meter, asyncio.timeout(60):
        async with Gateway.open([replace(config, host="127.0.0.1", port=meter.port)]) as gateway:
            await _until_answered(gateway)
            meter.silence(pieces)
            async with asyncio.timeout(20):
                with contextlib.suppress(QueryTimeout, ConnectionFailed, Busy):
                    await gateway.query(None, "SELECT 2 AS two")
            meter.resume()
            await _until_answered(gateway)


async def _until_answered(gateway):
    """However busy the machine is, the next query is answered."""
    while True:
        with contextlib.suppress(QueryTimeout, ConnectionFailed, Busy):
            assert (await gateway.query(None, "SELECT 1 AS one")).rows == [[1]]
            return


@pytest.mark.usefixtures("lasting")
async def test_a_repeated_statement_takes_one_round_trip(server, database_name):
    config = server.configure(database_name)
    if not str(config.host).startswith("/"):
        pytest.skip("needs the server's Unix socket")
    async with Meter(f"{config.host}/.s.PGSQL.{config.port}") as meter:
        executor = PostgresExecutor(server.configure(database_name, host="127.0.0.1", port=meter.port))
        sql = "SELECT oid, relname, relacl, $1::timestamptz FROM pg_class WHERE oid = 1259"
        await ask(executor, "SELECT 1")
        costs = []
        for _ in range(3):
            before = meter.trips
            await ask(executor, sql, "2024-01-01")
            costs.append(meter.trips - before)
        before = meter.trips
        await ask(executor, "SELECT oid, relname FROM pg_class WHERE oid = 1247")
        new_text = meter.trips - before
        await executor.aclose()
    assert costs[1:] == [1, 1]
    assert new_text <= 3


EXPLAINING = """
ALTER DATABASE {0} SET session_preload_libraries = 'auto_explain';
ALTER DATABASE {0} SET auto_explain.log_min_duration = 0;
ALTER DATABASE {0} SET auto_explain.log_analyze = on;
ALTER DATABASE {0} SET auto_explain.log_level = notice;
ALTER DATABASE {0} SET auto_explain.log_format = json;
ALTER DATABASE {0} SET min_parallel_table_scan_size = 0;
ALTER DATABASE {0} SET parallel_setup_cost = 0;
CREATE TABLE wide AS SELECT n, md5(n::text) AS t FROM generate_series(1, 400000) AS n;
ANALYZE wide;
"""


@pytest.mark.parametrize("width", [1, 2000], ids=["narrow", "wide"])
async def test_parallel_plans_are_kept(server, width):
    """The server itself tells of each statement how many workers it launched, below our limits of rows and bytes."""
    name = await server.create()
    try:
        await server.run("LOAD 'auto_explain';" + EXPLAINING.format(name), name)
    except asyncpg.UndefinedFileError:
        pytest.skip("this server comes without auto_explain")
    executor = PostgresExecutor(server.configure(name, pool_size=1))
    sql = f"SELECT repeat(t, {width}), n FROM wide WHERE t LIKE '%abc%'"
    told = []
    for _ in range(2):
        async with executor.open(Request(statement=sql, limits=Limits(max_bytes=100_000))) as stream:
            assert await anext(stream.batches)
        assert bool(executor._wide) == (width > 1)
        (session,) = executor._connections.idle
        session.connection.add_log_listener(lambda _, message: told.append(message.message))
    assert list(map(_launched, told)) > [0]
    await executor.aclose()
    await server.drop(name)


def _launched(message):
    """How many workers a message of auto_explain tells of."""
    _, _, plan = message.partition("plan:\n")
    return sum(_of_each(json.loads(plan)["Plan"])) if plan else 0


def _of_each(node):
    yield node.get("Workers Launched", 0)
    for each in node.get("Plans", ()):
        yield from _of_each(each)


# Through the gateway


async def test_the_gateway_truncates_exactly(server, database_name):
    async with Gateway.open([server.configure(database_name)]) as gateway:
        for rows, cut in ((10, None), (9, "rows")):
            result = await gateway.query(
                None, "SELECT n FROM (VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)) t(n)", limit=rows
            )
            assert (result.row_count, result.truncated and result.truncated.reason) == (rows, cut)
        result = await gateway.query(None, "SELECT n, 'abcdefghij' AS t FROM (VALUES (1),(2),(3)) t(n)", max_bytes=35)
        assert result.truncated is not None
        assert (result.row_count, result.truncated.reason) == (2, "bytes")


@pytest.mark.parametrize("parameters", [(), (1, 2)])
async def test_a_wrong_number_of_parameters_is_told(executor, parameters):
    error = await failure_of(executor, "SELECT $1::int", *parameters)
    assert isinstance(error, ParameterError)
    assert "needed by the statement: 1;" in error.message


# A deadline that strikes while rows are coming

STUCK = """SELECT n, CASE WHEN n > {0} THEN
    (SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a + b > n) END AS later
    FROM generate_series(1, 1000) n"""
"""Its first rows come at once; the one after them takes minutes."""


@pytest.mark.parametrize("rows", [1, 3, 700])
async def test_a_deadline_hands_out_the_rows_that_came(server, database_name, rows):
    async with Gateway.open([server.configure(database_name)]) as gateway:
        part = await part_of(gateway, STUCK.format(rows), limit=1000)
        assert part.rows == [[n, None] for n in range(1, rows + 1)]
        assert part.truncated is not None
        assert part.truncated.reason == "timeout"
        assert "Narrow" in part.truncated.hint
        assert (await gateway.query(None, "SELECT 1 AS one")).rows == [[1]]


@pytest.mark.parametrize("rows", [3, 100])
async def test_a_deadline_hands_out_the_rows_of_a_large_answer(server, database_name, rows):
    async with Gateway.open([server.configure(database_name)]) as gateway:
        part = await part_of(gateway, STUCK.format(rows), max_bytes=LARGE + 1, limit=1000)
    assert part.rows == [[n, None] for n in range(1, rows + 1)]
    assert part.truncated is not None
    assert part.truncated.reason == "timeout"


async def test_a_deadline_between_the_pieces_of_a_large_answer_is_told_as_one(server, database_name, monkeypatch):
    """It strikes what sets the time that is left; once, that was taken for done, and the next piece failed."""
    execute, late = Connection.execute, itertools.cycle(("", "SELECT pg_sleep(60); "))

    async def dawdle(connection, command, *given):
        before = next(late) if command.startswith("SET LOCAL statement_timeout") else ""
        return await execute(connection, before + command, *given)

    monkeypatch.setattr("dragoman_postgres.executor.STALE", 0.0)
    monkeypatch.setattr(Connection, "execute", dawdle)
    async with Gateway.open([server.configure(database_name)]) as gateway:
        part = await part_of(gateway, "SELECT generate_series(1, 1000)", max_bytes=LARGE + 1, limit=1000)
    assert part.truncated is not None
    assert part.truncated.reason == "timeout"
    assert part.rows == [[n] for n in range(1, 33)]


async def test_a_deadline_before_any_row_is_an_error(server, database_name):
    async with Gateway.open([server.configure(database_name)]) as gateway:
        with pytest.raises(QueryTimeout):
            await gateway.query(None, STUCK.format(0), timeout=0.2)
