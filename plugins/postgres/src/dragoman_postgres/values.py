"""Values on their way out: arrays and composites made of their text, exactly, whatever they hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from dragoman import Column, Kind, encode

from dragoman_postgres.literals import split_array, split_row
from dragoman_postgres.types import Types

Convert = Callable[[str], Any]
_RECORD = 2249
_JSON = Column("", "json", Kind("json"))


def converter(types: Types, oid: int) -> Convert | None:
    """Return what makes a value of the text of one inside an array or composite; None: the text is the value."""
    oid = types.base(oid)
    known = types[oid]
    if known.form == "array":
        return _array(converter(types, known.of[0]), known.delimiter)
    if known.form == "composite":
        return _row([converter(types, of) for of in known.of], known.fields)
    if oid == _RECORD:
        return _anonymous
    return _SCALARS.get(types.scalar(oid).kind.name)


def _array(element: Convert | None, delimiter: str) -> Convert:
    def convert(text: str) -> Any:
        try:
            elements = split_array(text, delimiter)
        except ValueError:
            return text
        return text if elements is None else _each(element, elements)

    return convert


def _each(convert: Convert | None, values: Sequence[Any]) -> list[Any]:
    return [
        _each(convert, value) if isinstance(value, list) else value if value is None or convert is None else convert(value)  # pyright: ignore[reportUnknownArgumentType]
        for value in values
    ]


def _row(fields: Sequence[Convert | None], names: Sequence[str]) -> Convert:
    def convert(text: str) -> Any:
        try:
            texts = split_row(text) if fields else []
            values = [
                value if value is None or field is None else field(value)
                for field, value in zip(fields, texts, strict=True)
            ]
        except ValueError:
            return text
        return dict(zip(names, values, strict=True))

    return convert


def _anonymous(text: str) -> Any:
    """A row without a type: its fields' types are not told, so each is its text."""
    try:
        return split_row(text)
    except ValueError:
        return text


def _exact_json(text: str) -> Any:
    """JSON inside something else, as the core gives a column of it: a value, or its text where parsing would change it."""
    return json.loads(encode([_JSON], [[text]]).rows[0])[0]


_SCALARS: dict[str, Convert] = {
    "integer": int,
    "float": float,
    "boolean": lambda text: text == "t",
    "binary": lambda text: bytes.fromhex(text.removeprefix("\\x")),
    "json": _exact_json,
}


def converted(rows: Sequence[Sequence[Any]], converters: dict[int, Convert]) -> Sequence[Sequence[Any]]:
    """Return `rows` with the values of some columns, by position, made of their texts."""
    if not converters or not rows:
        return rows
    columns = list(zip(*rows, strict=True))
    for place, convert in converters.items():
        columns[place] = tuple(None if value is None else convert(value) for value in columns[place])
    return list(zip(*columns, strict=True))
