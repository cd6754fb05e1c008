"""From the rows of the pragmas to `Table` values. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from dragoman import Constraint, ForeignKey, Index, Relation, Table, TableColumn

from dragoman_sqlite import ddl
from dragoman_sqlite.types import short_type

SCHEMA = "main"
HIDDEN, VIRTUAL, STORED = 1, 2, 3
"""`hidden` of pragma_table_xinfo: a virtual table's hidden column, a generated column that is computed or kept."""


@dataclass(slots=True)
class Facts:
    """Rows as the inspector's queries return them, each beginning with its table's name."""

    tables: list[Any]
    columns: list[Any] = field(default_factory=list[Any])
    foreign_keys: list[Any] = field(default_factory=list[Any])
    indexes: list[Any] = field(default_factory=list[Any])
    row_estimates: dict[str, int] = field(default_factory=dict[str, int])
    notices: list[str] = field(default_factory=list[str])


def build(facts: Facts) -> list[Table]:
    """Return the tables, views and virtual tables; SQLite's own and shadow tables are marked as system."""
    columns, keys, indexes = (_by_table(rows) for rows in (facts.columns, facts.foreign_keys, facts.indexes))
    primary_keys = {name: _primary_key(rows) for name, rows in columns.items()}
    return [
        _Builder(name, kind, sql, columns[name], facts.row_estimates.get(name)).table(
            keys[name], indexes[name], primary_keys
        )
        for name, kind, _, sql in facts.tables
    ]


def _by_table(rows: Iterable[Any]) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = defaultdict(list)
    for name, *rest in rows:
        grouped[name].append(rest)
    return grouped


def _primary_key(columns: Iterable[Any]) -> tuple[str, ...]:
    parts = sorted((position, name) for name, _, _, _, position, _ in columns if position)
    return tuple(name for _, name in parts)


class _Builder:
    """One table. The pragmas tell most; the text of its CREATE statement the rest."""

    def __init__(self, name: str, kind: str, sql: str | None, columns: list[Any], rows: int | None) -> None:
        self._relation = Relation(name, SCHEMA)
        self._kind = kind
        self._sql = sql or ""
        self._columns = columns
        self._rows = rows
        self._items = ddl.items(self._sql) if kind == "table" and sql else []

    def table(self, keys: list[Any], indexes: list[Any], primary_keys: dict[str, tuple[str, ...]]) -> Table:
        name = self._relation.name
        return Table(
            relation=self._relation,
            type={"view": "view", "virtual": "virtual table"}.get(self._kind, "table"),  # type: ignore[arg-type]
            columns=tuple(self._column(row) for row in self._columns if row[-1] != HIDDEN),
            constraints=tuple(self._constraints(primary_keys.get(name, ()), indexes)),
            foreign_keys=tuple(self._foreign_keys(keys, primary_keys)),
            indexes=tuple(_indexes(indexes)),
            row_estimate=self._rows,
            definition=self._sql if self._kind == "view" else None,
            system=self._kind == "shadow" or name.startswith("sqlite_"),
        )

    def _column(self, row: Any) -> TableColumn:
        name, declared, not_null, default, position, hidden = row
        item = next((item for item in self._items if item.column and item.column.lower() == name.lower()), ddl.Item())
        return TableColumn(
            name=name,
            type=short_type(declared) or "any",
            nullable=not (not_null or self._is_rowid(name, declared, position)),
            default=default,
            generated=item.generated if hidden in (VIRTUAL, STORED) else None,
            enum=self._enum(name),
        )

    def _is_rowid(self, name: str, declared: str, position: int) -> bool:
        """An INTEGER PRIMARY KEY is the rowid and never NULL; other primary keys may be, a quirk SQLite keeps."""
        return bool(position) and declared.upper() == "INTEGER" and len(_primary_key(self._columns)) == 1

    def _checks(self) -> list[tuple[str | None, str]]:
        return [check for item in self._items for check in item.checks]

    def _enum(self, column: str) -> tuple[str, ...]:
        found = (ddl.allowed_values(check, column) for _, check in self._checks())
        return next((values for values in found if values), ())

    def _constraints(self, primary_key: tuple[str, ...], indexes: list[Any]) -> Iterable[Constraint]:
        if primary_key:
            yield Constraint(type="PRIMARY KEY", columns=primary_key)
        for rows in _grouped(indexes, lambda row: row[0]):
            if rows[0][2] == "u":
                yield Constraint(type="UNIQUE", columns=tuple(row[-1] for row in rows))
        for name, check in self._checks():
            yield Constraint(type="CHECK", name=name, definition=check)

    def _foreign_keys(self, keys: list[Any], primary_keys: dict[str, tuple[str, ...]]) -> Iterable[ForeignKey]:
        names = [name for item in self._items for name in item.references]
        stored = {name.lower(): name for name in primary_keys}
        groups = _grouped(keys, lambda row: row[0])
        for position, rows in enumerate(groups):
            written: str = rows[0][1]
            on_update, on_delete = rows[0][4:]
            target = stored.get(written.lower(), written)
            columns: tuple[str, ...] = tuple(row[2] for row in rows)
            referenced: tuple[str, ...] = tuple(row[3] for row in rows)
            yield ForeignKey(
                relation=self._relation,
                columns=columns,
                references=Relation(target, SCHEMA),
                referenced_columns=referenced if all(referenced) else primary_keys.get(target, ())[: len(columns)],
                name=names[position] if len(names) == len(groups) else None,
                on_update=on_update,
                on_delete=on_delete,
            )


def _indexes(rows: list[Any]) -> Iterable[Index]:
    for group in _grouped(rows, lambda row: row[0]):
        name, unique, origin, sql, _ = group[0]
        columns = tuple(row[-1] for row in group)
        parts, predicate = ddl.index_parts(sql) if sql else (cast("tuple[str, ...]", columns), None)
        yield Index(name=name, parts=parts, unique=bool(unique), primary=origin == "pk", predicate=predicate)


def _grouped(rows: Iterable[Any], key: Callable[[Any], Any]) -> list[list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())
