"""Reads exported files with other programs than those that wrote them, and compares cells with an answer's values.

CSV is read by its grammar (Python's reader does not tell NULL from an empty text), Parquet by DuckDB, a sheet by its
XML. Arrow files are read by Arrow, since nothing else here reads them.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
import re
import uuid
import zipfile
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

NAN = "NaN"
_CELL = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)')


def read_csv(path: Path) -> list[list[str | None]]:
    """Return the cells of each line, the names first; None is a cell without quotes and without text."""
    text = path.read_bytes().decode()
    lines: list[list[str | None]] = [[]]
    place = 0
    while place < len(text):
        cell = _CELL.match(text, place)
        assert cell, f"no cell of RFC 4180 at {place}: {text[place : place + 60]!r}"
        lines[-1].append(cell[1].replace('""', '"') if cell[1] is not None else cell[2] or None)
        if cell[3] == "\r\n":
            lines.append([])
        place = cell.end()
    assert lines.pop() == [], "the file ends within a line"
    return lines


def read_jsonl(path: Path) -> list[list[tuple[str, Any]]]:
    """Return the pairs of each line."""
    return [json.loads(line, object_pairs_hook=_Pairs) for line in path.read_bytes().decode().split("\n")[:-1]]


class _Pairs(list[Any]):
    """An object of JSON as a list of pairs, so that a name that comes twice is seen."""


def plain(value: Any) -> Any:
    """Return a value of read_jsonl as `json` would read it."""
    if isinstance(value, _Pairs):
        assert len({name for name, _ in value}) == len(value)
        return {name: plain(each) for name, each in value}
    return [plain(each) for each in value] if isinstance(value, list) else value


def read_parquet(path: Path) -> pa.Table:
    """Return a file as DuckDB reads it, with the types that its own schema has."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        read = connection.sql("SELECT * FROM read_parquet(?)", params=[str(path)]).to_arrow_table()
    schema = pq.read_schema(path)
    assert read.num_rows == pq.read_metadata(path).num_rows
    return pa.Table.from_arrays(
        [_cast(column, field.type) for column, field in zip(read.columns, schema, strict=True)], schema=schema
    )


def _cast(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    if to == pa.uuid():  # DuckDB hands them out as texts
        octets = [value if value is None else uuid.UUID(str(value)).bytes for value in column.to_pylist()]
        return pa.chunked_array([pa.array(octets, to.storage_type).cast(to)])
    return column if column.type == to else column.cast(to)


def read_arrow(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def read_xlsx(path: Path) -> list[dict[int, Any]]:
    """Return the cells of each row by their column: texts, numbers as they are written (in a list of one), booleans."""
    with zipfile.ZipFile(path) as book:
        assert book.testzip() is None
        for name in book.namelist():
            ET.fromstring(book.read(name))
        sheet = ET.fromstring(book.read("xl/worksheets/sheet1.xml"))
    assert sheet.find(f".//{_MAIN}f") is None
    rows: dict[int, dict[int, Any]] = {}
    for row in sheet.iter(f"{_MAIN}row"):
        rows[int(row.attrib["r"])] = {_place(cell.attrib["r"]): _cell(cell) for cell in row}
    return [rows.get(number, {}) for number in range(1, max(rows, default=0) + 1)]


def cell_names(row: Mapping[int, Any], count: int) -> list[Any]:
    """Return the texts of a row of names; an empty name has no cell."""
    return [row.get(place, "") for place in range(count)]


def _place(name: str) -> int:
    place = 0
    for letter in name.rstrip("0123456789"):
        place = place * 26 + ord(letter) - 64
    return place - 1


def _cell(cell: ET.Element) -> Any:
    kind = cell.attrib.get("t", "n")
    if kind == "inlineStr":
        text = "".join(part.text or "" for part in cell.iter(f"{_MAIN}t"))
        return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    value = cell.findtext(f"{_MAIN}v")
    assert kind in ("n", "b"), kind
    assert value is not None
    return value == "1" if kind == "b" else [value]


def same(one: Any, other: Any) -> bool:
    """Return whether two values of JSON are equal, with their types and the sign of zero."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    if isinstance(one, float):
        return math.copysign(1, one) == math.copysign(1, other) and one == other
    return one == other


def is_text_of(cell: Any, value: Any) -> bool:
    """Return whether a text is a value: itself, or its JSON."""
    if isinstance(value, str) or not isinstance(cell, str):
        return cell == value and isinstance(cell, str)
    try:
        return same(json.loads(cell), value)
    except ValueError:
        return False


def is_typed(stored: Any, form: pa.DataType, value: Any) -> bool:
    """Return whether a value of an Arrow type is the value of an answer."""
    if value is None or stored is None:
        return stored is None and value is None
    if pa.types.is_list(form):
        return (
            isinstance(value, list)
            and len(stored) == len(value)
            and all(is_typed(each, form.value_type, item) for each, item in zip(stored, value, strict=True))
        )
    if pa.types.is_string(form):
        return is_text_of(stored, value)
    name = next((name for name in _TYPED if str(form).startswith(name)), None)
    return name is not None and _TYPED[name](stored, value)


def _is_float(stored: Any, value: Any) -> bool:
    if isinstance(value, str):
        return value == {"nan": NAN, "inf": "Infinity", "-inf": "-Infinity"}.get(repr(stored))
    return stored == value and math.copysign(1, stored) == math.copysign(1, value)


def _is_number(stored: Any, value: Any) -> bool:
    return (
        not isinstance(value, bool | float)
        and stored == Decimal(value)
        and not (stored == 0 and str(value).startswith("-"))
    )


_ZONE = re.compile(r"([+-])(\d\d)(?::?(\d\d))?$")


def moment(text: str) -> datetime.datetime:
    """Return the time that a text means, in UTC, by nothing but its digits."""
    shift = datetime.timedelta()
    day, _, clock = text.partition(" ")
    if zone := _ZONE.search(clock):
        minutes = int(zone[2]) * 60 + int(zone[3] or 0)
        shift, clock = datetime.timedelta(minutes=-minutes if zone[1] == "+" else minutes), clock[: zone.start()]
    year, month, of_month = map(int, day.split("-"))
    hour, minute, second = clock.split(":")
    at = datetime.datetime(year, month, of_month, int(hour), int(minute))
    return at + shift + datetime.timedelta(microseconds=int(Decimal(second) * 1_000_000))


_TYPED: Mapping[str, Callable[[Any, Any], bool]] = {
    "int": lambda stored, value: type(stored) is int and _is_number(stored, value),
    "decimal": _is_number,
    "double": _is_float,
    "bool": lambda stored, value: stored is value,
    "binary": lambda stored, value: base64.b64encode(stored).decode() == value,
    "date": lambda stored, value: stored.isoformat() == value,
    "time64": lambda stored, value: (
        datetime.datetime.combine(datetime.date(1, 1, 1), stored) == moment(f"1-1-1 {value}")
    ),
    "timestamp": lambda stored, value: stored.replace(tzinfo=None) == moment(value),
    "extension<arrow.uuid>": lambda stored, value: str(stored) == value,
}


def names_of(columns: Sequence[str]) -> list[str]:
    """Return names of which the later equal ones have a number that none has."""
    found: list[str] = []
    for name in columns:
        number, own = 1, name
        while own in found or (own != name and own in columns):
            number += 1
            own = f"{name}_{number}"
        found.append(own)
    return found
