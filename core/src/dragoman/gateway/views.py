"""Finds what views read, directly or through other views."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Final, NamedTuple

from dragoman.dialect import Dialect
from dragoman.errors import DragomanError, UnsafeSql
from dragoman.gateway.offload import Offload
from dragoman.gateway.tracing import Columns, Tables, apart, find_columns, outline
from dragoman.model import Database, Relation, Table
from dragoman.parsed import ParsedStatement
from dragoman.validators import ReadOnly, find_telling, read_view

_STORED: Final = "materialized view"
VIEWS: Final = frozenset({"view", _STORED})
_LIVE: Final = frozenset({"view"})
REMEMBERED: Final = 2_000
"""Definitions of which is remembered what they name. The views of a large warehouse are read for each set of roles."""
Find = Callable[[Relation], Awaitable[Table | None]]


class Definitions:
    """Parses the definitions of a database's views. Remembers what the last ones name."""

    def __init__(self, dialect: Dialect, offload: Offload) -> None:
        self._dialect = dialect
        self._offload = offload
        self._known: OrderedDict[str, ParsedStatement] = OrderedDict()

    async def parse(self, definition: str) -> ParsedStatement:
        """Return what a definition names. Raises the error of one that cannot be parsed."""
        parsed = self._known.pop(definition, None)
        if parsed is None:
            parsed = await apart(self._offload, len(definition), read_view, self._dialect, definition)
            if parsed.refusal is not None:
                raise parsed.refusal.error()
        self._known[definition] = parsed
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return parsed


class ViewQuery(NamedTuple):
    """The query of a view: what it names, and what the catalog knows of the relations among that."""

    view: Table
    parsed: ParsedStatement
    tables: Tables


class Views:
    """Finds what the views of one database read. `find` returns what the catalog knows about a name."""

    def __init__(
        self, dialect: Dialect, database: Database, find: Find, offload: Offload, definitions: Definitions | None
    ) -> None:
        self._dialect = dialect
        self._find = find
        self._offload = offload
        self._definitions = definitions or Definitions(dialect, offload)
        self._read_only = ReadOnly(dialect, database)
        self._allowed = frozenset(name.lower() for name in database.allow_functions)

    async def queries(self, view: Table, kinds: Collection[str] = VIEWS) -> list[ViewQuery]:
        """Return the queries of a view and of all views of these kinds below it, each once.

        Views of the system are not read. Raises `DragomanError` if it cannot be determined what one of them reads.
        """
        found: dict[Relation, ViewQuery] = {}
        todo = [view]
        while todo:
            each = todo.pop()
            if each.relation not in found:
                found[each.relation] = query = await self._query(each)
                todo += [table for table in query.tables.values() if table and is_view(table, kinds)]
        return list(found.values())

    async def relations(self, view: Table) -> frozenset[Relation] | None:
        """Return the relations that a view reads, directly or through other views. None: they cannot be determined."""
        try:
            queries = await self._traceable(view)
        except DragomanError:
            return None
        return frozenset(table.relation for query in queries for table in query.tables.values() if table)

    async def columns(self, view: Table) -> Columns | None:
        """Return the columns that a view touches, including those of views it reads. None: they are not known."""
        touched: dict[tuple[Relation, str], None] = {}
        try:
            for query in await self._traceable(view):
                definition = query.view.definition or ""
                known = outline(query.tables)
                found = await apart(self._offload, len(definition), find_columns, self._dialect, definition, known)
                touched |= dict.fromkeys(found)
        except DragomanError:
            return None
        return tuple(touched)

    async def reads(self, table: Table, matches: Callable[[Table], bool]) -> bool:
        """Return whether a relation matches, or is a view that reads one that does, or may read one."""
        if not is_view(table, _LIVE):
            return matches(table)
        try:
            queries = await self.queries(table, _LIVE)
        except DragomanError:
            return True
        return any(matches(each) for query in queries for each in query.tables.values() if each)

    async def calls_refused(self, table: Table) -> bool:
        """Return whether a relation is a view that calls what queries may not call, or may call it."""
        if not is_view(table, _LIVE):
            return False
        try:
            for query in await self.queries(table, _LIVE):
                self._read_only.judge(query.parsed)
        except DragomanError:
            return True
        return False

    async def _traceable(self, view: Table) -> list[ViewQuery]:
        """Return the queries of a view, if they read nothing but what they name. Raises `DragomanError` if they may.

        A function that is not on the lists may read any relation, and some on the lists show objects by name. Older
        versions of a relation and the system's own relations have columns that the catalog does not know. A
        materialized view holds what the views below it read at its last refresh; they may have been replaced since.
        """
        queries = await self.queries(view)
        for query in queries:
            self._read_only.judge(query.parsed)
            telling = find_telling(self._dialect.loaded_rules, query.parsed.calls, self._allowed)
            read = [table for table in query.tables.values() if table]
            system = any(table.system for table in read)
            older = query.view.type == _STORED and any(map(is_view, read))
            if telling or query.parsed.versions or system or older:
                raise UnsafeSql(f"The view {query.view.relation.name} may read more than it names.")
        return queries

    async def _query(self, view: Table) -> ViewQuery:
        parsed = await self._definitions.parse(view.definition or "")
        return ViewQuery(view, parsed, {each: await self._find_from(view.relation, each) for each in parsed.names})

    async def _find_from(self, view: Relation, written: Relation) -> Table:
        """Return what a name in a view's definition means. Some databases look it up from the view, others from here.

        Raises `UnsafeSql` if the two differ, and if neither tells.
        """
        if self._dialect.is_known_in_view(written):
            home = replace(written, schema=written.schema or view.schema, catalog=written.catalog or view.catalog)
            here, there = [await self._find(each) for each in (written, home)]
            found = there or here
            if found and (here is None or here.relation == found.relation):
                return found
        raise UnsafeSql(f"Which relation {written.name} names in the view {view.name} is not known.")


def is_view(table: Table, kinds: Collection[str] = VIEWS) -> bool:
    """Return whether a relation is a view that somebody made."""
    return table.type in kinds and not table.system
