"""Comments for callers who see a part of the database. Comments may name other columns and tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from dragoman.access import Permission
from dragoman.catalog.search import split
from dragoman.model import Relation, Table

Words = tuple[str, ...]


def stems(text: str) -> Words:
    """Return the words of a name or a text, shortened until singular and plural are equal.

    Rather too short than too long.
    """
    return tuple((cut[:-1] + "i" if (cut := word.rstrip("se")).endswith("y") else cut) or word for word in split(text))


class Mentions:
    """Finds names in texts by their stems: "OrderItems" and "an order item" both name `order_items`.

    The time grows with the text, not with the number of names.
    """

    def __init__(self, names: Iterable[Words]) -> None:
        self._names = frozenset(filter(None, names))
        lengths: dict[str, set[int]] = {}
        for name in self._names:
            lengths.setdefault(name[0], set()).add(len(name))
        self._lengths = lengths

    def are_in(self, text: str) -> bool:
        """Return whether a text names one of them."""
        found = stems(text)
        return any(
            found[start : start + length] in self._names
            for start, first in enumerate(found)
            for length in self._lengths.get(first, ())
        )


class Comments:
    """Removes comments that name a hidden relation, schema or column.

    A name that something visible also has reveals nothing, unless it is one of the relation's own columns.
    """

    def __init__(self, tables: Collection[Table], permissions: Mapping[Relation, Permission]) -> None:
        self._permissions = permissions
        own = [table for table in tables if not table.system]
        shown = {stems(name) for name in _names(own, permissions, hidden=False)}
        self._elsewhere = Mentions({stems(name) for name in _names(own, permissions, hidden=True)} - shown)

    def prune(self, table: Table) -> Table:
        """Return a granted relation, as the database reports it, without such comments."""
        granted = self._permissions[table.relation].columns
        own = Mentions(stems(column.name) for column in table.columns if column.name not in granted)

        def keep(comment: str | None) -> str | None:
            told = comment and not own.are_in(comment) and not self._elsewhere.are_in(comment)
            return comment if told else None

        if not table.comment and not any(column.comment for column in table.columns):
            return table
        columns = tuple(replace(each, comment=keep(each.comment)) for each in table.columns)
        return replace(table, comment=keep(table.comment), columns=columns)


def _names(tables: Iterable[Table], permissions: Mapping[Relation, Permission], *, hidden: bool) -> Iterator[str]:
    """Yield the names of schemas, relations and columns that are hidden, or those that are not."""
    for table in tables:
        permission = permissions.get(table.relation)
        if (permission is None) == hidden:
            yield from filter(None, (table.relation.name, table.relation.schema, table.relation.catalog))
        granted = permission.columns if permission is not None else ()
        yield from (column.name for column in table.columns if (column.name not in granted) == hidden)
