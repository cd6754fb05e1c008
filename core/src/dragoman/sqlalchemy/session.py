"""A connection that serves one stream at a time. Every call has a deadline, and leaving always ends the work."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import sqlalchemy

from dragoman.errors import QueryTimeout
from dragoman.pool import Lost, Manager
from dragoman.sqlalchemy.lanes import Lane, LaneMaker

T = TypeVar("T")
Interrupt = Callable[[Any], Awaitable[None]]
GRACE: Final = 3.0
"""Seconds that a driver gets to end a statement, or to take its connection back, before both are abandoned."""
DRAINING: Final = 0.5
"""Seconds that a driver gets to read the unwanted rest of a result and to roll back, before it is interrupted."""
AGAIN: Final = (0.05, 0.1, 0.2, 0.4)
"""Seconds after which a driver is interrupted again, before its own task is cancelled.

A server misses an interruption of a statement that it has received and not begun.
"""
_log = logging.getLogger(__name__)


class Session:
    """Runs work on one connection, until the deadline of the stream that it is lent for.

    `result`: the statement's result.
    """

    def __init__(self, lane: Lane, interrupt: Interrupt) -> None:
        self.lane = lane
        self.result: sqlalchemy.CursorResult[Any] | None = None
        self._interrupt = interrupt
        self._job: asyncio.Future[Any] | None = None
        self._lent = self._broken = False
        self._timeout = self._deadline = math.inf

    async def begin(self, timeout: float) -> None:
        """Serve a stream for `timeout` seconds. Raises `Lost` when the connection is dead, and `QueryTimeout`."""
        self._timeout, self._deadline = timeout, asyncio.get_running_loop().time() + timeout
        self.result = None
        if self._lent:
            try:
                await self.run(_ping)
            except QueryTimeout:
                raise
            except Exception as error:
                self._broken = True
                raise Lost(error) from error
        self._lent = True

    async def run(self, work: Callable[[sqlalchemy.Connection], T]) -> T:
        """Return what `work` returns. Raises what it raises and `QueryTimeout`."""
        self._job = job = self.lane.start(work)
        deadline = asyncio.timeout_at(self._deadline)
        try:
            async with deadline:
                return await asyncio.shield(job)  # a caller that stops waiting leaves the job to `end`
        except TimeoutError:
            if not deadline.expired():
                raise
            raise QueryTimeout(
                f"The query did not finish within {self._timeout:g} seconds and was stopped.",
                suggestion="Narrow it with WHERE, aggregate, or ask for a longer timeout.",
            ) from None

    async def end(self) -> bool:
        """End what runs and roll back; return whether the connection may be used again."""
        if self._job is not None:
            await self._finish(self._job, patience=0)
        self._job = rolling_back = self.lane.start(self._roll_back)
        await self._finish(rolling_back, patience=DRAINING)
        self._broken = rolling_back.cancelled() or not rolling_back.result()
        return not self._broken

    async def close(self) -> None:
        """Close the connection."""
        await self.lane.close(broken=self._broken)

    async def _finish(self, job: asyncio.Future[Any], *, patience: float) -> None:
        """Wait until `job` has ended. Interrupt the driver once `patience` seconds have passed."""
        await asyncio.wait({job}, timeout=patience)
        pauses = iter(AGAIN)
        while not job.done():
            await self._ask_driver()
            pause = next(pauses, None)
            if pause is None:
                self.lane.cancel(job)
            await asyncio.wait({job}, timeout=pause or GRACE)
        if not job.cancelled():
            job.exception()  # mark as retrieved: whoever waited for it got it

    async def _ask_driver(self) -> None:
        try:
            await asyncio.wait_for(self._interrupt(self.lane.driver_connection), GRACE)
        except Exception:
            _log.warning("the driver could not be interrupted", exc_info=True)

    def _roll_back(self, connection: sqlalchemy.Connection) -> bool:
        try:
            if self.result is not None:
                self.result.close()
            connection.rollback()
            if connection.invalidated:  # it would connect anew, without the pool's knowledge
                return False
            # ends statements that ran outside a transaction of ours
            connection.dialect.do_rollback(connection.connection)
        except Exception:
            _log.warning("a connection could not be rolled back and is closed", exc_info=True)
            if not connection.closed:
                connection.invalidate()
            return False
        return True


def _ping(connection: sqlalchemy.Connection) -> None:
    connection.dialect.do_ping(connection.connection.dbapi_connection)  # type: ignore[arg-type]  # it is connected


class Sessions(Manager[Session]):
    """What the pool must know about sessions."""

    def __init__(self, new_lane: LaneMaker, interrupt: Interrupt) -> None:
        self._new_lane = new_lane
        self._interrupt = interrupt

    async def open(self) -> Session:
        """Connect, within the driver's own time limit. Raises SQLAlchemy's errors."""
        lane = self._new_lane()
        await lane.connect()
        return Session(lane, self._interrupt)

    def is_usable(self, resource: Session) -> bool:
        """Return True: only the driver could tell, and `Session.begin` asks it."""
        return True

    async def clean(self, resource: Session) -> bool:
        """End what runs, and roll back."""
        return await resource.end()

    async def close(self, resource: Session) -> None:
        """Close the connection."""
        await resource.close()

    def abort(self, resource: Session) -> None:
        """Do nothing: the connection is abandoned."""
        resource.lane.abandon()
