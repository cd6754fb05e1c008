"""CSV files: how each is read, as all of its rows say.

DuckDB looks at the first 20,480 rows. If the later ones do not fit, it rounds 1.5 to 2, cuts the time off a date, or
takes quotes for a part of the value. `written` says which types keep what is written.
"""

# pyright: reportUnknownMemberType=false
# (a connection's methods take what no stub names)

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, cast

import duckdb

from dragoman_duckdb.worker.parts import State, literally, observe
from dragoman_duckdb.worker.written import find_types
from dragoman_duckdb.writing import quote_text

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
ISO = "%Y-%m-%d"
"""The format of dates without which DuckDB reads all of these, `infinity`, 2024/01/01 and years before 1 as well."""
Facts = Mapping[str, Any]
START = 4096
"""Bytes at the beginning of a file that tell it from one that took its place: a file system gives numbers again."""


class Looked(NamedTuple):
    """What a file was when it was looked at, and the options that were found out."""

    state: State
    start: bytes
    options: str


_KNOWN: dict[str, Looked] = {}
"""What was found out of each file: when another one comes or changes, it is not looked at again."""


def find_small(paths: Iterable[str], most: int = MOST) -> frozenset[str]:
    """Return the files, beginning with the smallest, that have no more bytes together."""
    sizes = sorted((state[1], path) for path in paths if (state := observe(path)))
    sums = accumulate(size for size, _ in sizes)
    return frozenset(path for (_, path), so_far in zip(sizes, sums, strict=True) if so_far <= most)


def forget_others(paths: Collection[str]) -> None:
    """Forget what was found out of files other than these, which have gone or grown too large to be looked at."""
    for path in _KNOWN.keys() - paths:
        del _KNOWN[path]


def read_text(connection: duckdb.DuckDBPyConnection, path: str) -> str:
    """Return the call that reads a file with the types that hold every value of all its rows."""
    state = observe(path)
    known = _KNOWN.get(path)
    if known is None or known.state != state:
        known = _KNOWN[path] = Looked(state, _read_start(path), _options(connection, path))
    return write_call(path, known.options)


def find_looked_at(sql: str, reads: Iterable[Sequence[str]] | None) -> dict[str, Looked]:
    """Return the files that were looked at and that a statement reads.

    `reads`: the statement's relations, their names in parts; None: those whose name its text has.
    """
    named = sql.lower().replace('""', '"') if reads is None else {parts[-1].lower() for parts in reads}
    return {path: looked for path, looked in _KNOWN.items() if os.path.splitext(path)[0].lower() in named}


def find_replaced(files: Mapping[str, Looked]) -> str | None:
    """Return a file in whose place there is another one than was looked at.

    What was found out tells its columns by their order. A file that has grown keeps the order.
    """
    return next((path for path, looked in files.items() if _is_other(looked, path)), None)


def _is_other(looked: Looked, path: str) -> bool:
    now = observe(path)
    if looked.state is None or now is None or looked.state[0] != now[0]:
        return True
    return looked.state != now and not _read_start(path).startswith(looked.start)


def _read_start(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(START)
    except OSError:
        return b""


def write_call(path: str, options: str = AS_TEXT) -> str:
    """Return the call that reads a file with these options."""
    return f"read_csv({quote_text(literally(path))}, {options})"


def _options(connection: duckdb.DuckDBPyConnection, path: str) -> str:
    sniffed = f"SELECT {', '.join(FACTS.values())} FROM sniff_csv({quote_text(literally(path))}, sample_size = -1)"
    try:
        (found,) = connection.execute(sniffed).fetchall()
        known = {option: fact for option, fact in zip(FACTS, found, strict=True) if fact is not None and fact != ISO}
        facts = _find_quotes(connection, path, known)
        return _join({**facts, "columns": _find_types(connection, path, facts)})
    except duckdb.Error:  # some row fits no other; who reads it is told
        return AS_TEXT


def _find_quotes(connection: duckdb.DuckDBPyConnection, path: str, facts: Facts) -> Facts:
    """Return the quotes of a file with one column of texts, of which DuckDB looks at the first rows only."""
    quoted = {**facts, "quote": '"', "escape": '"'}
    if [column["type"] for column in facts["columns"]] == ["VARCHAR"] and facts.get("quote") == "(empty)":
        with contextlib.suppress(duckdb.Error):  # a value begins with a quote that does not end
            connection.execute(f"SELECT count(COLUMNS(*)) FROM {write_call(path, _join(quoted))}")
            return quoted
    return facts


def _find_types(connection: duckdb.DuckDBPyConnection, path: str, facts: Facts) -> list[dict[str, str]]:
    """Return the columns, with types that keep what each of all their texts says."""
    columns: list[dict[str, str]] = facts["columns"]
    texts = write_call(path, _join({**facts, "columns": [{**column, "type": "VARCHAR"} for column in columns]}))
    formats = {"DATE": facts.get("dateformat"), "TIMESTAMP": facts.get("timestampformat")}
    guessed = {column["name"]: (column["type"], formats.get(column["type"])) for column in columns}
    types = find_types(connection, texts, guessed)
    return [{**column, "type": types.get(column["name"], column["type"])} for column in columns]


def _join(facts: Facts) -> str:
    return ", ".join(("auto_detect = false", *(f"{option} = {_write(facts[option])}" for option in facts)))


def _write(fact: Any) -> str:
    if isinstance(fact, list):
        columns = cast("list[dict[str, str]]", fact)
        return f"{{{', '.join(map(_write_column, columns))}}}"
    return quote_text("" if fact == "(empty)" else fact) if isinstance(fact, str) else str(fact)


def _write_column(column: Mapping[str, str]) -> str:
    return f"{quote_text(column['name'])}: {quote_text(column['type'])}"
