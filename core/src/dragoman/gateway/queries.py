"""One statement's way: translated, judged, bounded, then run by the executor in a task of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from dragoman.catalog import withheld
from dragoman.dialect import Capability
from dragoman.errors import DragomanError, InvalidSql, Unsupported
from dragoman.gateway.calls import CallRecord
from dragoman.gateway.failures import explained
from dragoman.gateway.opened import OpenDatabase
from dragoman.model import LOCAL, Encoded, ExplainOptions, Plan, Principal, Request, RowStream
from dragoman.results import Bounded, Collected, check_columns, check_stream, collect
from dragoman.sql import Statement

T = TypeVar("T")
Put = Callable[[Encoded], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a caller asks: SQL and its parameters, in which SQL it is written, the limits wanted, who asks with what."""

    sql: str
    params: Sequence[Any] = ()
    limit: int | None = None
    timeout: float | None = None
    max_bytes: int | None = None
    from_dialect: str | None = None
    principal: Principal = LOCAL
    tool: str = "execute_query"


@dataclass(frozen=True, slots=True)
class Query:
    """A judged statement; nothing has run yet. `sql` is there when what will run is not what came."""

    opened: OpenDatabase
    statement: Statement
    request: Request
    notices: tuple[str, ...]
    sql: str | None = None

    @classmethod
    async def prepare(cls, opened: OpenDatabase, ask: Ask) -> Query:
        """Return the query behind `ask`. Raises what refuses it."""
        limits, notices = opened.limits(ask.limit, ask.timeout, ask.max_bytes)
        sql, params = ask.sql, ask.params
        if ask.from_dialect is not None:
            sql, params, told = await opened.translate(sql, params, ask.from_dialect)
            notices += told
        translated = sql if sql != ask.sql else None
        try:
            statement = await opened.judge.judge(sql, ask.tool, ask.principal)
        except DragomanError as error:
            raise _about(error, translated) from None
        request = Request(statement=statement.text, parameters=tuple(params), limits=limits, principal=ask.principal)
        query = cls(opened, statement, request, notices, translated)
        if translated is not None:
            await query._check_translation()
        return query

    def turn(self, record: CallRecord) -> AbstractAsyncContextManager[None]:
        """Be one of the statements its database runs at once; who waits for it is no call meanwhile. Raises `Busy`."""
        return record.turn.and_one_of(self.opened.turns, self.request.limits.timeout)

    async def rows(self) -> Collected:
        """Run it and return its rows within the limits."""
        found = await self._run("open", self._rows())
        places = self.opened.places
        notices = tuple(map(places.masked, found.notices))
        return replace(found, columns=tuple(places.columns(found.columns)), notices=notices)

    async def _rows(self) -> Collected:
        async with self.opened.executor.open(self.request) as stream:
            return await collect(stream, self.request.limits)

    async def plan(self, options: ExplainOptions) -> Plan:
        """Return its plan."""
        opened = self.opened
        options = replace(options, reads=opened.places.narrowed)
        plan = await self._run("explain", opened.executor.explain(self.request, options))
        opened.source.checked(plan, Plan, "Executor.explain")
        if not opened.places.narrowed:
            return plan
        relations = await opened.judge.relations(self.statement)
        return withheld(plan) if await opened.catalog.reaches_outside(plan, relations) else plan

    @asynccontextmanager
    async def stream(self, record: CallRecord) -> AsyncGenerator[RowStream]:
        """Run it and hand out its rows as they come, within the limits, until the deadline; `record` counts them."""
        handed = RowStream((), _none(), [*self.notices])

        async def feed(put: Put) -> None:
            await self._feed(handed, put, record)

        async with (
            self.opened.work.feed(feed, self.request.limits.timeout) as items,
            aclosing(self._handed(items)) as batches,
        ):
            await anext(batches)  # the empty batch that says it is open, or what went wrong
            handed.batches = batches
            yield handed

    async def _feed(self, handed: RowStream, put: Put, record: CallRecord) -> None:
        async with self.opened.executor.open(self.request) as stream:
            check_stream(stream)
            bounded = Bounded(stream, self.request.limits)
            check_columns(stream.columns, self.request.limits)
            handed.columns = self.opened.places.columns(stream.columns)
            await put(Encoded(b"", 0))
            async for batch in bounded.batches():
                record.rows, record.bytes = bounded.rows, bounded.bytes
                await put(batch)
            check_columns(stream.columns, self.request.limits)
            handed.columns = tuple(self.opened.places.columns(stream.columns))
            handed.notices += stream.notices
            handed.truncated = bounded.truncated

    async def _handed(self, items: AsyncIterator[Encoded]) -> AsyncGenerator[Encoded]:
        async with self._told("open"):
            async for batch in items:
                yield batch

    async def _check_translation(self) -> None:
        """Have the database compile a translation before it runs: sqlglot proposes, the database decides."""
        dialect = self.opened.dialect
        if Capability.DESCRIBE not in dialect.capabilities:
            return
        try:
            await self._run("prepare", self.opened.executor.prepare(self.request))
        except (InvalidSql, Unsupported) as error:
            raise Unsupported(
                f"The translation does not run on {dialect.name}: {error.message}",
                suggestion=f"Write the query in {dialect.name}'s own SQL.",
                context=error.context,
            ) from None

    async def _run(self, method: str, work: Coroutine[Any, Any, T]) -> T:
        async with self._told(method):
            return await self.opened.work.do(work, self.request.limits.timeout)

    @asynccontextmanager
    async def _told(self, method: str) -> AsyncGenerator[None]:
        """Around a method of the executor: its errors come out with what helps, and a driver's own do not get out."""
        opened = self.opened
        try:
            with opened.source.ours(f"Executor.{method}"):
                yield
        except DragomanError as error:
            opened.health.saw(error)
            error = opened.places.cleaned(error)
            named = partial(opened.judge.relations, self.statement)
            raise _about(await explained(error, self.statement, opened.catalog, named), self.sql) from None
        opened.health.saw(None)


def _about(error: DragomanError, sql: str | None) -> DragomanError:
    """Return `error`, which is about `sql` when that is not what the caller wrote; the same object."""
    if sql is not None:
        error.context = {**error.context, "sql": sql}
    return error


async def _none() -> AsyncIterator[Encoded]:
    return
    yield
