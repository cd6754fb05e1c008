"""Turns the rows of the pragmas into `Table` values. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dragoman import Constraint, ForeignKey, Index, Names, Relation, Scope, Table, TableColumn
from dragoman.words import lower_ascii

from dragoman_sqlite import ddl
from dragoman_sqlite.types import short_type

RelationType: TypeAlias = Literal["table", "view", "virtual table"]
SCHEMA = "main"
_TYPES: dict[str, RelationType] = {"view": "view", "virtual": "virtual table"}
ROWIDS = ("rowid", "_rowid_", "oid")
"""Names of a table's row number. A column of the same name hides it."""
HIDDEN, VIRTUAL, STORED = 1, 2, 3
"""`hidden` of pragma_table_xinfo: a virtual table's hidden column, a generated column that is computed or stored."""


@dataclass(slots=True)
class Facts:
    """Rows of the inspector's queries. Each begins with its table's name.

    `unreadable`: views and virtual tables whose columns this SQLite cannot read.
    """

    tables: list[Any]
    columns: list[Any] = field(default_factory=list[Any])
    unreadable: list[str] = field(default_factory=list[str])
    foreign_keys: list[Any] = field(default_factory=list[Any])
    indexes: list[Any] = field(default_factory=list[Any])
    row_estimates: dict[str, int] = field(default_factory=dict[str, int])
    notices: list[str] = field(default_factory=list[str])

    def rowids(self) -> dict[str, str]:
        """The name of the row number of every table that has one."""
        columns = {table: {lower_ascii(row[0]) for row in rows} for table, rows in _by_table(self.columns).items()}
        found = {
            table: next((rowid for rowid in ROWIDS if rowid not in columns.get(table, ())), "")
            for table, kind, without_rowid, _ in self.tables
            if kind == "table" and not without_rowid and not table.startswith("sqlite_")
        }
        return {table: rowid for table, rowid in found.items() if rowid}


def build(facts: Facts) -> list[Table]:
    """Return the tables, views and virtual tables. SQLite's own and shadow tables are marked as system."""
    columns, keys, indexes = (_by_table(rows) for rows in (facts.columns, facts.foreign_keys, facts.indexes))
    parents = {lower_ascii(name): _Parent(name, columns[name]) for name, *_ in facts.tables}
    return [
        _Builder(name, kind, sql, columns[name], indexes[name]).table(
            keys[name], parents, facts.row_estimates.get(name)
        )
        for name, kind, _, sql in facts.tables
    ]


def group_names(rows: Iterable[Any], scope: Scope) -> list[Names]:
    """Return the rows of the query TABLES, grouped by type, as far as they are in `scope`."""
    groups: dict[tuple[RelationType, bool], list[str]] = defaultdict(list)
    for name, kind, *_ in rows:
        if Relation(name, SCHEMA) in scope:
            groups[_TYPES.get(kind, "table"), _is_system(name, kind)].append(name)
    return [
        Names(names=tuple(names), schema=SCHEMA, type=type_, system=system) for (type_, system), names in groups.items()
    ]


def _is_system(name: str, kind: str) -> bool:
    return kind == "shadow" or name.startswith("sqlite_")


def _by_table(rows: Iterable[Any]) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = defaultdict(list)
    for name, *rest in rows:
        grouped[name].append(rest)
    return grouped


def _primary_key(columns: Iterable[Any]) -> tuple[str, ...]:
    parts = sorted((position, name) for name, _, _, _, position, _ in columns if position)
    return tuple(name for _, name in parts)


class _Parent:
    """A table as the target of foreign keys, which may write its name and its columns' in any case."""

    def __init__(self, name: str, columns: list[Any]) -> None:
        self.name = name
        self._primary_key = _primary_key(columns)
        self._stored: dict[str, str] = {lower_ascii(row[0]): row[0] for row in columns}

    def columns(self, written: Sequence[str | None]) -> tuple[str, ...]:
        """Return the columns meant: the written ones, else the primary key if it has as many columns; else none."""
        named = tuple(self._stored.get(lower_ascii(name), name) for name in written if name)
        if len(named) == len(written):
            return named
        return self._primary_key if len(self._primary_key) == len(written) else ()


_NOTHING = ddl.Item()


class _Builder:
    """Builds one table. The pragmas give most facts; the text of its CREATE statement gives the rest."""

    def __init__(self, name: str, kind: str, sql: str | None, columns: list[Any], indexes: list[Any]) -> None:
        self._relation = Relation(name, SCHEMA)
        self._kind = kind
        self._sql = sql or ""
        self._columns = columns
        self._primary_key = _primary_key(columns)
        self._indexes = _group(indexes)
        self._items = ddl.items(self._sql) if kind == "table" else []
        self._written = {lower_ascii(item.column): item for item in self._items if item.column}
        self._checks = [check for item in self._items for check in item.checks]

    def table(self, keys: list[Any], parents: Mapping[str, _Parent], row_estimate: int | None) -> Table:
        name = self._relation.name
        return Table(
            relation=self._relation,
            type=_TYPES.get(self._kind, "table"),
            columns=tuple(self._column(row) for row in self._columns if row[-1] != HIDDEN),
            constraints=tuple(self._constraints()),
            foreign_keys=tuple(self._foreign_keys(keys, parents)),
            indexes=tuple(_index(rows) for rows in self._indexes),
            row_estimate=row_estimate,
            definition=self._sql if self._kind == "view" else None,
            system=_is_system(name, self._kind),
            shows=self._shows(parents),
        )

    def _shows(self, parents: Mapping[str, _Parent]) -> Relation | None:
        shown = ddl.find_source(self._sql) if self._kind == "virtual" else None
        if shown is None:
            return None
        parent = parents.get(lower_ascii(shown))
        return Relation(parent.name if parent else shown, SCHEMA)

    def _column(self, row: Any) -> TableColumn:
        name, declared, not_null, default, position, hidden = row
        item = self._written.get(lower_ascii(name), _NOTHING)
        return TableColumn(
            name=name,
            type=short_type(declared) or "any",
            nullable=not (not_null or (position and self._is_rowid(declared))),
            default=default and ddl.inner_text(ddl.tokens(default)),
            comment=item.comment,
            generated=item.generated if hidden in (VIRTUAL, STORED) else None,
            enum=self._enum(name),
        )

    def _is_rowid(self, declared: str) -> bool:
        """Return whether a key is the rowid: an INTEGER PRIMARY KEY without an index, which is never NULL.

        Other keys may be.
        """
        indexed = any(rows[0][2] == "pk" for rows in self._indexes)
        return declared.upper() == "INTEGER" and len(self._primary_key) == 1 and not indexed

    def _enum(self, column: str) -> tuple[str, ...]:
        found = (ddl.allowed_values(check, column) for _, check in self._checks)
        return next((values for values in found if values), ())

    def _constraints(self) -> Iterable[Constraint]:
        if self._primary_key:
            yield Constraint(type="PRIMARY KEY", columns=self._primary_key)
        for rows in self._indexes:
            if rows[0][2] == "u":
                yield Constraint(type="UNIQUE", columns=tuple(row[-1] for row in rows))
        for name, check in self._checks:
            yield Constraint(type="CHECK", name=name, definition=check)

    def _foreign_keys(self, keys: list[Any], parents: Mapping[str, _Parent]) -> Iterable[ForeignKey]:
        names = [name for item in self._items for name in item.references]
        groups = _group(keys)
        for position, rows in enumerate(groups):
            _, written, _, _, on_update, on_delete = rows[0]
            parent = parents.get(lower_ascii(written)) or _Parent(written, [])
            yield ForeignKey(
                relation=self._relation,
                columns=tuple(row[2] for row in rows),
                references=Relation(parent.name, SCHEMA),
                referenced_columns=parent.columns([row[3] for row in rows]),
                name=names[position] if len(names) == len(groups) else None,
                on_update=on_update,
                on_delete=on_delete,
            )


def _index(rows: list[Any]) -> Index:
    name, unique, origin, sql, _ = rows[0]
    parts, predicate = ddl.index_parts(sql or "", tuple(row[-1] for row in rows))
    return Index(name=name, parts=parts, unique=bool(unique), primary=origin == "pk", predicate=predicate)


def _group(rows: Iterable[Any]) -> list[list[Any]]:
    """Group rows by their first values: the parts of one key, or of one index."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    return list(groups.values())
