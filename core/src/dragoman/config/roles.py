"""Configured roles. Their tables and columns are checked later, where the database is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

EVERYBODY = "*"


def _no_masks() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a role may read of one database. `tables` and `deny` are patterns of names, such as `sales.*`.

    - `columns`: unless empty, only these columns. Patterns of a column alone, or after a table's.
    - `deny_columns`: patterns of columns that the role may not read.
    - `filter`: a boolean expression that the rows must meet.
    - `masks`: by patterns of columns, what is shown instead: the name of a mask, or an expression.
    - `key`: where it is configured, such as `roles.analyst.grants.0`.
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
    """A role.

    Its holders are those in `groups`, `principals`, `tokens` or `scopes`; `*` in any of these means everybody.

    - `tools`: None for every tool of the server.
    - `max_rows`, `timeout` (seconds): bounds of one answer.
    - `max_cost`: the highest cost that the database may estimate for a query.

    The other limits are quotas of a caller. None: the role sets no limit.
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
