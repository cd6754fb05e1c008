"""Opens a file, or a folder as a database, and seals it off: from then on nothing else is reachable."""

# pyright: reportUnknownMemberType=false
# (a connection's methods take what no stub names)

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
from dragoman.words import lower_ascii

from dragoman_duckdb.frames import Setup
from dragoman_duckdb.rules import RULES

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
    path = Path(setup.path)
    if path.is_file():
        connection = duckdb.connect(path, read_only=True, config=limits)
    else:
        connection = duckdb.connect(":memory:", config=limits)
        connection.execute(f"SET allowed_directories = [{_text(f'{path}/')}]")
        for name, reader in _relations(path):
            _make_view(connection, name, reader)
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def put_engine_first(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the statement after which a cursor finds the engine's functions and types before those that users made.

    An operator or a function's name then calls no macro. The setting is the cursor's own.
    """
    databases = "SELECT database_name FROM system.main.duckdb_databases() WHERE NOT internal"
    schemas = [f"{_name(name)}.main" for (name,) in connection.execute(databases).fetchall()]
    return f"SET search_path = {_text(','.join(('system.main', *schemas)))}"


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


def _relations(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each relation, and the call that reads it: a file, or a folder of Parquet files."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and next(path.rglob("*.parquet"), None):
            yield path.name, f"read_parquet({_text(f'{path}/**/*.parquet')}, hive_partitioning = true)"
        elif path.is_file() and path.suffix.lower() in READERS:
            yield path.stem, f"{READERS[path.suffix.lower()]}({_text(str(path))})"


def _make_view(connection: duckdb.DuckDBPyConnection, name: str, reader: str) -> None:
    try:
        connection.execute(f"CREATE VIEW IF NOT EXISTS {_name(name)} AS SELECT * FROM {reader}")
    except duckdb.Error:
        return  # a file that cannot be read is left out
    if not reader.startswith("read_parquet"):
        return
    metadata = f"SELECT value FROM parquet_kv_metadata({reader[len('read_parquet(') :].split(', hive')[0].rstrip(')')})"
    for (value,) in connection.execute(f"{metadata} WHERE key = {_text(TYPES)}").fetchall():
        for column, type_ in json.loads(bytes(value)).items():
            words = _text(f"{type_}, as exact text")
            connection.execute(f"COMMENT ON COLUMN {_name(name)}.{_name(column)} IS {words}")


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
