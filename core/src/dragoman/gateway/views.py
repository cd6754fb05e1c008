"""Finds what views read, directly or through other views."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from dragoman.catalog import Catalog, Snapshot
from dragoman.catalog.behind import VIEWS
from dragoman.cooperative import without_blocking
from dragoman.dialect import Dialect
from dragoman.errors import DragomanError, UnsafeSql
from dragoman.gateway.offload import Offload
from dragoman.gateway.tracing import Columns, apart, find_columns, outline
from dragoman.model import Database, Relation, Table
from dragoman.parsed import ParsedStatement
from dragoman.validators import ReadOnly, find_telling, read_view

_STORED: Final = "materialized view"
_LIVE: Final = frozenset({"view"})
"""Views whose queries run when they are read. A foreign table or a function behind others was read or ran before."""
REMEMBERED: Final = 2_000
"""Definitions of which is remembered what they name, so that a changed catalog has only changed ones parsed again."""
Find = Callable[[Snapshot, Relation], Table | None]


class ViewQuery(NamedTuple):
    """The query of a view: what it names, and what the catalog knows of the relations among that."""

    view: Table
    parsed: ParsedStatement
    tables: Mapping[Relation, Table]

    @property
    def read(self) -> Collection[Table]:
        """The relations that it reads."""
        return self.tables.values()

    def views(self, kinds: Collection[str] = VIEWS) -> list[Table]:
        """Return the views among them."""
        return [table for table in self.read if is_view(table, kinds)]


class _Known:
    """What was found out about the views of one snapshot. None: it cannot be determined."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.queries: dict[Relation, ViewQuery | None] = {}
        self.relations: dict[Relation, frozenset[Relation] | None] = {}


class Views:
    """Finds what the views of one database read. `find` returns what a snapshot knows about a name.

    What is found is remembered for one snapshot of the catalog. Errors of reading the catalog are raised.
    """

    def __init__(self, dialect: Dialect, database: Database, catalog: Catalog, find: Find, offload: Offload) -> None:
        self._dialect = dialect
        self._catalog = catalog
        self._find = find
        self._offload = offload
        self._read_only = ReadOnly(dialect, database)
        self._allowed = frozenset(name.lower() for name in database.allow_functions)
        self._parsed: OrderedDict[str, ParsedStatement] = OrderedDict()  # the last used last
        self._known: _Known | None = None

    async def relations(self, view: Table) -> frozenset[Relation] | None:
        """Return the relations that a view reads, directly or through other views. None: they cannot be determined."""
        known = await self._look()
        below = known.relations
        entered: set[Relation] = set()
        todo = [_now(view, known)]
        async for each in without_blocking(_tops(todo)):
            query = await self._query(each, known)
            waiting = [] if query is None else [view for view in query.views() if view.relation not in below]
            if waiting and each.relation not in entered:
                entered.add(each.relation)
                todo += waiting
            else:
                below[todo.pop().relation] = self._unite(query, known)
        return below[view.relation]

    async def columns(self, view: Table) -> Columns | None:
        """Return the columns that a view touches, including those of views it reads. None: they are not known."""
        queries = await self._queries(view, VIEWS)
        if queries is None or not all(map(self._is_traceable, queries)):
            return None
        touched: dict[tuple[Relation, str], None] = {}
        try:
            for query in queries:
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
        queries = await self._queries(table, _LIVE)
        return queries is None or any(matches(each) for query in queries for each in query.read)

    async def calls_refused(self, table: Table) -> bool:
        """Return whether a relation is a view that calls what queries may not call, or may call it."""
        if not is_view(table, _LIVE):
            return False
        queries = await self._queries(table, _LIVE)
        return queries is None or not all(map(self._may_run, queries))

    # The queries of views

    async def _look(self) -> _Known:
        snapshot = await self._catalog.snapshot()
        if self._known is None or self._known.snapshot is not snapshot:
            self._known = _Known(snapshot)
        return self._known

    async def _queries(self, view: Table, kinds: Collection[str]) -> list[ViewQuery] | None:
        """Return the queries of a view and of all views of these kinds below it, each once. None if one is not known.

        Views of the system are not read.
        """
        known = await self._look()
        found: dict[Relation, ViewQuery] = {}
        todo = [_now(view, known)]
        async for each in without_blocking(_tops(todo)):
            todo.pop()
            if each.relation in found:
                continue
            query = await self._query(each, known)
            if query is None:
                return None
            found[each.relation] = query
            todo += query.views(kinds)
        return list(found.values())

    async def _query(self, view: Table, known: _Known) -> ViewQuery | None:
        if view.relation not in known.queries:
            known.queries[view.relation] = await self._find_query(view, known)
        return known.queries[view.relation]

    async def _find_query(self, view: Table, known: _Known) -> ViewQuery | None:
        tables: dict[Relation, Table] = {}
        try:
            parsed = await self._parse(view.definition or "")
            async for name in without_blocking(parsed.names):
                tables[name] = self._find_from(view.relation, name, known)
        except DragomanError:
            return None
        return ViewQuery(view, parsed, tables)

    async def _parse(self, definition: str) -> ParsedStatement:
        """Return what a definition names. Raises the error of one that cannot be parsed.

        In a thread: a process that is busy or slow must not hide a view.
        """
        parsed = self._parsed.pop(definition, None)
        if parsed is None:
            parsed = await asyncio.to_thread(read_view, self._dialect, definition)
            if parsed.refusal is not None:
                raise parsed.refusal.error()
        self._parsed[definition] = parsed
        if len(self._parsed) > REMEMBERED:
            self._parsed.popitem(last=False)
        return parsed

    def _find_from(self, view: Relation, written: Relation, known: _Known) -> Table:
        """Return what a name in a view's definition means. Some databases look it up from the view, others from here.

        Raises `UnsafeSql` if the two differ, and if neither tells.
        """
        if self._dialect.is_known_in_view(written):
            home = replace(written, schema=written.schema or view.schema, catalog=written.catalog or view.catalog)
            here, there = [self._find(known.snapshot, each) for each in (written, home)]
            found = there or here
            if found and (here is None or here.relation == found.relation):
                return found
        raise UnsafeSql(f"Which relation {written.name} names in the view {view.name} is not known.")

    # What they may read

    def _unite(self, query: ViewQuery | None, known: _Known) -> frozenset[Relation] | None:
        """Return what a view reads, when that is known of all views it reads. It is not if they read each other."""
        if query is None or not self._is_traceable(query):
            return None
        below = [known.relations.get(view.relation) for view in query.views()]
        sets = [relations for relations in below if relations is not None]
        return frozenset(table.relation for table in query.read).union(*sets) if len(sets) == len(below) else None

    def _is_traceable(self, query: ViewQuery) -> bool:
        """Return whether a query reads nothing but what it names.

        A function that is not on the lists may read any relation, and some on the lists show objects by name. Older
        versions of a relation and the system's own relations have columns that the catalog does not know. A
        materialized view holds what the views below it read at its last refresh; they may have been replaced since.
        """
        parsed = query.parsed
        if parsed.versions or any(table.system for table in query.read) or not self._may_run(query):
            return False
        if query.view.type == _STORED and query.views():
            return False
        return find_telling(self._dialect.loaded_rules, parsed.calls, self._allowed) is None

    def _may_run(self, query: ViewQuery) -> bool:
        """Return whether a caller might send a query."""
        try:
            self._read_only.judge(query.parsed)
        except DragomanError:
            return False
        return True


def is_view(table: Table, kinds: Collection[str] = VIEWS) -> bool:
    """Return whether a relation is a view that somebody made."""
    return table.type in kinds and not table.system


def _now(view: Table, known: _Known) -> Table:
    """Return a view as the snapshot knows it. The caller may have it from an older one."""
    return known.snapshot.by_relation.get(view.relation, view)


def _tops(todo: list[Table]) -> Iterator[Table]:
    """Yield the last item of a list that changes meanwhile, until it is empty."""
    while todo:
        yield todo[-1]
