"""Whoever goes away, and however: when control returns, the work in the database has ended."""

import asyncio
import contextlib

import anyio
import pytest
from dragoman import Database, Gateway, QueryCancelled


async def cancelled_by_asyncio(gateway: Gateway, sql: str, ready) -> None:
    task = asyncio.create_task(gateway.query("shop", sql))
    await ready
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def cancelled_twice(gateway: Gateway, sql: str, ready) -> None:
    task = asyncio.create_task(gateway.query("shop", sql))
    await ready
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def left_by_an_anyio_scope(gateway: Gateway, sql: str, ready) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(gateway.query, "shop", sql)
        await ready
        group.cancel_scope.cancel()


async def timed_out_by_asyncio(gateway: Gateway, sql: str, ready) -> None:
    async def ask() -> None:
        async with asyncio.timeout(None) as scope:
            asyncio.ensure_future(ready).add_done_callback(lambda _: scope.reschedule(0))
            await gateway.query("shop", sql)

    with pytest.raises(TimeoutError):
        await ask()


async def left_within_a_stream(gateway: Gateway, sql: str, ready) -> None:
    async def read() -> None:
        async with gateway.stream("shop", sql) as stream:
            async for _ in stream.batches:
                pass

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await ready
        group.cancel_scope.cancel()


async def left_while_explaining(gateway: Gateway, sql: str, ready) -> None:
    from dragoman import ExplainOptions

    task = asyncio.create_task(gateway.explain("shop", sql, options=ExplainOptions(analyze=True)))
    await ready
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


WAYS = [
    cancelled_by_asyncio,
    cancelled_twice,
    left_by_an_anyio_scope,
    timed_out_by_asyncio,
    left_within_a_stream,
    left_while_explaining,
]


@pytest.mark.parametrize("way", WAYS)
async def test_a_caller_that_goes_leaves_nothing_running(way, gateway: Gateway, shop: Database, endless, running, idle):
    await way(gateway, endless, running(shop))
    assert idle(shop)
    assert (await gateway.query("shop", "SELECT 1 AS one")).rows == [[1]]


async def test_many_callers_go_at_once(gateway: Gateway, shop: Database, endless: str, running, idle):
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(gateway.query, "shop", endless)
        await running(shop)
        group.cancel_scope.cancel()
    assert idle(shop)
    answers = await asyncio.gather(*(gateway.query("shop", "SELECT 1 AS one") for _ in range(8)))
    assert [answer.rows for answer in answers] == [[[1]]] * 8


async def test_closing_the_gateway_ends_what_runs(shop: Database, endless: str, running, idle):
    async with Gateway.open([shop]) as gateway:
        task = asyncio.create_task(gateway.query("shop", endless))
        await running(shop)
    with pytest.raises(QueryCancelled, match="closed"):
        await task
    assert idle(shop)


async def test_closing_the_gateway_ends_streams(shop: Database, endless: str, running, idle):
    async def read(gateway: Gateway) -> None:
        async with gateway.stream("shop", endless) as stream:
            async for _ in stream.batches:
                pass

    async with Gateway.open([shop]) as gateway:
        task = asyncio.create_task(read(gateway))
        await running(shop)
    with pytest.raises(QueryCancelled, match="closed"):
        await task
    assert idle(shop)


async def test_a_gateway_closed_under_cancellation_still_ends_everything(shop: Database, endless: str, running, idle):
    async with anyio.create_task_group() as group:

        async def serve() -> None:
            async with Gateway.open([shop]) as gateway:
                await gateway.query("shop", endless)

        group.start_soon(serve)
        await running(shop)
        group.cancel_scope.cancel()
    assert idle(shop)


# Plugins that do not keep their word

STUBBORN = """
import asyncio

class Stubborn(PretendExecutor):
    entered, left = None, 0

    @asynccontextmanager
    async def open(self, request):
        async def batches():
            Stubborn.entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                {ending}
            yield []

        yield RowStream([Column("a", "text")], batches())

class Odd(PretendPlugin):
    @hookimpl
    def executor(self, database):
        Stubborn.entered = asyncio.Event()
        return Stubborn(database)

plugin = Odd()
"""


def stubborn(install, ending: str) -> Database:
    install("dragoman-odd", STUBBORN.format(ending=ending), dialects={"pretend": "plugin"}, pretend=True)
    return Database(name="shop", dialect="pretend")


SLOW_ENDINGS = "for _ in range(20): await asyncio.sleep(0)\n                Stubborn.left += 1"


async def test_cleanup_that_takes_its_time_is_waited_for(install):
    database = stubborn(install, SLOW_ENDINGS)
    async with Gateway.open([database]) as gateway:
        executor = gateway.database().executor
        for _ in range(3):
            executor.entered.clear()  # type: ignore[attr-defined]
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(gateway.query, "shop", "SELECT 1")
                    await executor.entered.wait()  # type: ignore[attr-defined]
                    scope.cancel()
        assert type(executor).left == 3  # type: ignore[attr-defined]


async def test_an_executor_that_calls_its_end_an_error_still_timed_out(install):
    from dragoman import QueryTimeout

    database = stubborn(install, "raise QueryCancelled('interrupted')")
    async with Gateway.open([database]) as gateway:
        with pytest.raises(QueryTimeout, match="not answer within"):
            await gateway.query("shop", "SELECT 1", timeout=0.01)


async def test_an_executor_that_cancels_itself_does_not_cancel_the_caller(install):
    source = """
    import asyncio
    class Odd(PretendPlugin):
        @hookimpl
        def executor(self, database):
            class Giving(PretendExecutor):
                @asynccontextmanager
                async def open(self, request):
                    raise asyncio.CancelledError
                    yield
            return Giving(database)
    plugin = Odd()
    """
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        with pytest.raises(QueryCancelled):
            await gateway.query("x", "SELECT 1")


async def test_one_part_that_fails_to_close_does_not_keep_the_others_open(install):
    source = """
    closed = []
    class Odd(PretendPlugin):
        @hookimpl
        def executor(self, database):
            class Failing(PretendExecutor):
                async def aclose(self):
                    closed.append(database.name)
                    raise RuntimeError("no")
            return Failing(database)
    plugin = Odd()
    """
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name=name, dialect="pretend") for name in "ab"]) as gateway:
        for name in "ab":
            await gateway.query(name, "SELECT 1")
        module = __import__(type(gateway.database("a").executor).__module__)
    assert sorted(module.closed) == ["a", "b"]


async def test_nothing_is_left_when_the_caller_is_gone_before_the_work_began(gateway: Gateway, shop: Database, idle):
    for _ in range(20):
        task = asyncio.create_task(gateway.query("shop", "SELECT count(*) FROM orders"))
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert idle(shop)
