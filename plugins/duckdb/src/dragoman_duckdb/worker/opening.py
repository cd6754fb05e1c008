"""Opens a file, or a folder as a database, and seals it off: from then on nothing else is reachable."""

# pyright: reportUnknownMemberType=false
# (a connection's methods take what no stub names)

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import duckdb
from dragoman.words import lower_ascii

from dragoman_duckdb.frames import Setup
from dragoman_duckdb.rules import RULES
from dragoman_duckdb.schemas import in_order
from dragoman_duckdb.worker.parts import Found, Parts, find_parts, literally, read_parts
from dragoman_duckdb.worker.texts import find_small, forget_others, read_text, write_call
from dragoman_duckdb.writing import quote_name, quote_text

Sealing = dict[str, str | bool | int | float | list[str]]
READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv"}
TYPES = "dragoman:types"
"""The key in a Parquet file's metadata for the types that columns had before they were written as text, as JSON."""
LISTED = RULES.functions | RULES.table_functions


def open_sealed(setup: Setup) -> duckdb.DuckDBPyConnection:
    """Return a connection that reads the file, or the files of a folder, and nothing else. Raises `duckdb.Error`."""
    limits: Sealing = {
        "memory_limit": f"{setup.memory}MiB",
        "threads": setup.threads,
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "python_enable_replacements": False,
        # Nothing is spilled to files: a query that exceeds the memory limit fails.
        "temp_directory": "",
    }
    file = Path(setup.path)
    if file.is_file():
        connection = duckdb.connect(file, read_only=True, config=limits)
        connection.execute("SET enable_external_access = false")
    else:
        connection = _open_folder(file, limits)
    # What a moment's day is must not depend on the machine of the gateway, nor differ from the other dialects.
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    return connection


def _open_folder(folder: Path, limits: Sealing) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config=limits)
    # Of a path such as /srv/env=prod/lake/a.csv DuckDB would make a column `env`, in place of one that the file has.
    os.chdir(folder)
    connection.execute(f"SET allowed_directories = [{quote_text(f'{os.getcwd()}/')}]")
    # Before any file is read: a link that leads out of the folder would tell its columns.
    connection.execute("SET enable_external_access = false")
    relations = list(_relations(Path()))
    small = find_small(found.files[0] for _, reader, found in relations if reader == "read_csv")
    forget_others(small)
    for name, reader, found in relations:
        _make_view(connection, name, reader, found, small)
    return connection


def put_engine_first(connection: duckdb.DuckDBPyConnection, setup: Setup) -> str:
    """Return the statement after which a cursor finds the engine's functions and types before those that users made.

    An operator or a function's name then calls no macro. The setting is the cursor's own. DuckDB finds `sales.orders`
    only if `sales` is in the path. The first schema of the file is the one where the catalog looks names up.
    """
    schemas = "SELECT database_name, schema_name FROM system.main.duckdb_schemas() WHERE NOT database_name IN"
    found = connection.execute(f"{schemas} ('system', 'temp')").fetchall()
    bases = {name: base for base, name in found}  # there is one database beside the engine's own
    order = in_order(bases, setup.home, setup.schemas)
    listed = ",".join(("system.main", *(f"{quote_name(bases[name])}.{quote_name(name)}" for name in order)))
    return f"SET search_path = {quote_text(listed)}"


def borrow(connection: duckdb.DuckDBPyConnection, setting: str) -> duckdb.DuckDBPyConnection:
    """Return a cursor of its own, with the setting that `put_engine_first` returned."""
    cursor = connection.cursor()
    cursor.execute(setting)
    return cursor


def find_posing(cursor: duckdb.DuckDBPyConnection) -> re.Pattern[str] | None:
    """Return a pattern for calls of macros with a listed name that the engine has as syntax alone: `current_time`."""
    own = "SELECT function_name FROM system.main.duckdb_functions()"
    posing = f"SELECT DISTINCT function_name FROM ({own} WHERE NOT internal) EXCEPT ({own} WHERE internal)"
    names = [name for (name,) in cursor.execute(posing).fetchall() if lower_ascii(name) in LISTED]
    return re.compile(rf"""(?<!\w)"?({"|".join(map(re.escape, names))})"?\s*\(""", re.IGNORECASE) if names else None


def _relations(folder: Path) -> Iterator[tuple[str, str, Found]]:
    """Yield the name of each relation, the function that reads it, and its file, or the Parquet files of a folder."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            found = find_parts(path, folder)
            if found is not None:
                yield path.name, "", found
        elif path.is_file() and path.suffix.lower() in READERS:
            yield path.stem, READERS[path.suffix.lower()], Found([str(path)], quote_text(literally(path)))


def _make_view(
    connection: duckdb.DuckDBPyConnection, name: str, reader: str, found: Found, small: Collection[str]
) -> None:
    # A file that cannot be read, or not any more, is left out. DuckDB raises RuntimeError for what is not Unicode.
    with contextlib.suppress(duckdb.Error, RuntimeError):
        parts = _read(connection, reader, found, small)
        connection.execute(f"CREATE VIEW IF NOT EXISTS {quote_name(name)} AS {parts.query}")
        for column, words in parts.comments.items():
            _comment(connection, name, column, words)
        if reader != "read_csv":
            _comment_types(connection, name, found.source)


def _read(connection: duckdb.DuckDBPyConnection, reader: str, found: Found, small: Collection[str]) -> Parts:
    if not reader:
        return read_parts(connection, found)
    if reader != "read_csv":
        return Parts(f"SELECT * FROM {reader}({found.source})")
    path = found.files[0]
    return Parts(f"SELECT * FROM {read_text(connection, path) if path in small else write_call(path)}")


def _comment_types(connection: duckdb.DuckDBPyConnection, name: str, files: str) -> None:
    metadata = f"SELECT value FROM parquet_kv_metadata({files}) WHERE key = {quote_text(TYPES)}"
    for (value,) in connection.execute(metadata).fetchall():
        for column, type_ in _types_told(bytes(value)).items():
            _comment(connection, name, column, f"{type_}, as exact text")


def _comment(connection: duckdb.DuckDBPyConnection, name: str, column: str, words: str) -> None:
    connection.execute(f"COMMENT ON COLUMN {quote_name(name)}.{quote_name(column)} IS {quote_text(words)}")


def _types_told(metadata: bytes) -> Mapping[str, Any]:
    """Return the types by column. There are none if somebody else wrote another thing under our key."""
    try:
        told: Any = json.loads(metadata)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", told) if isinstance(told, dict) else {}
