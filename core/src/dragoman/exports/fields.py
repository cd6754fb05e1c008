"""Columns as a picture shows them: numbers, moments or names, according to their type in the database."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from dragoman.exports.text import distinct
from dragoman.model import Column

_OF_TIME: Final = re.compile(r"date|timestamp", re.IGNORECASE)
_OF_NUMBERS: Final = re.compile(
    r"\b(?:u?(?:tiny|small|medium|big|huge)?int(?:eger|\d+)?|numeric|decimal|number|real|double|float\d*)\b",
    re.IGNORECASE,
)

Layout = Literal["quantitative", "temporal", "nominal"]


@dataclass(frozen=True, slots=True)
class Field:
    """A column as a picture shows it. `type`: how its values are placed, as Vega-Lite names it.

    Numbers are floats, moments are milliseconds since 1970, names are texts, and None is a missing value. Every `name`
    is unique.
    """

    name: str
    type: Layout
    values: list[Any]


def fields_of(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[Field]:
    """Return the columns of a result. Of columns with the same name, the later ones get a number."""
    names = distinct([column.name for column in columns])
    return [
        _field(name, column, [row[place] for row in rows])
        for place, (name, column) in enumerate(zip(names, columns, strict=True))
    ]


def suiting(fields: Sequence[Field]) -> str:
    """Return the chart that suits the columns."""
    if len(fields) == 1:
        return "histogram"
    return {"temporal": "line", "quantitative": "scatter"}.get(fields[0].type, "bar")


def _field(name: str, column: Column, values: list[Any]) -> Field:
    if _OF_TIME.match(column.type):
        moments = [_moment(value) for value in values]
        if all(moment is not None or value is None for moment, value in zip(moments, values, strict=True)):
            return Field(name, "temporal", moments)
    if (numbers := _numbers(column, values)) is not None:
        return Field(name, "quantitative", numbers)
    return Field(name, "nominal", ["NULL" if value is None else str(value) for value in values])


def _numbers(column: Column, values: Sequence[Any]) -> list[float | None] | None:
    """Return the values as numbers; None if they are not numbers.

    A text of digits is a number only in a column of numbers.
    """
    is_exact = _OF_NUMBERS.search(column.type) is not None
    numbers: list[float | None] = []
    for value in values:
        known = isinstance(value, int | float) and not isinstance(value, bool)
        try:
            number = float(value) if known or (is_exact and isinstance(value, str)) else None
        except (ValueError, OverflowError):
            number = None
        if number is None and value is not None:
            return None
        numbers.append(number if number is not None and math.isfinite(number) else None)
    return numbers if any(number is not None for number in numbers) else None


def _moment(value: Any) -> float | None:
    """Return milliseconds since 1970. A moment without a zone is placed as it is written."""
    try:
        moment = datetime.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp() * 1000


def label(type: Layout, value: Any) -> str:
    """Return a value of a field as a label."""
    if value is None:
        return "NULL"
    if type == "temporal":
        moment = datetime.datetime.fromtimestamp(value / 1000, datetime.UTC)
        return moment.strftime("%Y-%m-%d" if value % 86_400_000 == 0 else "%Y-%m-%d %H:%M")
    return f"{value:g}" if type == "quantitative" else str(value)
