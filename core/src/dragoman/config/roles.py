"""Roles as they are configured. Whether tables and columns exist is checked where the database is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

EVERYBODY = "*"


def _no_masks() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a role may read of one database. `tables` and `deny` are patterns of names, as `sales.*`.

    `columns`, unless empty, are the only ones, `deny_columns` those that are not: patterns of a column alone or behind
    a table's. `filter`: a boolean expression, which the rows must meet. `masks`: by patterns of columns what is shown
    instead of them, the name of a mask or an expression. `key`: where it is configured, as `roles.analyst.grants.0`.
    """

    database: str
    tables: tuple[str, ...]
    deny: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    deny_columns: tuple[str, ...] = ()
    filter: str | None = None
    masks: Mapping[str, str] = field(default_factory=_no_masks, hash=False)
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A role. Who is in one of `groups`, `principals`, `tokens` or `scopes` has it; `*` in any of them is everybody.

    `tools`: None for every tool of the server. `max_rows` and `timeout` (seconds) bound one answer, `max_cost` what the
    database expects a query to cost, the others what a caller gets in a while: None where the role sets no limit.
    """

    name: str
    groups: frozenset[str] = frozenset()
    principals: frozenset[str] = frozenset()
    tokens: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    tools: tuple[str, ...] | None = None
    grants: tuple[Grant, ...] = ()
    max_rows: int | None = None
    timeout: float | None = None
    max_cost: float | None = None
    calls_per_minute: int | None = None
    rows_per_hour: int | None = None
    bytes_per_day: int | None = None
