"""Turns the rows of the catalog queries into `Table` values. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, TypeAlias

from dragoman import Constraint, ForeignKey, Index, Names, Relation, Table, TableColumn

from dragoman_postgres.checks import allowed_values
from dragoman_postgres.spelling import short_type

Row: TypeAlias = Any
"""A row of a query: the driver's record, which can be indexed and unpacked like a tuple."""

_KINDS: dict[str, Any] = {
    "r": "table",
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
    "p": "partitioned table",
}
EXPRESSION = "0"
"""Stands in an index's key instead of a column's number."""
_CONSTRAINTS: dict[str, Any] = {"p": "PRIMARY KEY", "u": "UNIQUE", "c": "CHECK", "x": "EXCLUDE"}
_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
_IDENTITIES = {"a": "ALWAYS", "d": "BY DEFAULT", "": None}


@dataclass(slots=True)
class Facts:
    """Rows as the queries of the same names return them."""

    relations: Sequence[Row]
    columns: Sequence[Row] = ()
    types: Sequence[Row] = ()
    constraints: Sequence[Row] = ()
    indexes: Sequence[Row] = ()
    storage: Sequence[Row] = ()
    definitions: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Type:
    """The facts in the type of a column: its spelling, whether it forbids NULL, and its only values.

    `names_objects`: whether its values hold names of objects.
    """

    name: str
    not_null: bool
    values: tuple[str, ...]
    names_objects: bool = False


@dataclass(slots=True)
class _Checked:
    """The facts in a relation's constraints. `values`: by column.

    `unproven`: numbers of columns that may still have NULLs.
    """

    constraints: list[Constraint] = field(default_factory=list[Constraint])
    foreign_keys: list[ForeignKey] = field(default_factory=list[ForeignKey])
    values: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    unproven: set[str] = field(default_factory=set[str])


def build(facts: Facts) -> tuple[Table, ...]:
    """Return the relations, without keys and indexes over columns that the role may not read."""
    columns, constraints, indexes = (_group(rows) for rows in (facts.columns, facts.constraints, facts.indexes))
    storage = {oid: (rows, size) for oid, rows, size in facts.storage}
    definitions = {oid: _definition(*rest[:5]) for oid, *rest in facts.definitions}
    parents = {oid: _parent(*rest[-2:]) for oid, *rest in facts.definitions}
    known = _Columns({(oid, modifier): _type(*rest) for oid, modifier, *rest in facts.types})
    tables: list[Table] = []
    for oid, schema, name, kind, owner, comment, system, *_ in facts.relations:
        relation = Relation(name, schema)
        own = columns.get(oid, ())
        names: dict[str, str] = {str(row[1]): row[2] for row in own}
        checked = _interpret_checks(relation, names, constraints.get(oid, ()))
        rows, size = storage.get(oid, (None, None))
        tables.append(
            Table(
                relation=relation,
                type=_KINDS[kind],
                columns=tuple([known.column(row, checked) for row in own]),
                constraints=tuple(checked.constraints),
                foreign_keys=tuple(checked.foreign_keys),
                indexes=tuple(_indexes(indexes.get(oid, ()), names)),
                comment=comment,
                owner=owner,
                row_estimate=rows,
                size_bytes=size,
                definition=definitions.get(oid) or None,
                partition_of=parents.get(oid),
                system=system,
            )
        )
    return tuple(tables)


def group_names(rows: Iterable[Row]) -> list[Names]:
    """Return the rows of the query NAMES, grouped by schema, type and parent."""
    return [
        Names(
            names=tuple(names),
            schema=schema,
            type=_KINDS[kind],
            system=system,
            partition_of=None if parent is None else Relation(parent, home),
        )
        for schema, kind, system, home, parent, names in rows
    ]


def _parent(schemas: Sequence[str] | None, names: Sequence[str] | None) -> Relation | None:
    """Return the relation that this one is a part of: its only parent."""
    return Relation(names[0], schemas[0]) if schemas and names and len(names) == 1 else None


def _definition(is_partition: bool, parents: str | None, bounds: str | None, key: str | None, query: str | None) -> str:
    """Return the parts of CREATE that say more than the columns do."""
    words: list[str] = []
    if parents:
        words.append(f"PARTITION OF {parents}" if is_partition else f"INHERITS ({parents})")
    words += [bounds] if bounds else []
    words += [f"PARTITION BY {key}"] if key else []
    words += [query.strip().rstrip(";")] if query else []
    return " ".join(words)


def _type(formatted: str, not_null: bool, labels: Sequence[str], checks: Sequence[str], names_objects: bool) -> Type:
    listed = (allowed_values(check) for check in checks)
    values = tuple(labels) or next((found[1] for found in listed if found), ())
    return Type(short_type(formatted), not_null, values, names_objects)


_UNKNOWN = Type("unknown", not_null=False, values=())
"""The type of a column that was dropped between two queries."""


def _group(rows: Iterable[Row]) -> dict[int, list[Row]]:
    first = itemgetter(0)
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(first(row), []).append(row)
    return groups


class _Columns:
    """Builds columns. Equal columns of different tables share one value, since there are many."""

    def __init__(self, types: dict[tuple[int, int], Type]) -> None:
        self._types = types
        self._made: dict[Row, TableColumn] = {}

    def column(self, row: Row, checked: _Checked) -> TableColumn:
        """Return the column for a row of the query COLUMNS."""
        number, name = row[1], row[2]
        if checked.values or checked.unproven:
            return self._make(row[2:], str(number) in checked.unproven, checked.values.get(name, ()))
        key = row[2:]
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(key)
        return made

    def _make(self, key: Row, unproven: bool = False, values: tuple[str, ...] = ()) -> TableColumn:
        name, type_, modifier, not_null, generated, identity, comment, expression = key
        known = self._types.get((type_, modifier), _UNKNOWN)
        return TableColumn(
            name=name,
            type=known.name,
            nullable=not (known.not_null or (not_null and not unproven)),
            default=None if generated else expression,
            comment=comment,
            generated=expression if generated else None,
            identity=_IDENTITIES[identity],
            enum=known.values or values,
            names_objects=known.names_objects,
        )


def _interpret_checks(relation: Relation, names: dict[str, str], rows: Iterable[Row]) -> _Checked:
    checked = _Checked()
    for _, kind, name, key, definition, proven, *reference in rows:
        try:
            columns = tuple([names[number] for number in key or ()])
        except KeyError:
            continue  # of a column that the role may not read
        if kind == "f":
            checked.foreign_keys.append(_foreign_key(relation, name, columns, definition, *reference))
        elif kind == "n":
            checked.unproven.update(key)
        else:
            checked.constraints.append(
                Constraint(
                    type=_CONSTRAINTS[kind],
                    name=name,
                    columns=columns,
                    definition=definition,
                    proven=proven or kind == "c",
                )
            )
            if kind == "c" and (found := allowed_values(definition)):
                checked.values[found[0]] = found[1]
    return checked


def _foreign_key(
    relation: Relation,
    name: str,
    columns: tuple[str, ...],
    definition: str | None,
    schema: str,
    target: str,
    referenced: Sequence[str],
    on_update: str,
    on_delete: str,
) -> ForeignKey:
    return ForeignKey(
        relation=relation,
        columns=columns,
        references=Relation(target, schema),
        referenced_columns=tuple(referenced),
        name=name,
        on_update=_ACTIONS[on_update],
        on_delete=_ACTIONS[on_delete],
        definition=definition,
    )


def _indexes(rows: Iterable[Row], names: dict[str, str]) -> Iterator[Index]:
    for _, name, unique, primary, method, key, expressions, predicate, carried in rows:
        if any(number != EXPRESSION and number not in names for number in (*key, *carried)):
            continue  # of a column that the role may not read
        parts = tuple(
            [expressions[place] if number == EXPRESSION else names[number] for place, number in enumerate(key)]
        )
        yield Index(
            name=name,
            parts=parts,
            unique=unique,
            primary=primary,
            method=method,
            predicate=predicate,
            included=tuple([names[number] for number in carried]),
        )
