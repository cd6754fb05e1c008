"""A configured database with all objects that serve it. Opening does no I/O; the first use connects."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.access import DatabaseAccess, Decider, Delegation, Grants, Misfit, ReadGrant, Restrictions
from dragoman.catalog import (
    Catalog,
    GrantedCatalog,
    GrantedPlaces,
    Insight,
    Places,
    Snapshot,
    Step,
    WholeCatalog,
    place_database,
)
from dragoman.catalog.behind import VIEWS
from dragoman.cleanup import CLEANUP
from dragoman.cooperative import without_blocking
from dragoman.dialect import Dialect, Executor, Inspector, Report, Validator
from dragoman.errors import DragomanError, ParameterError
from dragoman.gateway.behind_views import ForeignTables, StoredFunctions
from dragoman.gateway.breaker import Breaker
from dragoman.gateway.calls import Limiter
from dragoman.gateway.checks import OwnChecks
from dragoman.gateway.confining import Confiner
from dragoman.gateway.delegating import DelegatedInspector, guard
from dragoman.gateway.doctor import Watch, find_openings, worst_first
from dragoman.gateway.estimates import Estimates
from dragoman.gateway.failures import Named, Source
from dragoman.gateway.granted import Granting, RolesFit, limit
from dragoman.gateway.guard import GuardedInspector
from dragoman.gateway.health import Health, Status
from dragoman.gateway.hints import advise
from dragoman.gateway.judge import Judge
from dragoman.gateway.offload import Offload
from dragoman.gateway.resolving import Resolver
from dragoman.gateway.tasks import Work
from dragoman.gateway.trying import PartsOfRoles, try_parts
from dragoman.gateway.written import Written
from dragoman.knowledge import KeptInspector, Knowledge, KnowledgeFile
from dragoman.meaning import DescribedInspector, read_meaning, stamps
from dragoman.model import (
    LOCAL,
    Acting,
    ConfinedRelation,
    Database,
    Finding,
    Limits,
    Principal,
    Relation,
    Request,
    Table,
)
from dragoman.plugins import Plugins
from dragoman.plugins.owned import Parts
from dragoman.plugins.policies import Restricting
from dragoman.results import Collector
from dragoman.validators import ReadOnly

if TYPE_CHECKING:
    from dragoman.sql.translate import Translation

CheckCatalog = Callable[[Snapshot], Awaitable[None]]
TRANSLATING = 4
"""How many times as long a translation may take as parsing."""
_log = logging.getLogger(__name__)


class Closing(Protocol):
    """Something that is closed with a database."""

    async def aclose(self) -> None:
        """Close it."""


class OpenDatabase:
    """A database, its dialect, executor, catalog and judge. Raises `DialectError` or `ConfigurationError` when created.

    - `written`: what files say about it.
    - `vetoes_values`: a policy changes or refuses what queries return.
    - `limits`: the limits of a call that sets none of its own.
    - `running`: statements that run now.
    - `whole`: the database itself, if this is what some roles see of it.
    - `role_rows`: the most rows of one answer that those roles allow.
    - `max_cost`: the highest estimated cost of a query that they allow.
    - `confiner`: confines statements to parts of relations, if the dialect can.
    """

    config: Database
    dialect: Dialect
    executor: Executor
    inspector: Inspector
    places: Places
    catalog: Catalog
    knowledge: Knowledge
    written: Written
    vetoes_values: bool
    judge: Judge
    work: Work
    health: Health
    watch: Watch
    source: Source
    limits: Limits
    limiter: Limiter
    running: int
    whole: OpenDatabase
    role_rows: int | None
    max_cost: float | None
    confiner: Confiner | None
    delegation: Delegation | None
    validators: Sequence[Validator]
    fit: RolesFit

    def __init__(
        self,
        plugins: Plugins,
        database: Database,
        waiting: int,
        offload: Offload,
        grants: Sequence[ReadGrant] = (),
        state: Path | None = None,
    ) -> None:
        self._plugins = plugins
        self._offload = offload
        self.running = 0
        self.whole = self
        self.role_rows = self.max_cost = None
        self._tried: RolesFit | None = None
        self.dialect = plugins.load(database.dialect).dialect
        self.config = place_database(plugins.prepare(database), self.dialect)
        self.delegation = Delegation.of(self.config)
        if self.delegation is not None:
            self.config = replace(
                self.config, knowledge=replace(self.config.knowledge, values="off", infer_joins=False)
            )
        self._faces: dict[Acting, OpenDatabase] = {}
        self._stamps = stamps(self.config)  # before they are read: a later change is noticed
        meaning = read_meaning(self.config)
        examples = () if self.delegation else meaning.examples  # an answer of one caller does not hold for everybody
        self.written = Written(replace(meaning, examples=examples), self._run_example)
        self.limits = _limits(self.config)
        self.limiter = Limiter(f"{database.name} runs statements", self.config.pool_size, waiting)
        self.work = Work()
        parts = plugins.open(self.config)
        self.executor = guard(parts.executor, self.delegation)
        self._own_executor = parts.own_executor
        self._owned = parts.owned
        self._described = meaning
        self.source = Source(plugins, self.config)
        self._breaker = Breaker(database.name, self._find_down)
        self._grants = grants
        self._serve(parts, None if self.delegation else state)
        self.fit = self.fitting(grants)
        self.watch = Watch(database.name, self.doctor)
        self.health = Health(self.inspector.version, self.watch.begin, self._breaker)

    def _serve(self, parts: Parts, state: Path | None) -> None:
        """Create the catalog and the judge."""
        self.inspector: Inspector = self._guard(parts.inspector)
        if self.delegation is not None:
            self.inspector = DelegatedInspector(self.inspector)
        # policies may change what they hide, so then nothing is kept
        if state is not None and parts.inspector is parts.own_inspector:
            self.inspector = KeptInspector(self.inspector, state, self.config)
        if self._described.tables:
            self.inspector = DescribedInspector(self.inspector, self._described, self.config.name)
        self.places = Places(self.config, self.dialect, hides=parts.hides)
        self.catalog = self._own_catalog = WholeCatalog(self.inspector, self.dialect, self.config, places=self.places)
        self._resolver = Resolver(self.dialect, self.config, self.catalog, self._offload)
        self.knowledge = Knowledge(
            self.inspector,
            self.dialect,
            self.config,
            self.catalog,
            vetoed=parts.vetoes_values,
            read=self._read,
            file=None if state is None else KnowledgeFile(state, self.config),
        )
        if self._grants:
            self.catalog.watch()
        self.vetoes_values = parts.vetoes_values
        estimates = () if self.delegation is None else (Estimates(self.config),)
        self._own_validators = parts.own_validators
        self.validators = [
            ReadOnly(self.dialect, self.config),
            *estimates,
            *self._behind_views(parts),
            *parts.validators,
        ]
        self.judge = Judge(self.dialect, self.config, self.catalog, self.validators, self.source, self._offload)
        self.confiner = self._confine(self.catalog) if self.places.narrowed else None

    def act_as(self, acting: Acting) -> OpenDatabase:
        """Return the database as the engine shows it to this identity. The executor is shared."""
        face = self._faces.get(acting)
        if face is None:
            face = copy.copy(self)
            face.config = replace(self.config, acting=acting)
            # whom the server refuses keeps nobody else from it
            face._breaker = Breaker(self.config.name, face._find_down)
            parts = self._plugins.open(face.config, self._own_executor)
            face._owned = [each for each in parts.owned if isinstance(each, Inspector)]
            face._serve(parts, None)
            face.health = Health(face.inspector.version, partial(self.health.saw, None), face._breaker)
            face._tried = None
            face.fit = face.fitting(self._grants)
            self._faces[acting] = face
        return face

    def forget(self, acting: Container[Acting]) -> list[OpenDatabase]:
        """Return the databases of other identities, to be closed once nobody uses them."""
        return [self._faces.pop(each) for each in tuple(self._faces) if each not in acting]

    def identity_views(self) -> tuple[OpenDatabase, ...]:
        """Return the database as each configured identity sees it. Roles must match all of them."""
        if self.delegation is None or self.config.identity == "user":
            return (self,)
        return tuple(self.act_as(acting) for acting in self.delegation.known)

    def acting(self, principal: Principal) -> Acting | None:
        """Return the identity under which a caller's statement runs. None: the gateway's. Raises `PermissionDenied`."""
        if self.delegation is None or self.config.acting is None:
            return None
        return self.delegation.complete(self.config.acting, principal)

    async def _find_down(self, wait: float) -> bool:
        return await self.health.find_down(wait)

    def _guard(self, inspector: Inspector) -> GuardedInspector:
        return GuardedInspector(inspector, self.config, self.work, self.source, self._breaker)

    async def _run_example(self, sql: str) -> None:
        """Judge and run an example query from a file. Raises its error."""
        statement = await self.judge.judge(sql, "execute_query", LOCAL)
        await self._collect(statement.text, self.config.timeout, 1)

    async def _read(self, sql: str, seconds: float) -> list[list[Any]]:
        """Return the rows of a statement that the gateway itself wrote."""
        return (await self._collect(sql, seconds))[1]

    async def _collect(
        self, sql: str, seconds: float, rows_at_most: int = Limits().max_rows
    ) -> tuple[list[str], list[list[Any]]]:
        """Return the names of the columns, and the rows, of a statement that no caller sent."""
        request = Request(statement=sql, limits=Limits(max_rows=rows_at_most, timeout=seconds))

        async def rows() -> tuple[list[str], list[list[Any]]]:
            async with self.executor.open(request) as stream:
                found = await Collector().collect(stream, request.limits)
            answer: list[list[Any]] = json.loads(found.rows_json)
            return [column.name for column in found.columns], answer

        await self.limiter.acquire(None, seconds)
        try:
            with self.source.ours("Executor.open"):
                return await self.work.do(seconds, rows)
        finally:
            self.limiter.turns.give_back(None)

    def _behind_views(self, parts: Parts) -> Iterator[Validator]:
        """Yield the checks of what views read and call, if any must be refused.

        They use the dialect's own, unrestricted catalog.
        """
        foreign = self.dialect.foreign_tables and not self.config.allow_foreign_tables
        if not (foreign or self.dialect.stored_functions):
            return
        everything = replace(self.config, schemas=())
        if parts.inspector is not parts.own_inspector or everything != self.config:
            self._own_catalog = WholeCatalog(self._guard(parts.own_inspector), self.dialect, everything)
        resolver = Resolver(self.dialect, everything, self._own_catalog, self._offload)
        if foreign:
            yield ForeignTables(resolver, self._own_catalog, self.config)
        if self.dialect.stored_functions:
            self._own_catalog.watch()  # a view may be replaced by one that calls a function
            yield StoredFunctions(resolver, self._own_catalog, self.config)

    def fitting(self, grants: Sequence[ReadGrant]) -> RolesFit:
        """Return the check whether grants match this database."""
        if self.delegation is not None:
            grants = self.delegation.fitting(grants, self.config.acting)
        if self._tried is None or self._tried.grants != tuple(grants):  # the same grants need no second check
            self._tried = RolesFit(grants, self.dialect, self.config, self._try_parts)
        return self._tried

    @property
    def has_other_files(self) -> bool:
        """Whether the knowledge files have changed since they were read."""
        return stamps(self.config) != self._stamps

    def take(self, grants: Sequence[ReadGrant]) -> None:
        """Apply other grants from now on."""
        self._grants = grants
        for each in (self, *self._faces.values()):
            each.fit = each.fitting(grants)

    async def _check_roles(self, snapshot: Snapshot) -> None:
        """Raise `PermissionDenied` if roles do not match.

        If identities see different things, check what the gateway sees.
        """
        if self.config.identity == "user":
            snapshot = snapshot if self.whole.fit.fits else await self.whole.catalog.snapshot()
            return await self.whole.fit.check(snapshot)
        await self.fit.check(snapshot)

    async def _try_parts(
        self, roles: Sequence[Sequence[ReadGrant]], snapshot: Snapshot, compiled: set[ConfinedRelation]
    ) -> Sequence[Misfit]:
        """Return which filters and masks of roles, each with its grants, the database cannot compile."""
        confiner = self.restrict(DatabaseAccess(roles=(), grants=()), check=_take).confiner
        if confiner is None:
            return ()
        resolve = self._resolver.views.relations
        parts = await asyncio.to_thread(PartsOfRoles, snapshot, self.dialect, self.config, resolve)
        return await try_parts(await parts.find(roles), confiner, self._compile, compiled)

    async def _compile(self, request: Request) -> None:
        """Have the database check a statement of the gateway's own."""
        if self.delegation is not None:
            request = replace(request, acting=self.config.acting or Acting())
        with self.source.ours("Executor.prepare"):
            await self.work.do(self.config.timeout, self._own_executor.prepare, request)

    async def compiles(self, relations: Named) -> bool:
        """Return whether the database compiles a query of each relation: a view may name what is gone."""
        try:
            for relation in await relations():
                await self._compile(Request(statement=f"SELECT 1 FROM {self.dialect.qualify(relation)}"))
        except DragomanError:
            return False
        return True

    def _value_of(self, name: str, principal: Principal) -> Any:
        """Return a value of a policy. `name` is value.POLICY.NAME."""
        policy, _, own = name.removeprefix("value.").rpartition(".")
        return self._plugins.value(policy, own, self.config, principal)

    def restrict(
        self,
        access: DatabaseAccess | None,
        restricting: Sequence[Restricting] = (),
        check: CheckCatalog | None = None,
    ) -> OpenDatabase:
        """Return the database as callers with some roles see it, or without roles (None), restricted by policies.

        The objects that serve it are shared.
        """
        if access is None and not restricting:
            return self
        deciders: list[Decider] = [Restrictions(each, self.dialect) for each in restricting]
        if access is not None:
            deciders.insert(0, Grants(access.grants, self.dialect, self.config))
        assert isinstance(self.catalog, WholeCatalog)  # no part is restricted once more
        self.catalog.watch()  # a view is visible depending on what it reads
        seen = copy.copy(self)
        if access is not None:
            seen.role_rows, seen.max_cost = access.max_rows, access.max_cost
            seen.config = limit(self.config, access)
            seen.limits = _limits(seen.config)
        seen.places = GrantedPlaces(self.config, self.dialect, deciders)
        seen.catalog = catalog = GrantedCatalog(
            self.catalog,
            seen.places,
            self.dialect,
            seen.config,
            deciders=deciders,
            find_sources=self._resolver.views.relations,
            check=check or (self._check_roles if access else _take),
        )
        seen.judge = Judge(
            self.dialect,
            # Roles do not get what the configuration allows everybody; they get only their grants.
            replace(seen.config, allow_relations=frozenset()),
            catalog,
            self.validators,
            self.source,
            self._offload,
            Granting(self.dialect, catalog, self._resolver),
            self._resolver,
        )
        seen.confiner = self._confine(catalog, untried=bool(restricting))
        return seen

    def _confine(self, catalog: Catalog, *, untried: bool = False) -> Confiner | None:
        """Return what confines statements to the parts of relations in a catalog. None: the dialect cannot."""
        if self.dialect.confine is None:
            return None
        return Confiner(
            self.dialect,
            self.config,
            catalog,
            self._resolver,
            self.source,
            self._value_of,
            self._compile,
            OwnChecks(self._own_validators, self.dialect, self.config, self.source, self._resolver),
            untried=untried,
        )

    async def insights(self, tables: Sequence[Table]) -> Mapping[Relation, Insight]:
        """Return what is known of relations beside their structure.

        For callers who see a part, only of those that are granted as a whole and are no views. A view may have been
        replaced since it was learned, and a relation may be gone since it was found.
        """
        if not isinstance(self.catalog, GrantedCatalog):
            return await self.knowledge.of(tables)
        granted = await self.catalog.permissions()
        whole = [
            table
            for table in tables
            if table.relation in granted and granted[table.relation].whole and table.type not in VIEWS
        ]
        told = await self.knowledge.of(whole)
        nothing = {table.relation: Insight() for table in tables}
        seen = await self.catalog.snapshot()
        judge = self.knowledge.judge_again
        judged = {table.relation: judge(table, told[table.relation], seen) async for table in without_blocking(whole)}
        return nothing | judged

    async def get_known(self, table: Table) -> Insight:
        """Return what is already known of a relation, with the restrictions of `insights`."""
        if not isinstance(self.catalog, GrantedCatalog):
            return self.knowledge.get_known(table)
        if table.type in VIEWS or await self.is_reduced(table.relation):
            return Insight()
        return self.knowledge.judge_again(table, self.knowledge.get_known(table), await self.catalog.snapshot())

    async def suggest_joins(self, source: Table, target: Table, max_depth: int) -> list[tuple[Step, ...]]:
        """Return ways to join two relations that nobody declared. Callers who see a part of the database get none."""
        if isinstance(self.catalog, GrantedCatalog):
            return []  # they were found with relations that are not granted
        return await self.knowledge.join_paths(source, target, max_depth)

    @property
    def reports(self) -> Mapping[str, Report]:
        """Return the reports of the database's server.

        None for callers who see a part, or if a policy vetoes values.
        """
        if isinstance(self.catalog, GrantedCatalog) or self.vetoes_values or self.delegation:
            return {}
        named = self.config.knowledge.reports
        return {name: each for name, each in self.dialect.reports.items() if not each.opt_in or name in named}

    async def report(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of one of the reports. Raises the database's error."""
        columns, rows = await self._collect(self.reports[name].sql, self.config.timeout)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    async def read_files(self) -> Written | None:
        """Return what files say about the database. None for callers who see a part: it may describe the rest."""
        if (
            self.delegation
            or self.whole.places.hides
            or (isinstance(self.catalog, GrantedCatalog) and not await self.catalog.is_whole())
        ):
            return None
        return self.written

    async def describe(self) -> str:
        """Return the description of the database: from the configuration, else from files."""
        if self.config.description or not self.written.about:
            return self.config.description
        written = await self.read_files()
        return "" if written is None else written.about

    async def is_reduced(self, relation: Relation) -> bool:
        """Return whether something of a relation is not granted to the callers who see this database."""
        if not isinstance(self.catalog, GrantedCatalog):
            return False
        permission = (await self.catalog.permissions()).get(relation)
        return permission is None or not permission.whole

    async def status(self, wait: float = 0.0) -> Status:
        """Return whether it answers, as far as is known. With `wait`, ask it first, for at most so many seconds."""
        return await self.health.status(wait)

    async def doctor(self) -> tuple[Finding, ...]:
        """Return what the role could do if all protections failed, and what the configuration allows, worst first.

        Asks the database past the policies, and then through them. Raises `ConnectionFailed`, and `QueryTimeout` if it
        takes longer than a query may.
        """
        with self.source.ours("Executor.doctor"):
            told = await self.work.do(self.config.timeout, self._own_executor.doctor)
            if self.executor is not self._own_executor:
                more = await self.work.do(self.config.timeout, self.executor.doctor)
                told = tuple(dict.fromkeys((*told, *more)))
            schemas = await self.inspector.schemas()
            return worst_first((*told, *find_openings(self.config, self.dialect, schemas)))

    async def translate(
        self, sql: str, params: Sequence[Any], source: str
    ) -> tuple[str, Sequence[Any], tuple[str, ...]]:
        """Return `sql`, written in the SQL named `source`, and its parameters, for this database, with notices.

        Raises `ParameterError` for an unknown name or too few parameters, `InvalidSql`, and `Unsupported` if the
        translation would not be exact.
        """
        # sqlglot is slow to import, so in a thread, and only when needed.
        translate = await asyncio.to_thread(_translator)
        dialect = self.dialect
        done = await self._offload.call(
            len(sql) * TRANSLATING,
            translate,
            sql,
            source=source,
            target=dialect.sqlglot,
            rewrite=dialect.rewrite,
            placeholder=dialect.placeholder,
        )
        if done.order is None:
            return done.sql, params, done.notices
        if max(done.order, default=0) > len(params):
            raise ParameterError(
                f"The statement uses parameter {max(done.order)}; {len(params)} came.",
                suggestion="Give one value for each parameter.",
            )
        return done.sql, [params[number - 1] for number in done.order], done.notices

    async def advise(self, error: DragomanError, sql: str, seconds: float, *, translates: bool) -> DragomanError:
        """Return the error about a statement that was refused, with a hint for its writer if one is found in time.

        `translates`: the writer may name the SQL of the statement.
        """
        return await advise(error, sql, self.catalog, self.dialect, seconds, self._offload if translates else None)

    async def aclose(self) -> None:
        """End running work and release everything. A part that fails or hangs does not keep the others open."""
        self.health.close()
        if self.config.acting is not None:  # all identities share the executor
            return await self._close(self.knowledge, *self._catalogs, self.inspector, *self._owned)
        for face in self._faces.values():
            await face.aclose()
        await self._close(self.watch, self.written, self.knowledge, self.work)
        await self._close(*self._catalogs, self.inspector, self.executor, *self._owned)

    @property
    def _catalogs(self) -> tuple[WholeCatalog, ...]:
        """The catalogs that read the database, which a part of one does not."""
        both = (self.catalog, self._own_catalog)
        return tuple(dict.fromkeys(each for each in both if isinstance(each, WholeCatalog)))

    async def _close(self, *parts: Closing) -> None:
        for part in parts:
            try:
                async with asyncio.timeout(CLEANUP):
                    await part.aclose()
            except (Exception, SystemExit) as error:
                why = f"it took more than {CLEANUP:g} seconds" if isinstance(error, TimeoutError) else "it failed"
                _log.error(
                    "closing the database %s, served by %s, was abandoned: %s",
                    self.config.name,
                    self.source.origin,
                    why,
                    exc_info=error,
                )


async def _take(snapshot: Snapshot) -> None:
    """Use a given catalog."""


def _translator() -> Callable[..., Translation]:
    from dragoman.sql.translate import translate

    return translate


def _limits(database: Database) -> Limits:
    """Return the limits of a call that sets none of its own."""
    return Limits(min(database.default_rows, database.max_rows), database.max_bytes, database.timeout)
