"""Search among the values that may be shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from dragoman.catalog import Insight, Match
from dragoman.catalog.search import words
from dragoman.model import ColumnProfile, Relation, Table, TableColumn

EXACT = 1.5
"""The rank of a value that equals the query: after a name that equals it, before all others."""
PARTLY = 0.6
MOST_WORDS = 20


class Held(NamedTuple):
    """A value of a column."""

    relation: Relation
    column: str
    value: str


class ValueIndex:
    """The words of values, and the columns that hold them.

    Its answers may be outdated, and `fitting` checks them. So removed values need not be deleted.
    """

    def __init__(self, tables: Iterable[Table] = ()) -> None:
        """Index the values of `tables`, which are those whose columns list their values."""
        self._found: dict[str, set[Held]] = {}
        self._of: dict[Relation, tuple[Held, ...]] = {}
        for table in tables:
            self._add([Held(table.relation, each.name, value) for each in table.columns for value in each.enum or ()])

    def replace(self, relation: Relation, profiles: Mapping[str, ColumnProfile]) -> None:
        """Replace the values of a relation by those in these profiles."""
        self.drop(relation)
        self._of[relation] = tuple(
            Held(relation, name, value) for name, each in profiles.items() for value in each.values
        )
        self._add(self._of[relation])

    def drop(self, relation: Relation) -> None:
        """Remove the values of a relation."""
        for held in self._of.pop(relation, ()):
            for key in _keys(held.value):
                self._discard(key, held)

    def _add(self, values: Iterable[Held]) -> None:
        for held in values:
            for key in _keys(held.value):
                self._found.setdefault(key, set()).add(held)

    def _discard(self, key: str, held: Held) -> None:
        found = self._found.get(key, set[Held]())
        found.discard(held)
        if not found:  # otherwise words that no value has any more would pile up
            self._found.pop(key, None)

    def find(self, query: str) -> set[Held]:
        """Return the values that equal `query`, or contain one of its words."""
        wanted = (_whole(query), *words(query)[:MOST_WORDS])
        return {held for key in wanted for held in self._found.get(key, ())}


@lru_cache(maxsize=10_000)
def _keys(value: str) -> frozenset[str]:
    return frozenset((_whole(value), *words(value)))


def _whole(value: str) -> str:
    """Return a key for a value as a whole. It never equals a word."""
    return f"={value.strip().casefold()}"


def fitting(held: Iterable[Held], tables: Mapping[Relation, tuple[Table, Insight]], query: str) -> Iterator[Match]:
    """Yield matches of a query, best first, among the values that these relations hold now."""
    wanted, whole = frozenset(words(query)[:MOST_WORDS]), query.strip().casefold()
    for relation, name, value in held:
        table, insight = tables[relation]
        column = next((each for each in table.columns if each.name == name), None)
        if column is not None and value in _values(column, insight):
            score = EXACT if value.casefold() == whole else _share(value, wanted)
            if score:
                yield Match(table, "value", column, (-score, True, len(value), value, False, str(relation)), value)


def _values(column: TableColumn, insight: Insight) -> tuple[str, ...]:
    profile = insight.profiles.get(column.name)
    return column.enum or (profile.values if profile is not None else ())


def _share(value: str, wanted: frozenset[str]) -> float:
    """Return the share of the query's words that a value contains; 0 for a value without words."""
    held = wanted.intersection(words(value))
    return PARTLY * len(held) / len(wanted) if held else 0.0
