"""The values in the columns of a relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileBudget:
    """The budget of reading the values of columns.

    - `seconds`: in total.
    - `sample`: rows may be read, at most `rows` of a relation, if the engine keeps no statistics.
    - `values`: a column with more different values than this gets no list of them.
    """

    seconds: float = 60.0
    sample: bool = False
    rows: int = 10_000
    values: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """What is known of the values of a column. None: unknown. Values are in the database's own text.

    - Fractions are of the relation's rows, from 0 to 1. `blank_fraction`: the text is empty.
    - `distinct`: the number of different values, NULL not counted.
    - `minimum`, `maximum`: of numbers and dates.
    - `values`: the most frequent first, with their `fractions` if those are known.
    - `kind`: whether `values` are `all` values, counted, or only `common` ones.
    - `rows`: the rows that were read, or that the statistics are based on.
    - `as_of`: the day, such as 2026-11-22.
    """

    name: str
    null_fraction: float | None = None
    blank_fraction: float | None = None
    distinct: int | None = None
    minimum: str | None = None
    maximum: str | None = None
    values: tuple[str, ...] = ()
    fractions: tuple[float, ...] = ()
    kind: Literal["all", "common"] = "common"
    rows: int | None = None
    source: Literal["statistics", "sample"] = "statistics"
    as_of: str | None = None
