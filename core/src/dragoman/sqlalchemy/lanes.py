"""Where a driver's calls run: a blocking driver in a thread of its own, an asynchronous one on the event loop.

Both run the same synchronous functions of a SQLAlchemy connection, so that there is only one executor.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from dragoman.threads import Threads

T = TypeVar("T")
LaneMaker = Callable[[], "Lane"]


class Lane(abc.ABC):
    """One connection. `start` runs work on it and returns at once; the caller waits for the future.

    `driver_connection`: the driver's own connection object, once it is connected.
    """

    driver_connection: Any = None

    @abc.abstractmethod
    async def connect(self) -> None:
        """Connect. Raises SQLAlchemy's errors."""

    @abc.abstractmethod
    def start(self, work: Callable[[sqlalchemy.Connection], T]) -> asyncio.Future[T]:
        """Run `work` after everything that was started before it."""

    @abc.abstractmethod
    def cancel(self, job: asyncio.Future[Any]) -> None:
        """Ask a running job to stop, if this kind of driver allows that."""

    @abc.abstractmethod
    async def close(self, *, broken: bool) -> None:
        """Close the connection, after everything that was started before. `broken`: send nothing more on it."""

    @abc.abstractmethod
    def abandon(self) -> None:
        """Stop waiting for a job that does not end."""


def lanes_for(url: sqlalchemy.URL, **options: Any) -> LaneMaker:
    """Return what makes lanes for the URL's driver. Raises SQLAlchemy's errors when the driver is not installed.

    `options` go to SQLAlchemy's create_engine. It keeps no connections: the core's pool does.
    """
    options = {"poolclass": NullPool, **options}
    if url.get_dialect().is_async:
        loop_engine = create_async_engine(url, **options)
        return lambda: LoopLane(loop_engine)
    engine = sqlalchemy.create_engine(url, **options)
    return lambda: ThreadLane(engine)


class ThreadLane(Lane):
    """A blocking driver's connection and its thread."""

    def __init__(self, engine: sqlalchemy.Engine) -> None:
        self._engine = engine
        self._thread = Threads("dragoman-sqlalchemy", most=1)  # jobs run in the order in which they were started
        self._connection: sqlalchemy.Connection | None = None

    async def connect(self) -> None:
        try:
            await self._thread.start(self._connect)
        except BaseException:
            self._thread.stop()
            raise

    def _connect(self) -> None:
        self._connection = self._engine.connect()
        self.driver_connection = self._connection.connection.driver_connection

    def start(self, work: Callable[[sqlalchemy.Connection], T]) -> asyncio.Future[T]:
        return self._thread.start(lambda: work(self._ensure_connected()))

    def _ensure_connected(self) -> sqlalchemy.Connection:
        assert self._connection is not None
        return self._connection

    def cancel(self, job: asyncio.Future[Any]) -> None:
        """Do nothing: a thread cannot be asked. The executor's `interrupt` asks the driver."""

    async def close(self, *, broken: bool) -> None:
        if self._connection is not None:
            await self._thread.start(partial(_close, self._connection, broken))
        self.abandon()

    def abandon(self) -> None:
        self._thread.stop()


class LoopLane(Lane):
    """An asynchronous driver's connection; each job is a task."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._connection: AsyncConnection | None = None

    async def connect(self) -> None:
        self._connection = await self._engine.connect()
        self.driver_connection = (await self._connection.get_raw_connection()).driver_connection

    def start(self, work: Callable[[sqlalchemy.Connection], T]) -> asyncio.Future[T]:
        assert self._connection is not None
        return asyncio.ensure_future(self._connection.run_sync(work))

    def cancel(self, job: asyncio.Future[Any]) -> None:
        job.cancel()

    async def close(self, *, broken: bool) -> None:
        if self._connection is not None:
            if broken and not self._connection.closed:
                await self._connection.invalidate()
            await self._connection.close()

    def abandon(self) -> None:
        """Do nothing: its task goes on by itself."""


def _close(connection: sqlalchemy.Connection, broken: bool) -> None:
    if broken and not connection.closed:
        connection.invalidate()
    connection.close()
