"""Where a driver's calls run: a thread of our own for a blocking driver, the event loop for an asynchronous one.

Both run the same synchronous functions of a SQLAlchemy connection, so that the executor is written once.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from dragoman.threads import Threads

T = TypeVar("T")


class Lane(abc.ABC):
    """One pooled connection. `start` runs work on it and returns at once; the caller waits for the future."""

    @abc.abstractmethod
    def connect(self) -> asyncio.Future[Any]:
        """Take a connection from the pool; the future is the driver's own connection."""

    @abc.abstractmethod
    def start(self, work: Callable[[sqlalchemy.Connection], T]) -> asyncio.Future[T]:
        """Run `work` after what was started before it."""

    @abc.abstractmethod
    def cancel(self, job: asyncio.Future[Any]) -> None:
        """Ask a running job to stop, if this kind of driver can be asked."""

    @abc.abstractmethod
    def abandon(self) -> None:
        """Give up on a job that does not end: its connection is thrown away when it does."""


class Engine(abc.ABC):
    """Makes lanes over one pool."""

    @abc.abstractmethod
    def lane(self) -> Lane:
        """Return a lane, not yet connected."""

    @abc.abstractmethod
    def free(self, lane: Lane) -> None:
        """Take back a lane whose connection went back to the pool."""

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Close every pooled connection."""


def engine_for(url: sqlalchemy.URL, **options: Any) -> Engine:
    """Return the engine that fits the URL's driver. Raises SQLAlchemy's errors when the driver is not installed."""
    # The executor bounds connections itself: an abandoned one must not hold up the next call.
    options = {"pool_pre_ping": True, "max_overflow": -1, "poolclass": None, **options}
    options = {name: value for name, value in options.items() if value is not None}
    if url.get_dialect().is_async:
        return LoopEngine(create_async_engine(url, **options))
    return ThreadEngine(sqlalchemy.create_engine(url, **options))


def _thread() -> Threads:
    """One thread: what is started runs in its order."""
    return Threads("dragoman-sqlalchemy", most=1)


class ThreadEngine(Engine):
    """For blocking drivers: a thread for every connection in use."""

    def __init__(self, engine: sqlalchemy.Engine) -> None:
        self._engine = engine
        self._idle: list[Threads] = []

    def lane(self) -> Lane:
        return ThreadLane(self._engine, self._idle.pop() if self._idle else _thread())

    def free(self, lane: Lane) -> None:
        assert isinstance(lane, ThreadLane)
        self._idle.append(lane.thread)

    async def aclose(self) -> None:
        thread = self._idle.pop() if self._idle else _thread()
        await thread.start(self._engine.dispose)
        for idle in (thread, *self._idle):
            idle.stop()
        self._idle.clear()


class ThreadLane(Lane):
    """A blocking driver's connection and its thread."""

    def __init__(self, engine: sqlalchemy.Engine, thread: Threads) -> None:
        self._engine = engine
        self.thread = thread
        self._connection: sqlalchemy.Connection | None = None

    def connect(self) -> asyncio.Future[Any]:
        return self.thread.start(self._connect)

    def _connect(self) -> Any:
        self._connection = self._engine.connect()
        return self._connection.connection.driver_connection

    def start(self, work: Callable[[sqlalchemy.Connection], T]) -> asyncio.Future[T]:
        return self.thread.start(lambda: work(self._ensure_connected()))

    def _ensure_connected(self) -> sqlalchemy.Connection:
        assert self._connection is not None
        return self._connection

    def cancel(self, job: asyncio.Future[Any]) -> None:
        """A thread cannot be asked; the executor's `interrupt` asks the driver."""

    def abandon(self) -> None:
        forget(self.thread.start(self._throw_away))
        self.thread.stop()

    def _throw_away(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()


class LoopEngine(Engine):
    """For asynchronous drivers."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    def lane(self) -> Lane:
        return LoopLane(self._engine)

    def free(self, lane: Lane) -> None:
        """The pool has its connection back; a lane of the loop holds nothing else."""

    async def aclose(self) -> None:
        await self._engine.dispose()


class LoopLane(Lane):
    """An asynchronous driver's connection; each job is a task."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._connection: AsyncConnection | None = None
        self._connecting: asyncio.Future[Any] | None = None

    def connect(self) -> asyncio.Future[Any]:
        self._connecting = asyncio.ensure_future(self._connect())
        return self._connecting

    async def _connect(self) -> Any:
        self._connection = await self._engine.connect()
        return (await self._connection.get_raw_connection()).driver_connection

    def start(self, work: Callable[[sqlalchemy.Connection], T]) -> asyncio.Future[T]:
        assert self._connection is not None
        return asyncio.ensure_future(self._connection.run_sync(work))

    def cancel(self, job: asyncio.Future[Any]) -> None:
        job.cancel()

    def abandon(self) -> None:
        forget(asyncio.ensure_future(self._throw_away()))

    async def _throw_away(self) -> None:
        if self._connecting is not None:
            await asyncio.wait({self._connecting})
        if self._connection is not None:
            await self._connection.invalidate()
            await self._connection.close()


_alive: set[asyncio.Future[Any]] = set()


def forget(job: asyncio.Future[Any]) -> None:
    """Let a job end by itself: keep it alive, and fetch its exception, which is of no interest any more."""
    _alive.add(job)
    job.add_done_callback(_end)


def _end(job: asyncio.Future[Any]) -> None:
    _alive.discard(job)
    if not job.cancelled():
        job.exception()
