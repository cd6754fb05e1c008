"""Compares two results as multisets of rows, whatever the names and the order of their columns."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

Rows = Sequence[Sequence[Any]]
EXACT = 1e-9
"""The tolerance for sums of floating point numbers. Whole numbers are then compared exactly."""
ALIGNMENTS = 200
"""The number of column orders that are tried. There are more only if columns hold equal values."""
_WHOLE = re.compile(r"[+-]?\d{1,39}")
_NUMBER = re.compile(r"[+-]?\d{1,39}(\.\d+)?([eE][+-]?\d{1,3})?")


def same_rows(expected: Rows, got: Rows, *, ordered: bool = False, tolerance: float = EXACT) -> bool:
    """Return whether two results hold the same rows, in the same order if that counts. `tolerance`: for numbers."""
    if len(expected) != len(got) or (expected and len(expected[0]) != len(got[0])):
        return False
    one, other = _plain_rows(expected), _plain_rows(got)
    compare = _equal_lists if ordered else _equal_multisets
    return any(
        compare(one, [[row[place] for place in places] for row in other], tolerance)
        for places in itertools.islice(_align(one, other, tolerance), ALIGNMENTS)
    )


def ballot(rows: Rows) -> str:
    """Return a text that is equal for results with exactly the same rows."""
    plain = _plain_rows(rows)
    width = len(plain[0]) if plain else 0
    places = sorted(range(width), key=lambda place: sorted(repr(row[place]) for row in plain))
    return "\n".join(sorted(repr([row[place] for place in places]) for row in plain))


def _plain_rows(rows: Rows) -> list[list[Any]]:
    return [[_plain(value) for value in row] for row in rows]


def _plain(value: Any) -> Any:
    """Return a number as a number, however the database writes it; any other value unchanged."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, str) and len(value) < 80 and _NUMBER.fullmatch(value):
        value = float(value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _align(one: Rows, other: Rows, tolerance: float) -> Iterator[tuple[int, ...]]:
    """Yield, for each column of one result, the columns of the other with the same values."""
    width = len(one[0]) if one else 0
    columns = [[[[row[place]] for row in rows] for place in range(width)] for rows in (one, other)]
    fitting = [
        [place for place in range(width) if _equal_multisets(column, columns[1][place], tolerance)]
        for column in columns[0]
    ]
    yield from _choose(fitting, ())


def _choose(fitting: Sequence[Sequence[int]], taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield every way to choose one place of each list, none twice."""
    if len(taken) == len(fitting):
        yield taken
        return
    for place in fitting[len(taken)]:
        if place not in taken:
            yield from _choose(fitting, (*taken, place))


def _equal_lists(one: Rows, other: Rows, tolerance: float) -> bool:
    return all(_equal_rows(left, right, tolerance) for left, right in zip(one, other, strict=True))


def _equal_multisets(one: Rows, other: Rows, tolerance: float) -> bool:
    """Return whether rows can be paired so that all pairs are equal."""
    groups, others = _group(one), _group(other)
    if {key: len(rows) for key, rows in groups.items()} != {key: len(rows) for key, rows in others.items()}:
        return False
    return all(_pair(rows, others[key], tolerance) for key, rows in groups.items())


def _group(rows: Rows) -> dict[tuple[Any, ...], list[list[Any]]]:
    """Group the numbers of rows by their other values."""
    groups = defaultdict[tuple[Any, ...], list[list[Any]]](list)
    for row in rows:
        numbers = [value for value in row if _is_number(value)]
        groups[tuple("#" if _is_number(value) else repr(value) for value in row)].append(numbers)
    return dict(groups)


def _pair(one: list[list[Any]], other: list[list[Any]], tolerance: float) -> bool:
    """Return whether rows of numbers can be paired.

    They are paired by place when sorted, or else each with the first one that is close.
    """
    one, other = sorted(one), sorted(other)
    if _equal_lists(one, other, tolerance):
        return True
    left = list(other)
    for row in one:
        found = next((place for place, each in enumerate(left) if _equal_rows(row, each, tolerance)), None)
        if found is None:
            return False
        del left[found]
    return True


def _equal_rows(one: Sequence[Any], other: Sequence[Any], tolerance: float) -> bool:
    return all(_equal(left, right, tolerance) for left, right in zip(one, other, strict=True))


def _equal(one: Any, other: Any, tolerance: float) -> bool:
    if not (_is_number(one) and _is_number(other)):
        return bool(one == other)
    if tolerance <= EXACT and isinstance(one, int) and isinstance(other, int):
        return one == other  # identifiers of ten digits are not equal because they are close
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
