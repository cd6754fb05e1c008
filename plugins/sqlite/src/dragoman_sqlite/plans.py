"""EXPLAIN QUERY PLAN, and what to watch out for in it."""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import apsw

from dragoman_sqlite.frames import Run, Told

BIG = 10_000
"""Rows from which on a full scan is worth a warning."""

Start = Callable[[int], apsw.Cursor]
"""Starts the statement: 0 as it is, 1 as EXPLAIN, 2 as EXPLAIN QUERY PLAN (sqlite3_stmt_explain)."""

_SCAN = re.compile(r"SCAN (.+?)( LEFT-JOIN)?$")
"""A scan of the whole table; one that goes through an index or a virtual table says more behind the name."""


def tell_plan(connection: apsw.Connection, order: Run, start: Start) -> Told:
    """Return the plan; with `analyze` the statement runs to its end and its rows are thrown away."""
    steps = [(step, parent, detail) for step, parent, _, detail in start(2)]
    bytecode = [list(row) for row in start(1)] if order.verbose else []
    elapsed = _elapsed(start) if order.analyze else None
    return Told(steps, bytecode, list(_warnings(connection, order.sql, [detail for *_, detail in steps])), elapsed)


def _elapsed(start: Start) -> float:
    began = time.perf_counter()
    for _ in start(0):
        pass
    return (time.perf_counter() - began) * 1000


def _warnings(connection: apsw.Connection, sql: str, details: list[str]) -> Iterator[str]:
    tables = _tables(connection)
    for detail in details:
        if scan := _SCAN.match(detail):
            rows = _rows(connection, _table(scan[1], sql, tables))
            if rows >= BIG:
                yield f"Full scan of {scan[1]} (about {rows} rows): an index on what it is filtered by would help."
        elif "AUTOMATIC" in detail:
            yield f"An index is built for this query alone ({detail}): a lasting one would help."


def _tables(connection: apsw.Connection) -> dict[str, str]:
    names = connection.execute("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT wr")
    return {name.lower(): name for (name,) in names}


def _table(scanned: str, sql: str, tables: dict[str, str]) -> str | None:
    """The table behind a name in a plan, which may be an alias."""
    if scanned.lower() in tables:
        return tables[scanned.lower()]
    alias = re.search(rf"""([\w$]+)["`\]]?\s+(?:as\s+)?["`\[]?{re.escape(scanned)}\b""", sql, re.IGNORECASE)
    return tables.get(alias[1].lower()) if alias else None


def _rows(connection: apsw.Connection, table: str | None) -> int:
    if table is None:
        return 0
    quoted = '"' + table.replace('"', '""') + '"'
    # Apart, each is found at one end of the table; together they would read all of it.
    span = f"SELECT (SELECT max(rowid) FROM {quoted}) - (SELECT min(rowid) FROM {quoted}) + 1"
    return next(connection.execute(span))[0] or 0
