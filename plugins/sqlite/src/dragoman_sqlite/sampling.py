"""Reads a few rows of a file's tables to profile columns, since SQLite keeps no statistics of values."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman import ColumnProfile, ProfileBudget, Relation, Table, profile_columns

from dragoman_sqlite.quoting import quote_name

LONGEST = 64
"""The most characters of a text that are read. Longer texts are not kinds of anything."""
SPREAD = 2000
"""The rows read all over a table that is larger than the budget. Its first rows alone may all be of one time."""


def sample(
    connection: sqlite3.Connection, tables: Sequence[Table], budget: ProfileBudget
) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
    """Return profiles of stored tables, as many as the time allows. What cannot be read is left out."""
    deadline = time.monotonic() + budget.seconds
    found: dict[Relation, tuple[ColumnProfile, ...]] = {}
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    for table in tables:
        if table.type != "table" or not table.columns:
            continue
        try:
            rows, whole = _rows(connection, table, budget)
        except sqlite3.Error:
            continue  # it took too long, or is damaged; the others are still read
        found[table.relation] = profile_columns([column.name for column in table.columns], rows, budget, whole=whole)
    return found


def _rows(connection: sqlite3.Connection, table: Table, budget: ProfileBudget) -> tuple[list[Any], bool]:
    """Return the rows of a small table, or some rows of a large one; and whether these are all."""
    columns = ", ".join(_value(column.name) for column in table.columns)
    query = f"SELECT {columns} FROM {quote_name(table.relation.name)}"
    if (table.row_estimate or 0) > budget.rows and (spread := _spread(connection, table, query)):
        return spread, False
    rows = connection.execute(f"{query} LIMIT {budget.rows + 1}").fetchall()
    return rows[: budget.rows], len(rows) <= budget.rows


def _value(column: str) -> str:
    name = quote_name(column)
    return f"CASE typeof({name}) WHEN 'text' THEN substr({name}, 1, {LONGEST}) WHEN 'blob' THEN x'' ELSE {name} END"


def _spread(connection: sqlite3.Connection, table: Table, query: str) -> list[Any]:
    """Return rows at random places, always the same ones; none if rowids have gaps or do not exist."""
    name = quote_name(table.relation.name)
    try:
        low, high = connection.execute(f"SELECT min(rowid), max(rowid) FROM {name}").fetchone()
        places = random.Random(0).sample(range(low, high + 1), min(SPREAD, high - low + 1))
    except (sqlite3.Error, TypeError):
        return []
    listed = ", ".join(map(str, places))
    rows = connection.execute(f"{query} WHERE rowid IN ({listed})").fetchall()
    return rows if len(rows) > SPREAD / 4 else []
