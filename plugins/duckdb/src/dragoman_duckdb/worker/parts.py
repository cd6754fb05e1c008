"""The Parquet files that are one table together, and a query of them in which every value keeps its meaning.

DuckDB takes the columns of the first file, and casts the values of the others to their types: 1.5 would become 2.
"""

# pyright: reportUnknownMemberType=false
# (a connection's methods take what no stub names)

from __future__ import annotations

import contextlib
import glob
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import duckdb

from dragoman_duckdb.writing import quote_name, quote_text

_VERSIONED = ("_delta_log", ".hoodie", "metadata/version-hint.text")
"""What Delta Lake, Hudi and Iceberg keep in a table's folder. Only they know which of its files are the table's now."""
_METADATA = "metadata/*.metadata.json"  # Iceberg, where a catalog says which of them is the newest
_ELSEWHERE = re.compile(r"~|\w+:")
"""Beginnings of paths that DuckDB takes for the home folder or another scheme, in what fits a pattern too."""
_DIGITS = {
    **{"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19},
    **{"UTINYINT": 3, "USMALLINT": 5, "UINTEGER": 10, "UBIGINT": 20},
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_FLOATS = frozenset({"FLOAT", "DOUBLE"})
_NARROW = frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"})
_NOTHING = re.compile(r'"NULL"(?=[],)[]|$)')
"""The type of a column of a file, or of what is in its lists, in which Arrow found no value."""
EXACT = 2**53
"""Up to here a `DOUBLE` holds every whole number."""
MOST_DIGITS = 38
_PLAIN = re.compile(r"[0-9]{4,}([-/][0-9]{1,2}){2}([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?")
"""Dates and moments that mean the same to DuckDB. It drops a zone and parts of a microsecond, and knows the year 26."""
_NUMBER = re.compile(r"-?[0-9]+")
"""Whole numbers as paths have them. DuckDB reads 0x1F, too."""
_KEPT = {"BIGINT": _NUMBER, "DATE": _PLAIN, "TIMESTAMP": _PLAIN}
"""What the texts of a path look like that DuckDB may read as the type that it guesses."""
_AS_WRITTEN = "hive_partitioning = true, hive_types_autocast = false"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_NOTHING_IN_TYPES = "NULL"
"""What DuckDB's guess, too, takes for no value, in any case, except in texts: older versions of DuckDB wrote it."""
State = tuple[int, int, int] | None
_KNOWN: dict[str, dict[str, tuple[State, str]]] = {}
"""The states and schemas of each table's files: when a file comes, the footers of the others are known."""

Types = Mapping[str, str]
"""The types of a file's columns by their names in lower case: DuckDB ignores the case of names."""


@dataclass(frozen=True)
class Found:
    """The files of a table, and what `read_parquet` takes for them: a pattern if it fits no other file, else a list."""

    files: Sequence[str]
    source: str
    folder: str = ""


@dataclass(frozen=True)
class Parts:
    """A query of all files, and words about the columns that it answers as text."""

    query: str
    comments: Mapping[str, str] = field(default_factory=dict[str, str])


def find_parts(folder: Path, root: Path) -> Found | None:
    """Return the files of a table, or None if there are none, or if some may be those of older versions.

    Left out are links that lead out of `root`, and what others' tools hide: names that begin with `.` or `_`, such as
    the files of a job that has not ended.
    """
    if any((folder / name).exists() for name in _VERSIONED) or next(folder.glob(_METADATA), None):
        return None
    every = sorted(_files(folder))
    shown = [path for path in every if not _is_hidden(path, folder) and _is_inside(path, root)]
    if not shown:
        return None
    if len(shown) < len(every) or _ELSEWHERE.match(str(folder)):
        return Found(shown, _text_of(shown), str(folder))
    return Found(shown, quote_text(f"{literally(folder)}/**/*.parquet"), str(folder))


def _files(folder: Path) -> Iterator[str]:
    for parent, _, files in os.walk(folder):
        yield from (os.path.join(parent, name) for name in files if name.endswith(".parquet"))


def _is_hidden(path: str, folder: Path) -> bool:
    return any(part[0] in "._" and "=" not in part for part in Path(path).relative_to(folder).parts)


def _is_inside(path: str, root: Path) -> bool:
    return not os.path.islink(path) or Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _text_of(files: Iterable[str]) -> str:
    return f"[{', '.join(quote_text(literally(path)) for path in files)}]"


def literally(path: str | Path) -> str:
    """Return the pattern that fits this path alone: DuckDB reads `a[1].csv` as `a1.csv`, and `*` as any file.

    It also reads a name such as `~` or `file:` at the beginning of a path as another place.
    """
    return f"./{glob.escape(str(path))}"


def read_parts(connection: duckdb.DuckDBPyConnection, found: Found) -> Parts:
    """Return the query of these files. Raises `duckdb.Error` if the first of them cannot be read."""
    whole = f"SELECT * FROM read_parquet({found.source}, hive_partitioning = true)"
    shown = connection.execute(f"DESCRIBE {whole}").fetchall()
    alike = [(files, _describe(connection, files[0])) for files in _group_by_schema(connection, found)]
    guessed = {name: type_ for name, type_, *_ in shown}
    said = _find_types_of_paths(guessed, found.files)
    held = {name: _types_of(name, alike) for name in guessed if name not in said}
    filled = {name: _leave_nothing_out(types) for name, types in held.items() if len(types) > 1}
    wide = {
        name: "DOUBLE" if _fits_double(connection, name, types, alike) else _widen(types)
        for name, types in filled.items()
    }
    if not wide:
        return Parts(whole if said.items() <= guessed.items() else _cast_paths(found.source, said))
    columns = {name: said.get(name) or wide.get(name) for name in guessed}
    groups: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
    for files, types in alike:
        groups[tuple(types.get(name.lower()) for name in columns)] += files
    selects = (_select(columns, said, dict(zip(columns, key, strict=True)), files) for key, files in groups.items())
    texts = {name: sorted(filled[name]) for name, type_ in wide.items() if type_ == "VARCHAR"}
    comments = {name: f"{' or '.join(types).lower()}, as exact text" for name, types in texts.items() if len(types) > 1}
    return Parts(" UNION ALL ".join(selects), comments)


def _find_types_of_paths(guessed: Types, files: Iterable[str]) -> dict[str, str]:
    """Return the types of the columns of paths: text where DuckDB's guess changes what a path says."""
    texts = _read_paths(files)
    return {
        name: type_ if type_ not in _KEPT or all(map(_KEPT[type_].fullmatch, texts[name.lower()])) else "VARCHAR"
        for name, type_ in guessed.items()
        if name.lower() in texts
    }


def _read_paths(files: Iterable[str]) -> Mapping[str, set[str]]:
    """Return what the paths say of each of their columns, by its name in lower case."""
    texts: dict[str, set[str]] = defaultdict(set)
    for folder in {os.path.dirname(path) for path in files}:
        for part in Path(folder).parts:
            name, is_column, value = part.partition("=")
            if is_column:
                nothing = value == _NO_VALUE or value.upper() == _NOTHING_IN_TYPES
                texts[name.lower()] |= set() if nothing else {unquote(value)}
    return texts


def _cast_paths(source: str, types: Types) -> str:
    """Return a query of files whose columns of paths have these types."""
    casts = (f"{_cast_path(name, type_)} AS {quote_name(name)}" for name, type_ in types.items())
    return f"SELECT * REPLACE ({', '.join(casts)}) FROM read_parquet({source}, {_AS_WRITTEN})"


def _cast_path(name: str, type_: str) -> str:
    """Return an expression of a path's text as a value of a type."""
    text = quote_name(name)
    return text if type_ == "VARCHAR" else f"CAST(nullif(upper({text}), '{_NOTHING_IN_TYPES}') AS {type_})"


def _group_by_schema(connection: duckdb.DuckDBPyConnection, found: Found) -> list[list[str]]:
    """Return the files by the types that they give their columns. One that cannot be read is among the first."""
    states = {path: observe(path) for path in found.files}
    known = _KNOWN.get(found.folder, {})
    schemas = {path: schema for path, (state, schema) in known.items() if states.get(path) == state}
    unknown = [path for path in found.files if path not in schemas]
    schemas |= _read_schemas(connection, unknown, found) if unknown else {}
    _KNOWN[found.folder] = {path: (states[path], schemas[path]) for path in found.files if path in schemas}
    groups: dict[str | None, list[str]] = defaultdict(list)
    for path in found.files:
        groups[schemas.get(path, schemas.get(found.files[0]))].append(path)
    return list(groups.values())


def observe(path: str) -> State:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_ctime_ns


def _read_schemas(connection: duckdb.DuckDBPyConnection, paths: Sequence[str], found: Found) -> dict[str, str]:
    try:
        return _ask_schemas(connection, found.source if len(paths) == len(found.files) else _text_of(paths))
    except duckdb.Error:  # one of them cannot be read
        told = dict[str, str]()
        for path in paths:
            with contextlib.suppress(duckdb.Error):
                told |= _ask_schemas(connection, _text_of([path]))
        return told


def _ask_schemas(connection: duckdb.DuckDBPyConnection, source: str) -> dict[str, str]:
    facts = "name, type, type_length, num_children, converted_type, scale, precision, logical_type, duckdb_type"
    told = f"SELECT file_name, CAST(list(struct_pack({facts})) AS VARCHAR) FROM parquet_schema({source}) GROUP BY ALL"
    return {path.removeprefix("./"): sys.intern(schema) for path, schema in connection.execute(told).fetchall()}


def _describe(connection: duckdb.DuckDBPyConnection, path: str) -> Types:
    described = connection.execute(
        f"DESCRIBE SELECT * FROM read_parquet({_text_of([path])}, hive_partitioning = false)"
    )
    return {name.lower(): type_ for name, type_, *_ in described.fetchall()}


def _types_of(name: str, alike: Iterable[tuple[object, Types]]) -> set[str]:
    return {types[name.lower()] for _, types in alike if name.lower() in types}


def _leave_nothing_out(types: set[str]) -> set[str]:
    """Return the types without those that another one holds because they say nothing: `"NULL"[]` beside `DATE[]`."""

    def holds(other: str, type_: str) -> bool:
        return re.fullmatch(".+".join(map(re.escape, _NOTHING.split(type_))), other) is not None

    silent = {type_ for type_ in types if _NOTHING.search(type_)}
    return types - {type_ for type_ in silent if any(holds(other, type_) for other in types - {type_})}


def _fits_double(
    connection: duckdb.DuckDBPyConnection, name: str, types: set[str], alike: Iterable[tuple[Iterable[str], Types]]
) -> bool:
    """Return whether a column has floats, and only whole numbers that a float holds, as the files' statistics say.

    Programs that know no missing whole numbers write a file's column with gaps as floats.
    """
    if "BIGINT" not in types or not types & _FLOATS or not types <= _FLOATS | _NARROW | {"BIGINT"}:
        return False
    files = [path for paths, shown in alike if shown.get(name.lower()) == "BIGINT" for path in paths]
    least, most = (f"TRY_CAST(stats_{end}_value AS HUGEINT) BETWEEN -{EXACT} AND {EXACT}" for end in ("min", "max"))
    fits = f"SELECT bool_and(coalesce(stats_null_count = num_values OR ({least} AND {most}), false))"
    of = f"FROM parquet_metadata({_text_of(files)}) WHERE lower(path_in_schema) = lower({quote_text(name)})"
    (found,) = connection.execute(f"{fits} {of}").fetchall()
    return found[0] is not False


def _widen(types: set[str]) -> str:
    """Return a type that holds the values of all these types: `VARCHAR`, their exact text, if no other does."""
    if len(types) == 1:
        return next(iter(types))
    if types & _FLOATS and types <= _FLOATS | _NARROW:
        return "DOUBLE"
    if types == {"DATE", "TIMESTAMP"}:
        return "TIMESTAMP"
    numbers = [_digits(type_) for type_ in types]
    whole, scale = (max((each[at] for each in numbers if each), default=0) for at in (0, 1))
    if None in numbers or whole + scale > MOST_DIGITS:
        return "VARCHAR"
    if scale:
        return f"DECIMAL({whole + scale},{scale})"
    most = _DIGITS["BIGINT"]  # a decimal of as many digits may be larger
    return "BIGINT" if whole < most or (whole == most and types <= _DIGITS.keys()) else "HUGEINT"


def _digits(type_: str) -> tuple[int, int] | None:
    """Return how many digits a number of a type has before and behind the point, or None for other types."""
    decimal = _DECIMAL.fullmatch(type_)
    if decimal:
        return int(decimal[1]) - int(decimal[2]), int(decimal[2])
    return (_DIGITS[type_], 0) if type_ in _DIGITS else None


def _select(
    columns: Mapping[str, str | None], hive: Types, types: Mapping[str, str | None], files: Iterable[str]
) -> str:
    """Return a query of files that give their columns the same types. A column that they lack is NULL."""

    def write(name: str) -> str:
        if name in hive:
            return f"{_cast_path(name, hive[name])} AS {quote_name(name)}"
        value = quote_name(name) if types[name] else "NULL"
        if columns[name] == "VARCHAR":
            value = _write_number(value, types[name] or "")
        shown = f"CAST({value} AS {columns[name]})" if columns[name] else value
        return f"{shown} AS {quote_name(name)}"

    return f"SELECT {', '.join(map(write, columns))} FROM read_parquet({_text_of(files)}, {_AS_WRITTEN})"


def _write_number(value: str, type_: str) -> str:
    """Return an expression of a number of which equal numbers of other types have the same text: `1` for 1.0."""
    if type_ in _FLOATS:
        whole = f"{value} = trunc({value}) AND abs({value}) < 1e38"
        return f"CASE WHEN {whole} THEN CAST(CAST({value} AS HUGEINT) AS VARCHAR) ELSE CAST({value} AS VARCHAR) END"
    decimal = _DECIMAL.fullmatch(type_)
    if not decimal or decimal[2] == "0":
        return value
    # DuckDB writes one without digits before the point as .5
    return rf"regexp_replace(rtrim(rtrim(CAST({value} AS VARCHAR), '0'), '.'), '^(-?)(\.|$)', '\10\2')"
