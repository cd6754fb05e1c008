"""The connections of one database: opened when needed, kept, lent for one read-only transaction at a time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import Any

import asyncpg
from dragoman import Busy, Database

from dragoman_postgres.connecting import Connector
from dragoman_postgres.driver import Connection
from dragoman_postgres.failures import LOST, translated

GONE = (*LOST, asyncpg.InternalClientError)
"""What a kept connection raises that the server has ended: the second, when its last words came and not yet its end."""
GRACE = 2.0
"""Seconds a connection has to end its transaction before it is thrown away."""
MOST_IDLE = 300.0
"""Seconds after which an unused connection is not trusted any more: what lies between may have forgotten it."""
CATALOG_TIMEOUT = 30.0


@dataclass(slots=True)
class Session:
    """A connection, with what has been prepared on it, the most recently used last. `spent`: not to be lent again."""

    connection: Connection
    prepared: OrderedDict[Any, Any] = field(default_factory=OrderedDict[Any, Any])
    used: float = field(default_factory=time.monotonic)
    spent: bool = False
    _names: Iterator[int] = field(default_factory=itertools.count)

    def new_name(self) -> str:
        """A name for a prepared statement that this connection has not seen."""
        return f"dragoman_{next(self._names)}"

    @property
    def usable(self) -> bool:
        """Whether it may be lent again, as far as is known."""
        return not self.spent and not self.connection.is_closed() and time.monotonic() - self.used < MOST_IDLE


class Connections:
    """At most `size` connections to one database; the one used last is used first."""

    def __init__(self, database: Database, size: int | None = None) -> None:
        self._name = database.name
        self._size = size or database.pool_size
        self.connector = Connector(database)
        self._free = asyncio.Semaphore(self._size)
        self._idle: list[Session] = []
        self._ending: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def borrow(self) -> AsyncGenerator[Connection]:
        """Lend a connection for trusted reads of the catalog, in a read-only transaction that is rolled back.

        Values come as the driver decodes them. Errors of connecting and of the reads come out as `DragomanError`s.
        """
        async with self.lend(CATALOG_TIMEOUT) as session:
            with translated(self._name):
                yield session.connection

    @contextlib.asynccontextmanager
    async def lend(self, seconds: float) -> AsyncGenerator[Session]:
        """Lend a connection inside a read-only transaction whose statements end after `seconds`.

        On the way out the transaction is rolled back, and the connection is clean or gone. Raises `Busy` when none
        comes free in time, and `ConnectionFailed`.
        """
        await self._place(seconds)
        try:
            with translated(self._name):
                session = await self._begun(seconds)
        except BaseException:
            self._free.release()
            raise
        try:
            yield session
            await self._end(session)
        except BaseException:
            ending = self._finish(session)
            ending.add_done_callback(lambda _: self._free.release())
            await asyncio.shield(ending)
            raise
        self._free.release()

    async def _place(self, seconds: float) -> None:
        if not self._free.locked():
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(seconds):
                await self._free.acquire()
        except TimeoutError:
            raise Busy(
                f"All {self._size} connections to the database {self._name!r} are busy.",
                suggestion="Try again in a moment, or run fewer queries at once.",
            ) from None

    async def _begun(self, seconds: float) -> Session:
        """A session inside its transaction: a kept one, unless it turns out to be dead, else a new one."""
        while self._idle:
            session = self._idle.pop()
            if not session.usable:
                session.connection.terminate()
                continue
            with contextlib.suppress(*GONE):
                return await self._first(session, seconds)
        return await self._first(Session(await self.connector.connect(seconds)), seconds)

    async def _first(self, session: Session, seconds: float) -> Session:
        try:
            await self._begin(session, seconds)
        except BaseException:
            await asyncio.shield(self._finish(session))
            raise
        return session

    async def _begin(self, session: Session, seconds: float) -> None:
        """One message: the transaction, its deadlines and, where sessions are shared, their settings."""
        timeout = max(1, round(seconds * 1000))
        prelude = (
            f"BEGIN READ ONLY; SET LOCAL statement_timeout = {timeout};"
            f" SET LOCAL lock_timeout = {timeout * 9 // 10 or 1};"
            f" SET LOCAL idle_in_transaction_session_timeout = {timeout + 10_000}{self.connector.prelude}"
        )
        session.connection.unbound()
        await session.connection.execute(prelude)

    async def restart(self, session: Session, seconds: float) -> None:
        """Begin the transaction of a lent session anew, with nothing prepared and no type remembered."""
        session.prepared.clear()
        with translated(self._name):
            await session.connection.execute("ROLLBACK")
            await session.connection.reload_schema_state()
            await self._begin(session, seconds)

    async def renew(self, session: Session, seconds: float) -> None:
        """Give a lent session whose connection is gone a new one, inside its transaction."""
        session.prepared.clear()
        with translated(self._name):
            session.connection = await self.connector.connect(seconds)
            await self._begin(session, seconds)

    def _finish(self, session: Session) -> asyncio.Task[None]:
        """End the transaction in a task of its own: the caller's cancellation may strike at every await of ours."""
        task = asyncio.get_running_loop().create_task(self._end(session))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def _end(self, session: Session) -> None:
        try:
            # The driver lets a cancellation that is on its way arrive before it sends this.
            async with asyncio.timeout(GRACE):
                await session.connection.execute("ROLLBACK")
        except (*GONE, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            session.connection.terminate()
        else:
            await self._keep(session)

    async def _keep(self, session: Session) -> None:
        if session.spent:
            await _close(session.connection)
        else:
            session.used = time.monotonic()
            self._idle.append(session)

    async def aclose(self) -> None:
        """Close every connection, once what is ending has ended."""
        await asyncio.gather(*self._ending)
        idle, self._idle = self._idle, []
        await asyncio.gather(*(_close(session.connection) for session in idle))


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=GRACE)
    except (*GONE, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection.terminate()
