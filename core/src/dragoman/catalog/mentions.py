"""Comments for callers who see a part of the database. Comments may name other columns and tables."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain

from dragoman.access import Permission
from dragoman.catalog.search import split as words
from dragoman.catalog.updating import update
from dragoman.model import Relation, Schema, Table

_FIRST = (1, 2, 3)
"""How many letters a name is looked up by."""
_CUT = 4
"""The most letters that a plural has more than the name that is looked up."""


def split(text: str) -> list[str]:
    """Return the words of a name or a text, of which every spelling of a letter is the same."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return [word.casefold() for word in words(plain)]


def stem(word: str) -> str:
    """Return a word shortened until singular and plural are equal. Rather too short than too long."""
    cut = word.rstrip("se")
    return (cut[:-1] + "i" if cut.endswith("y") else cut) or word


def spellings(name: str) -> Iterator[str]:
    """Yield what texts that name something have in common: its letters, in the singular word by word or as a whole."""
    parts = split(name)
    yield "".join(map(stem, parts))
    yield stem("".join(parts))


class Mentions:
    """Finds names in texts: "OrderItems", "orderitem" and "an order item" all name `order_items`.

    The time grows with the text, not with the number of names.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(filter(None, names))
        self._longest: dict[str, int] = {}
        for name in self._names:
            first = name[: _FIRST[-1]]
            self._longest[first] = max(len(name), self._longest.get(first, 0))

    def are_in(self, text: str) -> bool:
        """Return whether a text names one of them."""
        parts = split(text)
        return self._stand_in([*map(stem, parts)], lambda letters: letters) or self._stand_in(parts, stem)

    def _stand_in(self, parts: Sequence[str], end: Callable[[str], str]) -> bool:
        """Return whether words that follow each other, written as one, are a name."""
        joined = "".join(parts)
        stops = [*accumulate(map(len, parts), initial=0)]
        for place, start in enumerate(stops[:-1]):
            longest = max(self._longest.get(joined[start : start + count], 0) for count in _FIRST)
            for stop in stops[place + 1 :] if longest else ():
                if stop - start > longest + _CUT:
                    break
                if end(joined[start:stop]) in self._names:
                    return True
        return False


class Comments:
    """Removes comments of relations, columns and schemas that name a hidden relation, schema or column.

    A name that something visible also has reveals nothing, unless it is one of the relation's own columns.
    """

    def __init__(self, tables: Collection[Table], permissions: Mapping[Relation, Permission]) -> None:
        self._permissions = permissions
        own = [table for table in tables if not table.system]
        hidden = _spell(_names(own, permissions, hidden=True))
        self._elsewhere = Mentions(hidden and hidden - _spell(_names(own, permissions, hidden=False)))

    def prune(self, table: Table) -> Table:
        """Return a granted relation, as the database reports it, without such comments."""
        if not table.comment and not any(column.comment for column in table.columns):
            return table
        granted = self._permissions[table.relation].columns
        own = Mentions(_spell(column.name for column in table.columns if column.name not in granted))
        columns = tuple([update(each, comment=self._keep(each.comment, own)) for each in table.columns])
        return update(table, comment=self._keep(table.comment, own), columns=columns)

    def prune_schema(self, schema: Schema) -> Schema:
        """Return a schema that holds something granted, without such a comment."""
        return update(schema, comment=self._keep(schema.comment)) if schema.comment else schema

    def _keep(self, comment: str | None, *own: Mentions) -> str | None:
        if comment is None or any(hidden.are_in(comment) for hidden in (self._elsewhere, *own)):
            return None
        return comment


def _spell(names: Iterable[str]) -> set[str]:
    return set(chain.from_iterable(map(spellings, set(names))))


def _names(tables: Iterable[Table], permissions: Mapping[Relation, Permission], *, hidden: bool) -> Iterator[str]:
    """Yield the names of schemas, relations and columns that are hidden, or those that are not."""
    for table in tables:
        permission = permissions.get(table.relation)
        if (permission is None) == hidden:
            yield from filter(None, (table.relation.name, table.relation.schema, table.relation.catalog))
        granted = permission.columns if permission is not None else ()
        yield from (column.name for column in table.columns if (column.name not in granted) == hidden)
