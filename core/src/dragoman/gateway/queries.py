"""The path of one statement: translated, judged, bounded, then run by the executor in a task of its own."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ParamSpec, TypeVar

from dragoman.catalog import CONFIRMED, withhold
from dragoman.dialect import Capability
from dragoman.errors import (
    Busy,
    ConnectionFailed,
    CostExceeded,
    DragomanError,
    InvalidSql,
    NotFound,
    ParameterError,
    QueryCancelled,
    QueryError,
    QueryTimeout,
    Unsupported,
)
from dragoman.gateway.calls import CallRecord
from dragoman.gateway.confining import UNFIT, ConfinedStatement, fails
from dragoman.gateway.failures import Named, explain, have_lost, show_more
from dragoman.gateway.opened import OpenDatabase
from dragoman.gateway.tasks import late, within
from dragoman.model import LOCAL, Database, Encoded, ExplainOptions, Limits, Plan, Principal, Request, RowStream
from dragoman.model.columns import Octets, find_binary, join_octets
from dragoman.pool import Waited, best_before
from dragoman.results import Bounded, Collected, Collector, check_columns, check_stream
from dragoman.sql import Statement
from dragoman.telemetry import Run
from dragoman.words import words_in

P = ParamSpec("P")
T = TypeVar("T")
TOOL = "execute_query"
"""The tool name of statements that no tool asks for."""
TRANSLATING = (TOOL, "explain_query")
"""The tools that take `from_dialect`."""
NO_TAGS = Request(statement="").tags
_CHANGED = "A table has changed since its columns were read. Send the query again."
_CONFIRMING = 5.0
"""Seconds, beyond its deadline, in which a late answer is judged again. A database that answers takes far less."""
_OWN_WORDS = (Busy, ConnectionFailed, QueryCancelled, QueryTimeout)
"""Errors that say nothing of what is in the database."""
_BROKEN = "A view that the statement reads names something that does not exist, or does not fit the statement."
_TELL = "Tell the owner of the database, or read other relations."
_NO_PLAN = (
    "The query reads tables of which you may see only a part. The database compiles it, but its plan is not shown."
)
_MOST_ROWS = "`limit` cannot be higher. Ask for less with WHERE, LIMIT or an aggregate."
_ROLES = "your roles allow"
_QUESTIONS = "the configuration allows"
Put = Callable[[Encoded], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Query:
    """A judged statement that has not run yet.

    - `parameters`: the caller's values. The request of a confined statement has those of filters and masks too.
    - `sql`: the SQL that will run, if it is not what the caller sent.
    - `tool`: the tool that its caller uses.
    - `since`: when it was judged, on the monotonic clock; where a part is hidden, when judging began.
    """

    opened: OpenDatabase
    statement: Statement
    request: Request
    notices: tuple[str, ...]
    parameters: tuple[Any, ...] = ()
    sql: str | None = None
    confined: ConfinedStatement | None = None
    tool: str = TOOL
    since: float = 0.0

    @classmethod
    async def prepare(
        cls,
        opened: OpenDatabase,
        sql: str,
        params: Sequence[Any] = (),
        *,
        limit: int | None = None,
        timeout: float | None = None,
        max_bytes: int | None = None,
        ceiling: Limits | None = None,
        from_dialect: str | None = None,
        principal: Principal = LOCAL,
        tool: str = TOOL,
    ) -> Query:
        """Return the query behind `sql`. Raises the refusal."""
        limits: Limits = ceiling or opened.limits
        notices: tuple[str, ...] = ()
        if ceiling is None and not (limit is timeout is max_bytes is None):
            limits, notices = _lower(limits, opened.config, limit, timeout, max_bytes)
        if not opened.health.ready:
            await opened.health.breaker.check(limits.timeout)
        translated: str | None = None
        if from_dialect is not None:
            written = sql
            sql, params, told = await opened.translate(sql, params, from_dialect)
            translated, notices = sql if sql != written else None, notices + told
        judging = time.monotonic()
        try:
            statement = await within(limits.timeout, opened.judge.judge(sql, tool, principal), too_late_to_judge)
        except DragomanError as error:
            opened.health.saw(error)
            if from_dialect is None:
                error = await opened.advise(error, sql, limits.timeout, translates=tool in TRANSLATING)
            raise _about(error, translated) from None
        request = Request(
            statement=statement.text,
            parameters=tuple(params),
            limits=limits,
            principal=principal,
            tags=NO_TAGS,
            acting=opened.acting(principal) if opened.delegation else None,
            reads=statement.judged_relations,
            types=statement.judged_types if opened.places.narrowed else None,
        )
        since = judging if opened.places.narrowed else time.monotonic()
        confined = None
        if opened.confiner is not None:
            left = max(0.0, limits.timeout - (time.monotonic() - judging))
            confined = await within(
                left, opened.confiner.confine(statement), lambda _: too_late_to_judge(limits.timeout)
            )
            request = confined.request(request) if confined else request
        query = cls(opened, statement, request, notices, tuple(params), translated, confined, tool, since)
        if translated is not None:
            await query._check_translation()
        return query

    async def again(self, record: CallRecord) -> Query:
        """Return it judged by what the database is now, since it may have changed while this waited.

        Raises the refusal.
        """
        fresh = await Query.prepare(
            self.opened,
            self.statement.original,
            self.parameters,
            ceiling=self.request.limits,
            principal=self.request.principal,
            tool=self.tool,
        )
        if (fresh.statement, fresh.confined) != (self.statement, self.confined):
            fresh.note(record)
        return replace(fresh, notices=self.notices, sql=self.sql)

    async def _confirm(self, record: CallRecord) -> None:
        """Raise unless the rows of a late answer are those that its caller may see now.

        It may have waited inside the database, for instance for the lock of a transaction that changed a view. Raises
        the refusal, or `QueryError` if the query would read another part now.
        """
        if not self.opened.places.narrowed or time.monotonic() - self.since < CONFIRMED:
            return
        try:
            async with asyncio.timeout(_CONFIRMING):
                fresh = (await self.again(record)).request
        except TimeoutError:
            raise late(self.request.limits.timeout) from None
        if (fresh.statement, fresh.parameters) != (self.request.statement, self.request.parameters):
            raise QueryError("What the query reads was changed while it ran.", suggestion="Send it again.")

    def note(self, record: CallRecord) -> None:
        """Record that it may run: what it reads of its relations, and its identity in the database."""
        record.acting = self.request.acting
        record.database = record.database or self.opened.config.name
        record.hash = self.statement.hash
        record.relations += tuple(map(str, self.statement.judged_relations))
        record.columns += self.statement.judged_columns
        if self.confined is not None:
            record.confined += self.confined.parts

    @asynccontextmanager
    async def running(self, record: CallRecord) -> AsyncGenerator[Query]:
        """Take a slot of the database, and record when it ran and its outcome. Raises `Busy`.

        Yields the query to run: this one, judged again if it waited. No judgement may be older than what callers see.
        """
        whole, outcome, status = self.opened.whole, "ok", ""
        async with record.admission.statement(self.opened.limiter, self.request.limits.timeout):
            query = self if time.monotonic() - self.since < CONFIRMED else await self.again(record)
            began = time.time_ns()
            whole.running += 1
            try:
                yield query
            except DragomanError as error:
                outcome, status = error.code, str(error.context.get("sqlstate", ""))
                raise
            except asyncio.CancelledError:
                outcome = QueryCancelled.code
                raise
            finally:
                whole.running -= 1
                name, dialect = self.opened.config.name, self.opened.dialect.name
                relations = tuple(map(str, query.statement.judged_relations))
                record.runs.append(Run(began, time.time_ns(), name, dialect, relations, outcome, status))

    async def check_part(self) -> None:
        """Have the database compile it if it reads a part of a relation, so that hidden columns do not exist.

        Once is enough, unless the database acts for the caller: its rights there may change.
        """
        confiner, text = self.opened.confiner, self.statement.text
        if self.opened.delegation is not None:
            cost = await self._run("estimate_cost", self.opened.executor.estimate_cost, self.request)
            if cost is None:  # it asks for rights, too, but not every dialect has it
                await self._run("prepare", self.opened.executor.prepare, self.request)
        elif self.confined is not None and confiner is not None and text not in confiner.compiling:
            await self._run("prepare", self.opened.executor.prepare, self.request)
            confiner.compiling.add(text)

    async def rows(self, record: CallRecord) -> Collected:
        """Run it and return its rows within the limits. At a deadline, return the rows that came before it."""
        query, opened = self, self.opened
        if opened.max_cost is not None:
            query = await self._afford(opened.max_cost, record)
        collector = Collector()
        try:
            found = await opened.work.do(self.request.limits.timeout, query._read, collector, record)
        except Exception as error:
            told = await query._explain(error, "open")
            part = query._part(collector, told)
            if part is not None or not isinstance(told, _OWN_WORDS):
                await query._confirm(record)
            if part is None:
                raise told from None
            return part
        if opened.places.narrowed:
            await query._confirm(record)
        if not opened.health.ready:
            opened.health.saw(None)
        cut = found.truncated
        if cut is not None and cut.reason == "rows" and cut.limit >= opened.config.max_rows:
            found = replace(found, truncated=replace(cut, hint=_MOST_ROWS))
        return self._mask(found) if opened.places.narrowed else found

    async def _read(self, collector: Collector, record: CallRecord) -> Collected:
        best_before.set(self.since + CONFIRMED)
        try:
            async with self.opened.executor.open(self.request) as stream:
                return await collector.collect(stream, self.request.limits)
        except Waited:  # for work that others abandoned
            best_before.set(None)
            return await (await self.again(record))._read(collector, record)

    def _part(self, collector: Collector, error: DragomanError) -> Collected | None:
        """Return the rows that came before a deadline, if the error is one and there are any."""
        limits = self.request.limits
        part = collector.collected_until(limits.timeout, limits) if isinstance(error, QueryTimeout) else None
        return self._mask(part) if part and self.opened.places.narrowed else part

    def _mask(self, found: Collected) -> Collected:
        places = self.opened.places
        return replace(
            found, columns=tuple(places.columns(found.columns)), notices=tuple(map(places.mask, found.notices))
        )

    async def plan(self, options: ExplainOptions, max_cost: float | None = None) -> Plan:
        """Return its plan. Raises `CostExceeded` above `max_cost`, also where the plan is not shown."""
        opened = self.opened
        if options.analyze and opened.max_cost is not None:
            await self._check_cost(opened.max_cost)
        options = replace(options, reads=opened.places.narrowed)
        if opened.delegation is not None or await self._reads_part():
            if max_cost is not None:
                await self._check_cost(max_cost, _QUESTIONS)
            return await self._no_plan(options)
        plan = await self._run("explain", opened.executor.explain, self.request, options)
        opened.source.check(plan, Plan, "Executor.explain")
        if max_cost is not None and plan.estimated_cost is not None and plan.estimated_cost > max_cost:
            raise _too_dear(max_cost, _QUESTIONS)
        if not opened.places.narrowed:
            return plan
        relations = await opened.judge.relations(self.statement)
        return withhold(plan) if await opened.catalog.reaches_outside(plan, relations) else plan

    async def _reads_part(self) -> bool:
        """Return whether it reads a relation of which callers see a part, not only names of objects as text."""
        parts = () if self.confined is None else self.confined.parts
        return any([await self.opened.is_reduced(part.relation) for part in parts])

    async def _no_plan(self, options: ExplainOptions) -> Plan:
        """Have the database check the query.

        Its plan would show filters, and its costs would show how much is hidden.
        """
        await self._run("prepare", self.opened.executor.prepare, self.request)
        return Plan(plan=None, format=options.format, notices=(_NO_PLAN,))

    @asynccontextmanager
    async def stream(self, record: CallRecord) -> AsyncGenerator[RowStream]:
        """Run it and yield its rows as they arrive, within the limits, until the deadline. `record` counts them."""
        query = self
        if self.opened.max_cost is not None:
            query = await self._afford(self.opened.max_cost, record)
        handed = RowStream((), _none(), [*self.notices])

        async def feed(put: Put) -> None:
            await query._feed(handed, put, record)

        async with (
            self.opened.work.feed(feed, self.request.limits.timeout) as items,
            aclosing(query._forward(items, record)) as batches,
        ):
            await anext(batches)  # the empty batch that says that it is open, or the error
            handed.batches = batches
            yield handed

    async def _feed(self, handed: RowStream, put: Put, record: CallRecord) -> None:
        best_before.set(self.since + CONFIRMED)
        try:
            async with self.opened.executor.open(self.request) as stream:
                await self._hand(stream, handed, put, record)
        except Waited:  # for work that others abandoned
            best_before.set(None)
            await (await self.again(record))._feed(handed, put, record)

    async def _hand(self, stream: RowStream, handed: RowStream, put: Put, record: CallRecord) -> None:
        check_stream(stream, self.request.limits)
        bounded = Bounded(stream, self.request.limits)
        handed.columns = self.opened.places.columns(stream.columns)
        await put(Encoded(b"", 0))
        is_confirmed = False
        octets: Octets = ()
        async for batch in bounded.batches():
            if not is_confirmed:
                await self._confirm(record)
                is_confirmed = True
            record.rows, record.bytes = bounded.rows, bounded.bytes
            # Rows of which a plugin does not say it may hold anything.
            octets = join_octets(octets, batch.octets or (False,) * (len(stream.columns) if batch.count else 0))
            await put(batch)
        check_columns(stream.columns, self.request.limits)
        handed.columns = tuple(self.opened.places.columns(find_binary(stream.columns, octets)))
        handed.notices += stream.notices
        handed.truncated = bounded.truncated

    async def _forward(self, items: AsyncIterator[Encoded], record: CallRecord) -> AsyncGenerator[Encoded]:
        try:
            async for batch in items:
                yield batch
        except Exception as error:
            told = await self._explain(error, "open")
            if not isinstance(told, _OWN_WORDS):
                await self._confirm(record)
            raise told from None
        self.opened.health.saw(None)

    async def _afford(self, most: float, record: CallRecord) -> Query:
        """Return it once its cost is known, judged again if that took long: an estimate may wait for a lock.

        Raises `CostExceeded`.
        """
        await self._check_cost(most)
        return self if time.monotonic() - self.since < CONFIRMED else await self.again(record)

    async def _check_cost(self, most: float, allowed: str = _ROLES) -> None:
        """Raise `CostExceeded` if the database estimates more than `most`.

        The estimate may reveal hidden rows, so it is not shown.

        If the database gives no estimate, only the timeout bounds the query.
        """
        cost = await self._run("estimate_cost", self.opened.executor.estimate_cost, self.request)
        if cost is not None and self.opened.source.check(cost, Real, "Executor.estimate_cost") > most:
            raise _too_dear(most, allowed)

    async def _check_translation(self) -> None:
        """Have the database compile a translation before it runs: sqlglot may be wrong."""
        dialect = self.opened.dialect
        if Capability.DESCRIBE not in dialect.capabilities:
            return
        try:
            await self._run("prepare", self.opened.executor.prepare, self.request)
        except (InvalidSql, Unsupported) as error:
            raise Unsupported(
                f"The translation does not run on {dialect.name}: {error.message}",
                suggestion=f"Write the query in {dialect.name}'s own SQL.",
                context=error.context,
            ) from None

    async def _run(
        self, method: str, work: Callable[P, Coroutine[Any, Any, T]], *arguments: P.args, **named: P.kwargs
    ) -> T:
        try:
            done = await self.opened.work.do(self.request.limits.timeout, work, *arguments, **named)
        except Exception as error:
            raise await self._explain(error, method) from None
        self.opened.health.saw(None)
        return done

    async def _explain(self, error: Exception, method: str) -> DragomanError:
        """Return an executor's error as callers see it: with a remedy, and without a driver's own text."""
        opened = self.opened
        told = opened.source.translate(error, f"Executor.{method}")
        opened.health.saw(told)
        told = opened.places.clean(told, self.statement.text)
        if self.confined is not None:
            told = self.confined.error(told)
            having = self.confined.parts_with(told)
            if having and await have_lost(having, told.identifier or "", opened.catalog):
                return _about(told.replace(suggestion=_CHANGED), self.sql)
            if unfit := await self._find_unfit(self.confined, told, method):
                return _about(unfit, self.sql)
        relations = partial(opened.judge.relations, self.statement)
        if opened.places.hides and (hidden := await self._hide_views(told, relations, method)):
            return _about(hidden, self.sql)
        return _about(await explain(told, self.statement, opened.catalog, relations), self.sql)

    async def _hide_views(self, error: DragomanError, relations: Named, method: str) -> DragomanError | None:
        """Return what to say instead of an error that may tell what a view reads and its caller does not see.

        That is a value, or a name. A name that the statement has, too, may be a guess, unless the views compile by
        themselves.
        """
        is_value = isinstance(error, QueryError) and error.offset is None
        is_name = isinstance(error, NotFound | InvalidSql)
        if not (is_value or is_name) or not await show_more(relations, self.opened.catalog):
            return None
        if is_value or await self._failed_when_run(method):
            return fails()
        if _names_other(error, self.statement.text) or not await self.opened.compiles(relations):
            return InvalidSql(_BROKEN, suggestion=_TELL)
        return None

    async def _failed_when_run(self, method: str) -> bool:
        """Return whether a statement that failed compiles, so that it failed on a value, whatever the error says."""
        if method != "open":
            return False
        try:
            await self.opened.work.do(self.request.limits.timeout, self.opened.executor.prepare, self.request)
        except Exception:
            return False
        return True

    async def _find_unfit(self, confined: ConfinedStatement, error: DragomanError, method: str) -> DragomanError | None:
        """Return the error for filters and masks that the database cannot compile. None: the statement is at fault.

        A statement that compiles fails on a value, or in a function that a filter or mask calls, whatever the error
        says.
        """
        if self.opened.confiner is None or not isinstance(error, UNFIT):
            return None
        try:
            await self.opened.confiner.check_fit([part for part in confined.parts if not part.whole])
        except DragomanError as unfit:
            return unfit
        is_shown = isinstance(error, QueryError) or not confined.computes
        return None if is_shown or not await self._failed_when_run(method) else fails()


def _names_other(error: DragomanError, written: str) -> bool:
    """Return whether an error names something that is not in the statement: a view that it reads may have the name."""
    told = " ".join((error.identifier or "", *re.findall(r'"([^"]+)"', error.message)))
    return not words_in(told) <= words_in(written)


def too_late_to_judge(timeout: float) -> QueryTimeout:
    """Return the error for a statement that was not judged within so many seconds."""
    return QueryTimeout(
        f"Within {timeout:g} seconds it was not known what the query reads.",
        suggestion="The database is asked about its tables, and may need longer: try again in a moment.",
    )


def _too_dear(most: float, allowed: str) -> CostExceeded:
    return CostExceeded(f"The query is expected to cost more than the {most:g} {allowed}.")


def _lower(
    limits: Limits, database: Database, rows: int | None, timeout: float | None, max_bytes: int | None
) -> tuple[Limits, tuple[str, ...]]:
    """Return the limits of a call that sets its own, within the configured ones, and notices about lowered ones.

    `max_bytes` has no ceiling: only the server's administrators set it. Raises `ParameterError` unless they are
    positive.
    """
    for name, value in (("limit", rows), ("timeout", timeout), ("max_bytes", max_bytes)):
        if value is not None and not value > 0:
            raise ParameterError(f"{name} must be greater than zero.", suggestion=f"Leave {name} out for the default.")
    notices: list[str] = []
    if rows is not None and rows > database.max_rows:
        notices.append(f"limit was lowered to {database.max_rows}. The server's administrator can raise `max_rows`.")
    if timeout is not None and timeout > limits.timeout:
        notices.append(
            f"The timeout was lowered to {limits.timeout:g} seconds. The server's administrator can raise `timeout`."
        )
    lowered = Limits(
        max_rows=min(rows or limits.max_rows, database.max_rows),
        max_bytes=max_bytes or limits.max_bytes,
        timeout=min(timeout or limits.timeout, limits.timeout),
    )
    return lowered, tuple(notices)


def _about(error: DragomanError, sql: str | None) -> DragomanError:
    """Return `error` with `sql`, if that is not what the caller wrote."""
    return error if sql is None else error.replace(context={**error.context, "sql": sql})


async def _none() -> AsyncIterator[Encoded]:
    return
    yield
