"""What the columns of a relation hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileBudget:
    """How much a look at the values of columns may cost.

    `seconds`: in all. `sample`: rows may be read, at most `rows` of a relation, where the engine keeps no statistics.
    `values`: of a column with more different values than this, none are listed.
    """

    seconds: float = 60.0
    sample: bool = False
    rows: int = 10_000
    values: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """What is known of the values of a column; None: not known. Values are in the database's own text.

    Fractions are of the relation's rows, from 0 to 1; `blank_fraction`: the text is empty. `distinct`: how many
    different values there are, NULL not counted. `minimum` and `maximum`: of numbers and dates. `values`: the most
    frequent first, with their `fractions` where those are known. `kind`: whether these are `all` there are, counted,
    or only the `common` ones. `rows`: how many rows were looked at, or stand behind the statistics. `as_of`: the day of
    the look, as in 2026-11-22.
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
