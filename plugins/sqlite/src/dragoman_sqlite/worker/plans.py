"""EXPLAIN QUERY PLAN, and warnings about the plan."""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import apsw
from dragoman.words import mention, quote_foreign
from dragoman.workers.frames import Run, Told

from dragoman_sqlite.quoting import quote_name

BIG = 10_000
"""The number of rows from which a full scan gets a warning."""

TABLES = """
SELECT own.rootpage, own.name FROM sqlite_schema AS own JOIN pragma_table_list AS list ON list.name = own.name
WHERE own.type = 'table' AND list.schema = 'main' AND NOT list.wr
"""

_ADDRESS = re.compile(r"vtab:[0-9A-Fa-f]+")

Start = Callable[[int], apsw.Cursor]
"""Starts the statement: 0 runs it, 1 is EXPLAIN, 2 is EXPLAIN QUERY PLAN (sqlite3_stmt_explain)."""
Step = tuple[int, int, str]
"""The step's id, which is its address in the program; its parent's id; and its description."""


def tell_plan(connection: apsw.Connection, order: Run, start: Start) -> Told:
    """Return the plan. With `analyze` the statement runs to its end and its rows are dropped."""
    steps: list[Step] = [(step, parent, detail) for step, parent, _, detail in start(2)]
    bytecode = [list(row) for row in start(1)]
    elapsed = _measure(start) if order.analyze else None
    warnings = dict.fromkeys(_warnings(connection, sorted(steps), bytecode))
    told = [_without_address(row) for row in bytecode] if order.verbose else []
    return Told({"steps": steps, "bytecode": told}, list(warnings), elapsed)


def _without_address(row: list[Any]) -> list[Any]:
    """Return an instruction without an address: SQLite shows where in this process's memory a virtual table is."""
    return ["vtab" if isinstance(value, str) and _ADDRESS.fullmatch(value) else value for value in row]


def _measure(start: Start) -> float:
    began = time.perf_counter()
    for _ in start(0):
        pass
    return (time.perf_counter() - began) * 1000


def _warnings(connection: apsw.Connection, steps: Sequence[Step], bytecode: Sequence[Any]) -> Iterator[str]:
    for _, _, detail in steps:
        if "AUTOMATIC" in detail:
            yield f"An index is built for this query alone ({quote_foreign(detail)}): a permanent one would help."
    pairs: Any = connection.execute(TABLES)
    tables: dict[int, str] = dict(pairs)
    for root in _list_scanned(steps, bytecode):
        if root in tables and (rows := _rows(connection, tables[root])) >= BIG:
            name = mention(tables[root])
            yield f"Full scan of {name} (about {rows} rows): an index on what it is filtered by would help."


def _list_scanned(steps: Sequence[Step], bytecode: Sequence[Any]) -> Iterator[int]:
    """Yield the root pages of tables and indexes that are read from one end to the other.

    The plan names aliases, and the program shows which tables they are: a step that scans is followed by going to the
    first or last row. In the program of a plan each step has an address of its own, which the program that runs does
    not have.
    """
    opened = {row[2]: row[3] for row in bytecode if row[1] == "OpenRead"}
    starts = [address - earlier for earlier, (address, *_) in enumerate(steps)]
    for (_, _, detail), (start, end) in zip(steps, pairwise([*starts, len(bytecode)]), strict=True):
        if detail.startswith("SCAN "):
            first = next((row[2] for row in bytecode[start:end] if row[1] in ("Rewind", "Last")), None)
            if first in opened:
                yield opened[first]


def _rows(connection: apsw.Connection, table: str) -> int:
    name = quote_name(table)
    # In separate queries, each is found at one end of the table. One query for both would read all of it.
    span = f"SELECT (SELECT max(rowid) FROM {name}) - (SELECT min(rowid) FROM {name}) + 1"
    row: Any = next(connection.execute(span))
    return row[0] or 0
