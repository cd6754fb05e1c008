"""Whatever a query does, its work ends when nobody waits for it, within its bounds, and the next query is answered."""

import asyncio
import os
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dragoman import (
    Busy,
    ConfigurationError,
    ConnectionFailed,
    Database,
    Gateway,
    Limits,
    QueryTimeout,
    Request,
    ResultTooLarge,
)
from dragoman.testing.asking import part_of
from dragoman.testing.idleness import children
from dragoman_sqlite.executor import SQLiteExecutor

NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
ENDLESS = f"{NUMBERS} SELECT count(*) FROM n"
ENDLESS_ROWS = f"{NUMBERS} SELECT i FROM n"
ALL = Limits(max_rows=10**9, max_bytes=10**12)
# One step of SQLite's machine that takes minutes: neither an interrupt nor a deadline is looked at meanwhile.
STUBBORN = """SELECT instr(hay, needle) FROM (SELECT replace(hex(zeroblob(490000)), '00', 'aa') AS hay,
    replace(hex(zeroblob(240000)), '00', 'aa') || 'b' AS needle)"""
PROMPT = 30.0
HAS_PROC = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads what Linux tells of processes")


@pytest.fixture
def shop(bench):
    return bench.make("CREATE TABLE t (a); INSERT INTO t VALUES (1)", pool_size=1)


def ended(pid: int) -> bool:
    """Whether a process has ended, a moment later at the latest."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(process, select.POLLIN)
    found = poll.poll(PROMPT * 1000)
    os.close(process)
    return bool(found)


@contextmanager
def promptly() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < PROMPT


async def answers(bench, shop) -> bool:
    with promptly():
        return (await bench.ask(shop, "SELECT a FROM t")).rows == [[1]]


async def each_batch(bench, shop, act) -> None:
    """Read rows without end."""
    async with bench.executor(shop).open(Request(statement=ENDLESS_ROWS, limits=ALL)) as stream:
        async for _ in stream.batches:
            act()


async def worker_of(bench, shop) -> int:
    before = children()
    assert await answers(bench, shop)
    (pid,) = children() - before
    return pid


@HAS_PROC
async def test_a_cancelled_query_leaves_its_worker_free(bench, shop):
    pid = await worker_of(bench, shop)
    with promptly(), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await bench.ask(shop, ENDLESS)
    assert await answers(bench, shop)
    assert pid in children()


@HAS_PROC
async def test_a_query_that_heeds_no_interrupt_costs_its_worker(bench, shop):
    pid = await worker_of(bench, shop)
    with promptly(), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await bench.ask(shop, STUBBORN)
    assert ended(pid)
    assert await answers(bench, shop)


async def test_a_deadline_that_nothing_heeds_is_enforced_from_outside(bench, shop):
    async with Gateway.open([shop]) as gateway:
        with promptly(), pytest.raises(QueryTimeout):
            await gateway.query(None, STUBBORN, timeout=0.2)
        assert (await gateway.query(None, "SELECT a FROM t")).rows == [[1]]


@pytest.mark.parametrize("sql", [ENDLESS, f"SELECT * FROM ({ENDLESS_ROWS}) ORDER BY i DESC"])
async def test_the_engine_keeps_the_deadline_itself(bench, shop, sql):
    with promptly():
        error = await bench.fails(shop, sql, timeout=0.1)
    assert isinstance(error, QueryTimeout)
    assert await answers(bench, shop)


async def test_leaving_in_every_moment_keeps_questions_and_answers_together(bench, shop):
    for number in range(40):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(each_batch(bench, shop, lambda: None), number / 4000)
        assert (await bench.ask(shop, "SELECT ?", number)).rows == [[number]]


async def test_a_caller_cancelled_twice_leaves_a_clean_worker(bench, shop):
    async def ask() -> None:
        async with bench.executor(shop).open(Request(statement=STUBBORN)):
            pass

    task = asyncio.create_task(ask())
    for _ in range(5):
        await asyncio.wait({task}, timeout=0.05)
        task.cancel()
    with promptly(), pytest.raises(asyncio.CancelledError):
        await task
    assert await answers(bench, shop)


@HAS_PROC
async def test_more_queries_than_workers_wait_their_turn(bench):
    shop = bench.make("CREATE TABLE t (a)", pool_size=2)
    before = children()
    answers = await asyncio.gather(*(bench.ask(shop, "SELECT ?", number) for number in range(20)))
    assert [answer.rows[0][0] for answer in answers] == list(range(20))
    assert len(children() - before) <= 2


async def test_who_waits_for_a_worker_in_vain_is_told_that_all_are_busy(bench):
    shop = bench.make("CREATE TABLE t (a)", pool_size=1)
    statement = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    async with bench.executor(shop).open(Request(statement=statement, limits=Limits(10**9, 10**9, 60))):
        error = await bench.fails(shop, "SELECT 1", timeout=0.1)
    assert isinstance(error, Busy)
    assert error.suggestion
    assert await bench.ask(shop, "SELECT 1")


async def test_a_system_that_starts_no_process_is_told_and_keeps_nothing_busy(bench, shop, monkeypatch):
    with monkeypatch.context() as without:
        without.setattr(sys, "executable", str(bench.folder / "nowhere"))
        for _ in range(10):
            error = await bench.fails(shop, "SELECT 1")
            assert isinstance(error, ConnectionFailed)
            assert "nowhere" not in error.message + error.suggestion
    assert await answers(bench, shop)


@HAS_PROC
async def test_a_worker_killed_while_idle_is_replaced_unnoticed(bench, shop):
    pid = await worker_of(bench, shop)
    os.kill(pid, signal.SIGKILL)
    assert ended(pid)
    assert await answers(bench, shop)


@HAS_PROC
async def test_a_worker_killed_at_work_is_a_clear_error(bench, shop):
    pid = await worker_of(bench, shop)
    with promptly(), pytest.raises(ResultTooLarge, match="process ended"):
        await each_batch(bench, shop, lambda: os.kill(pid, signal.SIGKILL))
    assert await answers(bench, shop)


@HAS_PROC
@pytest.mark.parametrize("sql", ["SELECT a FROM t", ENDLESS, STUBBORN])
async def test_closing_leaves_no_process(bench, shop, sql):
    pid = await worker_of(bench, shop)
    task = asyncio.create_task(bench.ask(shop, sql))
    await asyncio.wait({task}, timeout=0.1)
    task.cancel()
    await asyncio.wait({task})
    await bench.aclose()
    assert ended(pid)


ORPHAN = """
import asyncio, sys
from dragoman import Database, Request
from dragoman.testing.idleness import children
from dragoman_sqlite.executor import SQLiteExecutor

async def main():
    executor = SQLiteExecutor(Database(name="shop", dialect="sqlite", database=sys.argv[1]))
    async with executor.open(Request(statement="SELECT 1")) as stream:
        async for _ in stream.batches:
            pass
    print(*children(), flush=True)
    async with executor.open(Request(statement=sys.argv[2])):
        pass

asyncio.run(main())
"""


@HAS_PROC
@pytest.mark.parametrize("sql", [ENDLESS, STUBBORN])
def test_no_worker_outlives_a_killed_parent(tmp_path, sql):
    sqlite3.connect(tmp_path / "test.db").close()
    (tmp_path / "test.db").touch()
    command = [sys.executable, "-c", ORPHAN, str(tmp_path / "test.db"), sql]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        (worker,) = map(int, parent.stdout.readline().split())
        parent.kill()
    assert ended(worker)


def peak(pid: int) -> float:
    """The most memory a process has had, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


WIDE = ", ".join(["hex(zeroblob(500000))"] * 1000)
BOMBS = {
    "one value": "SELECT hex(zeroblob(400000000))",
    "a long text": "SELECT printf('%.*c', 2000000000, 'x')",
    "a wide row": f"SELECT {WIDE}",
    "an aggregate": f"{NUMBERS}, m AS (SELECT i FROM n LIMIT 400000) SELECT group_concat(i) FROM m",
    "a JSON array": f"{NUMBERS}, m AS (SELECT i FROM n LIMIT 99) SELECT json_group_array(hex(zeroblob(400000))) FROM m",
    "a sort": f"{NUMBERS}, m AS (SELECT i FROM n LIMIT 1000) SELECT randomblob(400000) AS x FROM m ORDER BY x",
    "distinct values": f"{NUMBERS} SELECT count(DISTINCT randomblob(400000)) FROM n",
    "a recursion": "WITH r AS (SELECT randomblob(400000) AS x UNION SELECT randomblob(400000) FROM r) SELECT 1 FROM r",
}


@HAS_PROC
@pytest.mark.parametrize("sql", BOMBS.values(), ids=BOMBS)
async def test_a_memory_bomb_is_bounded_and_the_next_query_answered(bench, sql):
    shop = bench.make("CREATE TABLE t (a); INSERT INTO t VALUES (1)", pool_size=1, options={"memory_mb": 32})
    pid = await worker_of(bench, shop)
    error = await bench.fails(shop, sql, max_rows=10**6, timeout=20)
    assert isinstance(error, ResultTooLarge)
    assert peak(pid) < 150
    assert await answers(bench, shop)


@HAS_PROC
async def test_rows_that_nobody_reads_are_not_heaped_up(bench, shop):
    pid = await worker_of(bench, shop)
    async with bench.executor(shop).open(
        Request(statement=f"{NUMBERS} SELECT hex(zeroblob(400000)) FROM n", limits=Limits(10**6, 10**6))
    ) as stream:
        total = sum([len(batch.json) async for batch in stream.batches])
    assert total < 30_000_000
    assert peak(pid) < 250


async def test_a_locked_database_is_waited_for_until_the_deadline(bench, shop):
    writer = sqlite3.connect(bench.folder / "test.db", isolation_level=None, check_same_thread=False)
    writer.execute("BEGIN EXCLUSIVE")
    with promptly():
        error = await bench.fails(shop, "SELECT a FROM t", timeout=0.2)
    assert isinstance(error, QueryTimeout)
    assert "locked" in error.message
    release = threading.Timer(0.1, writer.rollback)
    release.start()
    assert await answers(bench, shop)
    release.join()
    writer.close()


@pytest.mark.parametrize("options", [{"memory_mb": 0}, {"max_value_kb": -1}])
def test_bounds_that_bound_nothing_are_refused(options):
    with pytest.raises(ConfigurationError, match="at least 1"):
        SQLiteExecutor(Database(name="shop", dialect="sqlite", database="test.db", options=options))


async def test_the_smallest_bounds_still_answer(bench):
    shop = bench.make("CREATE TABLE t (a); INSERT INTO t VALUES (1)", options={"memory_mb": 1, "max_value_kb": 1})
    assert await answers(bench, shop)


@pytest.mark.parametrize("rows", [1, 3, 700])
async def test_a_deadline_hands_out_the_rows_that_came(shop: Database, rows: int):
    endless = "WITH RECURSIVE m (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM m) SELECT count(*) FROM m"
    sql = f"{NUMBERS} SELECT i, CASE WHEN i > {rows} THEN ({endless}) END AS later FROM n LIMIT 1000"
    async with Gateway.open([shop]) as gateway:
        part = await part_of(gateway, sql, limit=1000)
        assert part.rows == [[row, None] for row in range(1, rows + 1)]
        assert part.truncated is not None
        assert part.truncated.reason == "timeout"
        assert (await gateway.query(None, "SELECT 1 AS one")).rows == [[1]]
