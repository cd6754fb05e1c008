"""Runs callers' SQL: one statement of the extended protocol in a read-only transaction that is always rolled back."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import asyncpg
from asyncpg.types import Attribute
from dragoman import (
    Column,
    ConnectionFailed,
    Database,
    DragomanError,
    Encoded,
    Executor,
    ExplainOptions,
    Finding,
    InvalidSql,
    NotFound,
    ParameterError,
    Plan,
    QueryTimeout,
    Request,
    ResultTooLarge,
    RowStream,
)

from dragoman_postgres import plans
from dragoman_postgres.batches import Batch
from dragoman_postgres.connecting import Cluster
from dragoman_postgres.deadline import Deadline
from dragoman_postgres.driver import OURS, Aside, Statement, TooMuch
from dragoman_postgres.failures import Internal, Stale, Unreadable, raise_translated, stale, translate_errors
from dragoman_postgres.parameters import Parameters, teach
from dragoman_postgres.pool import Connections, Session
from dragoman_postgres.search_path import SearchPath
from dragoman_postgres.types import AS_IT_IS, NATIVE, SCALARS
from dragoman_postgres.values import (
    ROWS_AT_ONCE,
    Convert,
    Making,
    are_long,
    column_converter,
    convert_values,
    encode_values,
)
from dragoman_postgres.wrapping import SLACK, Cut, Picked, Wrapped, split_counts, wrap

REMEMBERED = 256
"""The number of statements kept prepared per connection. The least recently used is dropped first."""
KEPT = 1.0
"""Seconds for which a statement is kept prepared.

The server plans it anew when its tables change, and not when its names mean something else by now: a new table in a
schema that comes earlier on the search path, or another field of a composite type. The gate judges what the names mean
now, so what runs must not be older.
"""
LARGE = 16 * 1024 * 1024
"""Bytes above which an answer is read in pieces, so that it is never in memory as a whole."""
SMALL = 1024 * 1024
"""Answers with fewer bytes are no burden, however little of them is wanted."""
STALE = 0.2
"""Seconds by which the server may end a piece of an answer later than its statement."""
NEAR = 0.8
"""The share of the timeout in which neither the statement's deadline nor that of its wait for a lock can pass."""
WIDE = 1000
"""The number of statements remembered because their answers were too large to be read at once."""
PIECE = 256 * 1024

Rows: TypeAlias = Sequence[Any]
Batches: TypeAlias = AsyncGenerator[Rows | Encoded]
Key: TypeAlias = tuple[str, int, int, str | None]
"""What requests must have in common to use the same prepared statement.

These are the text, the limits of rows and bytes, and the role.
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared statement, how its columns arrive and how its parameters are sent.

    `plain`: the statement as it was before columns were converted to texts. A conversion hides that a column has
    another type now; the server tells it of this one. It is held here, since the driver closes what nobody holds.
    None: nothing is converted.

    `again`: what the server is asked whenever the statement is used again: the columns of `plain`, and the parameters
    of the text, parsed anew. The server keeps a parameter's first type, whatever it is compared with by now.

    `unlearned`: types that its rows turn out to have, and that are to be learned. `learned`: those that were. `until`:
    the time until which all of that holds.
    """

    statement: Statement
    plain: Statement | None
    again: Batch | None
    wrapped: Wrapped
    columns: tuple[Column, ...]
    converters: dict[int, Convert]
    notices: dict[str, None]
    unlearned: set[int]
    learned: set[int]
    parameters: Parameters
    until: float

    def check(self, told: Aside) -> None:
        """Raise `Stale` if the server has answered that its parameters are of other types now."""
        if told.parameters not in (None, self.parameters.oids):
            raise stale()

    async def make(self, rows: Rows) -> Sequence[Rows | Encoded]:
        """Return rows with the values that their texts stand for. Long texts become values in a thread."""
        if are_long(rows, self.converters):
            return await asyncio.to_thread(encode_values, self.columns, rows, self.converters)
        return [convert_values(rows, self.converters)]


class PostgresExecutor(Executor):
    """Reads one database through a pool of connections. Connects at the first statement."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._name = database.name
        self.path, self.cluster = SearchPath.of(database), Cluster()
        self._connections = Connections(database, path=self.path, cluster=self.cluster)
        self._wide: OrderedDict[Key, None] = OrderedDict()

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncGenerator[RowStream]:
        """Run a statement. Leaving cancels running work and rolls the transaction back."""
        limits = request.limits
        ahead = limits.max_bytes <= LARGE
        async with self._connections.lend(limits.timeout, request.tags, request.acting, ahead=ahead) as session:
            try:
                try:
                    stream, batches = await self._start(session, request)
                except (Stale, ConnectionFailed, Internal, InvalidSql, NotFound, ParameterError, TooMuch) as error:
                    stream, batches = await self._start_anew(session, request, error)
                async with aclosing(batches):
                    yield stream
            except ConnectionFailed as error:
                error.reached = session.heard
                raise

    async def describe(self, request: Request) -> Sequence[Column]:
        """Return a query's columns. The server plans the query, as its tables are now, and does not run it."""
        async with self._lend(request) as session:
            session.prepared.pop(self._key(request), None)
            return (await self._get_prepared(session, request)).columns

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """Return the plan of a judged query."""
        return await plans.explain(self, request, options)

    async def estimate_cost(self, request: Request) -> float | None:
        """Return the cost of the plan."""
        return await plans.estimate_cost(self, request)

    async def run(self, statement: str, request: Request) -> list[asyncpg.Record]:
        """Run an internal statement around the caller's, with the request's parameters and deadline; return its rows.

        It runs in the read-only transaction, as everything does. Values are decoded by the driver. Raises
        `ResultTooLarge` for an answer that is far larger than allowed.
        """
        async with self._lend(request) as session:
            wrapped = Wrapped(statement, max(statement.find(request.statement), 0), None)
            parsed, _ = await self._parse(session, wrapped, request)
            with translate_errors(self._name):
                parameters = await self._parameters(session, parsed)
            if parameters.unknown:
                parsed, _ = await self._parse(session, wrapped, request, parameters.unknown)
            session.connection.allow(max(SLACK * request.limits.max_bytes, OURS))
            with self._translate_errors(wrapped, request):
                return await parsed.fetch(*parameters.bind(request.parameters, request.statement))

    async def doctor(self) -> Sequence[Finding]:
        """Return what the role could do if every guard failed, over a connection of its own."""
        from dragoman_postgres.doctor import examine  # once in a process's life, if at all

        return await examine(self._database)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connections.aclose()

    # From a request to its rows

    @asynccontextmanager
    async def _lend(self, request: Request) -> AsyncGenerator[Session]:
        async with self._connections.lend(request.limits.timeout, request.tags, request.acting) as session:
            try:
                yield session
            except ConnectionFailed as error:
                error.reached = session.heard
                raise

    async def _start_anew(self, session: Session, request: Request, error: DragomanError) -> tuple[RowStream, Batches]:
        """Start a statement again after an error that may not happen again. Raises any other error."""
        if isinstance(error, ConnectionFailed):
            if session.heard:
                raise error
            await self._connections.renew(session)
            return await self._start(session, request)
        if isinstance(error, TooMuch) and not self._key(request)[1]:
            await self._count_from_now_on(session, request)
            return await self._start(session, request)
        if isinstance(error, TooMuch) or (session.compiled and not isinstance(error, Stale)):
            raise error
        # It was prepared before a table or type was altered.
        session.types.forget()
        await self._connections.restart(session)
        try:
            return await self._start(session, request)
        except TooMuch:
            if self._key(request)[1]:
                raise
            await self._count_from_now_on(session, request)
            return await self._start(session, request)

    async def _count_from_now_on(self, session: Session, request: Request) -> None:
        """Have the server count what it sends for this statement, over another connection."""
        key, _ = self._key(request)
        self._wide[key] = None
        if len(self._wide) > WIDE:
            self._wide.popitem(last=False)
        await self._connections.renew(session)

    async def _start(self, session: Session, request: Request) -> tuple[RowStream, Batches]:
        prepared = await self._get_prepared(session, request)
        prepared.notices.clear()
        prepared.learned.clear()
        notices: list[str] = []
        arguments: list[Any] = []
        if request.parameters or prepared.parameters.encoders:
            arguments = prepared.parameters.bind(request.parameters, request.statement)
        if request.limits.max_bytes > LARGE:
            batches = self._pieces(session, prepared, arguments, request, notices)
        else:
            self._connections.begin_ahead(session, end=True)
            told: Aside | None = None
            if prepared.again is not None and not session.compiled:  # it was kept
                told = session.connection.send_with_next(prepared.again)
            # Where the server counts the bytes itself, it stops long before.
            most = (1 if prepared.wrapped.most_bytes is None else 3) * SLACK * request.limits.max_bytes
            deadline = Deadline(time.monotonic() + NEAR * request.limits.timeout)
            session.connection.allow(max(most, SMALL), deadline=deadline)
            try:
                rows: Rows = await prepared.statement.fetch(*arguments)
            except Exception as error:
                if told is not None and not session.connection.is_closed():
                    prepared.check(told)
                raise_translated(error, self._name, prepared.wrapped.prefix, len(request.statement))
            session.heard = True
            session.begun = session.connection.is_in_transaction()
            if told is not None:
                prepared.check(told)
            cut: Cut = ""
            if prepared.wrapped.most_bytes is not None:
                rows, cut = split_counts(rows, prepared.wrapped)
            if deadline.struck:
                cut = "late"
            deadline.passed.clear()
            made = await self._make(session, prepared, rows) if prepared.converters else [rows]
            batches = _batches(made, cut, prepared.wrapped.most_bytes)
            notices += prepared.notices
        return RowStream(prepared.columns, batches, notices), batches

    async def _pieces(
        self, session: Session, prepared: Prepared, arguments: list[Any], request: Request, notices: list[str]
    ) -> Batches:
        """Yield the rows of an answer that may be large, in pieces whose size depends on the rows before."""
        with self._translate_errors(prepared.wrapped, request):
            cursor = await prepared.statement.cursor(*arguments)
        count = 32
        told = time.monotonic()
        until = told + request.limits.timeout
        while True:
            if (now := time.monotonic()) - told > STALE:
                # The server counts from the beginning for each piece.
                milliseconds = max(1, round((until - now) * 1000))
                with self._translate_errors(prepared.wrapped, request):
                    await session.connection.execute(f"SET LOCAL statement_timeout = {milliseconds}")
                told = now
            deadline = Deadline(now + NEAR * (until - now))
            session.connection.allow(request.limits.max_bytes, deadline=deadline)
            with self._translate_errors(prepared.wrapped, request):
                rows = await cursor.fetch(count)
            if not rows:
                return
            made = await self._make(session, prepared, rows)
            notices[:] = prepared.notices
            for batch in made:
                yield batch
            if deadline.struck:
                raise _late()
            octets = _octets(rows, prepared.wrapped.long) or 1
            count = max(1, min(4 * count, 10_000, PIECE * len(rows) // octets))

    async def _make(self, session: Session, prepared: Prepared, rows: Rows) -> Sequence[Rows | Encoded]:
        """Return rows as `Prepared.make` does. Types that only their anonymous rows show are learned when they come."""
        made = await prepared.make(rows)
        while prepared.unlearned:
            self._connections.begin_ahead(session)
            session.connection.allow(OURS)
            with translate_errors(self._name):
                await session.types.learn(session.connection, prepared.unlearned)
            prepared.learned.update(prepared.unlearned)
            prepared.unlearned.clear()
            made = await prepared.make(rows)
        return made

    async def _get_prepared(self, session: Session, request: Request) -> Prepared:
        """Return the prepared statement of a request: a kept one, or a new one."""
        key = self._key(request)
        kept: Prepared | None = session.prepared.get(key)
        if kept is not None and kept.until > time.monotonic():
            session.prepared.move_to_end(key)
            return kept
        self._connections.begin_ahead(session)
        prepared = await self._prepare(session, request)
        session.compiled = True
        # Answers in pieces cannot be begun anew, and are long: what would be stale is not kept for them.
        if not self._pooled and request.limits.max_bytes <= LARGE and prepared.until > time.monotonic():
            session.prepared[key] = prepared
            if len(session.prepared) > REMEMBERED:
                session.prepared.popitem(last=False)
        return prepared

    async def _prepare(self, session: Session, request: Request) -> Prepared:
        """Have the server compile the statement for its columns, then as it will run."""
        begun = time.monotonic()
        lead = request.confinement.lead if request.confinement else 0
        first = wrap(request.statement, request.limits, lead=lead)
        statement, attributes, modifiers = await self._describe(session, first, request)
        plain = statement
        types = session.types
        with translate_errors(self._name):
            await types.learn(session.connection, (a.type.oid for a in attributes if a.type.oid not in SCALARS))
            await types.spell(session.connection, zip((a.type.oid for a in attributes), modifiers, strict=True))
            parameters = await self._parameters(session, statement)
        used = [a.type.oid for a in attributes] + [parameter.oid for parameter in plain.get_parameters()]
        fields = any(map(types.has_fields, used))  # they may be renamed, which nothing tells a kept statement
        notices: dict[str, None] = {}
        unlearned, learned = set[int](), set[int]()
        scalars = tuple(types.scalar(attribute.type.oid) for attribute in attributes)
        picked = [Picked(attribute.name, scalar) for attribute, scalar in zip(attributes, scalars, strict=True)]
        wrapped = wrap(request.statement, request.limits, picked, count_bytes=self._key(request)[1], lead=lead)
        is_converted = wrapped.most_bytes is not None or any(scalar.pick != AS_IT_IS for scalar in scalars)
        if wrapped.text != first.text or parameters.unknown:
            statement, _ = await self._parse(session, wrapped, request, parameters.unknown)
        return Prepared(
            statement=statement,
            plain=plain if is_converted else None,
            again=_ask_again(plain, parameters, is_converted=is_converted),
            wrapped=wrapped,
            columns=tuple(
                Column(a.name, types.type_name(a.type.oid, modifier, a.type.name), scalar.kind)
                for a, scalar, modifier in zip(attributes, scalars, modifiers, strict=True)
            ),
            converters={
                place: convert
                for place, (attribute, scalar) in enumerate(zip(attributes, scalars, strict=True))
                if scalar.kind == NATIVE
                and (
                    convert := column_converter(
                        Making(types, attribute.name, notices, unlearned, learned), attribute.type.oid
                    )
                )
            },
            notices=notices,
            unlearned=unlearned,
            learned=learned,
            parameters=parameters,
            until=0.0 if fields else min(types.until, begun + KEPT),
        )

    async def _describe(
        self, session: Session, wrapped: Wrapped, request: Request
    ) -> tuple[Statement, Sequence[Attribute], Sequence[int]]:
        """Return the compiled statement, unchanged, with its columns and the modifiers of their types."""
        unreadable: list[tuple[str, str]] = []
        while True:
            try:
                with translate_errors(self._name):
                    async with teach(session, unreadable, format="binary"):
                        statement, modifiers = await self._parse(session, wrapped, request)
                        return statement, statement.get_attributes(), modifiers
            except Unreadable as error:
                with translate_errors(self._name):
                    more = await session.types.leaves(session.connection, error.type)
                if not set(more) - set(unreadable):
                    raise
                unreadable = [*{*unreadable, *more}]
                session.spent = False

    async def _parse(
        self, session: Session, wrapped: Wrapped, request: Request, names: Sequence[tuple[str, str]] = ()
    ) -> tuple[Statement, Sequence[int]]:
        # With a name, the server keeps statement and plan, and refuses it if its columns have changed. Where sessions
        # are shared there is no name: the driver then sends the whole statement again when it runs.
        name = "" if self._pooled else session.new_name()
        with self._translate_errors(wrapped, request):
            async with teach(session, names, lasting=self._pooled):
                compiled = await session.connection.compile(wrapped.text, name)
        session.heard = True
        return compiled

    async def _parameters(self, session: Session, statement: Statement) -> Parameters:
        oids = [parameter.oid for parameter in statement.get_parameters()]
        await session.types.learn(session.connection, oids)
        return Parameters.of(session.types, oids)

    def _key(self, request: Request) -> tuple[Key, bool]:
        """Return the key of a prepared statement, and whether it counts its bytes."""
        role = request.acting.role if request.acting else None
        key = request.statement, request.limits.max_rows, request.limits.max_bytes, role
        return key, key in self._wide

    @property
    def _pooled(self) -> bool:
        return bool(self._connections.connector.pooled)

    def _translate_errors(self, wrapped: Wrapped, request: Request) -> AbstractContextManager[None]:
        return translate_errors(self._name, prefix=wrapped.prefix, length=len(request.statement))


async def _batches(made: Sequence[Rows | Encoded], cut: Cut, most: int | None) -> Batches:
    """Yield rows in batches. Raises `ResultTooLarge` if the server stopped although the reader would accept more."""
    for part in made:
        if isinstance(part, Encoded):
            yield part
            continue
        for start in range(0, len(part), ROWS_AT_ONCE):
            yield part[start : start + ROWS_AT_ONCE]
    if cut == "oversized":
        yield Encoded(b"", 0, oversized=True)
    if cut == "late":
        raise _late()
    if cut:
        raise ResultTooLarge(
            f"The rows take more than {most} bytes as the server writes them; only a part was read.",
            suggestion="Select fewer columns or rows, or pick parts of the JSON and composite values.",
        )


def _ask_again(plain: Statement, parameters: Parameters, *, is_converted: bool) -> Batch | None:
    columns = Batch.describing(plain.get_name()) if is_converted else None
    if not parameters.oids:
        return columns
    parsing = Batch.parsing(plain.get_query())
    return parsing + columns if columns else parsing


def _late() -> QueryTimeout:
    return QueryTimeout("The query ran into its deadline and was ended.")


def _octets(rows: Rows, places: Sequence[int]) -> int:
    """Return the bytes of the texts and binaries in some columns, or slightly fewer."""
    return sum(sum(map(len, [row[place] for row in rows if row[place]])) for place in places)
