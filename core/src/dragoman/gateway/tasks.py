"""Work on a database runs in a task of its own, so that it ends when its caller leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from functools import partial
from types import coroutine
from typing import Any, Generic, ParamSpec, TypeVar

from dragoman.cleanup import CLEANUP, wait_for
from dragoman.errors import DragomanError, QueryCancelled, QueryTimeout

P = ParamSpec("P")
T = TypeVar("T")

GRACE = 0.5
"""Seconds that the engine gets to enforce its own deadline, whose error says more, before ours applies."""


class Fatal(Exception):
    """Wraps an exception that would have ended the event loop, and every database with it.

    `kind` is its type's name.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Work:
    """All running work on one database."""

    def __init__(self) -> None:
        self._jobs: set[_Job[Any]] = set()

    async def do(
        self, timeout: float, function: Callable[P, Coroutine[Any, Any, T]], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """Return what `function` returns. If the caller is cancelled or the time is up, end the function first.

        `timeout`: seconds, to which a grace is added. Raises `QueryTimeout`, and `QueryCancelled` if everything is
        closed meanwhile.
        """
        job = _Job(self._jobs, timeout, partial(function, *arguments, **named))
        try:
            await job.over
            return job.result()
        finally:
            if not job.task.done():
                await job.cancel_and_wait()

    @asynccontextmanager
    async def feed(
        self, work: Callable[[Callable[[T], Awaitable[None]]], Coroutine[Any, Any, None]], timeout: float
    ) -> AsyncGenerator[AsyncIterator[T]]:
        """Run `work(put)`, and yield an iterator over what it puts, at most one item ahead. Leaving ends the work.

        The iterator raises what the work raises, and what `do` raises.
        """
        items: asyncio.Queue[T | None] = asyncio.Queue()
        room = asyncio.Semaphore(1)

        async def put(item: T) -> None:
            await room.acquire()
            items.put_nowait(item)

        async def take() -> AsyncIterator[T]:
            while (item := await items.get()) is not None:
                room.release()
                yield item
            items.put_nowait(None)  # it stays ended, however often it is read
            job.result()

        job = _Job(self._jobs, timeout, partial(work, put))
        job.task.add_done_callback(lambda _: items.put_nowait(None))
        try:
            yield take()
        finally:
            await job.cancel_and_wait()

    async def aclose(self) -> None:
        """End all work. Callers that wait for it get `QueryCancelled`."""
        jobs = list(self._jobs)
        for job in jobs:
            job.end(QueryCancelled("The gateway was closed while the query ran."))
        await asyncio.gather(*(job.cancel_and_wait() for job in jobs))


class _Job(Generic[T]):
    """A task with a deadline, and the reason if it was ended early."""

    def __init__(self, under_way: set[_Job[Any]], timeout: float, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._why: DragomanError | None = None
        self._under_way = under_way
        self._timer = self._loop.call_later(timeout + GRACE, lambda: self.end(late(timeout)))
        self.over = self._loop.create_future()
        self.task = self._loop.create_task(self._run(work))
        self.task.add_done_callback(self._finish)
        under_way.add(self)

    async def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await work()
        except (Exception, asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise Fatal(type(error).__name__) from error
        finally:
            if not self.over.done():
                self.over.set_result(None)  # a turn of the loop before the task's callbacks

    def _finish(self, task: asyncio.Task[T]) -> None:
        self._timer.cancel()
        self._under_way.discard(self)
        if not self.over.done():  # it was cancelled before it began
            self.over.set_result(None)
        if not task.cancelled():
            task.exception()  # mark as retrieved: asyncio would report it when nobody waits any more

    def _let_go(self) -> None:
        """Wake the waiting caller: the work does not end although it was cancelled."""
        if not self.over.done():
            self.over.set_result(None)

    def end(self, why: DragomanError) -> None:
        """Cancel it. `result` will raise the reason."""
        if self.task.done():
            return
        self._why = self._why or why
        self.task.cancel()
        self._timer.cancel()
        self._timer = self._loop.call_later(CLEANUP, self._let_go)

    def result(self) -> T:
        """Return or raise what the task did, or raise why it was ended."""
        if self._why is not None:
            raise self._why
        if self.task.cancelled():  # not by a caller: a driver gave up, or the loop ends
            raise QueryCancelled("The query was ended before its time.")
        return self.task.result()

    async def cancel_and_wait(self) -> None:
        """Cancel it unless it is done, and wait until it is, even if the caller is cancelled meanwhile."""
        if not self.task.done():
            self.task.cancel()
            await wait_for(self.task)


def late(timeout: float) -> QueryTimeout:
    """Return the error for a database that takes longer than so many seconds."""
    return QueryTimeout(f"The database did not answer within {timeout:g} seconds and was told to stop.")


async def within(timeout: float, work: Awaitable[T], error: Callable[[float], QueryTimeout] = late) -> T:
    """Return what the work returns, and cancel it when the time is up: for work that ends when it is cancelled.

    Work that need not wait gets no deadline, since a timer takes longer than most of it.

    `timeout`: seconds, to which a grace is added. Raises what `error` makes of them.
    """
    steps = work.__await__()
    try:
        awaited = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    limit = asyncio.timeout(timeout + GRACE)
    try:
        async with limit:
            return await _resume(steps, awaited)
    except TimeoutError:
        if not limit.expired():
            raise
        raise error(timeout) from None


@coroutine
def _resume(steps: Generator[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    """Go on with work that waits for something."""
    while True:
        try:
            step = partial(steps.send, (yield awaited))
        except BaseException as error:
            step = partial(steps.throw, error)
        try:
            awaited = step()
        except StopIteration as done:
            result: T = done.value
            return result
