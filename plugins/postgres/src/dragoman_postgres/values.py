"""Converts values of answers: arrays and composites are built from their text, exactly, whatever they contain."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman import Column, Encoded, Kind, encode

from dragoman_postgres.failures import stale
from dragoman_postgres.literals import Tree, split_array, split_row
from dragoman_postgres.types import RECORD, RECORDS, Types

Convert = Callable[[str], Any]
LONG = 2_000
"""Characters of texts whose values are built on the event loop. Building longer ones takes it milliseconds."""
ROWS_AT_ONCE = 2_000
"""Rows of one batch."""


@dataclass(frozen=True, slots=True)
class Making:
    """The input for converting a column's values: the types, the column's name, and the notices.

    `unlearned`: types of rows' fields that are not known yet. Conversion adds to them, and takes such fields for texts.
    `learned`: those that were learned for these values, even if others had them forgotten meanwhile.
    """

    types: Types
    column: str
    notices: dict[str, None]
    unlearned: set[int]
    learned: set[int]


def column_converter(making: Making, oid: int) -> Convert | None:
    """Return the converter of the selected values of a column of this type; None: they need no conversion."""
    decode = _ANONYMOUS.get(oid)
    return _both(making, decode) if decode else converter(making, oid)


def _both(making: Making, decode: Callable[[Making, bytes, str], Any]) -> Convert:
    """Return the converter of rows without a type of their own, selected as their binary form and their text."""

    def convert(picked: str) -> Any:
        binary, _, text = picked.partition(" ")
        return decode(making, bytes.fromhex(binary), text)

    return convert


def converter(making: Making, oid: int) -> Convert | None:
    """Return the converter of the text of a value inside an array or composite; None: the text is the value."""
    types = making.types
    oid = types.base(oid)
    known = types[oid]
    if known.form == "array":
        return _array(converter(making, known.of[0]), known.delimiter)
    if known.form == "composite":
        return _row([converter(making, of) for of in known.of], known.fields)
    kind = types.scalar(oid).kind.name
    return _json(making) if kind == "json" else _SCALARS.get(kind)


def _array(element: Convert | None, delimiter: str) -> Convert:
    def convert(text: str) -> Any:
        try:
            elements = split_array(text, delimiter)
        except ValueError:
            return text
        return text if elements is None else _each(element, elements)

    return convert


def _each(convert: Convert | None, values: Tree) -> Tree:
    return [_one(convert, value) for value in values]


def _one(convert: Convert | None, value: Tree | str | None) -> Any:
    if isinstance(value, list):
        return _each(convert, value)
    return value if value is None or convert is None else convert(value)


def _row(fields: Sequence[Convert | None], names: Sequence[str]) -> Convert:
    def convert(text: str) -> Any:
        try:
            texts = split_row(text) if fields else []
        except ValueError:
            return text
        if len(texts) != len(fields):
            raise stale()
        values = [
            value if value is None or field is None else field(value)
            for field, value in zip(fields, texts, strict=True)
        ]
        return dict(zip(names, values, strict=True))

    return convert


def _records(making: Making, binary: bytes, text: str) -> Any:
    """Convert an array of rows.

    Its binary form has dimensions, flags and type, each dimension, then the elements in order.
    """
    try:
        elements = split_array(text)
    except ValueError:
        elements = None
    if elements is None:
        return text
    (dimensions,) = struct.unpack_from("!i", binary)
    place = 12 + 8 * dimensions

    def convert(element: str) -> Any:
        return _fields(making, next(forms), element)

    def each() -> Iterator[bytes]:
        nonlocal place
        while place < len(binary):
            (length,) = struct.unpack_from("!i", binary, place)
            place += 4 + max(length, 0)
            if length >= 0:
                yield binary[place - length : place]

    forms = each()
    return _each(convert, elements)


def _fields(making: Making, binary: bytes, text: str) -> Any:
    """Convert a row.

    Its binary form has the number of fields, then each field's type, length (-1 for NULL) and value.
    """
    values: list[Any] = []
    place = 4
    try:
        texts = split_row(text) if binary[:4] != bytes(4) else []
    except ValueError:
        return text
    for value in texts:
        oid, length = struct.unpack_from("!Ii", binary, place)
        inner = binary[place + 8 : place + 8 + max(length, 0)]
        values.append(value if value is None else _field(making, oid, inner, value))
        place += 8 + len(inner)
    return values


def _field(making: Making, oid: int, binary: bytes, text: str) -> Any:
    if decode := _ANONYMOUS.get(oid):
        return decode(making, binary, text)
    if not making.types.knows(oid) and oid not in making.learned:
        making.unlearned.add(oid)
        return text
    convert = converter(making, oid)
    return convert(text) if convert else text


_ANONYMOUS = {RECORD: _fields, RECORDS: _records}


def _json(making: Making) -> Convert:
    """Return the converter of JSON inside another value, as in the core.

    It gives a value, or its text if parsing would change it.
    """
    column = Column(making.column, "json", Kind("json"))

    def convert(text: str) -> Any:
        encoded = encode([column], [[text]])
        making.notices.update(dict.fromkeys(encoded.notices))
        return json.loads(encoded.json)[0]

    return convert


_SCALARS: dict[str, Convert] = {
    "integer": int,
    "float": float,
    "boolean": lambda text: text == "t",
    "binary": lambda text: bytes.fromhex(text.removeprefix("\\x")),
}


def convert_values(rows: Sequence[Any], converters: dict[int, Convert]) -> Sequence[Any]:
    """Return `rows` with the values of some columns, by position, converted from their texts."""
    if not converters or not rows:
        return rows
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True))
    for place, convert in converters.items():
        columns[place] = tuple(None if value is None else convert(value) for value in columns[place])
    return list(zip(*columns, strict=True))


def are_long(rows: Sequence[Any], places: Iterable[int]) -> bool:
    """Whether the texts in some columns, by position, have so many characters that their values belong in a thread."""
    left = LONG
    columns = tuple(places)
    for row in rows if columns else ():
        left -= sum(len(row[place] or "") for place in columns)
        if left < 0:
            return True
    return False


def encode_values(columns: Sequence[Column], rows: Sequence[Any], converters: dict[int, Convert]) -> list[Encoded]:
    """Return `rows` in batches as JSON, the values of some columns converted. For a thread, which also frees them."""
    parts = (rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE))
    return [encode(columns, convert_values(part, converters)) for part in parts]
