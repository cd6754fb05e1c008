"""A place of the pool is free again only when the server has ended what was run on it."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import pytest
from dragoman import DragomanError
from dragoman.testing.asking import ask, value_of
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.pool import Connections, Session
from dragoman_postgres.testing import Server

SIZE = 2
# Nothing in it looks for interrupts: it runs to its end, seconds after it was told to stop.
DEAF = "SELECT btrim(repeat('a', 25000), repeat('b', 25000) || 'a')"
# Four times as long: time to ask while it goes on, however quick the machine.
DEAFER = "SELECT btrim(repeat('a', 50000), repeat('b', 50000) || 'a')"
ENDINGS = {
    "it cannot be interrupted": DEAF,
    "its answer is too long": "SELECT repeat('x', 1000000) FROM generate_series(1, 3000)",
    "its only value is too long": "SELECT repeat('x', 300000000)",
    "its error is too long": "SELECT repeat('x', 100000000)::integer",
    "it takes too long": "SELECT count(*) FROM generate_series(1, 1000000000)",
    "it is answered": "SELECT 1",
}
_COUNT = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = $1 AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@asynccontextmanager
async def backends_counted(server: Server, database_name: str) -> AsyncIterator[Callable[[], int]]:
    """Count the backends of a database all the time; yields what tells the most there were at once."""
    most = 0
    watcher = await asyncpg.connect(server.address("postgres"))

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, await watcher.fetchval(_COUNT, database_name))
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    try:
        yield lambda: most
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await watcher.close()


async def given_up(work: Coroutine[Any, Any, Any], seconds: float) -> None:
    """Await some work for so long, as an impatient caller does."""
    with suppress(DragomanError, TimeoutError):
        async with asyncio.timeout(seconds):
            await work


@pytest.mark.parametrize("sql", ENDINGS.values(), ids=ENDINGS)
async def test_there_are_never_more_backends_than_places(server: Server, sql: str):
    name = await server.create()
    executor = PostgresExecutor(server.configure(name, pool_size=SIZE))
    async with asyncio.timeout(120), backends_counted(server, name) as most:
        for _ in range(2):
            asked = (given_up(ask(executor, sql, timeout=0.3, max_bytes=2000), 0.1 * n + 0.05) for n in range(3 * SIZE))
            await asyncio.gather(*asked)
        while True:
            with suppress(DragomanError):
                assert await value_of(executor, "SELECT 1") == 1
                break
        assert 0 < most() <= SIZE
    await executor.aclose()
    await server.drop(name)


async def test_who_is_told_that_all_are_busy_learns_that_the_server_goes_on(server: Server, database_name: str):
    executor = PostgresExecutor(server.configure(database_name, pool_size=1))
    await value_of(executor, "SELECT 1")
    told = None
    async with asyncio.timeout(90):
        # A busy machine may not have come to the part that cannot be ended when its caller leaves: then once more.
        for patience in (0.3 * n for n in range(1, 20)):
            await given_up(ask(executor, DEAFER, timeout=0.2 + patience), 0.1 + patience)
            try:
                await ask(executor, "SELECT 1", timeout=0.01)
            except DragomanError as error:
                told = error
                if error.code == "BUSY":
                    break
    assert told is not None
    assert told.code == "BUSY"
    assert "wait for abandoned work to end" in told.message
    await executor.aclose()


async def test_callers_that_go_away_while_it_connects_leave_no_backend_behind(server: Server):
    name = await server.create()
    executor = PostgresExecutor(server.configure(name, pool_size=SIZE))
    async with asyncio.timeout(60), backends_counted(server, name) as most:
        for n in range(8):
            await asyncio.gather(*(given_up(ask(executor, "SELECT 1"), 0.001 * n) for _ in range(SIZE)))
        assert await value_of(executor, "SELECT 1") == 1
        assert most() <= SIZE
    await executor.aclose()
    await server.drop(name)


async def test_a_connection_that_is_replaced_for_a_caller_that_goes_away_is_kept_for_the_next(server: Server):
    """If connecting were given up, its backend would be left for a while, and no place would count it."""
    name = await server.create()
    connections = Connections(server.configure(name, pool_size=1))
    lent: list[Session] = []

    async def renew() -> None:
        async with connections.lend(10) as session:
            lent.append(session)
            await connections.renew(session)

    async with asyncio.timeout(60), backends_counted(server, name) as most:
        renewing = asyncio.create_task(renew())
        while not (lent and lent[0].connection.is_closed()):
            await asyncio.sleep(0)
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing
        async with connections.lend(30) as session:
            assert session is lent[0]
            assert await session.connection.fetchval("SELECT 1") == 1
        assert most() <= 1
    await connections.aclose()
    await server.drop(name)


async def test_a_connection_that_fails_when_its_caller_has_gone_is_no_error_of_the_gateway(server: Server):
    name = await server.create()
    connections = Connections(server.configure(name, pool_size=1))
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    lent: list[Session] = []

    async def renew() -> None:
        async with connections.lend(10) as session:
            lent.append(session)
            await server.run(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false', "postgres")
            await connections.renew(session)

    renewing = asyncio.create_task(renew())
    async with asyncio.timeout(60):
        while not (lent and lent[0].renewing):
            await asyncio.sleep(0)
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing
    lent.clear()
    await connections.aclose()
    del renewing
    gc.collect()
    asyncio.get_running_loop().set_exception_handler(None)
    await server.drop(name)
    assert told == []


async def test_closing_does_not_wait_for_what_cannot_be_ended(server: Server):
    name = await server.create()
    executor = PostgresExecutor(server.configure(name, pool_size=1))
    await given_up(ask(executor, DEAF, timeout=0.2), 0.3)
    async with asyncio.timeout(30):
        await executor.aclose()
    watcher = await asyncpg.connect(server.address("postgres"))
    async with asyncio.timeout(60):
        while await watcher.fetchval(_COUNT, name):
            await asyncio.sleep(0.1)
    await watcher.close()
    await server.drop(name)
