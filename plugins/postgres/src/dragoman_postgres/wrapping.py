"""Bounding a statement by wrapping it, so that the server sends no more rows and bytes than an answer may have.

A limit of the protocol (a portal's or a cursor's) would do without wrapping, but takes parallel plans away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman import Limits

from dragoman_postgres.types import Scalar

_INSPECTION = re.compile(r"\s*(?:show|explain)\b", re.IGNORECASE)
SLACK = 4
"""How many times `max_bytes` the server may send: its texts are a little longer or shorter than our JSON."""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A statement ready to be sent. `prefix`: characters before the caller's own. `most_rows`: it gives no more.

    `most_bytes`: it stops within the row that passes them; None: it does not count.
    """

    text: str
    prefix: int
    most_rows: int | None
    most_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Picked:
    """A column of a statement, by name, and how it is picked."""

    name: str
    scalar: Scalar


def is_inspection(statement: str) -> bool:
    """Whether this is a SHOW or an EXPLAIN, which cannot stand inside a query and gives few rows."""
    return _INSPECTION.match(statement) is not None


def enough_rows(limits: Limits, columns: int) -> int:
    """Rows that are certain to show whether an answer of so many columns is cut, by rows or by bytes.

    The shortest row of n columns, `[1,1]`, takes 2n + 1 bytes and a comma.
    """
    return min(limits.max_rows, limits.max_bytes // (2 * columns + 2)) + 1


def wrap(
    statement: str, limits: Limits, columns: Sequence[Picked] | None = None, *, count_bytes: bool = True
) -> Wrapped:
    """Return `statement` bounded by `limits`; without `count_bytes`, by their rows only.

    `columns` say how each column is picked; None when they are not known yet.
    """
    if is_inspection(statement):
        return Wrapped(statement, 0, None)
    if columns is None:
        head = "SELECT * FROM (\n"
        return Wrapped(f"{head}{statement}\n) AS _q LIMIT {limits.max_rows + 1}", len(head), None)
    rows = enough_rows(limits, len(columns))
    head, tail = _picking(columns, rows)
    if not count_bytes or all(column.scalar.fixed for column in columns):
        return Wrapped(head + statement + tail, len(head), rows)
    return _counted(head, statement, tail, columns, rows, limits.max_bytes * SLACK)


def _picking(columns: Sequence[Picked], rows: int) -> tuple[str, str]:
    """What stands before and after the statement, so that its columns come as c1, c2, ..., each of one certain type.

    By name where names tell columns apart: a prepared statement would not notice that others stand in their places.
    """
    names = _names(columns)
    own = [column.name for column in columns]
    by_name = len(set(own)) == len(own)
    sources = [f"_q.{_quoted(name)}" for name in own] if by_name else names
    picked = (
        f"{column.scalar.pick.format(source)} AS {name}"
        for column, source, name in zip(columns, sources, names, strict=True)
    )
    alias = "_q" if by_name else f"_q({', '.join(names)})"
    return f"SELECT {', '.join(picked)} FROM (\n", f"\n) AS {alias} LIMIT {rows}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _counted(head: str, statement: str, tail: str, columns: Sequence[Picked], rows: int, most: int) -> Wrapped:
    """The server adds up the bytes of the rows before each, and sends none after `most`, nor a longer value."""
    names = _names(columns)
    long = [name for column, name in zip(columns, names, strict=True) if not column.scalar.fixed]
    sizes = " + ".join(f"coalesce(pg_catalog.octet_length({name}), 0)::pg_catalog.int8" for name in long)
    before = f"pg_catalog.sum({sizes}) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    clipped = (_clipped(name, most) if name in long else name for name in names)
    outer = f"SELECT {', '.join(clipped)} FROM (SELECT *, {before} AS _bytes FROM ("
    end = f") AS _r({', '.join(names)})) AS _s WHERE coalesce(_bytes, 0) <= {most}"
    return Wrapped(outer + head + statement + tail + end, len(outer + head), rows, most)


def _clipped(name: str, most: int) -> str:
    # What is longer than the whole answer is never shown, but its row must be seen to be cut.
    return (
        f"CASE WHEN pg_catalog.octet_length({name}) > {most} THEN pg_catalog.substr({name}, 1, {most}) ELSE {name} END"
    )


def _names(columns: Sequence[Picked]) -> list[str]:
    return [f"c{number}" for number in range(1, len(columns) + 1)]
