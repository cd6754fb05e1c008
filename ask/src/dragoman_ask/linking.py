"""The part of a database's schema that a model sees: all of a small one; of a large one what matches the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dragoman.catalog import Insight
from dragoman.catalog.as_text import as_sql, indexes_sql
from dragoman.catalog.names import Namespace
from dragoman.gateway.opened import OpenDatabase
from dragoman.model import Table

Send = Literal["schema", "values", "rows"]
ROOM = 12_000
"""The most characters of the tables that are shown with their columns: some sixty tables."""
LISTED = 4_000
"""The most characters of the names of the other tables."""
MATCHES = 200
BEST = 10
"""The number of best matching tables whose joined tables are shown too."""
_COMMON = frozenset(
    "a about after all also an and any are as at be before between by can did do does each for from give had has have"
    " how i in is it its last list many me more most much no not of on or our over per please show than that the their"
    " them there these they this to top total up was we were what when where which who whose why will with you".split()
)


@dataclass(frozen=True, slots=True)
class Schema:
    """The part of a schema that a model sees: tables as annotated SQL, and the names of others."""

    text: str
    others: Mapping[str, Table]

    @property
    def names(self) -> str:
        """The names of the other tables, as many as there is room for."""
        shown, room = list[str](), LISTED
        for name in self.others:
            room -= len(name) + 2
            if room < 0:
                break
            shown.append(name)
        left = len(self.others) - len(shown)
        return ", ".join(shown) + (f" and {left} more" if left else "")


async def link(opened: OpenDatabase, question: str, send: Send) -> Schema:
    """Return what a model sees of a database for a question. Raises what the catalog raises."""
    snapshot = await opened.catalog.snapshot()
    tables: Sequence[Table] = snapshot.listed
    namespace = opened.catalog.namespace
    if sum(_size(table) for table in tables) > ROOM:
        tables = await _rank(opened, question)
    shown: list[Table] = []
    room = ROOM
    for table in tables:
        room -= len(_write(table, namespace, Insight()))
        if room < 0 and shown:
            break
        shown.append(table)
    known = set(shown)
    others = {namespace.name(table.relation): table for table in snapshot.listed if table not in known}
    return Schema(await tell(opened, shown, send), others)


def _size(table: Table) -> int:
    """Return about how many characters a table takes, without writing it."""
    columns = sum(20 + len(column.name) + len(column.comment or "") for column in table.columns)
    return 40 + columns + 60 * sum(not index.primary for index in table.indexes)


async def _rank(opened: OpenDatabase, question: str) -> Sequence[Table]:
    """Return the tables that match a question, best first, with those they are joined to."""
    words = " ".join(word for word in question.replace("_", " ").split() if word.lower().strip("?,.!") not in _COMMON)
    matches, _ = await opened.catalog.search(words, limit=MATCHES)
    snapshot = await opened.catalog.snapshot()
    found = dict.fromkeys(match.table for match in matches)
    best = list(found)[:BEST]
    joined = [relation for table in best for relation in snapshot.graph.neighbours(table.relation)]
    neighbours = [table for relation in joined if (table := snapshot.by_relation.get(relation))]
    return list(dict.fromkeys([*best, *neighbours, *found])) or list(snapshot.listed)


async def tell(opened: OpenDatabase, tables: Sequence[Table], send: Send) -> str:
    """Return tables as annotated SQL with their indexes.

    Facts about their contents are included only if those may be sent.
    """
    insights = await opened.insights(tables)
    told = {relation: _redact(insight, send) for relation, insight in insights.items()}
    namespace = opened.catalog.namespace
    return "\n".join(_write(table, namespace, told[table.relation]) for table in tables)


def _write(table: Table, namespace: Namespace, insight: Insight) -> str:
    """Return a table with its indexes that are not keys: a query should filter by their columns."""
    return "\n".join([as_sql(table, namespace, insight), *indexes_sql(table, namespace)])


def _redact(insight: Insight, send: Send) -> Insight:
    """Return an insight without profiles, which show contents, unless values may be sent."""
    return insight if send != "schema" else replace(insight, profiles={})
