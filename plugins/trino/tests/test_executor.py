"""The executor on a live server: bounds, deadlines, cancellation, a server that is lost, the event loop meanwhile."""

import asyncio
import contextlib
import resource
import time
import uuid

import anyio
import pytest
from dragoman import (
    Busy,
    ConnectionFailed,
    Gateway,
    Limits,
    ParameterError,
    QueryCancelled,
    QueryTimeout,
    Request,
    ResultTooLarge,
    WriteDenied,
)
from dragoman.testing.asking import ask, failure_of, part_of, value_of
from dragoman_trino.client import Client
from dragoman_trino.connecting import DEADLINE
from dragoman_trino.executor import TrinoExecutor

WIDE = "SELECT rpad('x', 500000, 'x') FROM tpch.tiny.orders"
STATE = "SELECT state, error_code FROM system.runtime.queries WHERE query LIKE '%{0}%' AND query NOT LIKE '%LIKE%'"


def slow(mark):
    """A query of minutes that can be told from others."""
    return f"SELECT count(*) AS {mark} FROM tpch.sf1000.lineitem a JOIN tpch.sf1000.lineitem b ON a.comment < b.comment"


def new_mark():
    return f"m{uuid.uuid4().hex}"


async def until(server, mark, wanted, seconds=30.0):
    """Wait until the query of a mark is in a state."""
    states = None
    with anyio.move_on_after(seconds):
        while states != wanted:
            states = [tuple(row) for row in await server.run(STATE.format(mark))]
            await anyio.sleep(0.02)
    assert states == wanted


RUNNING = [("RUNNING", None)]
CANCELLED = [("FAILED", "USER_CANCELED")]


async def start(server, executor, mark):
    task = asyncio.ensure_future(ask(executor, slow(mark)))
    await until(server, mark, RUNNING, seconds=20)
    return task


# Rows and bytes


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("VALUES (1, 'a'), (2, 'b')", [[1, "a"], [2, "b"]]),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 FROM a) SELECT * FROM a, b", [[1, 2]]),
        ("TABLE region", None),
        ("SELECT 1 WHERE false", []),
        ("SELECT 'line\nbreak' AS x -- a comment", [["line\nbreak"]]),
        ("SHOW SCHEMAS FROM tpch LIKE 'tiny'", [["tiny"]]),
        ("DESCRIBE region", None),
        ("EXPLAIN (TYPE VALIDATE) SELECT 1", [[True]]),
    ],
)
async def test_every_kind_of_query_is_answered(executor, sql, rows):
    got = (await ask(executor, sql))[1]
    assert got == rows if rows is not None else got


async def test_rows_come_in_their_order_and_no_more_than_wanted(executor):
    sql = "SELECT orderkey FROM orders ORDER BY totalprice DESC"
    _, all_rows = await ask(executor, sql, max_rows=100_000, max_bytes=10_000_000)
    assert len(all_rows) == 15_000
    assert (await ask(executor, sql, max_rows=10))[1] == all_rows[:11]


async def test_a_large_answer_comes_in_batches_and_whole(executor):
    request = Request(statement="SELECT * FROM lineitem", limits=Limits(max_rows=100_000, max_bytes=100_000_000))
    async with executor.open(request) as stream:
        batches = [(batch.count, len(batch.json)) async for batch in stream.batches]
    assert sum(count for count, _ in batches) == 60_175
    assert max(size for _, size in batches) < 1024 * 1024


async def test_an_answer_never_costs_much_more_memory_than_its_limit(executor):
    """The server sends pages of many megabytes when rows are wide; a single row may have as many."""
    limits = Limits(max_rows=1001, max_bytes=100_000)
    await ask(executor, "SELECT rpad('x', 90000, 'x')", max_bytes=100_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wide = "SELECT rpad('x', 50000, 'x'), rpad('y', 40000, 'y') FROM tpch.sf1.orders"
    async with executor.open(Request(statement=wide, limits=limits)) as stream:
        async for batch in stream.batches:
            assert batch.count >= 1
            break
    huge = "SELECT array_join(repeat('x', 9000), rpad('-', 6000, '-'))"
    assert isinstance(await failure_of(executor, huge, max_bytes=100_000), ResultTooLarge)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


async def test_rows_too_wide_for_one_reading_are_cut_exactly(trino_server):
    async with Gateway.open([trino_server.configure("tpch", "tiny")]) as gateway:
        result = await gateway.query(None, WIDE, max_bytes=1_600_000)
        assert result.truncated is not None
        assert (result.row_count, result.truncated.reason) == (3, "bytes")
        with pytest.raises(ResultTooLarge):
            await gateway.query(None, WIDE, max_bytes=100_000)


async def test_a_reader_who_goes_on_beyond_what_could_be_read_is_told(executor):
    huge = "SELECT array_join(repeat('x', 3000), rpad('-', 6000, '-')) FROM region"
    assert isinstance(await failure_of(executor, huge, max_bytes=1_000_000), ResultTooLarge)


async def test_the_gateway_truncates_exactly(trino_server):
    async with Gateway.open([trino_server.configure("tpch", "tiny")]) as gateway:
        for rows, cut in ((25, None), (24, "rows")):
            result = await gateway.query(None, "SELECT name FROM nation", limit=rows)
            assert (result.row_count, result.truncated and result.truncated.reason) == (rows, cut)


async def test_columns_are_told_without_running(executor):
    columns = await executor.describe(Request(statement=f"{slow('total')} WHERE a.comment = ?"))
    assert [(column.name, column.type) for column in columns] == [("total", "bigint")]


# Nothing outlives a statement


async def test_what_a_statement_sets_is_not_followed(executor):
    for sql in (
        "USE memory.default",
        "SET TIME ZONE 'Asia/Tokyo'",
        "PREPARE p FROM SELECT 1",
        "SET SESSION query_priority = 5",
    ):
        await ask(executor, sql)
    assert await value_of(executor, "SELECT current_catalog || '.' || current_schema || ' ' || current_timezone()") == (
        "tpch.tiny UTC"
    )
    assert "p" not in str((await failure_of(executor, "EXECUTE p")).context)


async def test_the_server_refuses_writes(executor, trino_server):
    async with trino_server.schema() as schema:
        await trino_server.run(f"CREATE TABLE {schema}.t (a integer)")
        for sql in (
            f"INSERT INTO {schema}.t VALUES (1)",
            f"CREATE TABLE {schema}.u AS SELECT 1 AS x",
            f"DROP TABLE {schema}.t",
            f"EXPLAIN ANALYZE INSERT INTO {schema}.t VALUES (1)",
            f"COMMENT ON TABLE {schema}.t IS 'x'",
        ):
            assert isinstance(await failure_of(executor, sql), WriteDenied), sql
        assert await trino_server.run(f"SELECT count(*) FROM {schema}.t") == [[0]]


# Ending


async def test_a_cancelled_statement_ends_in_the_server(executor, trino_server):
    mark = new_mark()
    task = await start(trino_server, executor, mark)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    await until(trino_server, mark, CANCELLED)


async def test_a_scope_that_cancels_every_await_leaves_nothing_behind(executor, trino_server):
    mark = new_mark()
    with anyio.move_on_after(1.0):
        await ask(executor, slow(mark))
    await until(trino_server, mark, CANCELLED)
    assert await value_of(executor, "SELECT 1") == 1


async def test_cancelling_while_the_statement_is_on_its_way_ends_it_too(executor, trino_server):
    marks = [new_mark() for _ in range(8)]
    for number, mark in enumerate(marks):
        task = asyncio.ensure_future(ask(executor, slow(mark)))
        await asyncio.wait({task}, timeout=0.004 * number)
        task.cancel()
        await asyncio.wait({task})
    for mark in marks:
        with anyio.fail_after(30):
            while any(state != "FAILED" for state, _ in await trino_server.run(STATE.format(mark))):
                await anyio.sleep(0.02)


async def test_leaving_a_stream_early_ends_the_statement(executor, trino_server):
    mark = new_mark()
    request = Request(statement=f"SELECT comment AS {mark} FROM tpch.sf100.lineitem", limits=Limits(max_bytes=10**8))
    async with executor.open(request) as stream:
        async for _ in stream.batches:
            break
    await until(trino_server, mark, CANCELLED)


async def test_reading_up_to_the_limit_ends_the_statement(executor, trino_server):
    mark = new_mark()
    _, rows = await ask(executor, f"SELECT orderkey AS {mark} FROM tpch.sf100.lineitem", max_rows=10)
    assert len(rows) == 11
    await until(trino_server, mark, CANCELLED)


async def test_the_server_enforces_the_deadline(executor, trino_server):
    mark = new_mark()
    began = time.monotonic()
    assert isinstance(await failure_of(executor, slow(mark), timeout=0.5), QueryTimeout)
    assert time.monotonic() - began < 30
    await until(trino_server, mark, [("FAILED", "EXCEEDED_TIME_LIMIT")])


async def test_our_own_clock_ends_what_the_server_does_not(trino_server):
    executor = TrinoExecutor(trino_server.configure("tpch", "tiny"))
    executor._client.connector.refused.add(DEADLINE)
    mark = new_mark()
    assert isinstance(await failure_of(executor, slow(mark), timeout=0.5), QueryTimeout)
    await until(trino_server, mark, CANCELLED)
    await executor.aclose()


async def test_closing_the_gateway_ends_what_runs(trino_server):
    mark = new_mark()
    async with Gateway.open([trino_server.configure("tpch", "tiny")]) as gateway:
        task = asyncio.ensure_future(gateway.query(None, slow(mark)))
        await until(trino_server, mark, RUNNING, seconds=20)
    with pytest.raises(QueryCancelled):
        await task
    await until(trino_server, mark, CANCELLED)


async def test_a_failing_statement_leaves_its_place_to_the_next(trino_server):
    executor = TrinoExecutor(trino_server.configure("tpch", "tiny", pool_size=1))
    for _ in range(3):
        await failure_of(executor, "SELECT 1 / 0")
        await failure_of(executor, "SELECT nope")
        assert await value_of(executor, "SELECT 1") == 1
    await executor.aclose()


async def test_a_pool_of_two_answers_twenty_callers(trino_server):
    executor = TrinoExecutor(trino_server.configure(pool_size=2))
    assert await asyncio.gather(*(value_of(executor, f"SELECT {n}") for n in range(20))) == list(range(20))
    await executor.aclose()


async def test_a_caller_who_waits_too_long_for_a_place_is_told(trino_server):
    executor = TrinoExecutor(trino_server.configure(pool_size=1))
    task = await start(trino_server, executor, new_mark())
    assert isinstance(await failure_of(executor, "SELECT 1", timeout=0.1), Busy)
    task.cancel()
    await asyncio.wait({task})
    await executor.aclose()


# The event loop


async def test_the_event_loop_goes_on_while_large_answers_are_read(executor):
    """Nobody waits for the whole answer to be decoded: that happens elsewhere, in pieces.

    The best of three, since a garbage collection runs wherever it is due.
    """
    shares = [await longest_step_share(executor) for _ in range(3)]
    assert min(shares) < 1 / 10, shares


async def longest_step_share(executor):
    """Return the longest step of the loop while a large answer is read, as a share of the work that the answer took.

    Both are processor time: a busy machine makes a step late and not longer.
    """
    longest = 0.0

    async def watch():
        nonlocal longest
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            longest, last = max(longest, now - last), now

    watcher = asyncio.ensure_future(watch())
    began = time.process_time()
    request = Request(statement="SELECT * FROM lineitem", limits=Limits(max_rows=100_000, max_bytes=100_000_000))
    async with executor.open(request) as stream:
        assert sum([batch.count async for batch in stream.batches]) == 60_175
    watcher.cancel()
    return longest / (time.process_time() - began)


# A server that does not answer, or not always


class Moody:
    """Stands before the server and answers some requests itself, as a balancer does: `moods` says how, in turn.

    `lower`: it writes the headers of answers in lower case, as those that speak HTTP/2 do.
    """

    def __init__(self, server, moods, *, lower=False):
        self._server = server
        self._moods = list(moods)
        self._lower = lower
        self.requests = 0
        self._serving = set()

    async def __aenter__(self):
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._listener.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader, writer):
        """Answer one request. What is open is closed before the test ends, or another test would be told of it."""
        task = asyncio.current_task()
        self._serving.add(task)
        try:
            await self._answer(reader, writer)
        finally:
            await close(writer)
            self._serving.discard(task)

    async def _answer(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        mood = self._moods.pop(0) if self._moods else None
        if mood is not None:
            writer.write(mood)
        else:
            await self._pass_on(head, reader, writer)

    async def _pass_on(self, head, reader, writer):
        lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        body = await reader.readexactly(int(lengths[0])) if lengths else b""
        there, back = await asyncio.open_connection(self._server.host, self._server.port)
        try:
            back.write(head.replace(b"keep-alive", b"close") + body)
            names, _, rest = (await there.readuntil(b"\r\n\r\n")).partition(b"\r\n")
            writer.write(names + b"\r\n" + (rest.lower() if self._lower else rest))
            while data := await there.read(65536):
                writer.write(data)
        finally:
            await close(back)


async def close(writer):
    """Close a stream and wait until it is closed; whoever is at its other end may have gone first."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def status(code, *headers):
    lines = [f"HTTP/1.1 {code} Mood", "Content-Length: 0", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize(
    "moods", [[status(503)], [status(502), status(504)], [status(429, "Retry-After: 0")], [None, status(503)], [b""]]
)
async def test_what_is_only_passing_is_asked_again(trino_server, moods):
    async with Moody(trino_server, moods) as moody:
        client = Client(trino_server.configure(port=moody.port))
        assert await client.rows("SELECT 1") == [[1]]
        await client.aclose()


@pytest.mark.parametrize(
    ("code", "words"), [(401, "credentials"), (403, "let this user in"), (404, "HTTP status 404"), (503, "status 503")]
)
async def test_other_answers_are_errors_that_say_what_to_look_at(trino_server, code, words):
    async with Moody(trino_server, [status(code)] * 9) as moody:
        client = Client(trino_server.configure(port=moody.port))
        with pytest.raises(ConnectionFailed) as raised:
            await client.rows("SELECT 1")
        await client.aclose()
    assert words in raised.value.message
    assert str(moody.port) not in str(raised.value.as_dict())
    assert moody.requests == (4 if code == 503 else 1)


@pytest.mark.parametrize("page", [b"<html>", b"[]", b'{"data": 1}', b"\xff", b""])
async def test_what_does_not_speak_the_protocol_is_no_server(trino_server, page):
    said = b"HTTP/1.1 200 Fine\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(page), page)
    async with Moody(trino_server, [said] * 9) as moody:
        client = Client(trino_server.configure(port=moody.port))
        with pytest.raises(ConnectionFailed, match="cannot be reached"):
            await client.rows("SELECT 1")
        await client.aclose()


async def test_a_transaction_the_server_lost_is_begun_anew(executor):
    await value_of(executor, "SELECT 1")
    await executor._client.settle()
    identifier, since = executor._transactions.of(None)._ready.pop()
    executor._transactions.of(None)._ready.append((identifier[:-4] + "0000", since))
    assert await value_of(executor, "SELECT 2") == 2


async def test_headers_in_lower_case_are_read_too(trino_server):
    async with Moody(trino_server, [], lower=True) as moody:
        executor = TrinoExecutor(trino_server.configure(port=moody.port))
        assert await value_of(executor, "SELECT 1") == 1
        await executor.aclose()


async def test_no_transaction_outlives_the_executor_nor_are_more_begun_ahead_than_places(trino_server):
    user = f"closing_{new_mark()}"
    executor = TrinoExecutor(trino_server.configure(user=user, pool_size=2))
    for _ in range(3):
        assert await asyncio.gather(*(value_of(executor, f"SELECT {n}") for n in range(4))) == [0, 1, 2, 3]
    await executor._client.settle()
    assert 1 <= len(executor._transactions.of(None)._ready) <= 2
    await executor.aclose()
    begun = f"SELECT count(*) FROM system.runtime.queries WHERE \"user\" = '{user}' AND query LIKE '{{0}}%'"
    (started,), (ended,) = [(await trino_server.run(begun.format(word)))[0] for word in ("START", "ROLLBACK")]
    assert started == ended
    assert 12 <= started <= 14


async def test_the_type_of_a_parameter_is_asked_again_once_the_table_has_changed(executor, trino_server):
    async with trino_server.schema() as schema:
        sql = f"SELECT a FROM {schema}.t WHERE a = ?"
        await trino_server.run(f"CREATE TABLE {schema}.t AS SELECT 7 AS a")
        assert await value_of(executor, sql, 7) == 7
        await trino_server.run(f"DROP TABLE {schema}.t", f"CREATE TABLE {schema}.t AS SELECT 'x' AS a")
        assert isinstance(await failure_of(executor, sql, "x"), ParameterError)
        assert await value_of(executor, sql, "x") == "x"


async def test_a_deadline_hands_out_the_rows_that_came(trino_server):
    async with Gateway.open([trino_server.configure("tpch", "tiny")]) as gateway:
        part = await part_of(gateway, f"SELECT nationkey FROM nation UNION ALL {slow('stuck')}")
        assert sorted(part.rows) == [[key] for key in range(25)]
        assert part.truncated is not None
        assert part.truncated.reason == "timeout"
