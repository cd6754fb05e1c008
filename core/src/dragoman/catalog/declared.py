"""Keys from the configuration, merged with those that the engine reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dragoman.catalog.names import Part, parse_name
from dragoman.dialect import Dialect
from dragoman.errors import DragomanError
from dragoman.model import Constraint, DeclaredKey, ForeignKey, Relation, Table

Find = Callable[[str], Table]


class _Unusable(Exception):
    """A declared key names something that does not exist."""


def merge(
    tables: Iterable[Table], keys: Iterable[DeclaredKey], find: Find, dialect: Dialect
) -> tuple[tuple[Table, ...], list[str]]:
    """Return the tables with declared keys added, and a notice for each key that could not be used.

    `find` raises a `DragomanError` for an unknown table. Primary keys come first, since foreign keys without referenced
    columns point to them.
    """
    merged = {table.relation: table for table in tables}
    notices: list[str] = []
    for key in sorted(keys, key=lambda key: key.references is not None):
        try:
            table = _merge_one(key, lambda name: merged[find(name).relation], dialect)
        except (DragomanError, _Unusable) as error:
            notices.append(f"A declared key of {key.table} is not used: {error}")
        else:
            merged[table.relation] = table
    return tuple(merged.values()), notices


def _merge_one(key: DeclaredKey, find: Find, dialect: Dialect) -> Table:
    table = find(key.table)
    columns = _columns(table, key.columns, dialect)
    if key.references is None:
        if table.primary_key:
            return table
        declared = Constraint(type="PRIMARY KEY", columns=columns, proven=False)
        return replace(table, constraints=(declared, *table.constraints))
    target = find(key.references)
    foreign = _foreign_key(table.relation, columns, target, _columns(target, key.referenced_columns, dialect))
    return table if _lists(table, foreign) else replace(table, foreign_keys=(*table.foreign_keys, foreign))


def _foreign_key(relation: Relation, columns: tuple[str, ...], target: Table, named: tuple[str, ...]) -> ForeignKey:
    referenced = named or target.primary_key
    if len(referenced) != len(columns):
        raise _Unusable(f"{target.relation.name} has no key of {len(columns)} columns; name referenced_columns.")
    return ForeignKey(
        relation=relation, columns=columns, references=target.relation, referenced_columns=referenced, declared=True
    )


def _lists(table: Table, key: ForeignKey) -> bool:
    facts = (key.columns, key.references, key.referenced_columns)
    return any((k.columns, k.references, k.referenced_columns) == facts for k in table.foreign_keys)


def _columns(table: Table, written: Iterable[str], dialect: Dialect) -> tuple[str, ...]:
    return tuple(_column(table, name, dialect) for name in written)


def _column(table: Table, written: str, dialect: Dialect) -> str:
    parts = parse_name(written, dialect.lexicon) or (Part(written, quoted=True),)
    stored = [column.name for column in table.columns]
    named = [name for name in stored if parts[-1].names(name, dialect)] if len(parts) == 1 else []
    if named or written in stored:
        return named[0] if named else written
    raise _Unusable(f"{table.relation.name} has no column {written}.")
