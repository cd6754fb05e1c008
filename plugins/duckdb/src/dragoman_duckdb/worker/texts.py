"""CSV files: how each is read, as all of its rows say.

DuckDB looks at the first 20,480 rows. If the later ones do not fit, it rounds 1.5 to 2, cuts the time off a date, or
takes quotes for a part of the value.
"""

# pyright: reportUnknownMemberType=false
# (a connection's methods take what no stub names)

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, cast

import duckdb

from dragoman_duckdb.worker.parts import State, literally, observe
from dragoman_duckdb.writing import quote_name, quote_text

MOST = 128 * 1024 * 1024
"""Bytes of a folder's files whose rows are all looked at, which takes some seconds. Columns of the others are texts."""
FACTS = {
    "delim": "Delimiter",
    "quote": "Quote",
    "escape": "Escape",
    "new_line": "NewLineDelimiter",
    "comment": "Comment",
    "skip": "SkipRows",
    "header": "HasHeader",
    "columns": "Columns",
    "dateformat": "DateFormat",
    "timestampformat": "TimestampFormat",
}
"""The options of `read_csv`, and what `sniff_csv` calls them."""
AS_TEXT = "all_varchar = true, quote = '\"', escape = '\"'"
ZONE = r":[0-9]+(\.[0-9]+)?\s*(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
_KNOWN: dict[str, tuple[State, str]] = {}
"""What was found out of each file: when another one comes or changes, it is not looked at again."""


def find_small(paths: Iterable[str], most: int = MOST) -> frozenset[str]:
    """Return the files, beginning with the smallest, that have no more bytes together."""
    sizes = sorted((state[1], path) for path in paths if (state := observe(path)))
    sums = accumulate(size for size, _ in sizes)
    return frozenset(path for (_, path), so_far in zip(sizes, sums, strict=True) if so_far <= most)


def read_text(connection: duckdb.DuckDBPyConnection, path: str) -> str:
    """Return the call that reads a file with the types that hold every value of all its rows."""
    state = observe(path)
    known = _KNOWN.get(path)
    if known is None or known[0] != state:
        known = _KNOWN[path] = state, _options(connection, path)
    return write_call(path, known[1])


def write_call(path: str, options: str = AS_TEXT) -> str:
    """Return the call that reads a file with these options."""
    return f"read_csv({quote_text(literally(path))}, {options})"


def _options(connection: duckdb.DuckDBPyConnection, path: str) -> str:
    sniffed = f"SELECT {', '.join(FACTS.values())} FROM sniff_csv({quote_text(literally(path))}, sample_size = -1)"
    try:
        (found,) = connection.execute(sniffed).fetchall()
        facts: dict[str, Any] = {option: fact for option, fact in zip(FACTS, found, strict=True) if fact is not None}
        return _join(facts | {"columns": _find_zones(connection, path, facts)})
    except duckdb.Error:  # some row fits no other; who reads it is told
        return AS_TEXT


def _find_zones(connection: duckdb.DuckDBPyConnection, path: str, facts: dict[str, Any]) -> list[dict[str, str]]:
    """Return the columns; one of moments has a zone if any moment has, which DuckDB sees in the first rows only."""
    columns: list[dict[str, str]] = facts["columns"]
    moments = [column["name"] for column in columns if column["type"] == "TIMESTAMP"]
    if not moments:
        return columns
    as_text = _join(facts | {"columns": [column | {"type": "VARCHAR"} for column in columns]})
    asked = ", ".join(f"bool_or(regexp_matches({quote_name(name)}, {quote_text(ZONE)}))" for name in moments)
    (found,) = connection.execute(f"SELECT {asked} FROM {write_call(path, as_text)}").fetchall()
    zoned = {name for name, has_zone in zip(moments, found, strict=True) if has_zone}
    return [column | {"type": "TIMESTAMPTZ"} if column["name"] in zoned else column for column in columns]


def _join(facts: Mapping[str, Any]) -> str:
    return ", ".join(("auto_detect = false", *(f"{option} = {_write(facts[option])}" for option in facts)))


def _write(fact: Any) -> str:
    if isinstance(fact, list):
        columns = cast("list[dict[str, str]]", fact)
        return f"{{{', '.join(map(_write_column, columns))}}}"
    return quote_text("" if fact == "(empty)" else fact) if isinstance(fact, str) else str(fact)


def _write_column(column: Mapping[str, str]) -> str:
    return f"{quote_text(column['name'])}: {quote_text(column['type'])}"
