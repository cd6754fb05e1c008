"""A connection for the length of one stream: every call has a deadline, and leaving always ends the work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import anyio
import sqlalchemy

from dragoman.errors import QueryTimeout
from dragoman.slots import Slots
from dragoman.sqlalchemy.lanes import Engine, forget

T = TypeVar("T")
Interrupt = Callable[[Any], Awaitable[None]]
GRACE: Final = 3.0
"""Seconds a driver has to end a statement, or to take its connection back, before we leave both behind."""
DRAINING: Final = 0.5
"""Seconds a driver may take to read what nobody wants of a result, and to roll back, before it is interrupted."""
_log = logging.getLogger(__name__)


class Session:
    """Runs work on one connection until the deadline."""

    def __init__(self, engine: Engine, interrupt: Interrupt, timeout: float) -> None:
        self._engine = engine
        self._lane = engine.lane()
        self._interrupt = interrupt
        self._timeout = timeout
        self._deadline = asyncio.get_running_loop().time() + timeout
        self._job: asyncio.Future[Any] | None = None
        self._driver_connection: Any = None
        self.result: sqlalchemy.CursorResult[Any] | None = None

    async def connect(self) -> None:
        """Take a connection from the pool. Raises the driver's errors and `QueryTimeout`."""
        self._driver_connection = await self._wait(self._lane.connect())

    async def run(self, work: Callable[[sqlalchemy.Connection], T]) -> T:
        """Return what `work` returns. Raises what it raises and `QueryTimeout`."""
        return await self._wait(self._lane.start(work))

    async def _wait(self, job: asyncio.Future[T]) -> T:
        self._job = job
        deadline = asyncio.timeout_at(self._deadline)
        try:
            async with deadline:
                return await asyncio.shield(job)  # a caller that stops waiting leaves the job to `close`
        except TimeoutError:
            if not deadline.expired():
                raise
            raise QueryTimeout(
                f"The query did not finish within {self._timeout:g} seconds and was stopped.",
                suggestion="Narrow it with WHERE, aggregate, or ask for a longer timeout.",
            ) from None

    async def close(self) -> None:
        """End what runs, roll back, and give the connection back to the pool clean or not at all."""
        if await self._release():
            self._engine.free(self._lane)
        else:
            self._lane.abandon()

    async def _release(self) -> bool:
        if self._job is None:
            return True
        if self._driver_connection is None:
            return self._job.done() and not self._job.cancelled() and self._job.exception() is not None
        if not await self._end(self._job, patience=0):
            return False
        rolling_back = self._lane.start(self._roll_back)
        return await self._end(rolling_back, patience=DRAINING) and not rolling_back.cancelled()

    async def _end(self, job: asyncio.Future[Any], *, patience: float) -> bool:
        """Whether `job` came to its end, with the driver's help once patience is over."""
        await asyncio.wait({job}, timeout=patience)
        if not job.done():
            await self._ask_driver()
            self._lane.cancel(job)
            await asyncio.wait({job}, timeout=GRACE)
        forget(job)
        return job.done()

    async def _ask_driver(self) -> None:
        try:
            await asyncio.wait_for(self._interrupt(self._driver_connection), GRACE)
        except Exception:
            _log.warning("the driver could not be interrupted", exc_info=True)

    def _roll_back(self, connection: sqlalchemy.Connection) -> None:
        try:
            if self.result is not None:
                self.result.close()
            connection.rollback()
        except Exception:
            _log.warning("a connection could not be rolled back and is thrown away", exc_info=True)
            connection.invalidate()
        connection.close()


@asynccontextmanager
async def session(engine: Engine, slots: Slots, interrupt: Interrupt, timeout: float) -> AsyncGenerator[Session]:
    """A session, not yet connected, one of as many as there are slots. Leaving it ends its work first.

    Raises `Busy` when no slot comes free within `timeout` seconds.
    """
    async with slots.hold(timeout) as slot:
        opened = Session(engine, interrupt, timeout)
        try:
            yield opened
        finally:
            closing = asyncio.ensure_future(opened.close())
            slot.work.add(closing)
            forget(closing)
            with anyio.CancelScope(shield=True):
                await asyncio.shield(closing)
