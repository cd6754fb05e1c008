"""Ensures that a database always acts for somebody, and removes facts from rows that not everybody sees."""

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
    """Refuses everything without an acting identity: a request that lacks it must not run as the gateway."""

    def open(self, request: Request) -> AbstractAsyncContextManager[RowStream]:
        """Call `Executor.open` of the wrapped executor."""
        return self.inner.open(_require_somebody(request))

    async def describe(self, request: Request) -> Sequence[Column]:
        """Call `Executor.describe` of the wrapped executor."""
        return await self.inner.describe(_require_somebody(request))

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """Call `Executor.explain` of the wrapped executor."""
        return await self.inner.explain(_require_somebody(request), options)

    async def estimate_cost(self, request: Request) -> float | None:
        """Call `Executor.estimate_cost` of the wrapped executor."""
        return await self.inner.estimate_cost(_require_somebody(request))

    async def prepare(self, request: Request) -> None:
        """Call `Executor.prepare` of the wrapped executor."""
        await self.inner.prepare(_require_somebody(request))


def _require_somebody(request: Request) -> Request:
    if request.acting is None:
        raise PermissionDenied(
            "This database applies the rights of callers itself, and no caller is known.",
            suggestion="Query it from within a call.",
        )
    return request


class DelegatedInspector(WrappedInspector):
    """Removes facts about relations that come from rows which a caller may not see: the number of rows, and values."""

    async def tables(self, scope: Scope) -> Inspection:
        """Return `Inspector.tables` without such facts."""
        told = await self.inner.tables(scope)
        return replace(told, tables=tuple(map(_hide_sizes, told.tables)))

    async def details(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Return `Inspector.details` without such facts."""
        return [_hide_sizes(table) for table in await self.inner.details(tables)]

    async def names(self, scope: Scope) -> Sequence[Names] | None:
        """Return `Inspector.names`."""
        return await self.inner.names(scope)

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """Return nothing: statistics cover all rows."""
        return {}


def _hide_sizes(table: Table) -> Table:
    return replace(table, row_estimate=None, size_bytes=None)


def guard(executor: Executor, delegation: Delegation | None) -> Executor:
    """Return the executor for statements of callers."""
    return executor if delegation is None else DelegatedExecutor(executor)
