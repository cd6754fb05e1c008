"""Refuses tables that read other servers or files, behind views too, unless the configuration allows them."""

from __future__ import annotations

from dragoman.catalog import Catalog
from dragoman.dialect import Call, Validator
from dragoman.errors import DragomanError, UnsafeSql
from dragoman.gateway.resolving import Resolver
from dragoman.model import Database
from dragoman.sql import Statement


class ForeignTables(Validator):
    """Uses `catalog`, which must be the dialect's own.

    Views read relations that a policy hides, too.
    """

    def __init__(self, resolver: Resolver, catalog: Catalog, database: Database) -> None:
        self._resolver = resolver
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
        """Raise `UnsafeSql` for a query that reads a foreign table, or a view for which this cannot be determined."""
        if not call.parsed.relations:
            return
        self._asked = True
        for relation in await self._resolver.foreign(call.parsed):
            if str(relation).lower() not in self._opened:
                raise UnsafeSql(
                    f"{relation} reads a foreign table: another server, or a file.",
                    suggestion="Query other tables. The server's administrator can allow it with allow_relations, or"
                    " all foreign tables with allow_foreign_tables.",
                )
