"""One pool for every kind of resource, proven on real connections: of a blocking driver and of an asynchronous one."""

import asyncio
import random
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from dragoman import Busy, ConnectionFailed
from dragoman.pool import Lost, Manager, Pool
from dragoman.threads import Threads

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
SIZE = 2
PATIENCE = 30.0


class Connection:
    """A connection with what it runs. `hold()` in SQL waits for `let_go`, and cannot be interrupted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held, self.let_go = threading.Event(), threading.Event()
        self.job: asyncio.Future[Any] | None = None
        self.driver: Any = None

    def hold(self) -> int:
        self.held.set()
        assert self.let_go.wait(PATIENCE)
        return 1

    async def ask(self, sql: str) -> Any:
        self.job = job = asyncio.ensure_future(self.start(sql))
        return await asyncio.shield(job)

    async def end(self) -> bool:
        while self.job is not None and not self.job.done():
            await self.interrupt()
            await asyncio.wait({self.job}, timeout=0.02)
        if self.job is not None:
            self.job.exception()
        self.job = None
        try:
            await self.start("ROLLBACK")
        except sqlite3.OperationalError:  # what failed may have ended the transaction
            return True
        except (sqlite3.ProgrammingError, ValueError):  # it is closed
            return False
        return True

    async def connect(self) -> None:
        raise NotImplementedError

    async def start(self, sql: str) -> Any:
        raise NotImplementedError

    async def interrupt(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


class Blocking(Connection):
    """Python's own driver, in a thread."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.thread = Threads("pooled", most=1)

    def _connect(self) -> None:
        self.driver = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None)
        self.driver.create_function("hold", 0, self.hold)

    async def connect(self) -> None:
        await self.thread.start(self._connect)

    async def start(self, sql: str) -> Any:
        return await self.thread.start(lambda: self.driver.execute(sql).fetchall())

    async def interrupt(self) -> None:
        self.driver.interrupt()

    async def close(self) -> None:
        await self.thread.start(self.driver.close)
        self.thread.stop()


class Asynchronous(Connection):
    """The asynchronous driver."""

    async def connect(self) -> None:
        if not self.path.exists():  # the driver would leave a thread that may outlive the loop, and fails then
            raise sqlite3.OperationalError("unable to open database file")
        self.driver = await aiosqlite.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None)
        await self.driver.create_function("hold", 0, self.hold)

    async def start(self, sql: str) -> Any:
        return await self.driver.execute_fetchall(sql)

    async def interrupt(self) -> None:
        await self.driver.interrupt()

    async def close(self) -> None:
        await self.driver.close()


class Files(Manager[Connection]):
    """Opens connections to one file, and counts those that are open."""

    def __init__(self, kind: Callable[[Path], Connection], path: Path) -> None:
        self.kind = kind
        self.path = path
        self.open_ones: set[Connection] = set()
        self.most = self.opened = 0
        self.trusted, self.spoils = True, False
        self.aborted: list[Connection] = []
        self.may_close = asyncio.Event()
        self.may_close.set()

    async def open(self) -> Connection:
        connection = self.kind(self.path)
        self.open_ones.add(connection)
        self.most = max(self.most, len(self.open_ones))
        self.opened += 1
        try:
            await connection.connect()
        except sqlite3.OperationalError:
            self.open_ones.discard(connection)
            raise ConnectionFailed("There is no such file.") from None
        return connection

    def is_usable(self, resource: Connection) -> bool:
        return self.trusted

    async def clean(self, resource: Connection) -> bool:
        return await resource.end() and not self.spoils

    async def close(self, resource: Connection) -> None:
        if resource in self.open_ones:
            await self.may_close.wait()
            await resource.close()
            self.open_ones.discard(resource)
        if self.spoils:
            raise sqlite3.OperationalError("disk I/O error")

    def abort(self, resource: Connection) -> None:
        self.aborted.append(resource)


@pytest.fixture(params=[Blocking, Asynchronous])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    path = tmp_path / "numbers.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE numbers AS SELECT 1 AS n")
    connection.close()
    return Files(request.param, path)


@pytest.fixture
async def pool(files: Files) -> AsyncIterator[Pool[Connection]]:
    pool = Pool(files, SIZE, "connections", grace=0.2)
    yield pool
    await pool.aclose()
    assert not files.open_ones


async def begin(connection: Connection) -> None:
    await connection.ask("BEGIN")


async def ask(pool: Pool[Connection], sql: str, seconds: float = PATIENCE) -> Any:
    async with pool.lend(seconds, begin) as connection:
        return await connection.ask(sql)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0)


async def holding(pool: Pool[Connection]) -> tuple[asyncio.Task[Any], Connection]:
    """Borrow a connection for a statement that cannot be interrupted, and return once that runs."""
    lent: list[Connection] = []

    async def hold() -> None:
        async with pool.lend(PATIENCE, begin) as connection:
            lent.append(connection)
            await connection.ask("SELECT hold()")

    task = asyncio.ensure_future(hold())
    await until(lambda: bool(lent) and lent[0].held.is_set())
    return task, lent[0]


async def test_nothing_is_opened_before_it_is_needed_and_one_serves_many_loans(files: Files, pool: Pool[Connection]):
    assert files.opened == 0
    for _ in range(5):
        assert await ask(pool, "SELECT n FROM numbers") == [(1,)]
    assert files.opened == 1
    assert [*files.open_ones] == pool.idle


async def test_there_are_never_more_than_its_size_and_everybody_has_a_turn(files: Files, pool: Pool[Connection]):
    answers = await asyncio.gather(*(ask(pool, f"SELECT {n}") for n in range(20)))
    assert answers == [[(n,)] for n in range(20)]
    assert files.most == SIZE


async def test_the_one_used_last_is_lent_first(pool: Pool[Connection]):
    await asyncio.gather(*(ask(pool, "SELECT 1") for _ in range(2 * SIZE)))
    assert len(pool.idle) == SIZE
    last = pool.idle[-1]
    async with pool.lend(PATIENCE) as connection:
        assert connection is last


async def test_who_waits_in_vain_is_told_what_is_busy(pool: Pool[Connection]):
    async with pool.lend(PATIENCE), pool.lend(PATIENCE):
        with pytest.raises(Busy, match=r"^All 2 connections are busy\.$"):
            await ask(pool, "SELECT 1", 0.01)
    assert await ask(pool, "SELECT 1") == [(1,)]


async def test_one_that_is_not_usable_any_more_is_replaced(files: Files, pool: Pool[Connection]):
    await ask(pool, "SELECT 1")
    (before,) = files.open_ones
    files.trusted = False
    assert await ask(pool, "SELECT 2") == [(2,)]
    assert before not in files.open_ones
    assert (files.opened, len(files.open_ones)) == (2, 1)


async def test_one_that_was_not_used_for_long_is_replaced(files: Files):
    pool = Pool(files, SIZE, "connections", most_idle=0)
    for _ in range(3):
        await ask(pool, "SELECT 1")
    assert (files.opened, files.most) == (3, 1)
    await pool.aclose()


async def test_one_that_died_while_it_was_kept_is_replaced_by_the_first_who_notices(
    files: Files, pool: Pool[Connection]
):
    await asyncio.gather(*(ask(pool, "SELECT 1") for _ in range(2 * SIZE)))
    for connection in pool.idle:
        await connection.close()
        files.open_ones.discard(connection)

    async def notice(connection: Connection) -> None:
        try:
            await begin(connection)
        except (sqlite3.ProgrammingError, ValueError) as error:
            raise Lost(error) from error

    async with pool.lend(PATIENCE, notice) as connection:
        assert await connection.ask("SELECT 1") == [(1,)]
    assert files.opened == SIZE + 1


async def test_a_new_one_that_is_lost_at_once_is_an_error_and_costs_no_place(files: Files, pool: Pool[Connection]):
    async def lose(connection: Connection) -> None:
        raise Lost(ConnectionFailed("It went away."))

    for _ in range(SIZE + 1):
        with pytest.raises(ConnectionFailed, match="went away"):
            async with pool.lend(PATIENCE, lose):
                pass
    assert await ask(pool, "SELECT 1") == [(1,)]


async def test_failures_to_open_cost_no_place(files: Files, pool: Pool[Connection]):
    path, files.path = files.path, files.path.with_name("nowhere.db")
    for _ in range(SIZE + 1):
        with pytest.raises(ConnectionFailed):
            await ask(pool, "SELECT 1")
    files.path = path
    assert await ask(pool, "SELECT 1") == [(1,)]


async def test_a_failure_on_loan_is_the_borrower_s_and_the_connection_serves_on(files: Files, pool: Pool[Connection]):
    for _ in range(SIZE + 1):
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await ask(pool, "SELECT * FROM nowhere")
    assert await ask(pool, "SELECT 1") == [(1,)]
    assert files.opened == 1


async def test_an_error_at_closing_is_logged_and_not_the_borrower_s(
    files: Files, pool: Pool[Connection], caplog: pytest.LogCaptureFixture
):
    files.spoils = True
    for _ in range(SIZE + 1):
        assert await ask(pool, "SELECT 1") == [(1,)]
    assert caplog.messages == ["one of the connections could not be closed"] * (SIZE + 1)


async def test_a_borrower_does_not_wait_for_a_closing_that_does_not_end(files: Files, pool: Pool[Connection]):
    files.may_close.clear()
    files.spoils = True
    assert [await ask(pool, "SELECT 1") for _ in range(SIZE)] == [[(1,)]] * SIZE
    with pytest.raises(Busy):  # the places are not free before that
        await ask(pool, "SELECT 1", seconds=0.01)
    files.spoils = False
    files.may_close.set()
    assert await ask(pool, "SELECT 1") == [(1,)]
    assert files.most <= SIZE


async def test_cancelled_work_is_ended_before_the_next_borrower_comes(files: Files, pool: Pool[Connection]):
    for _ in range(2 * SIZE):
        task = asyncio.ensure_future(ask(pool, ENDLESS))
        await asyncio.wait({task}, timeout=0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await ask(pool, "SELECT 1") == [(1,)]
    assert files.most <= SIZE


async def test_a_borrower_that_is_cancelled_twice_leaves_at_once_and_its_place_is_not_free(
    files: Files, pool: Pool[Connection]
):
    (first, one), (second, two) = await holding(pool), await holding(pool)
    for task in (first, second):
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
    with pytest.raises(Busy, match="2 of them wait for abandoned work to end"):
        await ask(pool, "SELECT 1", 0.05)
    assert len(files.open_ones) == SIZE
    for connection in (one, two):
        connection.let_go.set()
    assert await ask(pool, "SELECT 1") == [(1,)]
    assert files.opened == SIZE


async def test_a_borrower_waits_a_while_for_what_does_not_end_and_then_leaves_it(pool: Pool[Connection]):
    task, connection = await holding(pool)
    task.cancel()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not connection.let_go.is_set()
    connection.let_go.set()


@pytest.mark.parametrize("turns", range(1, 16))
async def test_a_borrower_that_leaves_while_it_is_opened_leaves_nothing_behind(
    files: Files, pool: Pool[Connection], turns: int
):
    task = asyncio.ensure_future(ask(pool, "SELECT 1"))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    await asyncio.gather(*(ask(pool, "SELECT 1") for _ in range(3 * SIZE)))
    assert files.most <= SIZE
    await until(lambda: {*pool.idle} == files.open_ones)


async def test_what_a_borrower_did_not_wait_for_is_lent_to_the_next(files: Files, pool: Pool[Connection]):
    """Else a deadline shorter than opening takes would end every attempt, for ever."""
    gate, opening = asyncio.Event(), files.open

    async def open_slowly() -> Connection:
        await gate.wait()
        return await opening()

    files.open = open_slowly
    for _ in range(SIZE):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await ask(pool, "SELECT 1")
    gate.set()
    await until(lambda: len(pool.idle) == SIZE)
    for _ in range(SIZE):
        assert await ask(pool, "SELECT n FROM numbers") == [(1,)]
    assert files.opened == SIZE


async def test_closing_ends_what_is_kept_and_what_comes_back_later(files: Files, pool: Pool[Connection]):
    async with pool.lend(PATIENCE, begin) as connection:
        await ask(pool, "SELECT 1")
        await pool.aclose()
        assert [*files.open_ones] == [connection]
        assert await connection.ask("SELECT 1") == [(1,)]
    assert not files.open_ones
    assert await ask(pool, "SELECT 1") == [(1,)]
    assert not files.open_ones


async def test_closing_does_not_wait_for_ever_and_lets_go_of_what_does_not_end(files: Files):
    pool = Pool(files, SIZE, "connections", grace=0.05)
    task, connection = await holding(pool)
    task.cancel()
    await asyncio.wait({task})
    async with asyncio.timeout(PATIENCE):
        await pool.aclose()
    assert files.aborted == [connection]
    connection.let_go.set()
    await connection.end()
    await files.close(connection)


async def test_closing_waits_a_moment_at_most_for_an_idle_one_that_does_not_close(
    files: Files, monkeypatch: pytest.MonkeyPatch
):
    pool = Pool(files, SIZE, "connections", grace=10 * PATIENCE)
    await ask(pool, "SELECT 1")
    (connection,) = pool.idle

    async def close(_: Connection) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(files, "close", close)
        async with asyncio.timeout(PATIENCE):
            await pool.aclose()
    assert files.aborted == [connection]
    await files.close(connection)


async def test_whatever_borrowers_do_places_are_bounded_and_come_back(files: Files, pool: Pool[Connection]):
    chance = random.Random(7)

    async def borrow() -> None:
        async with pool.lend(PATIENCE, begin) as connection:
            for _ in range(chance.randrange(3)):
                await connection.ask(chance.choice(["SELECT 1", "SELECT * FROM nowhere", ENDLESS, "COMMIT"]))

    for _ in range(10):
        tasks = [asyncio.ensure_future(borrow()) for _ in range(4 * SIZE)]
        for _ in range(40):
            await asyncio.sleep(0)
            chance.choice(tasks).cancel()
        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            with suppress(asyncio.CancelledError, sqlite3.OperationalError):
                task.result()
    assert await asyncio.gather(*(ask(pool, "SELECT 1") for _ in range(3 * SIZE))) == [[(1,)]] * 3 * SIZE
    assert files.most <= SIZE
    await until(lambda: {*pool.idle} == files.open_ones)
