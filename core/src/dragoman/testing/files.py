"""Checks that a database's values can be read back equal from Parquet and Arrow files, for the tests of plugins."""

# pyarrow has no type stubs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import base64
import datetime
import json
import math
import re
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from dragoman.exports import export
from dragoman.model import Column

TEXT: Final = "string"
_OFFSET: Final = re.compile(r" (?=[+-]\d\d:\d\d$)")
"""The blank that some engines write before an offset."""


def types_in_files(folder: Path, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Write rows to Parquet and Arrow files, read them again, and return the types of their columns there.

    Every value must come back equal: as a typed one, or as its exact text. The notices must name each column that is
    text there and not in the database, and no other column.
    """
    told = [_check_file(folder / f"types.{form}", form, columns, rows) for form in ("parquet", "arrow")]
    assert told[0] == told[1], "Parquet and Arrow files differ in the types of their columns."
    return told[0]


def _check_file(path: Path, form: str, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[str]:
    notices = " ".join(export(path, form, columns, lambda: [rows]))
    table = _read(path, form)
    for place, column in enumerate(columns):
        field = table.schema.field(place)
        values = table.column(place).to_pylist()
        for row, value in zip(rows, values, strict=True):
            assert is_same(row[place], value), f"{column}: {row[place]!r} came back as {value!r} from {form}."
        assert field.metadata[b"dragoman:type"].decode() == column.type
        is_lost = str(field.type) == TEXT and any(not isinstance(row[place], str | None) for row in rows)
        assert not is_lost or f"{column.name} ({column.type})" in notices, f"{column} is text, and no notice says so."
        assert str(field.type) == TEXT or f"{column.name} ({column.type})" not in notices
    return [str(field.type).replace("<element: ", "<item: ") for field in table.schema]


def _read(path: Path, form: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(path).read() if form == "parquet" else pa.ipc.open_file(path).read_all()


def is_same(value: Any, read: Any) -> bool:
    """Return whether a value read from a file equals a value of an answer, in its own notation."""
    match read:
        case None | bool():
            return value is read
        case str():
            return bool(read == (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
        case int():
            return str(read) == str(value)
        case float():
            return _is_same_float(value, read)
        case bytes():
            return bool(base64.b64encode(read).decode() == value)
        case Decimal() | uuid.UUID():
            return str(read) == value or (isinstance(read, Decimal) and Decimal(str(value)) == read)
        case datetime.datetime() | datetime.date() | datetime.time():
            return _is_same_moment(value, read)
        case list():
            items: list[Any] = read  # pyright: ignore[reportUnknownVariableType]
            return len(items) == len(value) and all(map(is_same, value, items))
        case _:
            return False


def _is_same_float(value: Any, read: float) -> bool:
    if math.isnan(read) or math.isinf(read):
        return bool(value == {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(read)])
    return bool(repr(float(value)) == repr(read) or value == read)


def _is_same_moment(value: str, read: datetime.datetime | datetime.date | datetime.time) -> bool:
    kind = type(read)
    head, point, tail = value.partition(".")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    cut = head + point + digits[:6] + tail[len(digits) :]
    return not digits[6:].strip("0") and kind.fromisoformat(_OFFSET.sub("", cut.replace(" UTC", "+00:00"))) == read
