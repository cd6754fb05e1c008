"""The connections of one database: opened on demand, kept, and lent for one read-only transaction at a time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Final

import asyncpg
from dragoman import Acting, Database
from dragoman.pool import Lost, Manager, Pool

from dragoman_postgres.batches import ROLLBACK, Batch
from dragoman_postgres.connecting import Cluster, Connector, bound_times
from dragoman_postgres.driver import CATALOG, OURS, Connection
from dragoman_postgres.failures import LOST, is_lost, raise_translated, translate, translate_errors, unreachable
from dragoman_postgres.search_path import SearchPath
from dragoman_postgres.spelling import quote, quote_text
from dragoman_postgres.types import Types

UNTAGGED: Mapping[str, str] = MappingProxyType({})
GRACE: Final = 2.0
"""Seconds that a caller waits for the server to end its work. The slot stays taken until it has ended."""
MOST_IDLE: Final = 300.0
"""Seconds after which an unused connection is not trusted any more: a firewall or proxy may have dropped it."""
MOST_WORK = 1.0
"""Seconds that a connection works in all, before it is replaced.

A backend keeps what it has read until it ends: each time zone, each shape of a row, each plan. A query can name a
hundred thousand zones in a few seconds, which then take gigabytes.
"""
WORTH = 20.0
"""How many times as long as it took to connect a connection works at least."""
CANCELLING: Final = 0.5
"""Seconds in which a cancelled statement ends, if the server had begun it."""
CATALOG_TIMEOUT = 30.0
_BEGIN: Final = "BEGIN READ ONLY"
_NOT_FOR_CALLER = "it does not let the gateway act for this caller"
_REFUSALS = (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError)
_GRANT = "The administrator can grant the roles of database_roles to the one that signs in; see `dragoman doctor`."


@dataclass(slots=True)
class Session:
    """A connection, with its prepared statements, the most recently used last. `spent`: it must not be lent again.

    `types`: what is known of its server's types. Another server may answer the next connection, with other types of the
    same numbers.

    `worked`: the seconds of its loans before the one that began at `since`. Beyond `enough` of them it is replaced.

    Of a loan: `seconds`, `tags` and `acting` are those of its request; `compiled`: a statement was prepared; `begun`:
    its transaction was; `heard`: the server has answered; `renewing`: replaces the connection.
    """

    connection: Connection
    types: Types
    prepared: OrderedDict[Any, Any] = field(default_factory=OrderedDict[Any, Any])
    spent: bool = False
    worked: float = 0.0
    enough: float = MOST_WORK
    since: float = field(default_factory=time.monotonic)
    compiled: bool = False
    begun: bool = False
    heard: bool = False
    seconds: float = 0.0
    tags: Mapping[str, str] = field(default_factory=lambda: UNTAGGED)
    acting: Acting | None = None
    renewing: asyncio.Task[None] | None = None
    _names: Iterator[int] = field(default_factory=itertools.count)

    def new_name(self) -> str:
        """Return a name for a prepared statement that this connection has not used."""
        return f"dragoman_{next(self._names)}"


class Connections(Manager[Session]):
    """At most `size` connections to one database. The one used last is used first."""

    def __init__(
        self,
        database: Database,
        size: int | None = None,
        *,
        bounded: bool = True,
        path: SearchPath | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self._name = database.name
        self._acting = database.acting
        self._lifetime = database.catalog_ttl
        self._seconds = database.timeout if bounded else None
        self.connector = Connector(database, bounded=bounded, path=path, cluster=cluster)
        what = f"connections to the database {self._name!r}"
        self._pool = Pool(self, size or database.pool_size, what, grace=GRACE, most_idle=MOST_IDLE)

    @property
    def idle(self) -> list[Session]:
        """The connections that are kept."""
        return self._pool.idle

    @contextlib.asynccontextmanager
    async def borrow(self) -> AsyncGenerator[Connection]:
        """Lend a connection for trusted reads of the catalog, in a read-only transaction that is rolled back.

        Values are decoded by the driver. Errors of connecting and of the reads are raised as `DragomanError`s.
        """
        async with self.lend(CATALOG_TIMEOUT, acting=self._acting) as session:
            session.connection.allow(CATALOG, trusted=True)
            with translate_errors(self._name):
                yield session.connection

    async def renew_path(self) -> None:
        """Have sessions find the operators of extensions that were made or moved. Raises `ConnectionFailed`."""
        if self.connector.path.configured is not None:
            async with self.borrow() as connection:
                await self.connector.path.renew(connection, self._name)

    def lend(
        self,
        seconds: float,
        tags: Mapping[str, str] = UNTAGGED,
        acting: Acting | None = None,
        *,
        ahead: bool = False,
    ) -> contextlib.AbstractAsyncContextManager[Session]:
        """Lend a connection inside a read-only transaction whose statements end after `seconds`.

        - `tags`: shown in the server's `application_name` meanwhile.
        - `acting`: the identity that the transaction runs as.
        - `ahead`: the first thing sent runs a prepared statement or prepares one. `begin_ahead` then begins the
          transaction.

        Afterwards the transaction is rolled back, and the connection is clean or closed. Raises `Busy` if none comes
        free in time, and `ConnectionFailed`. An error before anything was `heard` may mean that the connection ended
        while it was kept.
        """
        return self._pool.lend(
            seconds, partial(self._start_loan, seconds=seconds, tags=tags, acting=acting, ahead=ahead)
        )

    # What the pool must know

    async def open(self) -> Session:
        """Connect. Raises `DragomanError`s."""
        begun = time.monotonic()
        try:
            connection = await self.connector.connect()
        except Exception as error:
            raise_translated(error, self._name)
        return Session(connection, self._make_types(), enough=max(MOST_WORK, WORTH * (time.monotonic() - begun)))

    def is_usable(self, resource: Session) -> bool:
        """Return whether the connection is usable, as far as we know.

        It is not if a newer one reached another cluster, or has another search path: what is judged by the one must not
        run on the other.
        """
        connection, now = resource.connection, self.connector
        is_worn = resource.worked > resource.enough
        is_former = connection.cluster != now.cluster.now or connection.path != now.path.text
        return not (is_worn or is_former or resource.spent or connection.is_closed())

    async def clean(self, resource: Session) -> bool:
        """Roll back what a statement has not rolled back itself; the connection is no use when that fails."""
        if resource.renewing is not None:
            # Nobody waits for its error any more: the connection is then closed, which is_usable sees.
            await asyncio.wait({asyncio.gather(resource.renewing, return_exceptions=True)})
            resource.renewing = None
        resource.worked += time.monotonic() - resource.since
        if not resource.begun:
            return self.is_usable(resource)
        # The driver waits for a cancellation on its way before it sends this. A cancellation that came before its
        # statement had no effect; the statement is cancelled again when the connection is closed.
        rollback = asyncio.ensure_future(_roll_back(resource.connection))
        try:
            ended, _ = await asyncio.wait({rollback}, timeout=CANCELLING)
        except asyncio.CancelledError:
            rollback.cancel()
            raise
        return bool(ended) and rollback.result() and self.is_usable(resource)

    async def close(self, resource: Session) -> None:
        """Close the connection, and return once the server has closed it."""
        await resource.connection.leave()

    def abort(self, resource: Session) -> None:
        """Close the socket. Work that the server does not end is left to it."""
        if resource.renewing is not None:
            resource.renewing.cancel()
        resource.connection.abort()

    # What is special to Postgres

    async def _start_loan(
        self, session: Session, seconds: float, tags: Mapping[str, str], acting: Acting | None, ahead: bool
    ) -> None:
        session.seconds, session.tags, session.acting = seconds, tags, acting
        session.compiled = session.begun = session.heard = False
        session.since = time.monotonic()
        # What a role may not do is told apart from what its statement may not: the beginning is heard.
        if acting is not None or self.connector.pooled or not ahead:
            await self._begin(session)

    async def _begin(self, session: Session) -> None:
        """Send one message: the transaction, its deadlines and, if sessions are shared, their settings.

        Raises `Lost` if the connection is gone, and `DragomanError`s.
        """
        session.begun = True
        session.connection.allow(OURS)
        try:
            await session.connection.execute("; ".join(self._prelude(session)))
        except Exception as error:
            if session.acting is not None and isinstance(error, _REFUSALS):
                # The server's message names its roles, and may show values.
                raise unreachable(self._name, _NOT_FOR_CALLER, _GRANT) from None
            translated = translate(error, self._name)
            raise Lost(translated) if is_lost(error) else translated from None
        session.heard = True

    def begin_ahead(self, session: Session, *, end: bool = False) -> None:
        """Begin the transaction in one batch with what is sent next, if it has not begun.

        `end`: roll it back in the same batch. The connection's `is_in_transaction` then tells whether that was done.
        """
        before: Batch | None = None
        if not session.begun:
            session.begun = True
            session.connection.allow(OURS)
            tagged = _tag(session.tags) if session.tags else ()
            # Deadlines are set only for a statement whose deadlines differ from the session's.
            times = () if session.seconds == self._seconds else _set_times(session.seconds)
            before = _batch(*times, *tagged)
        session.connection.send_with_next(before, ROLLBACK if end else None)

    def _prelude(self, session: Session) -> tuple[str, ...]:
        commands = (_BEGIN, *_set_times(session.seconds), *self.connector.prelude, *_tag(session.tags))
        # Last, because nothing above depends on the caller.
        return commands if session.acting is None else (*commands, *_become(session.acting))

    async def restart(self, session: Session) -> None:
        """Begin the transaction of a lent session again, with nothing prepared and no type remembered."""
        session.prepared.clear()
        session.connection.allow(OURS)  # the answer before may have taken nearly all
        with translate_errors(self._name):
            await session.connection.execute("ROLLBACK")
            await session.connection.reload_schema_state()
        await self._begin_again(session)

    async def renew(self, session: Session) -> None:
        """Give a lent session whose connection is lost a new connection, inside its transaction.

        It goes on connecting if its borrower leaves meanwhile, so that no backend is left that nobody counts.
        """
        session.prepared.clear()
        session.heard = session.begun = False
        session.renewing = asyncio.create_task(self._reconnect(session))
        await asyncio.shield(session.renewing)
        await self._begin_again(session)

    async def _reconnect(self, session: Session) -> None:
        await session.connection.leave()
        with translate_errors(self._name):
            session.connection = await self.connector.connect()
        session.types = self._make_types()
        session.worked, session.since = 0.0, time.monotonic()

    async def _begin_again(self, session: Session) -> None:
        try:
            await self._begin(session)
        except Lost as lost:
            raise lost.error from None

    def _make_types(self) -> Types:
        # Behind a pooler any transaction may have another server.
        return Types(0.0 if self.connector.pooled else self._lifetime)

    async def aclose(self) -> None:
        """Close every connection. Work that the server does not end within `GRACE` seconds is left to it."""
        await self._pool.aclose()


async def _roll_back(connection: Connection) -> bool:
    """Return whether the transaction could be rolled back."""
    try:
        await connection.execute("ROLLBACK")
    except (*LOST, asyncpg.PostgresError):
        return False
    return True


@lru_cache(64)
def _set_times(seconds: float) -> tuple[str, ...]:
    return tuple(f"SET LOCAL {name} = {value}" for name, value in bound_times(seconds).items())


@lru_cache(64)
def _batch(*commands: str) -> Batch:
    return Batch.of(_BEGIN, *commands)


def _tag(tags: Mapping[str, str]) -> tuple[str, ...]:
    return (f"SET LOCAL application_name = '{_format_tags(tags)}'",) if tags else ()


def _become(acting: Acting) -> list[str]:
    """Return the commands that make a transaction run as an identity. Its end undoes them, whatever ran meanwhile."""
    settings = [f"SET LOCAL {_quote_setting(name)} = {quote_text(value)}" for name, value in acting.settings]
    return settings + ([f"SET LOCAL ROLE {quote(acting.role)}"] if acting.role is not None else [])


def _quote_setting(name: str) -> str:
    """Return a setting's name with each part in quotes, since a part may be a word of the grammar: app.user."""
    return ".".join(map(quote, name.split(".")))


def _format_tags(tags: Mapping[str, str]) -> str:
    """Return tags as an application name, without characters that could end a literal.

    The server cuts the name at 63 bytes.
    """
    words = " ".join(["dragoman", *(f"{name}={value}" for name, value in tags.items())])
    return re.sub(r"[^\w .:@/=-]", "_", words, flags=re.ASCII)[:63]
