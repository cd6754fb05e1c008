"""Parquet and Arrow. A column is typed if every value can be read back unchanged, else it is text.

The rows are read twice: first to find the columns whose values all fit, then to write them. A value without a
counterpart keeps its exact text, with the database's type in the field's metadata `dragoman:type`.
"""

# pyarrow has no type stubs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import base64
import datetime
import json
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dragoman.exports.formats import Source
from dragoman.exports.text import distinct, notices_of
from dragoman.model import Column, Kind, KindName

BATCH_ROWS: Final = 1024
GROUP_ROWS: Final = 32_768
GROUP_BYTES: Final = 4 * 1024 * 1024
"""The most rows and bytes of a group. A group is held in memory until it is written."""
# The system's own allocator returns memory when a group is written. The others keep as much as the largest group took.
pa.set_memory_pool(pa.system_memory_pool())
_PRECISE = re.compile(r"(?:numeric|decimal)\((\d+)(?:, ?(-?\d+))?\)", re.IGNORECASE)
# The hour 24 is not one of Python's: it is midnight, as Python 3.14 reads it, but the end of the day in a database.
_HOUR = r"([01]\d|2[0-3])"
_TIMESTAMP = re.compile(rf"\d{{4}}-\d\d-\d\d[ T]{_HOUR}:\d\d(:\d\d(\.\d{{1,6}}0*)?)?")
_OFFSET = re.compile(r"(?P<local>.*?) ?(?P<zone>Z|UTC|[+-]\d\d(:?\d\d)?)")
_TIME = re.compile(rf"{_HOUR}:\d\d:\d\d(\.\d{{1,6}}0*)?")
_OF_TEXT = re.compile(r'"?\w*(char|text|string|clob)[\w ]*"?(\(\d+\))?|enum\b.*|name|', re.IGNORECASE)
"""Types whose values are text in the database. An array or a map of texts is not one of them."""
_OF_BYTES = re.compile("blob|binary|bytea", re.IGNORECASE)
_OF_NUMBERS = re.compile("int|real|floa|doub|num|dec|bool", re.IGNORECASE)
_LARGE = re.compile(r"-?[1-9][0-9]{15,18}")
_NUMERAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ARRAY = re.compile(r"(.+)\[\d*\]")
_OF_KIND: Final[dict[KindName, re.Pattern[str]]] = {
    "integer": re.compile(r"u?(tiny|small|big|huge)?int(eger|\d)?", re.IGNORECASE),
    "float": re.compile(r"real|float\d?|double( precision)?", re.IGNORECASE),
    "boolean": re.compile(r"bool(ean)?", re.IGNORECASE),
}
_SPELLINGS: Final = {
    "timestamp with time zone": "timestamptz",
    "timestamp_s": "timestamp",
    "timestamp_ms": "timestamp",
    "datetime": "timestamp",
}


class Misfit(ValueError):
    """A value that the type cannot represent exactly."""


Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Form:
    """How a column is written: its Arrow type, and a function that converts JSON values to Arrow's.

    The function raises `Misfit`. `plain`: the type of values that Arrow accepts in bulk; texts only if all of them
    match `pattern`. `wider`: a form for values that do not fit; it holds every value that this one holds.
    """

    type: pa.DataType
    convert: Convert
    plain: type | None = None
    pattern: str | None = None
    wider: Form | None = None

    def array(self, values: Sequence[Any]) -> pa.Array:
        """Return values as an Arrow array. Raises `ValueError` or `OverflowError` if one does not fit."""
        at_once = self._array_at_once(values)
        if at_once is not None:
            return at_once
        stored = [None if value is None else self.convert(value) for value in values]
        return pa.array(stored, type=_storage(self.type)).cast(self.type)

    def _array_at_once(self, values: Sequence[Any]) -> pa.Array | None:
        """Return values as an Arrow array in bulk, which is ten times as fast; None if each value must be checked."""
        if self.plain is None or not {*map(type, values)} <= {self.plain, type(None)}:
            return None
        try:
            array = pa.array(values, pa.string() if self.pattern else self.type)
            if self.pattern is None:
                return array
            if pc.all(pc.match_substring_regex(array, self.pattern)).as_py() is False:
                return None
            return _uuids(values) if self.type == pa.uuid() else array.cast(self.type)
        except (pa.ArrowInvalid, OverflowError):
            return None


def _storage(of: pa.DataType) -> pa.DataType:
    """Return the type that Arrow builds from Python's values. Of octets in a list it makes no UUIDs by itself."""
    if pa.types.is_list(of):
        return pa.list_(_storage(of.value_type))
    return of.storage_type if isinstance(of, pa.BaseExtensionType) else of


def _uuids(values: Sequence[str | None]) -> pa.Array | None:
    if None in values:
        return None
    octets = pa.py_buffer(bytes.fromhex("".join(map(str, values)).replace("-", "")))
    storage = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(values), [None, octets])
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


TEXT: Final = Form(pa.string(), _text, str)


def _plain_text(value: Any) -> str:
    if not isinstance(value, str):
        raise Misfit
    return value


def _integer(value: Any) -> int:
    """Return an integer. A text is one only if JSON holds no such number; others, such as `007`, are texts."""
    number = int(value) if isinstance(value, str) and _LARGE.fullmatch(value) else value
    if type(number) is not int or not -(2**63) <= number < 2**63:
        raise Misfit
    if isinstance(value, str) and abs(number) < 2**53:
        raise Misfit
    return number


def _float(value: Any) -> float:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value.replace("Infinity", "inf"))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misfit
    if isinstance(value, int) and int(float(value)) != value:
        raise Misfit
    return float(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Misfit
    return value


def _binary(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, TypeError):
        raise Misfit from None


def _date(value: Any) -> datetime.date:
    return datetime.date.fromisoformat(_match(_DATE, value))


def _time(value: Any) -> datetime.time:
    return datetime.time.fromisoformat(_trim(_match(_TIME, value)))


def _timestamp(value: Any) -> datetime.datetime:
    return datetime.datetime.fromisoformat(_trim(_match(_TIMESTAMP, value)))


def _moment(value: Any) -> datetime.datetime:
    """Return an instant. A zone's name would be lost, so such a value is a misfit."""
    found = _OFFSET.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise Misfit
    zone = "+00:00" if found["zone"] in ("Z", "UTC") else found["zone"]
    local = _match(_TIMESTAMP, found["local"])
    return datetime.datetime.fromisoformat(_trim(local) + zone).astimezone(datetime.UTC)


def _uuid(value: Any) -> bytes:
    read = uuid.UUID(value) if isinstance(value, str) and len(value) == 36 else None
    if read is None or str(read) != value:
        raise Misfit
    return read.bytes


def _match(pattern: re.Pattern[str], value: Any) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise Misfit
    return value


def _trim(text: str) -> str:
    """Shorten a fraction to the microseconds that Python reads. Only zeros are cut off."""
    head, point, fraction = text.partition(".")
    return head + point + fraction[:6].ljust(6, "0") if point else text


def _decimal(precision: int, scale: int, are_texts: bool) -> Form:
    """Return the form of decimals. `are_texts`: every text is a decimal, as the column holds nothing else."""

    def convert(value: Any) -> Decimal:
        is_decimal = are_texts and isinstance(value, str) and _NUMERAL.fullmatch(value)
        number = Decimal(value if is_decimal else _integer(value))
        exponent = number.as_tuple().exponent
        if not number.is_finite() or not isinstance(exponent, int) or -exponent > scale:
            raise Misfit
        # A decimal cannot represent minus zero.
        if (number.adjusted() + 1 > precision - scale and number) or (not number and number.is_signed()):
            raise Misfit
        return number

    whole = rf"(-?[1-9]\d{{0,{precision - scale - 1}}}|0)" if precision > scale else "0"
    tail = rf"(\.\d{{1,{scale}}})?" if scale else ""
    return Form(pa.decimal128(precision, scale), convert, str if are_texts else None, f"^{whole}{tail}$")


def _decimals(digits: int, scales: Sequence[int]) -> Form:
    """Return the form of decimals of so many digits before the point, with the first of the scales, and wider ones."""
    first, *more = scales
    form = _decimal(digits + first, first, are_texts=True)
    return replace(form, wider=_decimals(digits, more)) if more else form


_DECIMALS: Final = (_decimals(18, range(21)), _decimal(38, 0, are_texts=True))
"""For decimals whose type tells no scale: that of the longest fraction, and whole numbers of the most digits."""
# Only years that have the same number of digits whatever the offset.
_DAY: Final = r"^[12]\d{3}-\d\d-\d\d"
_CLOCK: Final = r"\d\d:\d\d:\d\d(\.\d{1,6})?"
_HEX: Final = "[0-9a-f]"
_BOOLEANS: Final = Form(pa.bool_(), _boolean, bool)
_INTEGERS: Final = Form(pa.int64(), _integer, int)
_FLOATS: Final = Form(pa.float64(), _float, float)
_SIMPLE: Final[dict[str, Form]] = {
    "date": Form(pa.date32(), _date, str, f"{_DAY}$"),
    "time": Form(pa.time64("us"), _time),
    "timestamp": Form(pa.timestamp("us"), _timestamp, str, f"{_DAY}[ T]{_CLOCK}$"),
    "timestamptz": Form(pa.timestamp("us", "UTC"), _moment, str, rf"{_DAY}[ T]{_CLOCK}(Z|[+-]\d\d(:?\d\d)?)$"),
    "uuid": Form(pa.uuid(), _uuid, str, f"^{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}$"),
    "boolean": _BOOLEANS,
    "bool": _BOOLEANS,
}
_BY_KIND: Final[dict[str, Form]] = {
    "boolean": _BOOLEANS,
    "integer": _INTEGERS,
    "float": _FLOATS,
    "binary": Form(pa.binary(), _binary),
}
_PLAIN: Final = Form(pa.string(), _plain_text, str)
_SEEN: Final = (_INTEGERS, _FLOATS, _PLAIN)


def _candidates(column: Column) -> tuple[Form, ...]:
    """Return the forms that a column may take, best first. Text is always the last one."""
    kind = _kind_of(column.type) if column.kind.name == "native" else column.kind
    if kind.name == "array":
        element = _element(column.type)
        texts = (_PLAIN,) if _OF_TEXT.fullmatch(element) else ()
        return tuple(map(_list, _candidates(Column("", element, kind.of[0])) or texts))
    if precise := _PRECISE.fullmatch(column.type):
        precision, scale = int(precise[1]), int(precise[2] or 0)
        if precision <= 38 and 0 <= scale <= precision:
            is_any = kind.name == "any"
            return (_decimal(precision, scale, are_texts=not is_any), *(_SEEN if is_any else ()))
    declared = re.sub(r"\(\d+\)(?= with|$)", "", column.type.lower())
    declared = _SPELLINGS.get(declared, declared)
    if declared in ("numeric", "decimal") and kind.name != "any" and kind.name not in _BY_KIND:
        return _DECIMALS
    if declared in _SIMPLE and kind.name != "any":
        return (_SIMPLE[declared],)
    if kind.name == "any":
        # A column without any value has the first form.
        return _SEEN if _OF_NUMBERS.search(column.type) else (_PLAIN, _INTEGERS, _FLOATS)
    return (_BY_KIND[kind.name],) if kind.name in _BY_KIND else ()


def _kind_of(declared: str) -> Kind:
    """Return the kind of values of any type, by the name of their column's type."""
    if _ARRAY.fullmatch(declared):
        return Kind.array(Kind("native"))
    return next((Kind(name) for name, pattern in _OF_KIND.items() if pattern.fullmatch(declared)), Kind("native"))


def _element(declared: str) -> str:
    """Return the element type of an array, in any engine's spelling: `integer[]`, `integer[3]`, `array(integer)`."""
    if declared.lower().startswith("array(") and declared.endswith(")"):
        return declared[6:-1]
    return _ARRAY.sub(r"\1", declared)


def _list(form: Form) -> Form:
    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Misfit
        return [None if each is None else form.convert(each) for each in value]

    return Form(pa.list_(form.type), convert, wider=form.wider and _list(form.wider))


def _choose(columns: Sequence[Column], source: Source) -> list[Form]:
    """Read all rows once and return for each column a form that every value fits."""
    left = [_candidates(column) for column in columns]
    for rows in source():
        for place, values in enumerate(zip(*rows, strict=True)):
            left[place] = tuple(fit for form in left[place] if (fit := _widen(form, values)))
    return [forms[0] if forms else TEXT for forms in left]


def _widen(form: Form | None, values: Sequence[Any]) -> Form | None:
    """Return the first of a form and its wider ones that values fit."""
    while form and not _fits(form, values):
        form = form.wider
    return form


def _fits(form: Form, values: Sequence[Any]) -> bool:
    try:
        form.array(values)
    except (ValueError, OverflowError):  # an offset may lead out of the supported years
        return False
    return True


def _schema(columns: Sequence[Column], forms: Sequence[Form]) -> pa.Schema:
    named = list(zip(distinct([column.name for column in columns]), columns, forms, strict=True))
    fields = [pa.field(name, form.type, metadata={"dragoman:type": column.type}) for name, column, form in named]
    texts = {name: column.type for name, column, form in named if _is_told(column, form)}
    return pa.schema(fields, metadata={"dragoman:types": json.dumps(texts)} if texts else None)


def _is_told(column: Column, form: Form) -> bool:
    """Return whether a column is written as text although it is not text in the database."""
    if form is _PLAIN:
        return _OF_BYTES.search(column.type) is not None
    return form is TEXT and not _OF_TEXT.fullmatch(column.type)


def _tables(schema: pa.Schema, forms: Sequence[Form], source: Source) -> Iterator[pa.Table]:
    """Yield the rows in groups. Python's values are many times as large as Arrow's, so only few are held at once."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for rows in source():
        for batch in _batches(schema, forms, rows):
            waiting.append(batch)
            count, size = count + batch.num_rows, size + batch.nbytes
            if count >= GROUP_ROWS or size >= GROUP_BYTES:
                yield pa.Table.from_batches(waiting, schema)
                waiting, count, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting, schema)
    pa.default_memory_pool().release_unused()


def _batches(schema: pa.Schema, forms: Sequence[Form], rows: Sequence[Sequence[Any]]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), BATCH_ROWS):
        yield _batch(schema, forms, rows[start : start + BATCH_ROWS])


def _batch(schema: pa.Schema, forms: Sequence[Form], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    arrays = [form.array(values) for form, values in zip(forms, zip(*rows, strict=True), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _notices(columns: Sequence[Column], forms: Sequence[Form]) -> tuple[str, ...]:
    told = [
        f"{column.name} ({column.type})" for column, form in zip(columns, forms, strict=True) if _is_told(column, form)
    ]
    return (f"Written as exact text, because no type holds every value: {', '.join(told)}.",) if told else ()


def write_parquet(path: Path, columns: Sequence[Column], source: Source) -> tuple[str, ...]:
    """Write Parquet, compressed with zstd, in groups of 32,768 rows or 4 MiB."""
    forms = _choose(columns, source)
    schema = _schema(columns, forms)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in _tables(schema, forms, source):
            writer.write_table(table, GROUP_ROWS)
    return (*notices_of(columns, schema.names), *_notices(columns, forms))


def write_arrow(path: Path, columns: Sequence[Column], source: Source) -> tuple[str, ...]:
    """Write an Arrow IPC file, compressed with lz4."""
    forms = _choose(columns, source)
    schema = _schema(columns, forms)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for table in _tables(schema, forms, source):
            writer.write_table(table.combine_chunks())
    return (*notices_of(columns, schema.names), *_notices(columns, forms))
