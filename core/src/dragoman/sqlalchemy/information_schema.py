"""An inspector that reads the standard's information_schema, for any executor of an engine that has one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, Final

from dragoman.dialect import Executor, Inspector
from dragoman.errors import InvalidSql, NotFound
from dragoman.model import (
    Constraint,
    Database,
    Encoded,
    ForeignKey,
    Inspection,
    Limits,
    Relation,
    RelationType,
    Request,
    Schema,
    Scope,
    Table,
    TableColumn,
)
from dragoman.sqlalchemy.types import spell_type

Row = Sequence[Any]
Keys = dict[Relation, tuple[list[Constraint], list[ForeignKey]]]
SYSTEM_SCHEMAS: Final = frozenset({"information_schema", "pg_catalog", "mysql", "performance_schema", "sys"})
"""The engines' names for their own schemas, in lower case."""

_PLAIN: Final = re.compile(r"[\w $-]+")
_TYPES: Final[dict[str, RelationType]] = {"VIEW": "view", "FOREIGN": "foreign table", "FOREIGN TABLE": "foreign table"}
_COLUMNS: Final = """
SELECT c.table_schema, c.table_name, t.table_type, {table_comment}, c.column_name, {column_type}, c.numeric_precision,
       c.numeric_scale, c.is_nullable, c.column_default, {column_comment}, t.table_schema, t.table_name
FROM information_schema.columns AS c
JOIN information_schema.tables AS t
  ON t.table_catalog = c.table_catalog AND t.table_schema = c.table_schema AND t.table_name = c.table_name
{where}
ORDER BY c.table_schema, c.table_name, c.ordinal_position"""
_KEYS: Final = """
SELECT c.table_schema, c.table_name, t.constraint_name, t.constraint_type, c.column_name, u.table_schema, u.table_name,
       u.column_name, r.update_rule, r.delete_rule
FROM information_schema.key_column_usage AS c
JOIN information_schema.table_constraints AS t
  ON t.constraint_schema = c.constraint_schema AND t.constraint_name = c.constraint_name AND t.table_name = c.table_name
LEFT JOIN information_schema.referential_constraints AS r
  ON r.constraint_schema = c.constraint_schema AND r.constraint_name = c.constraint_name
LEFT JOIN information_schema.key_column_usage AS u
  ON u.constraint_schema = r.unique_constraint_schema AND u.constraint_name = r.unique_constraint_name
  AND u.ordinal_position = c.position_in_unique_constraint
{where}
ORDER BY c.table_schema, c.table_name, t.constraint_name, c.ordinal_position"""

_GENERATED: Final = """
SELECT c.table_schema, c.table_name, c.column_name, c.generation_expression
FROM information_schema.columns AS c
{where}"""
_VIEWS: Final = """
SELECT c.table_schema, c.table_name, c.view_definition
FROM information_schema.views AS c
{where}"""


class InformationSchemaInspector(Inspector):
    """Reads relations, columns, keys and views with the database's own executor, in four queries.

    The number of queries does not depend on the number of relations. The contents of the engine's own schemas are
    returned only for a scope that names them. A subclass may set what the engine adds:

    - `version_query`.
    - `catalog`: an SQL expression of the catalog to stay in.
    - `table_comment`, `column_comment`: further columns of `tables` and `columns`.
    - `column_type`: the column that spells a type.
    - `keys_query`: for engines whose standard views do not report keys. It returns a row for each column of a key: the
      table's schema and name, the constraint's name and type, the column, what a foreign key references (schema, table,
      column) and its actions (update, delete). Ordered by table, constraint and position.
    - `views_query`: returns a row for each view: its schema, name and definition.
    - `generated_query`: returns a row for each column: the table's schema and name, the column's name, and its
      expression if it is generated. The core uses it to hide a generated column from callers who may not see the
      columns it is computed from.

    `{where}` stands for the conditions on `c.table_catalog`, `c.table_schema` and `c.table_name`.
    """

    version_query: ClassVar[str] = "SELECT version()"
    catalog: ClassVar[str | None] = None
    column_type: ClassVar[str] = "data_type"
    keys_query: ClassVar[str] = _KEYS
    views_query: ClassVar[str] = _VIEWS
    generated_query: ClassVar[str] = _GENERATED
    table_comment: ClassVar[str | None] = None
    column_comment: ClassVar[str | None] = None

    def __init__(self, database: Database, executor: Executor) -> None:
        self.database = database
        self.executor = executor

    async def fetch(self, statement: str) -> list[Row]:
        """Return all rows of one trusted statement."""
        rows: list[Row] = []
        limits = Limits(max_rows=sys.maxsize, max_bytes=sys.maxsize, timeout=self.database.timeout)
        async with self.executor.open(Request(statement=statement, limits=limits)) as stream:
            async for batch in stream.batches:
                rows += batch.values if isinstance(batch, Encoded) else map(tuple, batch)
        return rows

    async def version(self) -> str:
        return str((await self.fetch(self.version_query))[0][0])

    async def schemas(self) -> Sequence[Schema]:
        query = "SELECT schema_name, schema_owner FROM information_schema.schemata"
        where = f" WHERE catalog_name = {self.catalog}" if self.catalog else ""
        return [
            Schema(name=name, owner=owner, system=name.lower() in SYSTEM_SCHEMAS)
            for name, owner in await self.fetch(query + where)
        ]

    def _where(self, scope: Scope) -> str:
        """Return the condition that keeps the engine from listing everything. The core filters the answer once more."""
        conditions = [f"c.table_catalog = {self.catalog}"] if self.catalog else []
        if not scope.schemas:
            conditions.append(f"LOWER(c.table_schema) NOT IN ({_literals(SYSTEM_SCHEMAS)})")
        for column, names in (("schema", scope.schemas), ("name", scope.names)):
            # A name with special characters could end a literal in an engine with unusual quotes.
            if names and all(map(_PLAIN.fullmatch, names)):
                conditions.append(f"c.table_{column} IN ({_literals(names)})")
        return f"WHERE {' AND '.join(conditions)}" if conditions else ""

    async def tables(self, scope: Scope) -> Inspection:
        where = self._where(scope)
        query = _COLUMNS.format(
            where=where,
            column_type=f"c.{self.column_type}",
            table_comment=f"t.{self.table_comment}" if self.table_comment else "NULL",
            column_comment=f"c.{self.column_comment}" if self.column_comment else "NULL",
        )
        columns = await self.fetch(query)
        notices: list[str] = []
        keys = _keys(await self._further("keys", self.keys_query.format(where=where), notices))
        views = await self._further("the definitions of views", self.views_query.format(where=where), notices)
        definitions = {Relation(name, schema): text for schema, name, text in views}
        what = "the expressions of generated columns"
        made = await self._further(what, self.generated_query.format(where=where), notices)
        expressions = {(Relation(name, schema), column): text for schema, name, column, text in made if text}
        tables = [
            _with_expressions(_table(relation, rows, keys, definitions.pop(relation, None)), expressions)
            for relation, rows in _by_relation(columns).items()
        ]
        tables += [_view_without_columns(relation, text) for relation, text in definitions.items()]
        return Inspection(tuple(table for table in tables if table.relation in scope), tuple(notices))

    async def _further(self, what: str, query: str, notices: list[str]) -> list[Row]:
        """Return rows that not every engine has. Returns none, with a notice, where the engine has no such views."""
        try:
            return await self.fetch(query)
        except (InvalidSql, NotFound):
            notices.append(f"The engine's information_schema does not report {what}.")
            return []


def _literals(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _by_relation(rows: Iterable[Row]) -> Mapping[Relation, Sequence[Row]]:
    """Return the rows of each relation. Where names are compared without case, the join also pairs namesakes."""
    found: dict[Relation, list[Row]] = {}
    for row in rows:
        found.setdefault(Relation(row[1], row[0]), []).append(row)
    return {relation: [row for row in told if row[-2:] == row[:2]] or told for relation, told in found.items()}


def _table(relation: Relation, rows: Sequence[Row], keys: Keys, definition: str | None) -> Table:
    constraints, foreign_keys = keys.get(relation, ([], []))
    return Table(
        relation=relation,
        type=_TYPES.get(rows[0][2], "table"),
        comment=rows[0][3] or None,
        columns=tuple(_column(*row[4:11]) for row in rows),
        constraints=tuple(constraints),
        foreign_keys=tuple(foreign_keys),
        definition=definition or None,
        system=(relation.schema or "").lower() in SYSTEM_SCHEMAS,
    )


def _view_without_columns(relation: Relation, definition: str | None) -> Table:
    """Return a view whose columns the engine hides, because the login may not call its functions. It can be read."""
    system = (relation.schema or "").lower() in SYSTEM_SCHEMAS
    return Table(relation=relation, type="view", definition=definition or None, system=system)


def _column(
    name: str, type_: str, precision: int | None, scale: int | None, nullable: str, default: Any, comment: str | None
) -> TableColumn:
    spelled = spell_type(type_)
    if spelled in {"numeric", "decimal"} and precision is not None:
        spelled += f"({precision},{scale or 0})"
    default = None if default is None else str(default)
    return TableColumn(name=name, type=spelled, nullable=nullable != "NO", default=default, comment=comment or None)


def _with_expressions(table: Table, expressions: Mapping[tuple[Relation, str], str]) -> Table:
    """Return the table with the expressions of its generated columns. Some engines report them as defaults."""
    columns = tuple(
        replace(column, default=None, generated=str(text)) if text else column
        for column in table.columns
        for text in [expressions.get((table.relation, column.name))]
    )
    return replace(table, columns=columns)


def _keys(rows: Sequence[Row]) -> Keys:
    keys = Keys()
    key = itemgetter(0, 1, 2, 3)
    for (schema, table, name, type_), group in groupby(sorted(rows, key=key), key=key):
        relation = Relation(table, schema)
        constraints, foreign_keys = keys.setdefault(relation, ([], []))
        parts = list(group)
        columns = tuple(part[4] for part in parts)
        is_mixed = len(set(columns)) < len(columns)  # the standard's views join constraints of one name
        _, _, _, _, _, other_schema, other_table, _, on_update, on_delete = parts[0]
        if type_ in {"PRIMARY KEY", "UNIQUE"}:
            constraints.append(Constraint(type=type_, name=name, columns=tuple(dict.fromkeys(columns))))
        elif type_ == "FOREIGN KEY" and other_table is not None and not is_mixed:
            foreign_keys.append(
                ForeignKey(
                    relation=relation,
                    columns=columns,
                    references=Relation(other_table, other_schema),
                    referenced_columns=tuple(part[7] for part in parts),
                    name=name,
                    on_update=None if on_update == "NO ACTION" else on_update,
                    on_delete=None if on_delete == "NO ACTION" else on_delete,
                )
            )
    return keys
