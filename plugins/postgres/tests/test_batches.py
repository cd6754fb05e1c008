"""A transaction that begins in one batch with its statement, on real connections; answers nobody waits for."""

import asyncio
import contextlib
import itertools
import os
import signal
import sys
from pathlib import Path

import anyio
import asyncpg
import pytest
from dragoman import Acting, ConnectionFailed, DragomanError, QueryCancelled, QueryError, QueryTimeout, Request
from dragoman.testing.asking import ask, failure_of, rows_of, value_of
from dragoman_postgres.batches import ROLLBACK, Batch
from dragoman_postgres.driver import Aside
from dragoman_postgres.executor import REMEMBERED, PostgresExecutor
from dragoman_postgres.pool import Connections

pytestmark = pytest.mark.usefixtures("lasting")

COMMANDS = ("BEGIN READ ONLY", "SET LOCAL statement_timeout = 20000")
BEGIN = Batch.of(*COMMANDS)
BEGIN_ALONE = Batch.of("BEGIN READ ONLY").messages
OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
STATE = "SELECT state, xact_start IS NOT NULL AS within FROM pg_stat_activity WHERE pid = $1"


@pytest.fixture
async def connection(server, database_name):
    connections = Connections(server.configure(database_name))
    connection = await connections.connector.connect(20)
    yield connection
    await connection.leave()


async def until_idle(admin, pid):
    with anyio.fail_after(30):
        while tuple(await admin.fetchrow(STATE, pid)) != ("idle", False):
            await admin.execute("SELECT pg_sleep(0.02)")


async def test_a_statement_runs_inside_the_transaction_around_it(connection):
    statement, _ = await connection.compile("SELECT pg_catalog.current_setting('statement_timeout')", "one")
    connection.send_with_next(BEGIN, ROLLBACK)
    assert await statement.fetchval() == "20s"
    assert not connection.is_in_transaction()
    assert await statement.fetchval() != "20s"


async def test_a_statement_that_writes_is_refused_in_the_batch(connection, admin):
    await admin.execute("CREATE TABLE IF NOT EXISTS batched (n int)")
    statement, _ = await connection.compile("INSERT INTO batched VALUES (1) RETURNING n", "write")
    connection.send_with_next(BEGIN)
    with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
        await statement.fetch()
    assert await admin.fetchval("SELECT count(*) FROM batched") == 0


@pytest.mark.parametrize(
    "commands",
    [("BEGIN READ ONLI",), (*COMMANDS, "SET LOCAL statement_timeout = 'long'"), ("nonsense", *COMMANDS)],
    ids=["transaction", "setting", "syntax"],
)
async def test_where_the_beginning_fails_the_statement_does_not_run(connection, admin, commands):
    await admin.execute("CREATE SEQUENCE IF NOT EXISTS ran; SELECT setval('ran', 1)")
    await connection.execute("SET default_transaction_read_only = off")
    statement, _ = await connection.compile("SELECT nextval('ran')", "next")
    connection.send_with_next(Batch.of(*commands))
    with pytest.raises(asyncpg.PostgresError):
        await statement.fetch()
    await connection.execute("ROLLBACK")
    assert await admin.fetchval("SELECT last_value FROM ran") == 1
    assert await connection.fetchval("SELECT 1") == 1


async def test_where_the_statement_fails_the_transaction_is_still_to_be_rolled_back(connection):
    statement, _ = await connection.compile("SELECT 6 / $1::int", "divide")
    connection.send_with_next(BEGIN, ROLLBACK)
    with pytest.raises(asyncpg.DivisionByZeroError):
        await statement.fetch(0)
    assert connection.is_in_transaction()
    await connection.execute("ROLLBACK")
    assert await statement.fetchval(3) == 2


async def test_commands_go_behind_the_next_message_alone_and_only_where_it_ends_a_batch(connection):
    statement, _ = await connection.compile("SELECT 1", "one")
    connection._own_transport.transport = writes = Writes(connection._own_transport.transport)
    connection.send_with_next(None, ROLLBACK)
    await connection.execute("BEGIN")
    assert await statement.fetchval() == 1
    assert connection.is_in_transaction()
    assert not any(ROLLBACK.messages in piece for piece in writes.pieces)


@pytest.mark.parametrize("acting", [None, Acting()], ids=["ahead", "acting"])
async def test_cancellations_that_strike_anywhere_mix_no_answers(server, database_name, admin, acting):
    """Somebody cancels whatever runs, again and again: each answer is right, or says that it was cancelled."""
    executor = PostgresExecutor(server.configure(database_name, pool_size=2))
    asked, errors = itertools.count(), []
    storm = asyncio.ensure_future(cancel_for_ever(admin))

    async def call():
        while (number := next(asked)) < 400 or len(errors) < 20:
            sql = "SELECT $1::int" if number % 3 else "SELECT sum(i) * 0 + $1::int FROM generate_series(1, 9000) i"
            try:
                async with executor.open(Request(statement=sql, parameters=(number,), acting=acting)) as stream:
                    assert [int(value) for (value,) in await rows_of(stream)] == [number]
            except DragomanError as error:
                errors.append(error)

    with anyio.fail_after(60):
        await asyncio.gather(*(call() for _ in range(4)))
    storm.cancel()
    await asyncio.wait({storm})
    await admin.execute("SELECT 1")  # the last cancellation has been sent
    assert {type(error) for error in errors} == {QueryCancelled}
    with contextlib.suppress(QueryCancelled):  # by what was sent last
        await value_of(executor, "SELECT 1")
    assert await value_of(executor, "SELECT 1") == 1
    await executor.aclose()


async def cancel_for_ever(admin):
    while True:
        await admin.execute(f"SELECT pg_cancel_backend(pid) {OTHERS}")


async def test_what_the_batch_answers_can_be_cut_anywhere(connection):
    statement, _ = await connection.compile("SELECT 'Z' || repeat('C', 20) AS x", "text")
    counting = connection._counting
    arriving, answers = counting.data_received, []
    counting._driver = told = Recorder(counting._driver)

    def note(data):
        answers.append(data)
        arriving(data)

    counting.data_received = note
    connection.send_with_next(BEGIN)
    assert await statement.fetchval() == "Z" + 20 * "C"
    answer, whole = b"".join(answers), b"".join(told.seen)
    assert answer.endswith(whole)
    for place in range(len(answer) + 1):
        aside = Aside(BEGIN.answers, BEGIN.last)
        assert aside.take(answer[:place]) + aside.take(answer[place:]) == whole
        assert aside.left == 0


class Writes:
    """Passes on what goes to the socket, and keeps each piece."""

    def __init__(self, transport):
        self._transport = transport
        self.pieces = []

    def write(self, data):
        self.pieces.append(bytes(data))
        self._transport.write(data)

    def __getattr__(self, name):
        return getattr(self._transport, name)


async def test_a_repeated_statement_and_its_transaction_are_one_write(server, database_name):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    assert await value_of(executor, "SELECT 1") == 1
    (session,) = executor._connections.idle
    own = session.connection._own_transport
    own.transport = writes = Writes(own.transport)
    for _ in range(3):
        assert await value_of(executor, "SELECT 1") == 1
    assert len(writes.pieces) == 3
    assert all(piece.startswith(BEGIN_ALONE) and ROLLBACK.messages in piece for piece in writes.pieces)
    await executor.aclose()


async def test_what_is_held_goes_before_the_end_of_the_connection(server, database_name, admin):
    connection = await Connections(server.configure(database_name)).connector.connect(20)
    connection._own_transport.transport = writes = Writes(connection._own_transport.transport)
    connection.send_with_next(BEGIN)
    await connection.leave()
    assert b"".join(writes.pieces).endswith(BEGIN.messages + b"X\0\0\0\4")


class Recorder:
    """Passes on what the driver is told, and keeps it."""

    def __init__(self, driver):
        self._driver = driver
        self.seen = []

    def data_received(self, data):
        self.seen.append(data)
        self._driver.data_received(data)

    def __getattr__(self, name):
        return getattr(self._driver, name)


def test_a_batch_has_no_end_of_its_own():
    kinds, messages, place = [], BEGIN.messages, 0
    while place < len(messages):
        kinds.append(messages[place : place + 1])
        place += 1 + int.from_bytes(messages[place + 1 : place + 5], "big")
    assert kinds == [b"P", b"B", b"E"] * 2
    assert place == len(messages)


async def test_a_repeated_statement_leaves_no_transaction(server, database_name, admin):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    for _ in range(3):
        pid = await value_of(executor, "SELECT pg_backend_pid()")
        await until_idle(admin, pid)
    await executor.aclose()


async def test_a_repeated_statement_that_fails_leaves_a_clean_connection(server, database_name, admin):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    pid = await value_of(executor, "SELECT pg_backend_pid()")
    assert await value_of(executor, "SELECT 6 / $1::int", 2) == 3
    assert isinstance(await failure_of(executor, "SELECT 6 / $1::int", 0), QueryError)
    await until_idle(admin, pid)
    assert await value_of(executor, "SELECT 6 / $1::int", 3) == 2
    assert await value_of(executor, "SELECT pg_backend_pid()") == pid
    await executor.aclose()


async def test_a_repeated_statement_has_its_own_deadline(server, database_name, admin):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    pid = await value_of(executor, "SELECT pg_backend_pid()")
    slow = "SELECT count(*) FROM generate_series(1, $1::bigint) AS n, generate_series(1, $1::bigint) AS m"
    assert await value_of(executor, slow, 3) == 9
    assert isinstance(await failure_of(executor, slow, 10**7, timeout=0.5), QueryTimeout)
    await until_idle(admin, pid)
    await executor.aclose()


TIMES = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


@pytest.mark.parametrize("seconds", [30, 7], ids=["the database's", "its own"])
async def test_the_times_of_a_statement_are_set_whether_or_not_they_are_the_session_s(server, database_name, seconds):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1, timeout=30.0))
    for name, expected in zip(TIMES, (1000 * seconds, 900 * seconds, 1000 * seconds + 10_000), strict=True):
        sql = f"SELECT setting::int FROM pg_settings WHERE name = '{name}'"
        assert await value_of(executor, sql, timeout=seconds) == expected
        assert await value_of(executor, sql, timeout=seconds) == expected
    await executor.aclose()


async def test_a_role_s_own_times_do_not_take_the_place_of_the_database_s(server, database_name, admin):
    await admin.execute("CREATE ROLE patient LOGIN; ALTER ROLE patient SET statement_timeout = 0")
    executor = PostgresExecutor(server.configure(database_name, user="patient", timeout=30.0))
    assert await value_of(executor, "SELECT current_setting('statement_timeout')", timeout=30) == "30s"
    await executor.aclose()
    await admin.execute("DROP ROLE patient")


async def test_a_repeated_statement_that_ends_its_connection_is_a_clear_error(server, database_name):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    victim = "SELECT pg_terminate_backend(pg_backend_pid()) FROM generate_series(1, $1::int)"
    assert (await ask(executor, victim, 0))[1] == []
    assert isinstance(await failure_of(executor, victim, 1), ConnectionFailed)
    assert await value_of(executor, "SELECT 1") == 1
    await executor.aclose()


async def test_statements_that_are_not_kept_are_closed_without_a_round_trip_each(server, database_name):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    for number in range(REMEMBERED + 20):
        assert await value_of(executor, f"SELECT {number}") == number
    kept = await value_of(executor, "SELECT count(*) FROM pg_prepared_statements")
    # What a new one pushes out is closed with the statement after it.
    assert REMEMBERED <= kept <= REMEMBERED + 2
    await executor.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("sql", ["SELECT pg_backend_pid()", "SELECT 2"], ids=["known", "new"])
async def test_a_kept_connection_that_ended_unheard_is_replaced(server, database_name, sql):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    pid = await value_of(executor, "SELECT pg_backend_pid()")
    os.kill(pid, signal.SIGTERM)
    while Path(f"/proc/{pid}").exists():  # the event loop must not turn: it would hear of it
        pass
    assert await value_of(executor, sql) not in (pid, None)
    await executor.aclose()


async def test_a_new_statement_may_be_described_at_any_length(server, database_name):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    pid = await value_of(executor, "SELECT pg_backend_pid()")
    await ask(executor, "SELECT repeat('x', 950000)", max_bytes=1000)  # nearly all that a small answer may take
    columns, _ = await ask(executor, f"SELECT {', '.join(f'1 AS {63 * chr(97)}' for _ in range(1600))}")
    assert len(columns) == 1600
    assert await value_of(executor, "SELECT pg_backend_pid()") == pid
    await executor.aclose()
