"""What holds a database to whom it acts for, and keeps in what tells of rows that not everybody sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from dragoman.access import Delegation
from dragoman.dialect import Executor, WrappedExecutor, WrappedInspector
from dragoman.errors import PermissionDenied
from dragoman.model import (
    Column,
    ColumnProfile,
    ExplainOptions,
    Inspection,
    Names,
    Plan,
    ProfileBudget,
    Relation,
    Request,
    RowStream,
    Scope,
    Table,
)


class DelegatedExecutor(WrappedExecutor):
    """Lets nothing through that is not done as somebody: what forgets to say so must not run as the gateway."""

    def open(self, request: Request) -> AbstractAsyncContextManager[RowStream]:
        """As `Executor.open`."""
        return self.inner.open(_require_somebody(request))

    async def describe(self, request: Request) -> Sequence[Column]:
        """As `Executor.describe`."""
        return await self.inner.describe(_require_somebody(request))

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """As `Executor.explain`."""
        return await self.inner.explain(_require_somebody(request), options)

    async def estimate_cost(self, request: Request) -> float | None:
        """As `Executor.estimate_cost`."""
        return await self.inner.estimate_cost(_require_somebody(request))

    async def prepare(self, request: Request) -> None:
        """As `Executor.prepare`."""
        await self.inner.prepare(_require_somebody(request))


def _require_somebody(request: Request) -> Request:
    if request.acting is None:
        raise PermissionDenied(
            "This database keeps the rights of callers itself, and nobody is known to ask.",
            suggestion="Ask it by means of a call.",
        )
    return request


class DelegatedInspector(WrappedInspector):
    """Tells of relations nothing that rows tell which a caller may not see: how many there are, and their values."""

    async def tables(self, scope: Scope) -> Inspection:
        """As `Inspector.tables`."""
        told = await self.inner.tables(scope)
        return replace(told, tables=tuple(map(_hide_sizes, told.tables)))

    async def details(self, tables: Sequence[Table]) -> Sequence[Table]:
        """As `Inspector.details`."""
        return [_hide_sizes(table) for table in await self.inner.details(tables)]

    async def names(self, scope: Scope) -> Sequence[Names] | None:
        """As `Inspector.names`."""
        return await self.inner.names(scope)

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """Nothing: statistics are of all rows."""
        return {}


def _hide_sizes(table: Table) -> Table:
    return replace(table, row_estimate=None, size_bytes=None)


def guard(executor: Executor, delegation: Delegation | None) -> Executor:
    """Return what runs statements of callers."""
    return executor if delegation is None else DelegatedExecutor(executor)
