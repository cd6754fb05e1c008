"""Decides whether the text and the plan of a view may be shown to callers who see only a part of the database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from dragoman.catalog.places import Places, names_in
from dragoman.catalog.snapshot import Snapshot
from dragoman.errors import DragomanError
from dragoman.model import Relation, Table
from dragoman.sql.text import clean
from dragoman.validators import read_view

VIEWS = frozenset({"view", "materialized view"})


class Behind:
    """Reads the definitions of a snapshot's relations. Slow: it parses a definition for each of them.

    `partly`: the relations of which callers see a part.
    """

    def __init__(self, snapshot: Snapshot, places: Places, partly: Collection[Relation] = ()) -> None:
        self._snapshot = snapshot
        self._places = places
        self._partly = partly

    def redact(self, table: Table) -> Table:
        """Return a relation, without its definition if that reads something outside the visible part.

        Comments in a definition may name anything. They are left out where relations are hidden.
        """
        if table.definition is None or not self._places.narrowed:
            return table
        shown = table.definition if self._is_open(table) else None
        if shown is not None and self._places.hides:
            shown = clean(shown, self._snapshot.dialect.lexicon)  # it was parsed, so nothing is raised
        return replace(table, definition=shown)

    def _is_open(self, table: Table) -> bool:
        if table.type in VIEWS:
            read = self._read_by(table)
            return read is not None and not any(each.relation in self._partly for each in read)
        # Such a text names relations only incidentally, as in INHERITS (other).
        return not self._places.hides and not self._leads_out(table)

    def reaches_outside(self, relations: Iterable[Relation]) -> bool:
        """Return whether one of the relations is a view that reads something outside, or something unknown."""
        todo = [self._snapshot.by_relation[each] for each in relations if each in self._snapshot.by_relation]
        seen: set[Relation] = set()
        while todo:
            table = todo.pop()
            if table.relation in seen or table.type not in VIEWS or table.system:
                continue
            seen.add(table.relation)
            below = self._read_by(table)
            if below is None or any(each.relation in self._partly for each in below):
                return True
            todo += below
        return False

    def _read_by(self, view: Table) -> list[Table] | None:
        """Return the relations that a view reads directly. None if one is outside, or cannot be determined."""
        if view.definition is None or self._leads_out(view):
            return None
        dialect = self._snapshot.dialect
        try:
            parsed = read_view(dialect, view.definition)
        except DragomanError:
            return None
        if parsed.refusal or parsed.versions or not all(map(dialect.is_known_in_view, parsed.names)):
            return None
        tables = [self._look_up_from(view.relation, each) for each in parsed.names]
        found = [table for table in tables if table and not (table.system and self._places.hides)]
        return found if len(found) == len(tables) else None

    def _leads_out(self, table: Table) -> bool:
        text = table.definition or ""
        return self._places.leads_out(text, names_in(text, self._snapshot.dialect.lexicon))

    def _look_up_from(self, view: Relation, written: Relation) -> Table | None:
        """Return what a name in a view's definition means. None if it may mean two relations.

        Some databases look it up from the view, others from here.
        """
        home = replace(written, schema=written.schema or view.schema, catalog=written.catalog or view.catalog)
        here, there = self._lookup(written), self._lookup(home)
        return None if here and there and here is not there else there or here

    def _lookup(self, written: Relation) -> Table | None:
        """Return the visible relation of a name that may or may not have been quoted."""
        quote = self._snapshot.dialect.quote
        schema = ".".join(quote(part) for part in (written.catalog, written.schema) if part) or None
        return next(self._find((quote(written.name), written.name), schema), None)

    def _find(self, names: Iterable[str], schema: str | None) -> Iterator[Table]:
        for name in names:
            try:
                yield self._snapshot.find(name, schema)
            except DragomanError:
                continue
