"""Exact encoding of rows to JSON, decided once per column.

Pure and light, so that a dialect's worker process may import it. A result's values: integers beyond 2^53-1 and decimals
are strings, NaN and infinities too, binary is base64, JSON columns are JSON where that loses nothing.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import enum
import json
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.model import Column, Encoded, Kind

MAX_SAFE = 2**53 - 1
"""The largest integer every JSON reader keeps exactly (RFC 8259, section 6)."""

Convert = Callable[[Any], Any]
_encode = msgspec.json.Encoder().encode
_AS_IS = frozenset({type(None), str, bool})


def encode(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> Encoded:
    """Return rows as minified JSON arrays, one `bytes` each, with notices for what had to change.

    Values arrive as `column.kind` says. Raises `ValueError` for a row that is not as long as `columns`.
    """
    if not rows or not columns:
        return Encoded([b"[]"] * len(rows))
    encoder = _Encoder()
    converted = [
        encoder.column(column, values) for column, values in zip(columns, zip(*rows, strict=True), strict=True)
    ]
    return Encoded([_encode(row) for row in zip(*converted, strict=True)], tuple(encoder.notices))


class _Encoder:
    """Converts columns, remembering what callers must be told."""

    def __init__(self) -> None:
        self.notices: dict[str, None] = {}
        self.name = ""

    def column(self, column: Column, values: Sequence[Any]) -> Sequence[Any]:
        self.name = column.name
        kind = column.kind
        if kind.name == "any" or kind.name in _TYPES_AS_THEY_ARE:
            types = set(map(type, values))
            if types <= _AS_IS:
                return self.texts(values) if str in types else values
            if types <= {int, type(None)} and _all_safe(values):
                return values
            if types <= {float, type(None)} and _all_finite(values):
                return values
        convert = self.converter(kind)
        return [None if value is None else convert(value) for value in values]

    def texts(self, values: Sequence[Any]) -> Sequence[Any]:
        """Texts as they are, unless one holds what UTF-8 cannot: a lone surrogate."""
        try:
            "".join(value for value in values if type(value) is str).encode()
        except UnicodeEncodeError:
            return [None if value is None else self.text(value) for value in values]
        return values

    def converter(self, kind: Kind) -> Convert:
        match kind.name:
            case "text":
                return self.text
            case "integer":
                return _integer
            case "float":
                return _float
            case "binary":
                return _binary
            case "boolean":
                return bool
            case "json":
                return self.json
            case "array":
                return self.array(self.converter(kind.of[0]))
            case "map":
                return self.map(self.converter(kind.of[0]), self.converter(kind.of[1]))
            case "row":
                return self.row([self.converter(of) for of in kind.of], kind.fields)
            case "any" | "native":
                return self.native

    def array(self, element: Convert) -> Convert:
        return lambda values: [None if value is None else element(value) for value in values]

    def map(self, key: Convert, value: Convert) -> Convert:
        def convert(entries: Any) -> dict[str, Any]:
            pairs = cast(Iterable[tuple[Any, Any]], entries.items() if isinstance(entries, Mapping) else entries)
            return {_key(key(name)): None if item is None else value(item) for name, item in pairs}

        return convert

    def row(self, fields: Sequence[Convert], names: Sequence[str]) -> Convert:
        def convert(values: Any) -> Any:
            items = [None if value is None else field(value) for field, value in zip(fields, values, strict=True)]
            return dict(zip(names, items, strict=True)) if named else items

        named = len(set(names)) == len(fields) > 0 and all(names)
        return convert

    def text(self, value: Any) -> Any:
        text = value if isinstance(value, str) else str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            return self.broken_text(text.encode("utf-8", "surrogateescape" if _escaped(text) else "surrogatepass"))
        return text

    def broken_text(self, value: bytes) -> str:
        self.notices[f"Column {self.name!r} has text that is not valid in its encoding; it is given as base64."] = None
        return _binary(value)

    def json(self, value: Any) -> Any:
        text = value.decode() if isinstance(value, bytes | bytearray) else str(value)
        try:
            return _exact_json(text)
        except ValueError:
            self.notices[f"Column {self.name!r} has JSON that parsing would change; it is given as its exact text."] = (
                None
            )
            return self.text(text)

    def native(self, value: Any) -> Any:
        """Any Python value a driver may hand out, as its exact JSON counterpart or its text."""
        convert = _NATIVE.get(type(value))  # pyright: ignore[reportUnknownArgumentType]
        if convert is not None:
            return convert(value)
        match value:
            case str():
                return self.text(value)
            case bool() | None:
                return value
            case enum.Enum():
                return self.native(value.value)
            case int():
                return _integer(int(value))
            case float():
                return _float(float(value))
            case bytes() | bytearray() | memoryview():
                return _binary(value)
            case Mapping():
                return {_key(self.native(key)): self.native(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            case list() | tuple() | set() | frozenset():
                return [self.native(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
            case datetime.datetime():
                return value.isoformat(" ")
            case datetime.date() | datetime.time():
                return value.isoformat()
            case datetime.timedelta():
                return _interval(value)
            case _:
                return self.text(str(value))


_TYPES_AS_THEY_ARE = frozenset({"text", "integer", "float", "boolean", "native"})


def _all_safe(values: Iterable[Any]) -> bool:
    numbers = [value for value in values if value is not None]
    return not numbers or (-MAX_SAFE <= min(numbers) and max(numbers) <= MAX_SAFE)


def _all_finite(values: Iterable[Any]) -> bool:
    return all(math.isfinite(value) for value in values if value is not None)


def _integer(value: int) -> int | str:
    return value if -MAX_SAFE <= value <= MAX_SAFE else str(value)


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _binary(value: Any) -> str:
    return base64.b64encode(value).decode("ascii")


def _decimal(value: decimal.Decimal) -> str:
    return format(value, "f") if value.is_finite() else str(_float(float(value)))


def _interval(value: datetime.timedelta) -> str:
    """ISO 8601 with every microsecond, sign first: -P1DT2H3M4.5S."""
    sign, rest = ("-", -value) if value < datetime.timedelta() else ("", value)
    minutes, seconds = divmod(rest.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest.microseconds:06d}".rstrip("0") if rest.microseconds else ""
    return f"{sign}P{rest.days}DT{hours}H{minutes}M{seconds}{fraction}S"


def _key(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode()


def _escaped(text: str) -> bool:
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


def _exact_json(text: str) -> Any:
    """Parse JSON whose every digit and key survives, else raise ValueError."""
    value = json.loads(
        text, parse_int=_exact_int, parse_float=_exact_float, parse_constant=_refuse, object_pairs_hook=_unique
    )
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _exact_int(text: str) -> int:
    value = int(text) if len(text) < 18 else MAX_SAFE + 1
    if not -MAX_SAFE <= value <= MAX_SAFE or text == "-0":
        raise ValueError(text)
    return value


def _exact_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or decimal.Decimal(text) != decimal.Decimal(repr(value)):
        raise ValueError(text)
    return value


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found
