"""Bounds a statement by wrapping it, so that the server sends no more rows and bytes than an answer may have.

A limit of the protocol (a portal's or a cursor's) would need no wrapping, but rules out parallel plans. Counting bytes
costs the server up to half as much again, so it is used only for statements whose answers were too wide before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from dragoman import Limits

from dragoman_postgres.spelling import quote
from dragoman_postgres.types import AS_IT_IS, Scalar

_INSPECTION = re.compile(r"\s*(?:show|explain)\b", re.IGNORECASE)
_WHOLE = "SELECT * FROM (\n"
_OF_FIXED_WIDTH = frozenset({"boolean", "integer", "float"})
Cut: TypeAlias = Literal["", "stopped", "oversized", "late"]
SLACK = 4
"""How many times `max_bytes` the server may send: its texts are slightly longer or shorter than our JSON."""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A statement ready to be sent.

    - `prefix`: characters before the caller's own text.
    - `most_rows`: the most rows that it returns.
    - `most_bytes`: it stops after the row in which its bytes exceed this, and has one more column; None: never.
    - `long`: the places of the columns whose values may take many bytes.
    """

    text: str
    prefix: int
    most_rows: int | None
    most_bytes: int | None = None
    long: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Picked:
    """A column of a statement, by name, and the expression that selects it."""

    name: str
    scalar: Scalar


def is_inspection(statement: str) -> bool:
    """Return whether this is a SHOW or an EXPLAIN, which cannot be part of a query and returns few rows."""
    return _INSPECTION.match(statement) is not None


def enough_rows(limits: Limits, columns: int) -> int:
    """Return enough rows to show whether an answer of so many columns is cut, by rows or by bytes."""
    return min(limits.max_rows, limits.max_bytes // (2 * columns + 2)) + 1


def wrap(
    statement: str,
    limits: Limits,
    columns: Sequence[Picked] | None = None,
    *,
    count_bytes: bool = False,
    lead: int = 0,
) -> Wrapped:
    """Return `statement` bounded by the rows of `limits`, and with `count_bytes` by their bytes too.

    `columns` say how each column is selected; None if they are not known yet. The first `lead` characters stay first.
    """
    if lead:
        rest = wrap(statement[lead:], limits, columns, count_bytes=count_bytes)
        return replace(rest, text=statement[:lead] + rest.text)
    if is_inspection(statement):
        return Wrapped(statement, 0, None)
    if columns is None:
        return Wrapped(f"{_WHOLE}{statement}\n) AS _q LIMIT {limits.max_rows + 1}", len(_WHOLE), None)
    rows = enough_rows(limits, len(columns))
    long = tuple(place for place, column in enumerate(columns) if not column.scalar.fixed)
    if not count_bytes and all(column.scalar.pick == AS_IT_IS for column in columns):
        return Wrapped(f"{_WHOLE}{statement}\n) AS _q LIMIT {rows}", len(_WHOLE), rows, long=long)
    head, tail = _picking(columns, rows)
    if not count_bytes:
        return Wrapped(head + statement + tail, len(head), rows, long=long)
    return _count_bytes(Wrapped(head + statement + tail, len(head), rows, limits.max_bytes * SLACK, long), columns)


def _picking(columns: Sequence[Picked], rows: int) -> tuple[str, str]:
    """Return the text before and after the statement, so that its columns are named c1, c2, ..., each of a fixed type.

    Columns are selected by name if names are unique: a prepared statement would not notice that others took their
    places.
    """
    names = _names(columns)
    own = [column.name for column in columns]
    by_name = len(set(own)) == len(own)
    sources = [f"_q.{quote(name)}" for name in own] if by_name else names
    picked = (
        f"{column.scalar.pick.format(source)} AS {name}"
        for column, source, name in zip(columns, sources, names, strict=True)
    )
    alias = "_q" if by_name else f"_q({', '.join(names)})"
    return f"SELECT {', '.join(picked)} FROM (\n", f"\n) AS {alias} LIMIT {rows}"


def _count_bytes(picking: Wrapped, columns: Sequence[Picked]) -> Wrapped:
    """Wrap the statement so that the server sums the bytes of earlier rows, and sends no row after `most_bytes`.

    A row that is too large by itself comes without its large values. The last column has the bytes of each row.
    """
    names, most = _names(columns), picking.most_bytes
    assert most is not None
    measured = [column.scalar.kind.name not in _OF_FIXED_WIDTH for column in columns]
    # Integers of four bytes, since sums of eight are numerics. Each value counts up to a maximum, so that no row
    # overflows.
    enough = min(most, 2_000_000_000 // max(sum(measured), 1))
    sizes = " + ".join(
        f"coalesce(least(pg_catalog.octet_length({name}), {enough}), 0) + 4" if long else "8"
        for name, long in zip(names, measured, strict=True)
    )
    clipped = (
        f"CASE WHEN _own > {most} THEN NULL ELSE {name} END" if long else name
        for name, long in zip(names, measured, strict=True)
    )
    before = "pg_catalog.sum(_own) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    head = (
        f"SELECT {', '.join([*clipped, '_own'])} FROM (SELECT *, {before} AS _before"
        f" FROM (SELECT *, 7 + {sizes} AS _own FROM ("
    )
    tail = f") AS _r({', '.join(names)})) AS _s) AS _t WHERE coalesce(_before, 0) <= {most}"
    return replace(picking, text=head + picking.text + tail, prefix=len(head) + picking.prefix)


def split_counts(rows: Sequence[Any], wrapped: Wrapped) -> tuple[Sequence[Any], Cut]:
    """Return the rows of a statement without the added columns, and why there are no more.

    `stopped`: they are too many bytes. `oversized`: the next row is too large by itself.
    """
    most = wrapped.most_bytes
    if most is None or not rows:
        return rows, ""
    sizes = [row[-1] for row in rows]
    whole = [row[:-1] for row in rows]
    if sizes[-1] > most:
        return whole[:-1], "oversized"
    return whole, "stopped" if sum(sizes) > most and len(rows) != wrapped.most_rows else ""


def _names(columns: Sequence[Picked]) -> list[str]:
    return [f"c{number}" for number in range(1, len(columns) + 1)]
