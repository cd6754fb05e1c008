"""Resolves what a statement touches against the catalog, for validators that ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from types import MappingProxyType

from dragoman.catalog import Catalog, Namespace, Snapshot
from dragoman.dialect import Dialect, Output, Resolution
from dragoman.errors import NotFound, UnsafeSql
from dragoman.gateway.offload import Offload
from dragoman.gateway.tracing import Columns, Tables, apart, outline, trace_columns
from dragoman.gateway.views import Views, is_view
from dragoman.model import Database, Relation, Table
from dragoman.parsed import ParsedStatement
from dragoman.sql import Statement


class Resolver:
    """Resolves the statements of one database. Raises `InvalidSql` if it cannot trace them.

    sqlglot and the dialect's grammar never run on the event loop.

    - `views`: finds what its views read.
    """

    views: Views

    def __init__(self, dialect: Dialect, database: Database, catalog: Catalog, offload: Offload) -> None:
        self._dialect = dialect
        self._catalog = catalog
        self._offload = offload
        self.views = Views(dialect, database, catalog, self._look_up, offload)

    def watch(self) -> None:
        """Resolve from now on with a catalog that is checked to be current."""
        self._catalog.watch()

    async def resolution(self, statement: Statement, parsed: ParsedStatement) -> Resolution:
        """Return the resolution: relations and columns. Names that the catalog does not know stay as written."""
        tables = await self.find_tables(parsed.names)
        size = len(statement.text)
        columns, outputs = await apart(self._offload, size, trace_columns, self._dialect, statement, outline(tables))
        return Resolution(
            relations=_resolve_names(tables),
            columns=columns,
            views=await self._columns_of_views(tables),
            unlisted=_find_unlisted(parsed, tables),
            outputs=None if outputs is None else tuple(Output(name, made_of) for name, made_of in outputs),
        )

    async def relations(self, parsed: ParsedStatement) -> tuple[Relation, ...]:
        """Return only the relations, as the dialect's own grammar found them if it has one."""
        return _resolve_names(await self.find_tables(parsed.names))

    async def find_tables(self, written: Sequence[Relation]) -> dict[Relation, Table | None]:
        """Return what the catalog knows about the names that a statement reads. It looks for unknown ones once more.

        A name that fits several relations, none of them where the database looks it up, means none of them. An error
        that lists them would show what callers do not see.
        """
        candidates = await self._candidates(written)
        snapshot = await self._catalog.snapshot()
        return {
            each: None if _is_in_doubt(each, found, snapshot) else _only(each, found, snapshot)
            for each, found in candidates.items()
        }

    async def find_possible(self, written: Sequence[Relation]) -> list[Table]:
        """Return every relation that one of the names may mean, also where nobody says where the database looks."""
        candidates = await self._candidates(written)
        snapshot = await self._catalog.snapshot()
        possible = {
            table.relation: table
            for each, found in candidates.items()
            for table in found
            if _is_looked_up(each, table, snapshot, unknown=True)
        }
        return [*possible.values()]

    async def _candidates(self, written: Sequence[Relation]) -> dict[Relation, list[Table]]:
        keys = {each: self._keys(each) for each in written}
        known = await self._catalog.candidates(key for those in keys.values() for key in those)
        return {each: list(chain.from_iterable(known.get(key, ()) for key in those)) for each, those in keys.items()}

    async def _columns_of_views(self, tables: Tables) -> Mapping[Relation, Columns | None]:
        views = [table for table in tables.values() if table and is_view(table)]
        return MappingProxyType({view.relation: await self.views.columns(view) for view in views})

    def _look_up(self, snapshot: Snapshot, written: Relation) -> Table | None:
        """Return what a snapshot knows about a name in a view, without reading the database again.

        Views of relations that are gone name hundreds of unknown names. The catalog read the views with all relations.
        """
        found: list[Table] = []
        for key in self._keys(written):
            with suppress(NotFound):
                found += snapshot.candidates(*key)
        return _only(written, found, snapshot)

    def _keys(self, written: Relation) -> list[tuple[str, str | None]]:
        """Return the names that a name may stand for, each with its schema.

        Only the dialect's own grammar knows whether it was quoted.
        """
        spellings = Namespace(self._dialect).spellings
        schemas = spellings(written.catalog or None, written.schema or None)
        return [(name, schema or None) for schema in schemas for name in spellings(written.name)]


def _only(written: Relation, found: Iterable[Table], snapshot: Snapshot) -> Table | None:
    """Return the relation that a name means. Raises `UnsafeSql` if there are several.

    A name without a schema or catalog means only what is where the database looks such names up. The catalog would take
    it for the only visible relation of that name, and the database for a hidden one.
    """
    different = {table.relation: table for table in found if _is_looked_up(written, table, snapshot)}
    if len(different) > 1:
        raise UnsafeSql(
            f"Which relation {written.name} names depends on its case.",
            suggestion="Query it through a view, or have one of them renamed.",
        )
    return next(iter(different.values()), None)


def _is_in_doubt(written: Relation, found: Iterable[Table], snapshot: Snapshot) -> bool:
    """Return whether a name without a schema is in several, and nobody says where the database looks it up."""
    return not snapshot.homes and written.schema is None and len({table.relation.schema for table in found}) > 1


def _is_looked_up(written: Relation, table: Table, snapshot: Snapshot, *, unknown: bool = False) -> bool:
    """Return whether the database looks for a name where a relation is. `unknown`: the answer if nobody says so."""
    there = table.relation
    if written.catalog is None and not _is_home(there.catalog, snapshot, unknown):
        return False
    return written.schema is not None or table.system or there.schema is None or _has_home(there, snapshot, unknown)


def _is_home(catalog: str | None, snapshot: Snapshot, unknown: bool) -> bool:
    home = snapshot.namespace.catalog
    return catalog is None or (unknown if home is None else snapshot.dialect.same(catalog, home))


def _has_home(there: Relation, snapshot: Snapshot, unknown: bool) -> bool:
    """Return whether names without a schema lead to a relation's schema. Without catalogs they may, if nobody says."""
    return there.schema in snapshot.homes if snapshot.homes else unknown or there.catalog is None


def _find_unlisted(parsed: ParsedStatement, tables: Tables) -> tuple[Relation, ...]:
    """Return the relations that are read with columns that the catalog does not know."""
    older = {each.relation for each in parsed.versions}
    unlisted = (written for written, table in tables.items() if not table or table.system or written in older)
    return tuple(_name(written, tables[written]) for written in unlisted)


def _name(written: Relation, table: Table | None) -> Relation:
    return table.relation if table else written


def _resolve_names(tables: Tables) -> tuple[Relation, ...]:
    """Return the relations as the catalog knows them; unknown ones stay as written."""
    return tuple(dict.fromkeys(_name(written, table) for written, table in tables.items()))
