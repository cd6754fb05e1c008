"""What is known of a relation beside its structure, and how a description shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dragoman.model import ColumnProfile, ForeignKey

MAX_VALUES = 12
MAX_BYTES = 32
"""The most characters of a list of values in a line: values must not make descriptions much longer."""
MANY_NULLS = 0.25
"""The share of missing values from which a line warns of them."""
FEW_ROWS = 20
"""Fewer rows than this say nothing about a column."""
COMPLETE = 0.995
"""If the common values make up this share of a column, they count as all of its values."""


def _no_profiles() -> Mapping[str, ColumnProfile]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Insight:
    """What is known of one relation: the profiles of its columns that may be shown, and joins that nobody declared.

    `parts`: the names of its partitions or children.
    """

    profiles: Mapping[str, ColumnProfile] = field(default_factory=_no_profiles)
    suggested: tuple[ForeignKey, ...] = ()
    parts: tuple[str, ...] = ()


def format_list(values: Sequence[str], complete: bool) -> str:
    """Return values as a list in braces. The list shows whether it was cut or may be incomplete."""
    shown: list[str] = []
    room = MAX_BYTES
    for value in values[:MAX_VALUES]:
        room -= len(value.encode()) + 1
        if room < 0:
            break
        shown.append(_plain(value))
    cut = len(shown) < len(values) or not complete
    return "{" + "|".join([*shown, *(["..."] if cut else [])]) + "}"


def is_complete(profile: ColumnProfile) -> bool:
    """Return whether the values of a profile are practically all there are."""
    if profile.kind == "all":
        return True
    told = sum(profile.fractions) + (profile.null_fraction or 0)
    return (profile.distinct or 0) <= len(profile.values) and told >= COMPLETE


def warning(profile: ColumnProfile, nullable: bool) -> str:
    """Return a warning for queries over the column: it has no values, or often none; else empty."""
    if profile.rows is not None and profile.rows < FEW_ROWS:
        return ""
    if profile.blank_fraction is not None and profile.blank_fraction >= 1:
        return "always blank"
    if profile.null_fraction is None or not nullable:
        return ""
    if profile.null_fraction >= 1:
        return "always null"
    many = profile.null_fraction >= MANY_NULLS
    return f"{min(round(profile.null_fraction * 100), 99)} % null" if many else ""


def facts(profile: ColumnProfile) -> Iterator[tuple[str, Any]]:
    """Yield the facts that a full description shows of a column's values, by key."""
    values = [value for value in profile.values if value]
    yield "common_values", values
    yield "values_kind", profile.kind if values else None
    yield "null_fraction", _round(profile.null_fraction)
    yield "blank_fraction", _round(profile.blank_fraction)
    yield "distinct_values", profile.distinct
    yield "minimum", profile.minimum
    yield "maximum", profile.maximum
    yield "source", " of ".join([profile.source, *([profile.as_of] if profile.as_of else [])])


def _round(fraction: float | None) -> float | None:
    return round(fraction, 4) if fraction else None


def _plain(value: str) -> str:
    """Return a value for a list on one line. A value that would end the list, or is empty, stands in quotes."""
    line = " ".join(value.split())
    return line if value and line == value and not set(value) & set("{}|'\"") else "'" + line.replace("'", "''") + "'"
