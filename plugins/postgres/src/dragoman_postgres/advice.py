"""Warnings about a plan, with remedies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dragoman.words import mention

from dragoman_postgres.nodes import Node
from dragoman_postgres.spelling import quote

BIG = 10_000
"""The number of rows from which a sequential scan gets a warning."""
SELECTIVE = 0.1
"""The share of a table below which an index would be faster."""
FAR_OFF = 10
"""The factor from which an estimate counts as wrong."""
WORTH = 1000
"""The number of rows below which a wrong estimate does no harm."""
MANY_PAIRS = 1_000_000
MOST = 5
"""The most warnings that are shown."""

MOST_SCANS = 3
_STOPS_EARLY = re.compile(r"Limit$|.*\b(?:Semi|Anti) Join|Merge Join")
_READS_ALL = re.compile(r"(?:(?:Partial|Finalize|Parallel) )*(?:Sort|Hash|Aggregate|HashAggregate)$")
_COMPARES = frozenset({"Join Filter", "Index Cond", "Recheck Cond", "TID Cond", "Cache Key", "Filter"})


@dataclass(frozen=True, slots=True)
class Scanned:
    """What the catalog knows of a scanned table. `leading`: the first columns of its indexes."""

    rows: int
    columns: tuple[str, ...]
    leading: frozenset[str]


_SMALLER = "fewer rows or columns, or more work_mem, would keep it in memory"

Tables = Mapping[str, Scanned]
"""By the table's name."""


def sequential_scans(plan: Node) -> list[Node]:
    """Return the steps that read a whole table and keep the rows that match a filter."""
    return [
        node for node in plan.walk() if "Seq Scan on" in node.title and node.relation and "Filter" in node.conditions
    ]


def warnings(plan: Node, tables: Tables) -> tuple[str, ...]:
    """Return warnings about a plan, the most serious kinds first, each once."""
    found = (*_loops(plan), *_scans(plan, tables), *_spills(plan), *_estimates(plan))
    return tuple(dict.fromkeys(found))[:MOST]


def _scans(plan: Node, tables: Tables) -> Iterator[str]:
    found = [(*_amounts(node, table), node, table) for node in sequential_scans(plan) for table in [_of(node, tables)]]
    wasteful = [each for each in found if each[0] >= BIG and each[1] <= each[0] * SELECTIVE]
    for read, kept, node, table in sorted(wasteful, key=lambda each: -each[0])[:MOST_SCANS]:
        amounts = f"about {read:.0f} rows read to keep {kept:.0f}"
        yield f"Sequential scan of {mention(str(node.relation))}: {amounts}; {_remedy(node, table)}."


def _of(node: Node, tables: Tables) -> Scanned:
    return tables.get(node.relation or "", Scanned(0, (), frozenset()))


def _amounts(node: Node, table: Scanned) -> tuple[float, float]:
    """Return the rows that a scan reads and keeps: actual ones, or else estimates."""
    if node.actual is None:
        return float(table.rows), node.rows
    return (node.actual + node.removed) * node.loops, node.actual * node.loops


def _remedy(node: Node, table: Scanned) -> str:
    used = [name for name in table.columns if _mentions(node.conditions["Filter"], name)]
    if indexed := [name for name in used if name in table.leading]:
        return (
            f"the index on {indexed[0]} is not used, perhaps because of a cast, function or "
            "operator on it, or old statistics"
        )
    return f"an index on {', '.join(used) or 'what it is filtered by'} would help"


def _mentions(condition: str, column: str) -> bool:
    plain = rf"(?<![\w\"']){re.escape(column)}(?![\w(\"'])"
    return re.search(rf"{plain}|{re.escape(quote(column))}", condition) is not None


def _loops(plan: Node) -> Iterator[str]:
    for node, limited in _steps(plan):
        if not node.title.startswith("Nested Loop") or len(node.inputs) < 2 or (limited and node.actual is None):
            continue
        outer, inner = node.inputs[:2]
        if inner.actual is None:
            pairs = outer.rows * max(inner.rows, 1)
        else:
            pairs = inner.loops * max(inner.actual + inner.removed, 1)
        if pairs >= MANY_PAIRS:
            joined = any(_COMPARES & step.conditions.keys() for step in (node, *inner.walk()))
            remedy = (
                "compare columns with = and create an index on them" if joined else "a join condition may be missing"
            )
            yield f"Nested loop over about {pairs:.0f} pairs of rows: {remedy}."


def _spills(plan: Node) -> Iterator[str]:
    for node in plan.walk():
        if node.disk:
            yield f"{node.title} wrote {_size(node.disk)} to disk: {_SMALLER}."
        elif node.batches > 1:
            yield f"{node.title} was split into {node.batches} batches on disk: {_SMALLER}."


def _size(kilobytes: int) -> str:
    return f"{kilobytes} kB" if kilobytes < 10_240 else f"{kilobytes // 1024} MB"


def _estimates(plan: Node) -> Iterator[str]:
    """Yield the lowest wrong estimates. Those above follow from them."""
    wrong = {id(node): node for node, limited in _steps(plan) if _is_far_off(node, limited)}
    for node in wrong.values():
        below = (step for child in (*node.inputs, *node.subplans) for step in child.walk())
        if not any(id(step) in wrong for step in below):
            came = (node.actual or 0) * node.loops
            yield (
                f"{node.title}: {node.rows * node.loops:.0f} rows were expected and {came:.0f} came;"
                " the cause may be old statistics (ANALYZE renews them), or columns that depend on each other."
            )


def _is_far_off(node: Node, limited: bool) -> bool:
    if node.actual is None or max(node.rows, node.actual) * node.loops < WORTH:
        return False
    if node.rows > node.actual and limited:
        return False  # it was stopped before it had read all of them
    low, high = sorted((max(node.rows, 1), max(node.actual, 1)))
    return high / low >= FAR_OFF


def _steps(plan: Node, limited: bool = False) -> Iterator[tuple[Node, bool]]:
    """Yield every step, and whether a step above it may have stopped it early."""
    yield plan, limited
    stopped = bool(_STOPS_EARLY.match(plan.title)) or (limited and not _READS_ALL.match(plan.title))
    for child in (*plan.inputs, *plan.subplans):
        yield from _steps(child, stopped)
