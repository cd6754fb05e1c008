"""A policy: every request carries tags that the database can show its operators, and some relations nobody sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from dragoman import (
    Call,
    Column,
    ConfigurationError,
    Database,
    Dialect,
    Executor,
    ExplainOptions,
    Inspection,
    Inspector,
    Plan,
    PolicyPlugin,
    Relation,
    Request,
    RowStream,
    Scope,
    Statement,
    Table,
    TableNotFound,
    UnsafeSql,
    Validator,
    WrappedExecutor,
    WrappedInspector,
)


@dataclass(frozen=True)
class Options:
    """`tags`: texts by name. `hide`: patterns of relations: `payroll`, `hr.*`, `*_internal`.

    `refuse_functions`: patterns of functions that would tell of what is hidden, as they are written: `pragma_*`.
    """

    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    hide: tuple[str, ...] = ()
    refuse_functions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise `ConfigurationError` for a pattern of more names than there are."""
        for pattern in self.hide:
            if pattern.count(".") > 2:
                raise ConfigurationError(
                    f"policies.tagging.hide: {pattern!r} has too many dots.",
                    suggestion="Relations are catalog.schema.table, from the right.",
                )


class TaggingExecutor(WrappedExecutor):
    """Adds tags, and who asks, to whatever goes to the database."""

    def __init__(self, inner: Executor, tags: Mapping[str, str]) -> None:
        super().__init__(inner)
        self._tags = tags

    def open(self, request: Request) -> AbstractAsyncContextManager[RowStream]:
        """As `Executor.open`."""
        return self.inner.open(self._tag(request))

    async def describe(self, request: Request) -> Sequence[Column]:
        """As `Executor.describe`."""
        return await self.inner.describe(self._tag(request))

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """As `Executor.explain`."""
        return await self.inner.explain(self._tag(request), options)

    async def prepare(self, request: Request) -> None:
        """As `Executor.prepare`."""
        await self.inner.prepare(self._tag(request))

    def _tag(self, request: Request) -> Request:
        tags = {**request.tags, "principal": request.principal.name, **self._tags}
        return replace(request, tags=MappingProxyType(tags))


@dataclass(frozen=True)
class Hidden:
    """Relations by pattern."""

    patterns: tuple[str, ...]

    def __contains__(self, relation: Relation) -> bool:
        """Whether a relation is hidden; a schema nobody knows may be any."""
        names = (relation.catalog, relation.schema, relation.name)
        return any(_matches(names, pattern) for pattern in self.patterns)


def _matches(names: Sequence[str | None], pattern: str) -> bool:
    parts = pattern.lower().split(".")
    pairs = zip(names[-len(parts) :], parts, strict=True)
    return all(name is None or fnmatchcase(name.lower(), part) for name, part in pairs)


class HidingInspector(WrappedInspector):
    """Tells nothing of what is hidden: no relation, no foreign key that points to one, no definition that names one."""

    def __init__(self, inner: Inspector, hidden: Hidden) -> None:
        super().__init__(inner)
        self._hidden = hidden

    async def tables(self, scope: Scope) -> Inspection:
        """As `Inspector.tables`."""
        seen = await self.inner.tables(scope)
        return replace(seen, tables=tuple(map(self._show, self._visible(seen.tables))))

    async def details(self, tables: Sequence[Table]) -> Sequence[Table]:
        """As `Inspector.details`."""
        return [self._show(table) for table in await self.inner.details(tables)]

    def _visible(self, tables: Iterable[Table]) -> Iterable[Table]:
        return (table for table in tables if table.relation not in self._hidden)

    def _show(self, table: Table) -> Table:
        keys = tuple(key for key in table.foreign_keys if key.references not in self._hidden)
        return replace(table, foreign_keys=keys, definition=None)


@dataclass(frozen=True)
class OnlyListed(Validator):
    """Lets queries read what the catalog lists: hidden relations are not in it, nor are the engine's own."""

    refused_functions: tuple[str, ...]

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `TableNotFound` for what is not listed, `UnsafeSql` for other ways to ask for it."""
        for relation in (await call.resolve()).unlisted:
            raise TableNotFound(f"There is no relation {relation}.", identifier=relation.name)
        calls = (fnmatchcase(name, each) for name in statement.functions() for each in self.refused_functions)
        if statement.effect or any(calls):
            raise UnsafeSql(
                "What the database tells of itself is not open to queries here.",
                suggestion="Use list_tables, describe_table and search_catalog.",
            )


class TaggingPolicy(PolicyPlugin):
    """Wraps executor and inspector of every database, whatever its dialect."""

    options = Options

    def __init__(self, options: Options | None = None) -> None:
        self._given = options or Options()
        self._hidden = Hidden(self._given.hide)

    def configure(self, options: Options) -> TaggingPolicy:
        """Return the policy with these options."""
        return TaggingPolicy(options)

    def wrap_executor(self, executor: Executor, database: Database, dialect: Dialect) -> Executor:
        """Return an executor that tags."""
        return TaggingExecutor(executor, self._given.tags)

    def wrap_inspector(self, inspector: Inspector, database: Database, dialect: Dialect) -> Inspector:
        """Return an inspector that hides."""
        return HidingInspector(inspector, self._hidden) if self._given.hide else inspector

    def further_validators(self, database: Database, executor: Executor, inspector: Inspector) -> Sequence[Validator]:
        """Return the check that keeps queries from what is hidden."""
        return [OnlyListed(self._given.refuse_functions)] if self._given.hide else []


plugin = TaggingPolicy()
