"""`Gateway`: many databases behind one object. The MCP server and the command line are two thin layers over it."""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from dragoman.access import Access, Misfit, Quotas, Roles, act_for, delegations, narrow
from dragoman.cleanup import CLEANUP, finish
from dragoman.config import Configuration, load
from dragoman.dialect import Capability, Dialect
from dragoman.errors import (
    ConfigurationError,
    DialectError,
    DragomanError,
    InvalidSql,
    ParameterError,
    UnknownDatabase,
    Unsupported,
)
from dragoman.gateway.asking import AskAnswer, Asker, Asking, Question
from dragoman.gateway.calls import CallRecord, Calls
from dragoman.gateway.emptiness import NOTHING, why_empty
from dragoman.gateway.granted import misfitting
from dragoman.gateway.keeping import Keeper
from dragoman.gateway.kept_database import NAME as RESULTS
from dragoman.gateway.offload import Offload
from dragoman.gateway.opened import OpenDatabase
from dragoman.gateway.queries import TOOL, Query
from dragoman.gateway.recording import Recorder, gauges
from dragoman.gateway.reloading import changed_keys, changed_names, check_rest
from dragoman.gateway.sampling import sample_sql
from dragoman.gateway.sinks import Sinks
from dragoman.gateway.watchdog import Watchdog
from dragoman.model import LOCAL, Acting, Database, ExplainOptions, Limits, Plan, Principal, Result, RowStream
from dragoman.plugins import Plugins
from dragoman.plugins.policies import Restricting
from dragoman.words import nearest

Source = Configuration | Sequence[Database] | str | Path | None
PLAIN = ExplainOptions()
SETS_OF_ROLES = 64
"""The number of role and restriction sets whose view of the databases is kept.

The least recently used is dropped first.
"""
Restricted = tuple[Restricting, ...]
Seen = tuple[tuple[str, ...] | None, tuple[tuple[str, Restricted], ...], tuple[tuple[str, Acting | None], ...]]
"""What determines a caller's view: roles, what policies leave, and the identities under which databases act."""
PATIENCE = 10.0
"""Seconds that a database may take at the start to check whether roles match it."""
_log = logging.getLogger(__name__)


class StatementOptions(TypedDict, total=False):
    """Options of a statement.

    - `timeout`: seconds, at most the database's.
    - `from_dialect`: the SQL that it is written in, if that is not the database's.
    - `principal`: the caller.
    - `tool`: the tool that the caller uses.
    """

    timeout: float | None
    from_dialect: str | None
    principal: Principal
    tool: str


class QueryOptions(StatementOptions, total=False):
    """Options of a query: `limit` rows of its result, at most the database's; `max_bytes` of JSON.

    `ceiling`: limits that replace the database's and these, for results that are kept or written to a file.
    """

    limit: int | None
    max_bytes: int | None
    ceiling: Limits | None


class Gateway:
    """Many databases. `names`: their configured names. `default`: the database of calls that name none, or None.

    Open it with `Gateway.open`. All methods raise only `DragomanError`s; `QueryOptions` describes their options.
    `database` is a name, or None for the default. Parameters are JSON values for `$1`.. or `?`. Cancelling a call ends
    its work in the database before the cancellation goes on.
    """

    def __init__(self, configuration: Configuration, plugins: Plugins) -> None:
        self.configuration = configuration
        self.plugins = plugins
        self.names = tuple(configuration.databases)
        self.default = _default(configuration)
        plugins.enforce(configuration.policies)
        self.stopping = False
        self.version = 1
        self.roles = Roles(configuration)
        self.has_roles = bool(self.roles)
        self._delegations = delegations(configuration)
        self.varies = self.has_roles or plugins.restrict or bool(self._delegations)
        self.own: Mapping[str, OpenDatabase] = {}
        self._whole = self
        self._opened: dict[str, OpenDatabase] = {}
        self._replaced: dict[asyncio.Task[None], list[OpenDatabase | Sinks]] = {}
        self._access: Access | None = None
        self._restricting: Mapping[str, Restricted] | None = None
        self._granted: dict[str, OpenDatabase] = {}
        self._acting: Mapping[str, Acting | None] = {}
        self._seen: OrderedDict[Seen, Gateway] = OrderedDict()
        self._watchdog = Watchdog(plugins.culprit)
        self._offload = Offload()
        self._recorder = Recorder(
            self._sinks(configuration),
            configuration.server.slow_query,
            lambda principal: self.roles.of(principal).names,
        )
        self._calls = Calls(configuration.server.max_concurrent, self._watchdog, self._recorder.record)
        self._calls.quotas = self._quotas()
        self.kept = Keeper(self, configuration.results)
        self._asking = Asking(configuration.model, configuration.server.prompts_dir)

    @classmethod
    @asynccontextmanager
    async def open(cls, source: Source = None, *, again: bool = False) -> AsyncGenerator[Gateway]:
        """Open the databases of a configuration, of a file, or the given ones; None: of the usual configuration.

        Nothing connects before its first use, unless there are roles, which must match the contents of the databases.
        Raises `ConfigurationError`, and `DialectError` for a broken policy.

        `again`: in place of a process that ended. Databases that roles have stopped to match are closed, and the
        others are served.
        """
        async with cls(_configuration(source), Plugins.discover()).run(again=again) as gateway:
            yield gateway

    @asynccontextmanager
    async def run(self, *, again: bool = False) -> AsyncGenerator[Gateway]:
        """Keep the gateway open inside the block, as `open` does."""
        self._check()
        try:
            await self._recorder.open()
            if not again:
                await self._check_roles()
            yield self
        finally:
            # Parts that do not end are abandoned after `CLEANUP` seconds each.
            await finish(self._close(), 2 * CLEANUP)

    def _check(self) -> None:
        """Raise `ConfigurationError` for problems that prevent a start.

        A broken dialect stops only its own databases.
        """
        for database in self.configuration.databases.values():
            try:
                self.plugins.prepare(database)
                if database.knowledge.files and database.identity == "gateway":
                    self.database(database.name).written.begin()
            except DialectError as error:
                _log.warning("the database %s cannot be used: %s %s", database.name, error.message, error.suggestion)

    async def _check_roles(self) -> None:
        """Raise `ConfigurationError` for roles that do not match a database.

        A database that is down is checked later.
        """
        await self._check_fit(self.roles, self.configuration, self._opened)

    async def _check_fit(self, roles: Roles, configuration: Configuration, opened: Mapping[str, OpenDatabase]) -> None:
        if wrong := list(self._wrong_delegations(configuration)):
            raise misfitting(wrong, configuration)
        granted = [name for name in configuration.databases if roles.everything(name)]
        found = await asyncio.gather(*(self._misfits(name, roles, opened.get(name)) for name in granted))
        if problems := [each for problems in found for each in problems]:
            raise misfitting(problems, configuration)

    async def _misfits(self, name: str, roles: Roles, opened: OpenDatabase | None) -> list[Misfit]:
        try:
            opened = opened or self.database(name)
            grants, found = roles.everything(name), list[Misfit]()
            async with asyncio.timeout(PATIENCE):
                for face in opened.identity_views():
                    found += await face.fitting(grants).problems(await face.catalog.snapshot())
            return found
        except TimeoutError:
            _log.warning(
                "roles were not checked on the database %s within %g seconds; a later call does", name, PATIENCE
            )
            return []
        except DragomanError:
            return []

    def _wrong_delegations(self, configuration: Configuration) -> Iterator[Misfit]:
        """Yield wrong settings of databases whose engine applies the rights of callers."""
        for name, delegation in delegations(configuration).items():
            with suppress(DialectError):  # a broken dialect stops its own databases
                dialect = self.plugins.load(configuration.databases[name].dialect).dialect
                yield from delegation.problems(dialect.name, dialect.identities, tuple(configuration.roles))

    def _quotas(self) -> Quotas | None:
        """Return the counter of callers' use, if any role sets a quota. Earlier counts are kept."""
        if not self.roles.have_quotas:
            return None
        return self._calls.quotas or Quotas(lambda principal: self.roles.quota(principal))

    def _sinks(self, configuration: Configuration) -> Sinks:
        audit = configuration.audit
        return Sinks(audit, self.plugins.audit_store(audit.database) if audit.database is not None else None)

    async def reload(
        self, configuration: Configuration, keep: Callable[[], Awaitable[None]] | None = None
    ) -> tuple[str, ...]:
        """Apply another configuration; return the names of the databases added, changed or removed.

        A database stays open if neither its settings nor its knowledge files have changed. Running calls keep what they
        began with; what was replaced is closed after them.
        `keep` is called when everything was checked, and before it is applied. If this raises `ConfigurationError` or
        `DialectError`, nothing has changed.
        """
        before, after = self.configuration.databases, configuration.databases
        check_rest(self.configuration, configuration)
        other = tuple(name for name, each in self._opened.items() if each.has_other_files)
        keys = changed_keys(self.configuration, configuration, other)
        changed, roles = tuple(dict.fromkeys((*changed_names(before, after), *other))), Roles(configuration)
        sinks = self._sinks(configuration) if configuration.audit != self.configuration.audit else None
        fresh: dict[str, OpenDatabase] = {}
        try:
            if sinks is not None:
                await sinks.open()
            fresh = await self._open_all({name: after[name] for name in changed if name in after}, roles)
            kept = {name: each for name, each in self._opened.items() if name not in changed}
            await self._check_fit(roles, configuration, kept | fresh)
            if keep is not None:
                await keep()
        except BaseException:
            await asyncio.gather(*(each.aclose() for each in (*fresh.values(), *([sinks] if sinks else ()))))
            raise
        replaced = [self._opened.pop(name) for name in changed if name in self._opened]
        self._opened |= fresh
        self._take(configuration, roles)
        former = [self._recorder.change(sinks)] if sinks is not None else []
        self._recorder.note("reload", f"version {self.version}: {', '.join(keys) or 'nothing'} changed")
        self._retire_later([*replaced, *former])
        return changed

    def _retire_later(self, replaced: list[OpenDatabase | Sinks]) -> None:
        """Close what was replaced once the present calls have ended."""
        task = asyncio.create_task(self._retire(replaced))
        self._replaced[task] = replaced
        task.add_done_callback(lambda done: self._replaced.pop(done, None))

    def _take(self, configuration: Configuration, roles: Roles) -> None:
        """Apply a checked configuration."""
        self.configuration, self.roles, self.has_roles = configuration, roles, bool(roles)
        self._delegations = delegations(configuration)
        self.varies = self.varies or self.has_roles or bool(self._delegations)
        self.names, self.default = tuple(configuration.databases), _default(configuration)
        self._calls.quotas = self._quotas()
        for name, opened in self._opened.items():
            opened.take(roles.everything(name))
        self._seen.clear()
        self.version += 1

    async def _open_all(self, databases: Mapping[str, Database], roles: Roles) -> dict[str, OpenDatabase]:
        """Open all of these databases, or none."""
        opened: dict[str, OpenDatabase] = {}
        try:
            for name, database in databases.items():
                opened[name] = self.make(database, roles)
        except DragomanError:
            await asyncio.gather(*(each.aclose() for each in opened.values()))
            raise
        return opened

    async def _retire(self, replaced: Sequence[OpenDatabase | Sinks]) -> None:
        await self._calls.drain()
        await asyncio.gather(*(opened.aclose() for opened in replaced))

    async def _close(self) -> None:
        await self.kept.aclose()
        await self._asking.aclose()
        replaced = [opened for each in self._replaced.values() for opened in each]
        for task in tuple(self._replaced):
            task.cancel()
        opened = (*self._opened.values(), *replaced)
        await asyncio.gather(self._offload.aclose(), *(each.aclose() for each in opened))
        self._watchdog.close()
        await self._recorder.aclose()

    async def announce_change(self, detail: str) -> None:
        """Record in the audit a change that a caller makes in the gateway's own files, before it is made.

        Raises `InternalError` if the audit requires a record that cannot be written.
        """
        await self._recorder.announce("change", detail)

    def stop(self) -> None:
        """Report that the gateway is stopping, so that load balancers send no more calls. Calls are still answered."""
        self.stopping = True

    def metrics(self) -> str:
        """Return the counters since the start and the present state, in Prometheus's text format."""
        return self._recorder.metrics.text(gauges(self._opened, self.version))

    def database(self, name: str | None = None) -> OpenDatabase:
        """Return a database. Opens it at the first call.

        Raises `UnknownDatabase`, `DialectError`, `ConfigurationError`.
        """
        name = self.default if name is None else name
        known = self._opened if self._restricting is None else self._granted
        opened = None if name is None else known.get(name)
        return opened or self._open(self.resolve_name(name))

    def _open(self, name: str) -> OpenDatabase:
        if name in self.own:
            return self.own[name]
        if self._restricting is not None:
            access = None if self._access is None else self._access.databases[name]
            opened, acting = self._whole.database(name), self._acting.get(name)
            opened = opened if acting is None else opened.act_as(acting)
            self._granted[name] = opened.restrict(access, self._restricting.get(name, ()))
            return self._granted[name]
        opened = self.make(self.configuration.databases[name], self.roles)
        self._opened[name] = opened
        return opened

    def make(self, database: Database, roles: Roles) -> OpenDatabase:
        """Return a database with the objects that serve it. Raises `DialectError` and `ConfigurationError`."""
        waiting = 2 * self.configuration.server.max_concurrent  # those who ran, and those who waited before
        grants, state = roles.everything(database.name), self.configuration.server.state_dir
        return OpenDatabase(self.plugins, database, waiting, self._offload, grants, state)

    def for_principal(self, principal: Principal) -> Gateway:
        """Return the gateway as a principal sees it, without what roles or policies hide.

        It includes the principal's kept results. Raises `DialectError` for a policy that does not answer.
        """
        if not self.varies or self.own or self._restricting is not None:
            return self
        seen = self._restrict_to(principal)
        return self.kept.databases.add_to(seen, principal) if self.kept.databases.serves(principal) else seen

    def _restrict_to(self, principal: Principal) -> Gateway:
        access = self.roles.of(principal) if self.has_roles else None
        restricting = self._restrict(principal, access) if self.plugins.restrict else {}
        acting = act_for(self._delegations, principal, access.names if access else ())
        if access is None and not restricting and not acting:
            return self
        key = access.names if access else None, tuple(restricting.items()), tuple(acting.items())
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = self._narrow(access, restricting, acting)
            if len(self._seen) > SETS_OF_ROLES:
                self._seen.popitem(last=False)
                self._close_unused()
        self._seen.move_to_end(key)
        return seen

    def _close_unused(self) -> None:
        """Close the catalogs of identities for which no database has acted for a long time."""
        used = {each for _, _, acting in self._seen for each in acting}
        unused: list[OpenDatabase | Sinks] = []
        for name, opened in self._opened.items():
            unused += opened.forget({acting for known, acting in used if known == name and acting})
        if unused:
            self._retire_later(unused)

    def _restrict(self, principal: Principal, access: Access | None) -> dict[str, Restricted]:
        """Return what the policies leave a principal of the databases that they restrict."""
        names = self.configuration.databases if access is None else access.databases
        found = {
            name: self.plugins.restricting(database, principal)
            for name, database in self.configuration.databases.items()
            if name in names
        }
        return {name: each for name, each in found.items() if each}

    def _narrow(
        self, access: Access | None, restricting: Mapping[str, Restricted], acting: Mapping[str, Acting | None]
    ) -> Gateway:
        seen = copy.copy(self)
        names = self.configuration.databases if access is None else access.databases
        mine = [name for name in self.configuration.databases if name in names and acting.get(name, True)]
        if access is not None or len(mine) < len(self.names):
            seen.configuration = configuration = narrow(self.configuration, mine)
            seen.names = tuple(configuration.databases)
            seen.default = _default(configuration)
        seen._access, seen._restricting, seen._acting = access, restricting, acting
        seen._granted = {}
        return seen

    @property
    def access(self) -> Access | None:
        """Return what the viewer of this gateway may do; None: everything that is configured."""
        return self._access

    @property
    def is_restricted(self) -> bool:
        """Return whether roles or policies hide something from the viewer of this gateway."""
        return self._access is not None or bool(self._restricting) or bool(self._acting)

    @property
    def differs(self) -> bool:
        """Return whether callers may see different databases."""
        return self.has_roles or bool(self._delegations)

    @property
    def acting(self) -> Mapping[str, Acting | None]:
        """By database, the identity that acts for the viewer of this gateway.

        Only databases whose engine applies the rights of callers are included.
        """
        return self._acting

    def resolve_name(self, name: str | None) -> str:
        """Return the name of the database that a call means.

        Raises `UnknownDatabase`, and `ParameterError` for none.
        """
        chosen = self.default if name is None else name
        if chosen is None and not self.names:
            raise UnknownDatabase(
                "No database is open to you.", suggestion="Ask the server's administrator for a role."
            )
        if chosen is None:
            raise ParameterError(
                "Several databases are configured: say which one is meant.",
                suggestion=f"Pass database, one of: {', '.join(self.names)}.",
            )
        if chosen not in self.configuration.databases:
            near = nearest(chosen, self.names)
            known = ", ".join(self.names) or "none"
            raise UnknownDatabase(
                f"There is no database {chosen!r}.",
                suggestion=f"Did you mean {near[0]!r}?" if near else f"Configured are: {known}.",
            )
        return chosen

    def call(
        self,
        tool: str,
        principal: Principal = LOCAL,
        database: str | None = None,
        *,
        whole: bool = True,
        sql: str | None = None,
    ) -> AbstractAsyncContextManager[CallRecord]:
        """Run a call, or a part of the current call; every method below is one. `sql`: its statement, if it has one.

        Only this method bounds how many calls run at once, writes their lines in the log and records them. With
        `whole`, everything that runs in this context meanwhile is a part of it. Raises `Busy` and `QuotaExceeded`.
        """
        name = self.default if database is None else database
        # No record shows a name that a caller made up.
        if name in self.configuration.databases and name not in self.own:
            return self._calls.call(tool, principal, name, whole=whole)
        if self.varies and name == RESULTS and self.kept.databases.serves(principal):
            call = self._calls.call(tool, principal, name, whole=whole)
            return self.kept.databases.call(call, principal, tool, sql)
        return self._calls.call(tool, principal, None, whole=whole)

    async def query(
        self, database: str | None, sql: str, params: Sequence[Any] = (), **how: Unpack[QueryOptions]
    ) -> Result:
        """Run one query and return its rows, exact and within the limits."""
        async with self.call(how.get("tool", TOOL), how.get("principal", LOCAL), database, sql=sql) as record:
            began = time.perf_counter()
            record.sql, record.params = sql, params
            seen = self.for_principal(how.get("principal", LOCAL)) if self.varies else self
            opened = seen.database(database)
            query = await Query.prepare(opened, sql, params, **how)
            if opened.config.name == RESULTS:
                query = self.kept.note_parts(query)
            query.note(record)
            reuse = self.configuration.results.reuse
            rows = await self.kept.reuse(query, query.request.principal, reuse) if reuse else None
            if rows is None:
                async with query.running(record) as query:
                    rows = await query.rows(record)
            empty = rows.row_count == 0 or (rows.rows_json in NOTHING and not rows.truncated)
            reason = await why_empty(query, rows, record) if empty else ()
            record.rows += rows.row_count  # a call may answer the rows of several queries
            record.bytes += len(rows.rows_json)
            return Result(
                columns=rows.columns,
                rows_json=rows.rows_json,
                row_count=rows.row_count,
                truncated=rows.truncated,
                notices=(*query.notices, *rows.notices, *reason),
                sql=query.sql,
                elapsed_ms=(time.perf_counter() - began) * 1000,
                query_hash=query.statement.hash,
            )

    @asynccontextmanager
    async def stream(
        self, database: str | None, sql: str, params: Sequence[Any] = (), **how: Unpack[QueryOptions]
    ) -> AsyncGenerator[RowStream]:
        """Run one query and yield its rows as they arrive, exact and within the limits. Leaving ends it.

        Batches are `Encoded`. Once they are exhausted, columns, notices and `truncated` are final.
        """
        tool, principal = how.get("tool", TOOL), how.get("principal", LOCAL)
        async with self.call(tool, principal, database, whole=False, sql=sql) as record:
            record.sql, record.params = sql, params
            opened = self.for_principal(how.get("principal", LOCAL)).database(database)
            query = await Query.prepare(opened, sql, params, **how)
            if opened.config.name == RESULTS:
                query = self.kept.note_parts(query)
            query.note(record)
            async with query.running(record) as current, current.stream(record) as stream:
                yield stream

    async def explain(
        self,
        database: str | None,
        sql: str,
        params: Sequence[Any] = (),
        *,
        options: ExplainOptions = PLAIN,
        max_cost: float | None = None,
        **how: Unpack[StatementOptions],
    ) -> Plan:
        """Return the plan of a query. `options.analyze` runs it, in the same read-only session.

        Raises `CostExceeded` for a query that the database expects to cost more than `max_cost`, whatever of its plan
        the caller may see.
        """
        how.setdefault("tool", "explain_query")
        async with self.call(how.get("tool", TOOL), how.get("principal", LOCAL), database, sql=sql) as record:
            record.sql, record.params = sql, params
            opened = self.for_principal(how.get("principal", LOCAL)).database(database)
            _check_explain(opened.dialect, options)
            query = await Query.prepare(opened, sql, params, **how)
            query.note(record)
            if query.statement.first_word == "explain":
                raise InvalidSql("A plan of EXPLAIN itself was asked for.", suggestion="Send the query alone.")
            # YAML is made from JSON here, so that no dialect needs to support it.
            async with query.running(record) as query:
                asked = replace(options, format="json") if options.format == "yaml" else options
                plan = await query.plan(asked, max_cost)
        plan = await asyncio.to_thread(_as_yaml, plan) if options.format == "yaml" else plan
        return replace(plan, notices=(*query.notices, *plan.notices), sql=query.sql)

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
        """Return a few rows of a table. `where` is one boolean expression, which is judged like any query."""
        tool = "get_sample_rows"
        async with self.call(tool, principal, database):
            opened = self.for_principal(principal).database(database)
            found = await opened.catalog.find(table, schema)
            if columns is None and await opened.is_reduced(found.relation):
                columns = [column.name for column in found.columns]
            # In a thread: the expression may be as long as a statement.
            sql = await asyncio.to_thread(
                sample_sql, found, opened.dialect, columns=columns, where=where, randomize=randomize, limit=limit
            )
            result = await self.query(database, sql, limit=limit, principal=principal, tool=tool)
        # That the table has more rows than the sample is no news.
        by_rows = result.truncated is not None and result.truncated.reason == "rows"
        return replace(result, truncated=None) if by_rows else result

    async def ask(self, question: Question | str, database: str | None = None) -> AskAnswer:
        """Answer a question in plain words with the configured model. `database`: None lets the model choose one.

        Raises `AmbiguousQuery`, `ModelError`, `QuotaExceeded`, and `ConfigurationError` without a model.
        """
        asked = Question(text=question, database=database) if isinstance(question, str) else question
        if asked.database is not None:
            self.for_principal(asked.principal).resolve_name(asked.database)
        async with self.call("ask", asked.principal, asked.database) as record:
            record.database = asked.database  # if the model chooses one, it is not known yet
            try:
                answer = await self.asker().ask(self.for_principal(asked.principal), record, asked)
            finally:
                record.rows = record.bytes = 0  # of queries that were tried; their rows are not answered
            if answer.result is not None:
                record.rows, record.bytes = answer.result.row_count, len(answer.result.rows_json)
            return answer

    def asker(self) -> Asker:
        """Return the asker. Raises `ConfigurationError` without a model."""
        return self._asking.load()


def _default(configuration: Configuration) -> str | None:
    names = tuple(configuration.databases)
    return configuration.default_database or (names[0] if len(names) == 1 else None)


def _configuration(source: Source) -> Configuration:
    if isinstance(source, Configuration):
        return source
    if source is None or isinstance(source, str | Path):
        return load(source)
    databases = {database.name: database for database in source}
    if len(databases) != len(source):
        raise ConfigurationError("Two databases have one name.", suggestion="Give each a name of its own.")
    return Configuration(databases=databases)


def _check_explain(dialect: Dialect, options: ExplainOptions) -> None:
    if Capability.EXPLAIN not in dialect.capabilities:
        raise Unsupported(f"{dialect.name} cannot explain queries.", suggestion="Run it with a small limit.")
    if options.analyze and Capability.ANALYZE not in dialect.capabilities:
        raise Unsupported(f"{dialect.name} cannot measure a plan.", suggestion="Leave analyze out.")


def _as_yaml(plan: Plan) -> Plan:
    import yaml  # only if it is needed

    text = None if plan.plan is None else yaml.safe_dump(plan.plan, sort_keys=False, allow_unicode=True)
    return replace(plan, plan=text, format="yaml")
