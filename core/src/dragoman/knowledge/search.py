"""Search among the values that may be shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.catalog import Insight, Match
from dragoman.catalog.search import words
from dragoman.model import Table, TableColumn

EXACT = 1.5
"""A value that is what was looked for: behind a name that is, before all others."""
PARTLY = 0.6
MOST_WORDS = 20


def search_values(known: Iterable[tuple[Table, Insight]], query: str) -> Iterator[Match]:
    """Yield the values that a query names, with what holds them."""
    wanted = frozenset(words(query)[:MOST_WORDS])
    for table, insight in known:
        for column in table.columns:
            for value in _values(column, insight):
                score = EXACT if value.casefold() == query.strip().casefold() else _share(value, wanted)
                if score:
                    relation = str(table.relation)
                    yield Match(table, "value", column, (-score, True, len(value), value, False, relation), value)


def _values(column: TableColumn, insight: Insight) -> tuple[str, ...]:
    profile = insight.profiles.get(column.name)
    return column.enum or (profile.values if profile is not None else ())


def _share(value: str, wanted: frozenset[str]) -> float:
    """How much of the query a value holds; values that are no words hold nothing."""
    held = wanted.intersection(words(value))
    return PARTLY * len(held) / len(wanted) if held else 0.0
