"""Column profiles computed from rows, for inspectors of engines that keep no statistics of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Any

from dragoman.model import ColumnProfile, ProfileBudget


def profile_columns(
    names: Sequence[str], rows: Sequence[Sequence[Any]], budget: ProfileBudget, *, whole: bool
) -> tuple[ColumnProfile, ...]:
    """Return profiles of columns from rows. Each row has its values in order: None, text, numbers, or anything else.

    `whole`: these are all rows of the relation, so counts are exact. In a sample, more than `budget.values` different
    values say nothing about how many there are in the relation.
    """
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return tuple(
        _profile(name, values, budget, whole=whole) for name, values in zip(names, columns, strict=True) if values
    )


def _profile(name: str, values: Sequence[Any], budget: ProfileBudget, *, whole: bool) -> ColumnProfile:
    filled = [value for value in values if value is not None]
    counted = Counter(map(_text, filled))
    few = len(counted) <= budget.values
    common = counted.most_common() if few else []
    low, high = _range(filled)
    return ColumnProfile(
        name=name,
        null_fraction=1 - len(filled) / len(values),
        blank_fraction=counted[""] / len(values),
        distinct=len(counted) if few or whole else None,
        minimum=low,
        maximum=high,
        values=tuple(value for value, _ in common),
        fractions=tuple(round(count / len(values), 6) for _, count in common),
        kind="all" if whole else "common",
        rows=len(values),
        source="sample",
        as_of=date.today().isoformat(),
    )


def _text(value: Any) -> str:
    return "(binary)" if isinstance(value, bytes) else str(value)


def _range(values: Sequence[Any]) -> tuple[str | None, str | None]:
    """Return the minimum and the maximum of numbers. Texts that look like dates are ordered as dates."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers and len(numbers) == len(values):
        return str(min(numbers)), str(max(numbers))
    dates = [str(value) for value in values]
    if dates and all(len(text) >= 10 and text[:4].isdigit() and text[4] == "-" and text[7] == "-" for text in dates):
        return min(dates), max(dates)
    return None, None
