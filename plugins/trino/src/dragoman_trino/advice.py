"""Warnings about a plan, with remedies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dragoman import Relation
from dragoman.words import mention

from dragoman_trino.nodes import Node
from dragoman_trino.partitions import source
from dragoman_trino.tables import SYSTEM_CATALOG, SYSTEM_SCHEMA, Scan

MANY_ROWS = 10_000
"""The number of rows from which reading a whole partitioned table gets a warning."""
MANY_BYTES = 10 * 2**30
MANY_PAIRS = 1_000_000
MOST = 5
"""The most warnings that are shown."""
_SHOWN = 10
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")

Partitioned = Mapping[Relation, Collection[str]]
"""The partitioning of tables."""


def warnings(plan: Node, scans: Sequence[Scan], partitioned: Partitioned) -> tuple[str, ...]:
    """Return warnings about a plan, the most serious kinds first, each once."""
    own = [scan for scan in scans if not _is_system(scan.relation)]
    found = (*_cross_joins(plan), *_whole_tables(own, partitioned), *_much(own), *_unknown(own))
    return tuple(dict.fromkeys(found))[:MOST]


def reads(scans: Sequence[Scan]) -> Iterator[str]:
    """Yield what a query reads of which tables, before it filters."""
    if scans:
        more = f" and {len(scans) - _SHOWN} more tables" if len(scans) > _SHOWN else ""
        yield f"Reads {', '.join(_amount(scan) for scan in scans[:_SHOWN])}{more}."


def _amount(scan: Scan) -> str:
    if scan.rows is None:
        return f"{mention(str(scan.relation))} (how much is not known)"
    return f"{mention(str(scan.relation))} (about {scan.rows:.0f} rows{f', {_bytes(scan.size)}' if scan.size else ''})"


def _bytes(size: float) -> str:
    unit = 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if size >= 10 or unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def _is_system(relation: Relation) -> bool:
    return relation.catalog == SYSTEM_CATALOG or relation.schema == SYSTEM_SCHEMA


def _cross_joins(plan: Node) -> Iterator[str]:
    for node, limited in plan.walk():
        if node.name != "CrossJoin" or limited or len(node.children) < 2:
            continue
        left, right = (child.rows for child in node.children)
        if (left is not None and left <= 1) or (right is not None and right <= 1):
            continue  # a subquery of one row
        if left is None or right is None:
            yield f"Cross join of {_rows(left)} by {_rows(right)}: {_JOIN}."
        elif left * right >= MANY_PAIRS:
            yield f"Cross join over about {left * right:.0f} pairs of rows: {_JOIN}."


_JOIN = "a join condition may be missing. Only columns compared with = are joined otherwise"


def _rows(count: float | None) -> str:
    return "an unknown number of rows" if count is None else f"about {count:.0f} rows"


def _whole_tables(scans: Sequence[Scan], partitioned: Partitioned) -> Iterator[str]:
    for scan in scans:
        parts = partitioned.get(scan.relation, ())
        if not parts or (scan.rows is not None and scan.rows < MANY_ROWS):
            continue
        if scan.constrained.isdisjoint(source(part) for part in parts):
            columns = " or ".join(dict.fromkeys(source(part) for part in parts))
            yield (
                f"Every partition of {scan.relation} is read ({_rows(scan.rows)}):"
                f" limit {columns} in WHERE by constants, without a function around it."
            )


def _much(scans: Sequence[Scan]) -> Iterator[str]:
    for scan in scans:
        if scan.size is not None and scan.size >= MANY_BYTES:
            name = mention(str(scan.relation))
            yield f"About {_bytes(scan.size)} of {name} are read: select fewer columns or limit the rows."


def _unknown(scans: Sequence[Scan]) -> Iterator[str]:
    names = sorted({str(scan.relation) for scan in scans if scan.rows is None})
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield (
            f"There are no statistics of {', '.join(names[:_SHOWN])}{more}: the query may read "
            "far more than expected, and joins may run in a bad order. The administrator can "
            "create them with ANALYZE."
        )
