"""Whether two engines gave one answer: the rule of the matrix, in one place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from dragoman import Result

RELATIVE = Decimal("1e-9")
"""How far two binary floats may be apart, relative to the larger."""

Rows = Sequence[Sequence[Any]]


def same(left: Rows, right: Rows, *, binary: bool, ordered: bool = False) -> bool:
    """Whether two answers agree. `binary`: one of the engines has binary floats only; else decimals are exact.

    Exact decimals of different scales agree when the longer one, rounded to the shorter one's places, is the shorter.
    Rows are compared in any order unless `ordered`.
    """
    if len(left) != len(right):
        return False
    pairs = zip(left, right, strict=True) if ordered else zip(_sorted(left), _sorted(right), strict=True)
    return all(
        len(one) == len(other) and all(same_value(a, b, binary=binary) for a, b in zip(one, other, strict=True))
        for one, other in pairs
    )


def same_value(a: Any, b: Any, *, binary: bool) -> bool:
    """Whether two values agree; a truth value is 1 or 0 where there are no booleans."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same_value(x, y, binary=binary) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_value(a[key], b[key], binary=binary) for key in a)
    if a is None or b is None:
        return a is b
    if isinstance(a, bool) != isinstance(b, bool):
        return binary and int(a) == b if isinstance(a, bool) else binary and int(b) == a
    x, y = _number(a), _number(b)
    if x is None or y is None:
        return bool(a == b)
    if not (x.is_finite() and y.is_finite()):
        return str(x) == str(y)
    if binary or isinstance(a, float) or isinstance(b, float):
        return _near(x, y) or _is_rounded(a, x, b, y)
    shorter, longer = sorted((x, y), key=lambda number: -int(number.as_tuple().exponent))
    return abs(shorter - longer) * 2 <= Decimal(1).scaleb(int(shorter.as_tuple().exponent)) if x != y else True


def _near(x: Decimal, y: Decimal) -> bool:
    return abs(x - y) <= RELATIVE * max(abs(x), abs(y))


def _is_rounded(a: Any, x: Decimal, b: Any, y: Decimal) -> bool:
    """Whether an exact decimal is a binary float rounded to its places."""
    if not {type(a), type(b)} == {str, float}:
        return False
    exact = x if isinstance(a, str) else y
    places = int(exact.as_tuple().exponent)
    return places < 0 and abs(x - y) * 2 <= Decimal(1).scaleb(places)


_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d)(?:\.(\d+?)0*)?( UTC|\+00(?::00)?)?)?")


def comparable(result: Result, other: Result) -> list[list[Any]]:
    """The rows of a result with its timestamps in one spelling; beside a column of dates, a midnight is its date.

    Only columns that are timestamps to one of the engines are touched: the text of a timestamp is a text.
    """
    kinds = [(a.type, b.type) for a, b in zip(result.columns, other.columns, strict=False)]
    moments = {place for place, pair in enumerate(kinds) if any(kind.startswith("timestamp") for kind in pair)}
    dates = {place for place in moments if "date" in kinds[place]}
    return [
        [_spelled(value, place in dates) if place in moments else value for place, value in enumerate(row)]
        for row in result.rows
    ]


def _spelled(value: Any, as_date: bool) -> Any:
    found = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return value
    day, time, fraction, zone = found.groups()
    clock = time or "00:00:00"
    if as_date and clock == "00:00:00" and not (fraction or "").strip("0"):
        return day
    return f"{day} {clock}" + (f".{fraction}" if (fraction or "").strip("0") else "") + ("+00" if zone else "")


def dated(result: Result, other: Result) -> bool:
    """Whether a column is a date to one engine and a timestamp to the other."""
    pairs = [{a.type.split()[0], b.type.split()[0]} for a, b in zip(result.columns, other.columns, strict=False)]
    return any("date" in pair and any(kind.startswith("timestamp") for kind in pair) for pair in pairs)


def rounds(left: Rows, right: Rows) -> bool:
    """Whether two answers that agree do so only since one has fewer decimal places."""
    return any(
        _differ(a, b)
        for one, other in zip(_sorted(left), _sorted(right), strict=True)
        for a, b in zip(one, other, strict=True)
    )


def _differ(a: Any, b: Any) -> bool:
    x, y = _number(a), _number(b)
    if x is None or y is None or not (x.is_finite() and y.is_finite()):
        return False
    return x != y if isinstance(a, str) and isinstance(b, str) else not _near(x, y)


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool):
        return None
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None


def _sorted(rows: Rows) -> list[Sequence[Any]]:
    return sorted(rows, key=lambda row: [_key(value) for value in row])


def _key(value: Any) -> tuple[int, Any]:
    number = _number(int(value) if isinstance(value, bool) else value)
    if value is None:
        return 0, ""
    if number is not None and number.is_finite():
        return 1, round(float(number), 4)
    return 2, str(value)
