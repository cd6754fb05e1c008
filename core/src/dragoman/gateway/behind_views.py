"""Refuses what the definition of a view decides: foreign tables and functions that somebody made, behind views too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence

from dragoman.catalog import Catalog
from dragoman.dialect import Call, Validator
from dragoman.errors import DragomanError, UnsafeSql
from dragoman.gateway.resolving import Resolver
from dragoman.model import Database, Relation, Table
from dragoman.parsed import ParsedStatement
from dragoman.sql import Statement

_FOREIGN = "foreign table"


class BehindViews(Validator):
    """Uses `catalog`, which must be the dialect's own.

    Views read relations that a policy hides, too.
    """

    def __init__(self, resolver: Resolver, catalog: Catalog, database: Database) -> None:
        self._resolver = resolver
        self._views = resolver.views
        self._catalog = catalog
        self._opened = frozenset(name.lower() for name in database.allow_relations)
        self._asked = False

    async def state(self) -> object:
        """Return the version of the catalog once it was read. Before that, return a value that never equals another."""
        try:
            return (await self._catalog.snapshot()).version if self._asked else None
        except DragomanError:
            return object()

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `UnsafeSql` for a query that reads something refused, or a view for which this cannot be determined."""
        if not call.parsed.relations:
            return
        self._asked = True
        for relation in await self.find(call.parsed):
            if str(relation).lower() not in self._opened:
                raise self.refuse(relation)

    @abstractmethod
    async def find(self, parsed: ParsedStatement) -> Sequence[Relation]:
        """Return the refused relations among those that a statement names."""

    async def find_by(self, parsed: ParsedStatement, refuses: Callable[[Table], Awaitable[bool]]) -> Sequence[Relation]:
        """Return the relations that a statement may read and that are refused, as `refuses` decides."""
        tables = await self._resolver.find_possible(parsed.names)
        return [table.relation for table in tables if await refuses(table)]

    @abstractmethod
    def refuse(self, relation: Relation) -> UnsafeSql:
        """Return the error for one. It tells nothing of the definition, which its readers may not know."""


class ForeignTables(BehindViews):
    """Refuses tables that read other servers or files, unless the configuration allows them."""

    async def find(self, parsed: ParsedStatement) -> Sequence[Relation]:
        """As the base class says."""
        if not any(map(_is_foreign, (await self._catalog.snapshot()).tables)):
            return ()
        return await self.find_by(parsed, lambda table: self._views.reads(table, _is_foreign))

    def refuse(self, relation: Relation) -> UnsafeSql:
        """As the base class says."""
        return UnsafeSql(
            f"{relation} reads a foreign table: another server, or a file.",
            suggestion="Query other tables. The server's administrator can allow it with allow_relations, or"
            " all foreign tables with allow_foreign_tables.",
        )


class StoredFunctions(BehindViews):
    """Refuses views that call functions which queries may not call, unless the configuration allows them."""

    async def find(self, parsed: ParsedStatement) -> Sequence[Relation]:
        """As the base class says."""
        return await self.find_by(parsed, self._views.calls_refused)

    def refuse(self, relation: Relation) -> UnsafeSql:
        """As the base class says."""
        return UnsafeSql(
            f"The view {relation} calls a function that is not known to be harmless, or its definition cannot be read.",
            suggestion="Query the tables behind it. The server's administrator can allow the view with allow_relations,"
            " its functions with allow_functions, or let the login read the definitions of views and what they read.",
        )


def _is_foreign(table: Table) -> bool:
    return table.type == _FOREIGN
