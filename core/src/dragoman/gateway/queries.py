"""One statement's way: translated, judged, bounded, then run by the executor in a task of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from dragoman.dialect import Capability
from dragoman.errors import DialectError, DragomanError, InvalidSql, Unsupported
from dragoman.gateway.failures import explained
from dragoman.gateway.opened import OpenDatabase
from dragoman.gateway.tasks import GRACE, late, to_its_end
from dragoman.model import ExplainOptions, Plan, Principal, Request, RowStream
from dragoman.results import Collected, collect
from dragoman.sql import Statement

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a caller asks: SQL and its parameters, in which SQL it is written, the limits wanted, who asks with what."""

    sql: str
    params: Sequence[Any] = ()
    limit: int | None = None
    timeout: float | None = None
    max_bytes: int | None = None
    from_dialect: str | None = None
    principal: Principal
    tool: str


@dataclass(frozen=True, slots=True)
class Query:
    """A judged statement; nothing has run yet. `sql` is there when the text was translated."""

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
            sql, params, told = opened.translate(sql, params, ask.from_dialect)
            notices += told
        statement = await opened.judge.judge(sql, ask.tool, ask.principal)
        request = Request(statement=statement.text, parameters=tuple(params), limits=limits, principal=ask.principal)
        if ask.from_dialect is None:
            return cls(opened, statement, request, notices)
        query = cls(opened, statement, request, notices, statement.text)
        await query._check_translation()
        return query

    async def rows(self) -> Collected:
        """Run it and return its rows within the limits."""
        return await self._run(self._rows())

    async def _rows(self) -> Collected:
        async with self.opened.executor.open(self.request) as stream:
            return await collect(stream, self.request.limits)

    async def plan(self, options: ExplainOptions) -> Plan:
        """Return its plan."""
        return await self._run(self.opened.executor.explain(self.request, options))

    @asynccontextmanager
    async def stream(self) -> AsyncGenerator[RowStream]:
        """Run it in the caller's own task and hand out its rows, until the deadline."""
        seconds = self.request.limits.timeout
        try:
            async with asyncio.timeout(seconds + GRACE), self.opened.executor.open(self.request) as stream:
                stream.notices[:0] = self.notices
                yield stream
        except DragomanError as error:
            raise await self._explained(error) from None
        except TimeoutError:
            raise late(seconds) from None

    async def _check_translation(self) -> None:
        """Have the database compile a translation before it runs: sqlglot proposes, the database decides."""
        dialect = self.opened.dialect
        if Capability.DESCRIBE not in dialect.capabilities:
            return
        try:
            await self._run(self.opened.executor.prepare(self.request))
        except (InvalidSql, Unsupported) as error:
            raise Unsupported(
                f"The translation does not run on {dialect.name}: {error.message}",
                suggestion=f"Write the query in {dialect.name}'s own SQL.",
                context={"sql": self.statement.text},
            ) from None

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await what the executor does; its errors come out with what helps, and a driver's own do not get out."""
        try:
            return await to_its_end(work, self.request.limits.timeout)
        except DragomanError as error:
            raise await self._explained(error) from None
        except Exception as error:
            _log.exception("the executor of database %s leaked an exception", self.opened.config.name)
            raise DialectError(
                f"The plugin of the dialect {self.opened.dialect.name!r} failed with {type(error).__name__}.",
                suggestion="Report it to the plugin's authors; the log has the details.",
            ) from None

    async def _explained(self, error: DragomanError) -> DragomanError:
        self.opened.noticed(error)
        return await explained(error, self.statement, self.opened.catalog)
