"""`Gateway`: many databases behind one object. The MCP server and the command line are two thin faces of it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from dragoman.config import Configuration, load
from dragoman.dialect import Capability
from dragoman.errors import (
    ColumnNotFound,
    ConfigurationError,
    DragomanError,
    ParameterError,
    TableNotFound,
    UnknownDatabase,
    Unsupported,
)
from dragoman.gateway.calls import CallRecord, Calls
from dragoman.gateway.failures import explained
from dragoman.gateway.opened import OpenDatabase
from dragoman.gateway.sampling import sample_sql
from dragoman.gateway.tasks import GRACE, late, to_its_end
from dragoman.model import Database, ExplainOptions, Plan, Principal, Request, Result, RowStream
from dragoman.plugins import Plugins
from dragoman.results import Collected, collect
from dragoman.sql import Statement

_log = logging.getLogger(__name__)
T = TypeVar("T")
Source = Configuration | Sequence[Database] | str | Path | None
LOCAL = Principal()


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A judged statement on its way: what is sent, in whose name, within which limits, and what to tell about it."""

    opened: OpenDatabase
    statement: Statement
    request: Request
    notices: tuple[str, ...]
    sql: str | None


class Gateway:
    """Open it with `Gateway.open`. All methods raise `DragomanError`s only.

    `database` is a name, or None for the default. Parameters are JSON values for `$1`.. or `?`. Cancelling a call ends
    its work in the database before the cancellation goes on.
    """

    def __init__(self, configuration: Configuration, plugins: Plugins) -> None:
        self.configuration = configuration
        self.plugins = plugins
        self._opened: dict[str, OpenDatabase] = {}
        self._calls = Calls(configuration.server.max_concurrent)

    @classmethod
    @asynccontextmanager
    async def open(cls, source: Source = None) -> AsyncGenerator[Gateway]:
        """Open the databases of a configuration, a file's, or those given; None: where configuration is usually found.

        Nothing connects before it is used. Raises `ConfigurationError`, and `DialectError` for a broken policy.
        """
        gateway = cls(_configuration(source), Plugins.discover())
        try:
            yield gateway
        finally:
            await gateway._aclose()

    @property
    def names(self) -> tuple[str, ...]:
        """The databases' names, as configured."""
        return tuple(self.configuration.databases)

    @property
    def default(self) -> str | None:
        """The database a call means that names none: the configured default, or the only one."""
        return self.configuration.default_database or (self.names[0] if len(self.names) == 1 else None)

    def database(self, name: str | None = None) -> OpenDatabase:
        """Return a database, opening it at first. Raises `UnknownDatabase`, `DialectError`, `ConfigurationError`."""
        name = self._named(name)
        if name not in self._opened:
            self._opened[name] = OpenDatabase(self.plugins, self.configuration.databases[name])
        return self._opened[name]

    def _named(self, name: str | None) -> str:
        chosen = self.default if name is None else name
        if chosen is None:
            raise ParameterError(
                "Several databases are configured: say which one is meant.",
                suggestion=f"Pass database, one of: {', '.join(self.names)}.",
            )
        if chosen not in self.configuration.databases:
            near = get_close_matches(chosen, self.names, n=1)
            raise UnknownDatabase(
                f"There is no database {chosen!r}.",
                suggestion=f"Did you mean {near[0]!r}?" if near else f"Configured are: {', '.join(self.names)}.",
            )
        return chosen

    def call(
        self, tool: str, principal: Principal = LOCAL, database: str | None = None
    ) -> AbstractAsyncContextManager[CallRecord]:
        """Be one call: within the bounds of how many run at once, with one line in the log. Raises `Busy`."""
        return self._calls.call(tool, principal, database or self.default)

    async def query(
        self,
        database: str | None,
        sql: str,
        params: Sequence[Any] = (),
        *,
        limit: int | None = None,
        timeout: float | None = None,
        max_bytes: int | None = None,
        from_dialect: str | None = None,
        principal: Principal = LOCAL,
        tool: str = "execute_query",
    ) -> Result:
        """Run one query and return its rows, exact and within the limits (`limit` rows, `timeout` seconds)."""
        began = time.perf_counter()
        async with self.call(tool, principal, database) as record:
            prepared = await self._prepare(
                database, sql, params, limit, timeout, max_bytes, from_dialect, principal, tool
            )
            record.hash = prepared.statement.hash
            collected = await _run(prepared, _collected(prepared))
            record.rows, record.bytes = collected.row_count, len(collected.rows_json)
            return Result(
                columns=collected.columns,
                rows_json=collected.rows_json,
                row_count=collected.row_count,
                truncated=collected.truncated,
                notices=(*prepared.notices, *collected.notices),
                sql=prepared.sql,
                elapsed_ms=(time.perf_counter() - began) * 1000,
                query_hash=prepared.statement.hash,
            )

    @asynccontextmanager
    async def stream(
        self,
        database: str | None,
        sql: str,
        params: Sequence[Any] = (),
        *,
        limit: int | None = None,
        timeout: float | None = None,
        max_bytes: int | None = None,
        from_dialect: str | None = None,
        principal: Principal = LOCAL,
    ) -> AsyncGenerator[RowStream]:
        """Run one judged query and hand out its rows as they come, until the deadline; leaving ends it.

        Batches are rows, or `Encoded` ones; `dragoman.encode` makes them all so. The reader does the bounding.
        """
        prepared = await self._prepare(
            database, sql, params, limit, timeout, max_bytes, from_dialect, principal, "stream"
        )
        seconds = prepared.request.limits.timeout
        try:
            async with (
                asyncio.timeout(seconds + GRACE),
                prepared.opened.executor.open(prepared.request) as stream,
            ):
                stream.notices[:0] = prepared.notices
                yield stream
        except DragomanError as error:
            raise await _explained(error, prepared) from None
        except TimeoutError:
            raise late(seconds) from None

    async def explain(
        self,
        database: str | None,
        sql: str,
        params: Sequence[Any] = (),
        *,
        options: ExplainOptions = ExplainOptions(),  # noqa: B008  (frozen)
        timeout: float | None = None,
        from_dialect: str | None = None,
        principal: Principal = LOCAL,
    ) -> Plan:
        """Return the plan of a query; `options.analyze` runs it, inside the same read-only envelope."""
        async with self.call("explain_query", principal, database) as record:
            opened = self.database(database)
            _check_explain(opened, options)
            prepared = await self._prepare(
                database, sql, params, None, timeout, None, from_dialect, principal, "explain_query"
            )
            record.hash = prepared.statement.hash
            asked = replace(options, format="json") if options.format == "yaml" else options
            plan = await _run(prepared, opened.executor.explain(prepared.request, asked))
            notices = (*prepared.notices, *plan.notices)
            return replace(_in_format(plan, options), notices=notices, sql=prepared.sql)

    async def sample(
        self,
        database: str | None,
        table: str,
        *,
        schema: str | None = None,
        limit: int = 5,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        randomize: bool = False,
        principal: Principal = LOCAL,
    ) -> Result:
        """Return a few rows of a table. `where` is one boolean expression, judged like any query."""
        opened = self.database(database)
        found = await opened.catalog.find(table, schema)
        sql = sample_sql(found, opened.dialect, columns=columns, where=where, randomize=randomize)
        result = await self.query(database, sql, limit=limit, principal=principal, tool="get_sample_rows")
        whole = result.truncated is not None and result.truncated.reason == "rows"
        return replace(result, truncated=None) if whole else result

    async def _prepare(
        self,
        database: str | None,
        sql: str,
        params: Sequence[Any],
        limit: int | None,
        timeout: float | None,
        max_bytes: int | None,
        from_dialect: str | None,
        principal: Principal,
        tool: str,
    ) -> _Prepared:
        """Translate, judge and bound a statement; nothing has run when it returns."""
        opened = self.database(database)
        limits, notices = opened.limits(limit, timeout, max_bytes)
        translated: str | None = None
        if from_dialect is not None:
            translated, params, told = opened.translate(sql, params, from_dialect)
            notices += told
        statement = await opened.judge.judge(translated or sql, tool, principal)
        request = Request(statement=statement.text, parameters=tuple(params), limits=limits, principal=principal)
        prepared = _Prepared(opened, statement, request, notices, translated)
        if translated is not None:
            await self._check_translation(prepared)
        return prepared

    async def _check_translation(self, prepared: _Prepared) -> None:
        """Have the target database compile a translation before it runs: sqlglot proposes, the database decides."""
        if Capability.DESCRIBE not in prepared.opened.dialect.capabilities:
            return
        try:
            async with self._failing(prepared):
                await to_its_end(prepared.opened.executor.prepare(prepared.request), prepared.request.limits.timeout)
        except (TableNotFound, ColumnNotFound, ParameterError):
            raise
        except DragomanError as error:
            raise Unsupported(
                f"The translation does not run on {prepared.opened.dialect.name}: {error.message}",
                suggestion=f"Write the query in {prepared.opened.dialect.name}'s own SQL.",
                context={"sql": prepared.statement.text},
            ) from None

    @asynccontextmanager
    async def _failing(self, prepared: _Prepared) -> AsyncGenerator[None]:
        """Give errors of the database what helps to mend them, and keep a driver's own from getting out."""
        try:
            yield
        except DragomanError as error:
            prepared.opened.noticed(error)
            raise await explained(error, prepared.statement, prepared.opened.catalog) from None

    async def _aclose(self) -> None:
        await asyncio.gather(*(opened.aclose() for opened in self._opened.values()))


async def _collected(prepared: _Prepared) -> Collected:
    async with prepared.opened.executor.open(prepared.request) as stream:
        return await collect(stream, prepared.request.limits)


async def _run(prepared: _Prepared, work: Coroutine[Any, Any, T]) -> T:
    """Await what the executor does; its errors come out with what helps, and a driver's own do not get out."""
    try:
        return await to_its_end(work, prepared.request.limits.timeout)
    except DragomanError as error:
        raise await _explained(error, prepared) from None
    except Exception as error:
        _log.exception("the executor of database %s leaked an exception", prepared.opened.config.name)
        raise DialectError(
            f"The plugin of the dialect {prepared.opened.dialect.name!r} failed with {type(error).__name__}.",
            suggestion="Report it to the plugin's authors; the log has the details.",
        ) from None


async def _explained(error: DragomanError, prepared: _Prepared) -> DragomanError:
    prepared.opened.noticed(error)
    return await explained(error, prepared.statement, prepared.opened.catalog)


async def _check_translation(prepared: _Prepared) -> None:
    """Have the target database compile a translation before it runs: sqlglot proposes, the database decides."""
    dialect = prepared.opened.dialect
    if Capability.DESCRIBE not in dialect.capabilities:
        return
    try:
        await _run(prepared, prepared.opened.executor.prepare(prepared.request))
    except (InvalidSql, Unsupported) as error:
        raise Unsupported(
            f"The translation does not run on {dialect.name}: {error.message}",
            suggestion=f"Write the query in {dialect.name}'s own SQL.",
            context={"sql": prepared.statement.text},
        ) from None


def _configuration(source: Source) -> Configuration:
    if isinstance(source, Configuration):
        return source
    if source is None or isinstance(source, str | Path):
        return load(source)
    databases = {database.name: database for database in source}
    if len(databases) != len(source):
        raise ConfigurationError("Two databases have one name.", suggestion="Give each a name of its own.")
    return Configuration(databases=databases)


def _check_explain(opened: OpenDatabase, options: ExplainOptions) -> None:
    capabilities = opened.dialect.capabilities
    if Capability.EXPLAIN not in capabilities:
        raise Unsupported(f"{opened.dialect.name} cannot explain queries.", suggestion="Run it with a small limit.")
    if options.analyze and Capability.ANALYZE not in capabilities:
        raise Unsupported(f"{opened.dialect.name} cannot measure a plan.", suggestion="Leave analyze out.")


def _in_format(plan: Plan, options: ExplainOptions) -> Plan:
    if options.format != "yaml":
        return plan
    import yaml  # only for who wants it

    return replace(plan, plan=yaml.safe_dump(plan.plan, sort_keys=False, allow_unicode=True), format="yaml")
