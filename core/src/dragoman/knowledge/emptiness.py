"""Reasons for an empty answer, from its conditions and from what is known of the columns. Asks no database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import chain, combinations
from typing import TYPE_CHECKING, Final

from dragoman.catalog import Insight
from dragoman.knowledge.types import Family, family
from dragoman.model import ColumnProfile, Table, TableColumn
from dragoman.words import lower_ascii, mention, nearest, upper_ascii

if TYPE_CHECKING:
    from dragoman.sql.selection import Comparison, Condition, Selection, Value

SHOWN = 5
_EQUALITIES = ("=", "IN")
_LOWER, _UPPER = (">", ">="), ("<", "<=")
NUMBERS: Final = (int, float, Decimal)
LARGEST: Final = 10**27
"""No column of integers holds larger numbers, and `Decimal` does not tell whether they have a fraction."""

Known = Callable[["Comparison"], tuple[Table, TableColumn] | None]
"""Returns the column of a comparison, as the catalog knows it. None: uncertain."""


def impossible(selection: Selection, column_of: Known) -> str:
    """Return why no row of any database can meet the conditions; empty if one can, or if that is uncertain."""
    if selection.limit == 0:
        return "LIMIT 0 asks for no rows."
    outer = any(source.optional for source in selection.sources)
    alone = (reason for condition in selection.conditions for reason in _alone(condition, column_of, outer=outer))
    pairs = combinations([c for c in selection.conditions if c.comparison], 2)
    together = (reason for first, second in pairs for reason in _together(first, second, column_of))
    return next(chain(alone, together), "")


def _alone(condition: Condition, column_of: Known, *, outer: bool) -> Iterator[str]:
    comparison = condition.comparison
    if re.fullmatch(r"FALSE|1 = 0|0 = 1", condition.text, re.IGNORECASE):
        yield f"{condition.text} is never true."
    if comparison is None:
        return
    known = column_of(comparison)
    if comparison.operator != "IS" and None in comparison.values and len(set(comparison.values)) == 1:
        yield f"{condition.text}: nothing is ever equal to NULL. Use IS NULL."
    if comparison.operator == "BETWEEN" and _compare(comparison.values[0], comparison.values[1], known) == 1:
        yield f"{condition.text}: the lower bound comes second."
    if comparison.function and comparison.operator in _EQUALITIES:
        # Which letters beyond ASCII an engine folds depends on its locale.
        fold = lower_ascii if comparison.function == "LOWER" else upper_ascii
        if all(isinstance(value, str) and fold(value) != value for value in comparison.values):
            yield f"{condition.text}: {comparison.function}() never returns these letters."
    if comparison.operator == "IS" and known and not known[1].nullable and not outer:
        yield f"{condition.text}: the column is NOT NULL."


def _together(first: Condition, second: Condition, column_of: Known) -> Iterator[str]:
    one, other = first.comparison, second.comparison
    assert one
    assert other
    same = (one.source, one.column, one.function) == (other.source, other.column, other.function)
    if same and not _can_both(one, other, column_of(one)):
        yield f"{first.text} and {second.text} exclude each other."


def _can_both(one: Comparison, other: Comparison, known: tuple[Table, TableColumn] | None) -> bool:
    """Return whether one value can meet both. If this is uncertain, it can."""
    allowed = _equal_values(one), _equal_values(other)
    if allowed[0] is not None and allowed[1] is not None:
        return any(_compare(a, b, known) in (0, None) for a in allowed[0] for b in allowed[1])
    for exact, range_ in ((allowed[0], other), (allowed[1], one)):
        if exact is not None:
            return any(_within(value, range_, known) for value in exact)
    for low, high in ((one, other), (other, one)):
        if low.operator in _LOWER and high.operator in _UPPER:
            order = _compare(low.values[0], high.values[0], known)
            return order != 1 and not (order == 0 and (low.operator, high.operator) != (">=", "<="))
    return not {one.operator, other.operator} >= {"IS"} or one.operator == other.operator


def _equal_values(comparison: Comparison) -> tuple[Value, ...] | None:
    return comparison.values if comparison.operator in _EQUALITIES else None


def _within(value: Value, comparison: Comparison, known: tuple[Table, TableColumn] | None) -> bool:
    bound = comparison.values[0]
    match comparison.operator, _compare(value, bound, known):
        case _, None:
            return comparison.operator != "IS"
        case ">", order:
            return order in (1, UNEQUAL)
        case ">=", order:
            return order != -1
        case "<", order:
            return order in (-1, UNEQUAL)
        case "<=", order:
            return order != 1
        case "<>", order:
            return order != 0
        case _:
            return True


UNEQUAL: Final = 2
"""Said of two texts whose order depends on a collation."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?")
_LETTERS = re.compile(r"[^a-z0-9]+|(?<![0-9])0+(?=[0-9])")


def _compare(one: Value, other: Value, known: tuple[Table, TableColumn] | None) -> int | None:
    """Return -1, 0 or 1 if the order of two values is certain, `UNEQUAL` if only that they differ; else None.

    To a database '2024-01-05' and '2024-1-5' may be one day, '1.5' and '1.50' one number, 'a' and 'A ' one text.
    """
    kind = family(known[1].type) if known else "other"
    if isinstance(one, str) and isinstance(other, str):
        return _compare_texts(one, other, known, kind)
    if kind in ("integer", "number") and isinstance(one, NUMBERS) and isinstance(other, NUMBERS):
        return (one > other) - (one < other)
    return None


def _compare_texts(one: str, other: str, known: tuple[Table, TableColumn] | None, kind: Family) -> int | None:
    if one == other:
        return 0
    if _DATE.fullmatch(one) and _DATE.fullmatch(other) and re.sub(r"\d", "0", one) == re.sub(r"\d", "0", other):
        return (one > other) - (one < other)
    if known and {one, other} <= set(known[1].enum) and kind == "other":
        return UNEQUAL
    plain = kind == "text" and one.isascii() and other.isascii()
    return UNEQUAL if plain and _letters(one) != _letters(other) else None


def _letters(text: str) -> str:
    """Return what every collation tells apart: letters without case, and digits without leading zeros."""
    return _LETTERS.sub("", text.lower())


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
    wanted = [_spell(value) for value in comparison.values if value is not None]
    if column.enum and not _any_in(wanted, column.enum):
        return there_are(wanted, column.enum)
    if profile is None or (certain and profile.kind != "all") or family(column.type) not in ("text", "integer"):
        return ""
    if (profile.blank_fraction or 0) + (profile.null_fraction or 0) >= 1 and set(wanted) != {""}:
        return "the column is always blank." if profile.blank_fraction else "the column is always null."
    if profile.values and not _any_in(wanted, profile.values):
        return there_are(wanted, profile.values)
    return ""


def _spell(value: Value) -> str:
    """Return a value as a column's values are told: 1.0 is the 1 of a column of integers."""
    if isinstance(value, float | Decimal) and -LARGEST < value < LARGEST and value % 1 == 0:
        return str(int(value))
    return str(value)


def _any_in(wanted: Iterable[str], values: Iterable[str]) -> bool:
    """Return whether one of the values is wanted. Blanks at the end do not count, as in a CHAR(n)."""
    return not {each.rstrip() for each in wanted}.isdisjoint(each.rstrip() for each in values)


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
        order = _compare(told, value, None)
        return None if order == UNEQUAL else order
    if isinstance(value, str) or value is None:
        return None
    return (number > value) - (number < value)
