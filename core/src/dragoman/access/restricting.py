"""What policies leave of a database's relations to a principal. The strictest of all decisions counts."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from dragoman.access.expressions import MASKS, Check, check, check_mask, concat, expression, problem
from dragoman.access.generated import leave_out_telling
from dragoman.access.grants import Permission, named_mask
from dragoman.access.parts import NOTHING, spell, to_read
from dragoman.dialect import Dialect, Restriction
from dragoman.errors import ConfigurationError, PermissionDenied
from dragoman.model import ConfinedColumn, ConfinedRelation, Expression, Relation, Spelled, Table, TableColumn

if TYPE_CHECKING:
    from dragoman.plugins.policies import Restricting  # its imports cost the first answer 20 ms

_log = logging.getLogger(__name__)


class Decider(Protocol):
    """Decides what callers have of relations: the grants of their roles, and every policy that restricts them."""

    def reaches(self, schema: str | None, catalog: str | None) -> bool:
        """Return whether something in a schema may be visible."""
        ...

    def on(self, table: Table) -> Permission | None:
        """Return what may be read of a relation. None: for the caller, it does not exist."""
        ...

    def is_open(self, found: Mapping[Relation, Permission], tables: Sequence[Table]) -> bool:
        """Return whether nothing is hidden, so that relations behind views need no check."""
        ...


class Restrictions:
    """What one policy leaves of relations."""

    def __init__(self, restricting: Restricting, dialect: Dialect) -> None:
        self._restricting = restricting
        self._dialect = dialect

    def reaches(self, schema: str | None, catalog: str | None) -> bool:
        """Return whether a schema may hold something visible. Each relation is decided by itself."""
        return True

    def on(self, table: Table) -> Permission | None:
        """Return what may be read of a relation. None: it does not exist.

        Raises `DialectError` for an impossible restriction, and `PermissionDenied` if the dialect cannot confine
        callers to it.
        """
        if table.system:
            return None
        told = self._restricting.restrict(table, self._dialect)
        left = told or Restriction()
        columns = self._remove_hidden(table, left)
        if left.hidden or (table.columns and not columns):
            return None
        confined = self._confine(table, columns, left)
        return Permission(
            columns=tuple(column.name for column in columns),
            whole=len(columns) == len(table.columns) and confined.whole,
            named=told is not None,
            always=False,  # a policy decides by the columns that there are
            keys=(f"policies.{self._restricting.policy}",),
            confined=to_read(confined, table, self._dialect),
        )

    def is_open(self, found: Mapping[Relation, Permission], tables: Sequence[Table]) -> bool:
        """Return whether the policy hides nothing."""
        there = sum(not table.system for table in tables)
        return len(found) == there and all(each.whole for each in found.values())

    def _remove_hidden(self, table: Table, left: Restriction) -> list[TableColumn]:
        known = {column.name for column in table.columns}
        for name in (*left.masks, *left.hidden_columns):
            if name not in known:
                raise self._restricting.fault(f"names the column {name!r}, which {table.relation} does not have")
        shown = [column for column in table.columns if column.name not in left.hidden_columns]
        return leave_out_telling(shown, (*left.masks, *left.hidden_columns), left.masks)

    def _confine(self, table: Table, columns: Sequence[TableColumn], left: Restriction) -> ConfinedRelation:
        if self._dialect.confine is None and (left.filter is not None or left.masks):
            policy = f"The policy {self._restricting.policy!r} leaves a part of"
            _log.error("%s %s, and %s cannot confine callers to it", policy, table.relation, self._dialect.name)
            raise PermissionDenied(
                f"{policy} a relation, and {self._dialect.name} cannot confine callers to it: the database is closed.",
                suggestion="Tell the server's administrator. The log names the relation.",
            )
        return ConfinedRelation(
            relation=table.relation,
            columns=tuple(self._column(column, left.masks.get(column.name)) for column in columns),
            filter=None if left.filter is None else self._read(left.filter),
        )

    def _column(self, column: TableColumn, mask: str | None) -> ConfinedColumn:
        shown = None if mask is None else self._read_mask(mask, column)
        return ConfinedColumn(name=column.name, type=column.type, expression=spell(column, shown, self._dialect))

    def _read_mask(self, mask: str, column: TableColumn) -> Expression:
        return named_mask(mask, column, self._dialect) if mask in MASKS else self._read(mask, check_mask)

    def _read(self, text: str, check: Check = check) -> Expression:
        try:
            read = expression(text, "it", self._restricting.policy)
        except ConfigurationError as error:
            raise self._restricting.fault(f"wrote {text!r}: {error.message.rstrip('.')}") from None
        if wrong := problem(read, self._dialect, check):
            raise self._restricting.fault(f"wrote {text!r}: {wrong.message.rstrip('.')}")
        return read


def intersect(one: Permission, other: Permission) -> Permission:
    """Return what two deciders together leave of a relation."""
    columns = tuple(name for name in one.columns if name in other.columns)
    parts = [each.confined for each in (one, other) if each.confined is not None]
    return Permission(
        columns=columns,
        whole=one.whole and other.whole,
        named=one.named and other.named,
        always=one.always and other.always,
        keys=(*one.keys, *other.keys),
        confined=_intersect_parts(parts, columns) if parts else None,
    )


def _intersect_parts(parts: Sequence[ConfinedRelation], columns: Sequence[str]) -> ConfinedRelation:
    filters = tuple(dict.fromkeys(part.filter for part in parts if part.filter is not None))
    types = {column.name: column.type for column in parts[0].columns}
    shown = {name: _both([part.columns for part in parts], name) for name in columns}
    return ConfinedRelation(
        relation=parts[0].relation,
        columns=tuple(ConfinedColumn(name=name, type=types[name], expression=shown[name]) for name in columns),
        filter=_conjoin(filters),
    )


def _both(sides: Sequence[Sequence[ConfinedColumn]], name: str) -> Expression | None:
    """Return what is shown of a column: itself, its only mask, or nothing where masks differ."""
    shown = {c.expression for side in sides for c in side if c.name == name and c.expression is not None}
    masks = {each for each in shown if not isinstance(each, Spelled)} or shown
    return next(iter(masks), None) if len(masks) < 2 else NOTHING


def _conjoin(filters: Sequence[Expression]) -> Expression | None:
    if not filters:
        return None
    joined = concat("(\n", filters[0], "\n)")
    for each in filters[1:]:
        joined = concat(joined, " AND (\n", each, "\n)")
    return joined
