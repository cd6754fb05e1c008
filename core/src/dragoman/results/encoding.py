"""Exact encoding of rows to JSON, decided once per column.

Pure and light, so that a dialect's worker process may import it. In a result, integers beyond 2^53-1, decimals, NaN and
infinities are strings, binary is base64, and JSON columns are JSON if that loses nothing.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import enum
import math
import operator
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from dragoman.collection import pause_collection
from dragoman.errors import ResultTooLarge
from dragoman.model import Column, Encoded, Kind, KindName
from dragoman.results.documents import MAX_SAFE, exact_json, plain_documents
from dragoman.shapes import Malformed, check_rows

Convert = Callable[[Any], Any]
_encode = msgspec.json.Encoder().encode
_NULL = type(None)
_ARRAYS = (tuple, list)
_OCTETS: Set[type] = {bytes, bytearray, memoryview}
_ROW_TYPES: set[type] = set()
"""Types of rows that were found to be sequences."""
_MOST_ROW_TYPES = 64
_NO_TEXT: Any = object.__str__
MANY = 100
"""Rows from which on they make enough small values that looking for garbage among them takes time."""


def encode(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> Encoded:
    """Return rows as minified JSON arrays, with notices about changed values.

    Values arrive as `column.kind` says; if one has another type, its own type decides. Raises `Malformed` for a row
    that is not a sequence as long as `columns` and for a value whose only text is its `repr`, and `ResultTooLarge` for
    a value that is nested too deeply.
    """
    kinds = {*map(type, rows)}
    if not kinds <= _ROW_TYPES or {*map(len, rows)} - {len(columns)}:
        check_rows(rows, len(columns))
        if len(_ROW_TYPES) < _MOST_ROW_TYPES:
            _ROW_TYPES.update(kinds)
    if not columns:
        return Encoded.of([b"[]" for _ in rows])
    if not rows:
        return Encoded(b"", 0)
    if len(rows) < MANY:
        return _encode_rows(columns, rows)
    with pause_collection():
        return _encode_rows(columns, rows)


def _encode_rows(columns: Sequence[Column], rows: Sequence[Sequence[Any]], *, by_cell: bool = False) -> Encoded:
    encoder = _Encoder(by_cell)
    by_column = list(zip(*rows, strict=True))
    try:
        converted = [encoder.column(column, values) for column, values in zip(columns, by_column, strict=True)]
        # Usually nothing had to change, and the rows can be sent unchanged.
        same = all(map(operator.is_, converted, by_column)) and type(rows[0]) in _ARRAYS
        array = _encode(rows if same else list(zip(*converted, strict=True)))
    except RecursionError:
        raise ResultTooLarge(
            f"A value of the column {encoder.name!r} is nested too deeply.", suggestion="Select parts of it."
        ) from None
    except UnicodeEncodeError:  # some text has a lone surrogate
        if by_cell:
            raise
        return _encode_rows(columns, rows, by_cell=True)
    return Encoded(array[1:-1], len(rows), tuple(encoder.notices), octets=tuple(encoder.octets))


@dataclass(slots=True)
class _Encoder:
    """Converts columns and collects the notices callers need. `by_cell`: it looks at each value, whatever its type."""

    by_cell: bool
    notices: dict[str, None] = field(default_factory=dict[str, None])
    octets: list[bool | None] = field(default_factory=list[bool | None])
    name: str = ""

    def column(self, column: Column, values: Sequence[Any]) -> Sequence[Any]:
        self.name = column.name
        kind = column.kind.name
        types = {*map(type, values)}
        there = values
        if _NULL in types:
            types.remove(_NULL)
            there = [value for value in values if value is not None]
        self.octets.append(types <= _OCTETS if kind == "any" and types else None)
        for plain, is_ready in () if self.by_cell else _READY.get(kind, ()):
            if types <= {plain} and (is_ready is None or is_ready(there)):
                return values
        if kind == "json" and types == {str}:
            found = plain_documents(there, unique_keys=column.kind.unique_keys)
            if found is not None:
                return found if there is values else _put_nulls(found, values)
        convert = self.converter(column.kind)
        return [None if value is None else convert(value) for value in values]

    def converter(self, kind: Kind) -> Convert:
        match kind.name:
            case "text":
                return self.text
            case "integer":
                return self.integer
            case "float":
                return self.float
            case "boolean":
                return self.boolean
            case "json":
                return self.json
            case "array":
                return self.or_text(self.array(self.converter(kind.of[0])))
            case "map":
                return self.or_text(self.map(self.converter(kind.of[0]), self.converter(kind.of[1])))
            case "row":
                return self.or_text(self.row([self.converter(of) for of in kind.of], kind.fields))
            case "binary" | "any" | "native":
                return self.native

    def or_text(self, convert: Convert) -> Convert:
        """Return a converter that leaves a value unchanged if the server wrote it as one text."""
        return lambda value: self.text(value) if isinstance(value, str) else convert(value)

    def array(self, element: Convert) -> Convert:
        return lambda values: [None if value is None else element(value) for value in values]

    def map(self, key: Convert, value: Convert) -> Convert:
        def convert(entries: Any) -> Any:
            pairs = cast(Iterable[tuple[Any, Any]], entries.items() if isinstance(entries, Mapping) else entries)
            found = [
                (None if name is None else key(name), None if item is None else value(item)) for name, item in pairs
            ]
            return self.entries(found)

        return convert

    def entries(self, pairs: Sequence[tuple[Any, Any]]) -> Any:
        """Return an object; or the pairs, if two keys have the same text, since an object would lose one of them."""
        entries = {_key(name): item for name, item in pairs}
        if len(entries) == len(pairs):
            return entries
        self.notices[f"Column {self.name!r} has maps with keys of one text; they are given as [key, value] pairs."] = (
            None
        )
        return pairs

    def row(self, fields: Sequence[Convert], names: Sequence[str]) -> Convert:
        def convert(values: Any) -> Any:
            items = [None if value is None else field(value) for field, value in zip(fields, values, strict=True)]
            return dict(zip(names, items, strict=True)) if named else items

        named = len(set(names)) == len(fields) > 0 and all(names)
        return convert

    def text(self, value: Any) -> Any:
        if not isinstance(value, str):
            return self.native(value)
        try:
            value.encode()
        except UnicodeEncodeError:
            return self.encode_broken(
                value.encode("utf-8", "surrogateescape" if _is_escaped(value) else "surrogatepass")
            )
        return str.__str__(value)

    def encode_broken(self, value: bytes) -> str:
        self.notices[f"Column {self.name!r} has text that is not valid in its encoding; it is given as base64."] = None
        return _binary(value)

    def integer(self, value: Any) -> Any:
        return _integer(operator.index(value)) if hasattr(value, "__index__") else self.native(value)

    def float(self, value: Any) -> Any:
        return _float(float(value)) if isinstance(value, float | int) else self.native(value)

    def boolean(self, value: Any) -> Any:
        return bool(value) if isinstance(value, int) else self.native(value)

    def json(self, value: Any) -> Any:
        if isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        if not isinstance(value, str):
            return self.native(value)
        try:
            return exact_json(value)
        except (ValueError, ArithmeticError, RecursionError):
            self.notices[f"Column {self.name!r} has JSON that parsing would change; it is given as its exact text."] = (
                None
            )
            return self.text(value)

    def native(self, value: Any) -> Any:
        """Return the exact JSON counterpart, or the text, of any Python value that a driver may return."""
        convert = _NATIVE.get(type(value))  # pyright: ignore[reportUnknownArgumentType]
        if convert is not None:
            return convert(value)
        match value:
            case str():
                return self.text(value)
            case enum.Enum():
                return self.native(value.value)
            case bool() | None:
                return value
            case int():
                return _integer(int(value))
            case float():
                return _float(float(value))
            case decimal.Decimal():
                return _decimal(value)
            case bytes() | bytearray() | memoryview():
                return _binary(value)
            case Mapping():
                return self.entries([(self.native(key), self.native(item)) for key, item in value.items()])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            case list() | tuple() | set() | frozenset():
                return [self.native(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
            case datetime.datetime():
                return value.isoformat(" ")
            case datetime.date() | datetime.time():
                return value.isoformat()
            case datetime.timedelta():
                return _interval(value)
            case _ if type(value).__str__ is _NO_TEXT:  # pyright: ignore[reportUnknownArgumentType]
                raise Malformed(
                    f"gave a {type(value).__name__} in the column {self.name!r}, which has no text of its own"
                )
            case _:
                return self.text(str(value))


def _put_nulls(found: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
    """What was made of the values that are there, with the others between them."""
    rest = iter(found)
    return [None if value is None else next(rest) for value in values]


def _are_safe(numbers: Sequence[int]) -> bool:
    return not numbers or (-MAX_SAFE <= min(numbers) and max(numbers) <= MAX_SAFE)


def _are_finite(numbers: Sequence[float]) -> bool:
    # Mostly their sum is, and then all of them are: the sum costs an eighth.
    return math.isfinite(sum(numbers)) or all(map(math.isfinite, numbers))


_Ready = tuple[type, Callable[[Sequence[Any]], bool] | None]
_TEXTS: _Ready = (str, None)  # but for a lone surrogate, which cannot be encoded
_BOOLEANS: _Ready = (bool, None)
_INTEGERS: _Ready = (int, _are_safe)
_FLOATS: _Ready = (float, _are_finite)
# Columns that may go out as they are: whose values, but for NULL, are all of this type and pass this test.
_READY: dict[KindName, tuple[_Ready, ...]] = {
    "text": (_TEXTS,),
    "boolean": (_BOOLEANS,),
    "integer": (_INTEGERS,),
    "float": (_FLOATS,),
    "binary": (_TEXTS,),
    "any": (_TEXTS, _INTEGERS, _FLOATS, _BOOLEANS),
    "native": (_TEXTS, _INTEGERS, _FLOATS, _BOOLEANS),
}


def _integer(value: int) -> int | str:
    return value if -MAX_SAFE <= value <= MAX_SAFE else str(value)


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _binary(value: Any) -> str:
    return base64.b64encode(value).decode("ascii")


def _decimal(value: decimal.Decimal) -> str:
    return format(value, "f") if value.is_finite() else "NaN" if value.is_nan() else str(_float(float(value)))


def _interval(value: datetime.timedelta) -> str:
    """Return ISO 8601 with every microsecond, sign first: -P1DT2H3M4.5S."""
    sign, rest = ("-", -value) if value < datetime.timedelta() else ("", value)
    minutes, seconds = divmod(rest.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest.microseconds:06d}".rstrip("0") if rest.microseconds else ""
    return f"{sign}P{rest.days}DT{hours}H{minutes}M{seconds}{fraction}S"


def _key(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode()


def _is_escaped(text: str) -> bool:
    return all("\udc80" <= char <= "\udcff" for char in text if "\ud800" <= char <= "\udfff")


def _same(value: Any) -> Any:
    return value


_NATIVE: dict[type, Convert] = {
    bool: _same,
    int: _integer,
    float: _float,
    bytes: _binary,
    decimal.Decimal: _decimal,
    uuid.UUID: str,
}
