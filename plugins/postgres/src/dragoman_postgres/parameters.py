"""Converts JSON values for the driver, according to the parameter types that the server reports."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from dragoman import ParameterError

from dragoman_postgres.literals import split_array
from dragoman_postgres.pool import Session
from dragoman_postgres.searches import LONGEST_PARAMETER
from dragoman_postgres.types import VECTORS, Types

Encode = Callable[[Any], Any]
_INTEGERS = {20: 64, 21: 16, 23: 32, 26: 32}
_FLOATS = frozenset({700, 701})
_TEXTS = frozenset({19, 25, 705, 1042, 1043})
_JSONS = frozenset({114, 3802})
_SEARCHES = frozenset({3615, 3645})
_SEARCHING = re.compile(r"tsquery|@@|ts_match|ts_rewrite|normalize", re.IGNORECASE)
"""What turns a text into a text search query in a statement, or normalizes it."""
_LAST_BUILTIN = 16383
"""OIDs up to here are the server's own types. The driver sends values of other types as text by itself."""


class Misfit(Exception):
    """A value that does not match. Its text says what would."""


def encoder(types: Types, oid: int) -> Encode:
    """Return the function that converts a JSON value for a parameter of this type. It raises `Misfit`."""
    oid = types.base(oid)
    known = types[oid]
    if known.form == "array":
        return _array(encoder(types, known.of[0]), known.delimiter)
    # A raster's text may name a file: the gate judges it in the statement. Users' ranges may consist of rasters.
    is_own_range = known.form == "range" and oid > _LAST_BUILTIN
    if known.form == "composite" or is_own_range or known.internal[1] == "raster" or oid in VECTORS:
        return _refuse
    if oid in _INTEGERS:
        return _integer(_INTEGERS[oid], unsigned=oid == 26)
    if oid in _FLOATS:
        return _float
    if oid in _OTHERS:
        return _OTHERS[oid]
    return _json if oid in _JSONS else _text


def _unknown(types: Types, oid: int) -> set[int]:
    """Return PostgreSQL's own types in this type for which the driver would expect Python's values."""
    oid = types.base(oid)
    known = types[oid]
    if known.form == "array":
        return _unknown(types, known.of[0])
    direct = any(oid in each for each in (_INTEGERS, _FLOATS, _TEXTS, _OTHERS, VECTORS))
    return set() if direct or known.form not in ("scalar", "range") or oid > _LAST_BUILTIN else {oid}


@asynccontextmanager
async def teach(
    session: Session,
    names: Sequence[tuple[str, str]],
    *,
    lasting: bool = False,
    format: Literal["text", "binary"] = "text",
) -> AsyncGenerator[None]:
    """Make the driver send the values of some types, by schema and name, as text.

    With `binary` it treats them as bytes, which is useful only for describing a statement. A type that the driver knows
    only as text would break the ranges and composites that contain it. So afterwards it is forgotten again; with
    `lasting`, or after an error, the connection is not used for other statements.
    """
    if not names:
        yield
        return
    session.spent = True
    for schema, name in names:
        await session.connection.set_type_codec(name, schema=schema, encoder=_same, decoder=_same, format=format)
    yield
    if not lasting:
        for schema, name in names:
            await session.connection.reset_type_codec(name, schema=schema)
        session.spent = False


@dataclass(frozen=True, slots=True)
class Parameters:
    """A statement's parameters: their types, and the functions that convert JSON values for the driver.

    `unknown`: PostgreSQL's own types whose values the driver must be made to send as text. `searching`: one of them is
    a text search query.
    """

    oids: tuple[int, ...]
    names: tuple[str, ...]
    encoders: tuple[Encode, ...]
    unknown: tuple[tuple[str, str], ...]
    searching: bool = False

    @classmethod
    def of(cls, types: Types, oids: Sequence[int]) -> Parameters:
        """Return the parameters of these types, which `types` has learned."""
        unknown = set[int]().union(*(_unknown(types, oid) for oid in oids))
        return cls(
            oids=tuple(oids),
            names=tuple(types[oid].name for oid in oids),
            encoders=tuple(encoder(types, oid) for oid in oids),
            unknown=tuple(types[oid].internal for oid in unknown),
            searching=not _SEARCHES.isdisjoint(map(types.base, oids)),
        )

    def bind(self, values: Sequence[Any], statement: str) -> list[Any]:
        """Return JSON values converted for the driver. Raises `ParameterError` for a wrong number, type or range."""
        count = len(self.encoders)
        if len(values) != count:
            raise ParameterError(
                f"Values needed by the statement: {count}; given: {len(values)}.",
                suggestion="Give one value for each of $1, $2, ... in order.",
            )
        if values and (self.searching or _SEARCHING.search(statement)):
            _check_lengths(values)
        return [_bind(*each) for each in zip(range(1, count + 1), values, self.encoders, self.names, strict=True)]


def _check_lengths(values: Sequence[Any]) -> None:
    for number, value in enumerate(values, 1):
        if len(value if isinstance(value, str) else json.dumps(value)) > LONGEST_PARAMETER:
            raise ParameterError(
                f"Parameter {number} has more than {LONGEST_PARAMETER:,} characters, and no "
                "deadline ends the conversion of long texts to text search queries.",
                parameter=number,
                suggestion="Make it shorter, or use a statement without text search queries.",
            )


def _bind(number: int, value: Any, encode: Encode, name: str) -> Any:
    if value is None:
        return None
    try:
        return encode(value)
    except Misfit as misfit:
        raise ParameterError(
            f"Parameter {number} is of the type {name}: {misfit}.",
            parameter=number,
            suggestion=f"Send such a value, or the type's text with ${number}::text::{name} in the statement.",
        ) from None


def _same(value: Any) -> Any:
    return value


def _integer(bits: int, *, unsigned: bool = False) -> Encode:
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def encode(value: Any) -> int:
        number = _whole(value)
        if not low <= number <= high:
            raise Misfit(f"it must be from {low} to {high}")
        return number

    return encode


def _whole(value: Any) -> int:
    """Return an integer, from an integer, a float without a fraction, or a text of either.

    Large integers are returned as texts.
    """
    try:
        if isinstance(value, str):
            return int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise Misfit(f"it must be an integer, not {_kind(value)}")


def _float(value: Any) -> float:
    try:
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise Misfit(f"it must be a number, not {_kind(value)}")


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    known = {"t": True, "true": True, "f": False, "false": False}.get(value.lower()) if isinstance(value, str) else None
    if known is None:
        raise Misfit(f"it must be true or false, not {_kind(value)}")
    return known


def _binary(value: Any) -> bytes:
    """Return bytes, from base64, as they are returned, or PostgreSQL's hexadecimal digits after a backslash."""
    try:
        if isinstance(value, str):
            return bytes.fromhex(value[2:]) if value.startswith("\\x") else base64.b64decode(value, validate=True)
    except ValueError:
        pass
    raise Misfit(f"it must be base64, or \\x and hexadecimal digits, not {_kind(value)}")


def _char(value: Any) -> bytes:
    """Return the one byte of a "char", which the driver takes for binary. An empty text is zero, as in the server."""
    encoded = _text(value).encode() or b"\0"
    if len(encoded) > 1:
        raise Misfit("it must be one character of ASCII")
    return encoded


_OTHERS: dict[int, Encode] = {16: _boolean, 17: _binary, 18: _char}


def _text(value: Any) -> str:
    """Return the text that the server reads as the type. A number is written as in JSON."""
    if isinstance(value, str):
        if "\x00" in value:
            raise Misfit("no text may hold a NUL character")
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, int) or math.isfinite(value):
            return repr(value)
    raise Misfit(f"it must be a text, not {_kind(value)}")


def _json(value: Any) -> str:
    """Return JSON text unchanged, and any other value as JSON."""
    return _text(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _refuse(_: Any) -> Any:
    raise Misfit("values of this type cannot be sent as they are")


def _array(element: Encode, delimiter: str) -> Encode:
    def encode(value: Any) -> list[Any]:
        elements = _elements(value, delimiter)
        return [
            None if item is None else encode(item) if isinstance(item, list) else element(item) for item in elements
        ]

    return encode


def _elements(value: Any, delimiter: str) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    try:
        elements = split_array(value, delimiter) if isinstance(value, str) else None
    except ValueError:
        elements = None
    if elements is None:
        raise Misfit(f"it must be an array, not {_kind(value)}")
    return elements


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case dict():
            return "an object"
        case _:
            return "an array"
