"""Reasons for an empty answer, from its conditions and from what is known of the columns. Asks no database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import chain, combinations
from typing import TYPE_CHECKING

from dragoman.catalog import Insight
from dragoman.knowledge.types import family
from dragoman.model import ColumnProfile, Table, TableColumn
from dragoman.words import mention, nearest

if TYPE_CHECKING:
    from dragoman.sql.selection import Comparison, Condition, Selection, Value

SHOWN = 5
_EQUALITIES = ("=", "IN")
_LOWER, _UPPER = (">", ">="), ("<", "<=")

Known = Callable[["Comparison"], tuple[Table, TableColumn] | None]
"""Returns the column of a comparison, as the catalog knows it. None: uncertain."""


def impossible(selection: Selection, column_of: Known) -> str:
    """Return why no row of any database can meet the conditions; empty if one can."""
    if selection.limit == 0:
        return "LIMIT 0 asks for no rows."
    alone = (reason for condition in selection.conditions for reason in _alone(condition, column_of))
    pairs = combinations([c for c in selection.conditions if c.comparison], 2)
    together = (reason for first, second in pairs for reason in _together(first, second))
    return next(chain(alone, together), "")


def _alone(condition: Condition, column_of: Known) -> Iterator[str]:
    comparison = condition.comparison
    if re.fullmatch(r"FALSE|1 = 0|0 = 1", condition.text, re.IGNORECASE):
        yield f"{condition.text} is never true."
    if comparison is None:
        return
    if comparison.operator != "IS" and None in comparison.values and len(set(comparison.values)) == 1:
        yield f"{condition.text}: nothing is ever equal to NULL. Use IS NULL."
    if comparison.operator == "BETWEEN" and _compare(*comparison.values) == 1:
        yield f"{condition.text}: the lower bound comes second."
    if comparison.function and comparison.operator in _EQUALITIES:
        fold = str.lower if comparison.function == "LOWER" else str.upper
        if all(isinstance(value, str) and fold(value) != value for value in comparison.values):
            yield f"{condition.text}: {comparison.function}() never returns these letters."
    known = column_of(comparison)
    if comparison.operator == "IS" and known and not known[1].nullable:
        yield f"{condition.text}: the column is NOT NULL."


def _together(first: Condition, second: Condition) -> Iterator[str]:
    one, other = first.comparison, second.comparison
    assert one
    assert other
    same = (one.source, one.column, one.function) == (other.source, other.column, other.function)
    if same and not _can_both(one, other):
        yield f"{first.text} and {second.text} exclude each other."


def _can_both(one: Comparison, other: Comparison) -> bool:
    """Return whether one value can meet both. If this is uncertain, it can."""
    allowed = _equal_values(one), _equal_values(other)
    if allowed[0] is not None and allowed[1] is not None:
        return any(_compare(a, b) in (0, None) for a in allowed[0] for b in allowed[1])
    for exact, range_ in ((allowed[0], other), (allowed[1], one)):
        if exact is not None:
            return any(_within(value, range_) for value in exact)
    for low, high in ((one, other), (other, one)):
        if low.operator in _LOWER and high.operator in _UPPER:
            order = _compare(low.values[0], high.values[0])
            return order != 1 and not (order == 0 and (low.operator, high.operator) != (">=", "<="))
    return not {one.operator, other.operator} >= {"IS"} or one.operator == other.operator


def _equal_values(comparison: Comparison) -> tuple[Value, ...] | None:
    return comparison.values if comparison.operator in _EQUALITIES else None


def _within(value: Value, comparison: Comparison) -> bool:
    bound = comparison.values[0]
    match comparison.operator, _compare(value, bound):
        case _, None:
            return comparison.operator != "IS"
        case ">", order:
            return order == 1
        case ">=", order:
            return order != -1
        case "<", order:
            return order == -1
        case "<=", order:
            return order != 1
        case "<>", order:
            return order != 0
        case _:
            return True


_DATE = re.compile(r"\d{4}-\d\d-\d\d.*")


def _compare(one: Value, other: Value) -> int | None:
    """Return -1, 0 or 1 if the order of two values is certain: for numbers, for dates, and for equal texts."""
    if isinstance(one, str) and isinstance(other, str):
        if one == other:
            return 0
        dates = _DATE.fullmatch(one) and _DATE.fullmatch(other)
        return ((one > other) - (one < other)) if dates else (2 if one != other else 0)
    if isinstance(one, int | float) and isinstance(other, int | float):
        return (one > other) - (one < other)
    return None


# Reasons from what is known of columns


def known_cause(
    conditions: Iterable[Condition], column_of: Known, insights: Mapping[str, Insight], *, certain: bool
) -> str:
    """Return the condition that no known value meets, and the values that exist; empty if there is none.

    `insights`: by the table's dotted name. `certain`: only counted values are evidence, not the common ones alone.
    """
    for condition in conditions:
        known = condition.comparison and column_of(condition.comparison)
        if not condition.comparison or not known:
            continue
        table, column = known
        profile = insights.get(str(table.relation), Insight()).profiles.get(column.name)
        reason = explain_unmet(condition.comparison, column, profile, certain=certain)
        if reason:
            return f"{condition.text}: {reason}"
    return ""


def explain_unmet(comparison: Comparison, column: TableColumn, profile: ColumnProfile | None, *, certain: bool) -> str:
    """Return why no known value of a column meets a comparison; empty if one does, or if that is unknown."""
    if comparison.operator not in _EQUALITIES or comparison.function:
        return _beyond(comparison, profile) if profile and (profile.kind == "all" or not certain) else ""
    wanted = [str(value) for value in comparison.values if value is not None]
    if column.enum and not set(wanted) & set(column.enum):
        return there_are(wanted, column.enum)
    if profile is None or (certain and profile.kind != "all") or family(column.type) not in ("text", "integer"):
        return ""
    if (profile.blank_fraction or 0) + (profile.null_fraction or 0) >= 1 and set(wanted) != {""}:
        return "the column is always blank." if profile.blank_fraction else "the column is always null."
    if profile.values and not set(wanted) & set(profile.values):
        return there_are(wanted, profile.values)
    return ""


def there_are(wanted: Sequence[str], values: Sequence[str]) -> str:
    """Return the values that exist, those most similar to the wanted ones first."""
    shown = list(dict.fromkeys((*near_values(wanted, values), *values)))
    listed = ", ".join(map(mention, shown[:SHOWN])) + (", ..." if len(shown) > SHOWN else "")
    return f"no such value; there {'is' if len(shown) == 1 else 'are'} {listed}."


def near_values(wanted: Sequence[str], values: Sequence[str]) -> list[str]:
    """Return the values that were perhaps meant.

    Those that differ only in case and blanks come first, then those with a similar spelling.
    """
    folded = {" ".join(each.lower().split()) for each in wanted}
    alike = [value for value in values if " ".join(value.lower().split()) in folded]
    by_letters = {value.lower(): value for value in values}
    spelt = [by_letters[found] for each in wanted for found in nearest(each.lower(), list(by_letters), 3)]
    return list(dict.fromkeys((*alike, *spelt)))


def _beyond(comparison: Comparison, profile: ColumnProfile) -> str:
    if comparison.operator in _LOWER and profile.maximum is not None:
        if _order(profile.maximum, comparison.values[0]) == -1:
            return f"the greatest is {mention(profile.maximum)}."
    if comparison.operator in _UPPER and profile.minimum is not None:
        if _order(profile.minimum, comparison.values[0]) == 1:
            return f"the least is {mention(profile.minimum)}."
    return ""


def _order(told: str, value: Value) -> int | None:
    try:
        number = Decimal(told)
    except InvalidOperation:
        order = _compare(told, value)
        return None if order == 2 else order
    if isinstance(value, str) or value is None:
        return None
    return (number > value) - (number < value)
