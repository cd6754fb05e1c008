"""The connections of one database: opened when needed, kept, lent for one read-only transaction at a time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import asyncpg
from dragoman import Busy, Database
from dragoman.slots import Slots

from dragoman_postgres.connecting import Connector
from dragoman_postgres.driver import CATALOG, OURS, Connection
from dragoman_postgres.failures import LOST, raise_translated, translate_errors

GONE = (*LOST, asyncpg.InternalClientError)
"""What a kept connection raises that the server has ended: the second, when its last words came and not yet its end."""
UNTAGGED: Mapping[str, str] = MappingProxyType({})
Ending: TypeAlias = set[asyncio.Task[None]]
GRACE = 2.0
"""Seconds a caller waits for the server to end what it runs; the place is occupied until it has."""
MOMENT = 0.25
"""Seconds that closing a connection nobody has used for long may hold up its next user."""
MOST_IDLE = 300.0
"""Seconds after which an unused connection is not trusted any more: what lies between may have forgotten it."""
CATALOG_TIMEOUT = 30.0


@dataclass(slots=True)
class Session:
    """A connection, with what has been prepared on it, the most recently used last. `spent`: not to be lent again.

    `tags`: of the request it is lent for.
    """

    connection: Connection
    prepared: OrderedDict[Any, Any] = field(default_factory=OrderedDict[Any, Any])
    used: float = field(default_factory=time.monotonic)
    spent: bool = False
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    _names: Iterator[int] = field(default_factory=itertools.count)

    def new_name(self) -> str:
        """A name for a prepared statement that this connection has not seen."""
        return f"dragoman_{next(self._names)}"


class Connections:
    """At most `size` connections to one database; the one used last is used first."""

    def __init__(self, database: Database, size: int | None = None) -> None:
        self._name = database.name
        self._size = size or database.pool_size
        self.connector = Connector(database)
        self._slots = Slots(self._size, self._busy)
        self._idle: list[Session] = []
        self._ending: dict[asyncio.Task[None], Connection | None] = {}
        self._closing = False

    @contextlib.asynccontextmanager
    async def borrow(self) -> AsyncGenerator[Connection]:
        """Lend a connection for trusted reads of the catalog, in a read-only transaction that is rolled back.

        Values come as the driver decodes them. Errors of connecting and of the reads come out as `DragomanError`s.
        """
        async with self.lend(CATALOG_TIMEOUT) as session:
            session.connection.allow(CATALOG, trusted=True)
            with translate_errors(self._name):
                yield session.connection

    @contextlib.asynccontextmanager
    async def lend(self, seconds: float, tags: Mapping[str, str] = UNTAGGED) -> AsyncGenerator[Session]:
        """Lend a connection inside a read-only transaction whose statements end after `seconds`.

        `tags` are shown in the server's `application_name` meanwhile. On the way out the transaction is rolled back,
        and the connection is clean or gone. Raises `Busy` when none comes free in time, and `ConnectionFailed`.
        """
        if self._slots.locked():
            await self._slots.take(seconds)
        else:
            await self._slots.acquire()  # at once
        ending: Ending = set()
        try:
            try:
                session = await self._begin_session(seconds, tags, ending)
            except Exception as error:
                raise_translated(error, self._name)
            try:
                yield session
                await self._end(session)
            except BaseException:
                await self._end_session(session, ending)
                raise
        finally:
            if ending:
                self._slots.release_after(ending)
            else:
                self._slots.release()

    def _busy(self, outliving: int) -> Busy:
        stuck = f"; {outliving} of them wait for the server to end what it was told to" if outliving else ""
        return Busy(
            f"All {self._size} connections to the database {self._name!r} are busy{stuck}.",
            suggestion="Try again in a moment, or run fewer queries at once.",
        )

    async def _begin_session(self, seconds: float, tags: Mapping[str, str], ending: Ending) -> Session:
        """A session inside its transaction: a kept one, unless it turns out to be dead, else a new one."""
        while True:
            kept = self._idle.pop() if self._idle else None
            session = kept or Session(await self._connect(seconds, ending))
            if session.spent or session.connection.is_closed() or time.monotonic() - session.used > MOST_IDLE:
                await self._patiently(self._later(session.connection.leave(), session.connection, ending), MOMENT)
                continue
            session.tags = tags
            try:
                await self._begin(session, seconds)
            except BaseException as error:
                await self._end_session(session, ending)
                if kept is None or not isinstance(error, GONE):
                    raise
            else:
                return session

    async def _connect(self, seconds: float, ending: Ending) -> Connection:
        """A new connection. One that nobody waits for any more is opened all the same, and then closed."""
        connecting = asyncio.get_running_loop().create_task(self.connector.connect(seconds))
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            self._later(_close_unwanted(connecting), None, ending)
            raise

    async def _begin(self, session: Session, seconds: float) -> None:
        """One message: the transaction, its deadlines and, where sessions are shared, their settings."""
        timeout = max(1, round(seconds * 1000))
        prelude = (
            f"BEGIN READ ONLY; SET LOCAL statement_timeout = {timeout};"
            f" SET LOCAL lock_timeout = {timeout * 9 // 10 or 1};"
            f" SET LOCAL idle_in_transaction_session_timeout = {timeout + 10_000}"
        )
        if self.connector.pooled:
            prelude += self.connector.prelude
        if session.tags:
            prelude += f"; SET LOCAL application_name = '{_format_tags(session.tags)}'"
        session.connection.allow(OURS)
        await session.connection.execute(prelude)

    async def restart(self, session: Session, seconds: float) -> None:
        """Begin the transaction of a lent session anew, with nothing prepared and no type remembered."""
        session.prepared.clear()
        with translate_errors(self._name):
            await session.connection.execute("ROLLBACK")
            await session.connection.reload_schema_state()
            await self._begin(session, seconds)

    async def renew(self, session: Session, seconds: float) -> None:
        """Give a lent session whose connection is lost a new one, inside its transaction."""
        session.prepared.clear()
        await session.connection.leave()
        with translate_errors(self._name):
            session.connection = await self.connector.connect(seconds)
            await self._begin(session, seconds)

    async def _end_session(self, session: Session, ending: Ending) -> None:
        """End the transaction, in a task: a cancellation may strike at every await, and nobody waits for ever."""
        await self._patiently(self._later(self._end(session), session.connection, ending), GRACE)

    def _later(
        self, work: Coroutine[Any, Any, None], connection: Connection | None, ending: Ending
    ) -> asyncio.Task[None]:
        """Let some work on a connection end by itself; the place of `ending` is occupied until then."""
        task = asyncio.get_running_loop().create_task(work)
        ending.add(task)
        self._ending[task] = connection
        task.add_done_callback(self._ending.pop)
        return task

    async def _patiently(self, task: asyncio.Task[None], seconds: float) -> None:
        await asyncio.wait({task}, timeout=seconds)

    async def _end(self, session: Session) -> None:
        """Roll back and keep the connection, or close it. Returns when the server is done, however long that takes."""
        try:
            # The driver lets a cancellation that is on its way arrive before it sends this.
            await session.connection.execute("ROLLBACK")
        except (*GONE, asyncpg.PostgresError, asyncpg.InterfaceError):
            await session.connection.leave()
            return
        if session.spent or self._closing:
            await session.connection.leave()
        else:
            session.used = time.monotonic()
            self._idle.append(session)

    async def aclose(self) -> None:
        """Close every connection. What the server does not end within `GRACE` seconds is left to it."""
        self._closing = True
        if self._ending:
            await asyncio.wait([*self._ending], timeout=GRACE)
        idle, self._idle = self._idle, []
        for session in idle:
            self._later(session.connection.leave(), session.connection, set())
        if self._ending:
            await asyncio.wait([*self._ending], timeout=GRACE)
        for task, connection in [*self._ending.items()]:
            task.cancel()
            if connection is not None:
                connection.abort()


async def _close_unwanted(connecting: asyncio.Task[Connection]) -> None:
    with contextlib.suppress(Exception):
        await (await connecting).leave()


def _format_tags(tags: Mapping[str, str]) -> str:
    """Tags as an application's name, which the server cuts at 63 bytes; what could end a literal stays out."""
    words = " ".join(["dragoman", *(f"{name}={value}" for name, value in tags.items())])
    return re.sub(r"[^\w .:@/=-]", "_", words, flags=re.ASCII)[:63]
