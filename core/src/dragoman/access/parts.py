"""What grants leave of one relation: rows by their filters, columns by their masks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.access.expressions import concat, disjoin
from dragoman.dialect import Dialect
from dragoman.model import ConfinedColumn, ConfinedRelation, Expression, Mixed, Relation, Spelled, Table, TableColumn

NOTHING = Expression(("NULL",))


def spell(column: TableColumn, shown: Expression | None, dialect: Dialect) -> Expression | None:
    """Return what is shown of a column, as text if its values hold names of objects. None: the column itself.

    Where a query mixes such values with numbers, as in UNION, the database turns these into names of other objects.
    """
    if dialect.confine is None or not column.names_objects:
        return shown
    text = "text[]" if column.type.endswith("]") else "text"
    own = Spelled((f"CAST({dialect.quote(column.name)} AS {text})",))
    return own if shown is None else concat("CAST((\n", shown, f"\n) AS {text})")


def spell_names(tables: Iterable[Table], dialect: Dialect) -> dict[Relation, ConfinedRelation]:
    """Return the relations that hold names of objects, with these as text, for callers who see all of their values."""
    holding = (table for table in tables if any(column.names_objects for column in table.columns))
    return {
        table.relation: ConfinedRelation(
            relation=table.relation,
            columns=tuple(
                ConfinedColumn(name=each.name, type=each.type, expression=spell(each, None, dialect))
                for each in table.columns
            ),
        )
        for table in holding
    }


def to_read(part: ConfinedRelation, table: Table, dialect: Dialect) -> ConfinedRelation | None:
    """Return what statements read in place of a relation. None: the relation, or the dialect cannot confine callers."""
    if dialect.confine is None or (len(part.columns) == len(table.columns) and not part.expressions):
        return None
    stored = {column.name for column in part.columns if column.expression is None}
    return replace(part, key=table.proven_key) if stored.issuperset(table.proven_key) else part


class Part(NamedTuple):
    """What one grant gives of a relation: the columns it names, in the rows of its filter. None: every row.

    `masks`: for each masked column, what is shown instead.
    """

    filter: Expression | None
    columns: frozenset[str]
    masks: dict[str, Expression]


def unite(
    relation: Relation, columns: Sequence[TableColumn], parts: Sequence[Part], dialect: Dialect
) -> ConfinedRelation:
    """Return what several grants together give of a relation.

    These are the rows of each grant, and in them the columns of that grant.
    """
    filters = tuple(part.filter for part in parts if part.filter is not None)
    shown = (spell(column, _combine_masks(column.name, parts, dialect), dialect) for column in columns)
    confined = (
        ConfinedColumn(name=column.name, type=column.type, expression=expression)
        for column, expression in zip(columns, shown, strict=True)
    )
    return ConfinedRelation(
        relation=relation,
        columns=tuple(confined),
        filter=disjoin(tuple(dict.fromkeys(filters))) if len(filters) == len(parts) else None,
    )


def _combine_masks(column: str, parts: Sequence[Part], dialect: Dialect) -> Expression | None:
    """Return what is shown of a column; None: the column itself. In each row the grant that shows most of it counts."""
    giving = [part for part in parts if column in part.columns]
    masks = dict.fromkeys(part.masks.get(column) for part in giving)
    if len(masks) == 1 and (len(giving) == len(parts) or any(part.filter is None for part in giving)):
        return next(iter(masks))
    # A grant that shows the column itself comes first.
    giving.sort(key=lambda part: column in part.masks)
    own = Expression((dialect.quote(column),))
    branches: list[Expression | str] = []
    otherwise = NOTHING
    for part in giving:
        shown = part.masks.get(column, own)
        if part.filter is None:
            otherwise = shown
            break
        branches += [" WHEN (\n", part.filter, "\n) THEN ", shown]
    if not branches:
        return _plain(otherwise, own)
    shown = concat("CASE", *branches, " ELSE ", otherwise, " END")
    return shown if all(column in part.masks for part in giving) else Mixed(shown.texts, shown.values)


def _plain(shown: Expression, own: Expression) -> Expression | None:
    return None if shown == own else shown


def as_conditions(part: ConfinedRelation) -> ConfinedRelation:
    """Return a part whose masks are conditions on its rows too.

    In a condition, every engine refuses expressions over several rows, such as aggregates, and expressions that turn
    one row into several.
    """
    masks = dict.fromkeys(column.expression for column in part.columns if column.expression is not None)
    if not masks:
        return part
    own = concat("(\n", part.filter or "true", "\n)")
    return replace(part, filter=concat(own, *(concat(" AND ", as_condition(mask)) for mask in masks)))


def as_condition(expression: Expression) -> Expression:
    """Return a condition that contains an expression of any type, even one without a value."""
    return concat("coalesce((\n", expression, "\n), NULL) IS NULL")
