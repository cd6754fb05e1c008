"""Reads the catalog with four queries of DuckDB's own functions, whatever the number of relations."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import dragoman
from dragoman import (
    ColumnProfile,
    Constraint,
    Database,
    DragomanError,
    Encoded,
    Executor,
    ForeignKey,
    Index,
    Inspection,
    Limits,
    Names,
    ProfileBudget,
    Relation,
    Request,
    Scope,
    Table,
    TableColumn,
    profile_columns,
)
from dragoman.cooperative import consume_in_thread, in_thread_if_many

from dragoman_duckdb.files import identity
from dragoman_duckdb.schemas import home_of, in_order, open_schemas
from dragoman_duckdb.writing import quote_name

Row = Sequence[Any]
ALL: Final = Limits(max_rows=10**9, max_bytes=10**12, timeout=30)
RELATIONS: Final = """
SELECT schema_name, table_name, 'table', comment, estimated_size, NULL AS sql, internal
FROM duckdb_tables() WHERE NOT database_name IN ('system', 'temp')
UNION ALL
SELECT schema_name, view_name, 'view', comment, NULL, sql, internal
FROM duckdb_views() WHERE NOT database_name IN ('system', 'temp')"""
COLUMNS: Final = """
SELECT schema_name, table_name, column_name, data_type, is_nullable, column_default, comment
FROM duckdb_columns() WHERE NOT database_name IN ('system', 'temp') ORDER BY schema_name, table_name, column_index"""
CONSTRAINTS: Final = """
SELECT schema_name, table_name, constraint_type, constraint_name, constraint_column_names, constraint_text,
       referenced_table, referenced_column_names
FROM duckdb_constraints() WHERE NOT database_name IN ('system', 'temp') ORDER BY constraint_index"""
INDEXES: Final = """
SELECT schema_name, table_name, index_name, is_unique, is_primary, expressions
FROM duckdb_indexes() WHERE NOT database_name IN ('system', 'temp') ORDER BY index_name"""
_PARTS: Final = re.compile(r"'((?:[^']|'')*)'|([^\[\], ]+)")  # of a list as DuckDB writes it: [a, '(lower(b))']
# and quoted names, which may contain a quote of texts
_TEXTS: Final = re.compile(r"""'(?:[^']|'')*'|("(?:[^"]|"")*")""")
LONGEST: Final = 64
"""The most characters of a text that are read. Longer texts are not kinds of anything."""
SCHEMAS: Final = """
SELECT schema_name, comment, internal AND schema_name <> 'main'
FROM duckdb_schemas() WHERE NOT database_name IN ('system', 'temp')"""


MACROS: Final = """
SELECT function_name, bool_or(internal) FROM duckdb_functions() GROUP BY ALL HAVING NOT bool_and(internal)"""
"""Those that users made, and whether the engine has a function of the name."""


class DuckDBInspector(dragoman.Inspector):
    """Asks through the database's own executor."""

    def __init__(self, executor: Executor, path: Path, database: Database) -> None:
        self._executor = executor
        self._path = path
        self._home = home_of(database)
        self._open = open_schemas(database)

    async def _fetch(self, statement: str) -> list[Row]:
        async with self._executor.open(Request(statement=statement, limits=ALL)) as stream:
            return [
                row async for batch in stream.batches for row in (batch.values if isinstance(batch, Encoded) else batch)
            ]

    async def version(self) -> str:
        """Return DuckDB's version."""
        return str((await self._fetch("SELECT version()"))[0][0])

    async def schemas(self) -> Sequence[dragoman.Schema]:
        """Return the schemas."""
        rows = await self._fetch(SCHEMAS)
        order = in_order([name for name, _, system in rows if not system], self._home, self._open)
        places = {name: place for place, name in enumerate(order)}
        return [
            dragoman.Schema(name=name, comment=comment, system=system, search_order=places.get(name))
            for name, comment, system in rows
        ]

    async def names(self, scope: Scope) -> Sequence[Names]:
        """Return the names of relations in one query, without opening files of a folder to read their columns."""
        rows = await self._fetch(RELATIONS)
        return await in_thread_if_many(len(rows), _group_names, rows, scope, self._path.is_dir())

    async def tables(self, scope: Scope) -> Inspection:
        """Return the relations with all their facts."""
        held = [[await self._fetch(statement) for statement in (RELATIONS, COLUMNS, CONSTRAINTS, INDEXES, MACROS)]]
        return await consume_in_thread(held, partial(_inspect, scope, self._path.is_dir()))

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """Return profiles from a few rows of each table, since DuckDB reports no values."""
        deadline = time.monotonic() + budget.seconds
        found: dict[Relation, tuple[ColumnProfile, ...]] = {}
        for table in tables:
            if table.type != "table" or not table.columns or time.monotonic() > deadline:
                continue
            try:
                rows = await self._fetch(_sample(table, budget))
            except DragomanError:
                continue  # the others are still answered
            names, whole = [column.name for column in table.columns], len(rows) <= budget.rows
            found[table.relation] = profile_columns(names, rows[: budget.rows], budget, whole=whole)
        return found

    async def fingerprint(self) -> str | None:
        """Return a hash of `identity`. It waits for no worker, since queries of callers may hold them all."""
        told = await asyncio.to_thread(identity, str(self._path))
        return hashlib.sha256(repr(told).encode()).hexdigest()


def _by_relation(rows: Iterable[Row]) -> dict[Relation, list[Row]]:
    found: dict[Relation, list[Row]] = defaultdict(list)
    for schema, name, *rest in rows:
        found[Relation(name, schema)].append(rest)
    return found


def _group_names(rows: Iterable[Row], scope: Scope, is_folder: bool) -> list[Names]:
    groups: dict[tuple[str, Any, bool], list[str]] = defaultdict(list)
    for relation, (facts,) in _by_relation(rows).items():
        kind, *_, system = _as_file(facts) if is_folder else facts
        if relation in scope:
            groups[str(relation.schema), kind, system].append(relation.name)
    return [
        Names(names=tuple(names), schema=schema, type=kind, system=system)
        for (schema, kind, system), names in groups.items()
    ]


def _inspect(scope: Scope, is_folder: bool, answers: Sequence[Sequence[Row]]) -> Inspection:
    relations, columns, constraints, indexes = map(_by_relation, answers[:4])
    calls_macro = _find_macros(answers[4])
    return Inspection(
        tuple(
            _table(
                relation,
                _as_file(rows[0]) if is_folder else _close(rows[0], calls_macro),
                columns[relation],
                constraints[relation],
                indexes[relation],
            )
            for relation, rows in relations.items()
            if relation in scope
        )
    )


def _as_file(facts: Row) -> Row:
    """Return the row of a view over a file as a table: its definition would show the file's path."""
    _, comment, rows, _, system = facts
    return "table" if not system else "view", comment, rows, None, system


def _find_macros(macros: Sequence[Row]) -> re.Pattern[str] | None:
    """What finds a macro's name in a view's definition: all there is where a macro may stand for an operator."""
    if any(shadows for _, shadows in macros):
        return re.compile("")
    return _pattern(name for name, _ in macros) if macros else None


def _close(facts: Row, calls_macro: re.Pattern[str] | None) -> Row:
    """Leave out the definition of a view that may call a macro: what that reads stands nowhere in it."""
    kind, comment, rows, definition, system = facts
    if calls_macro is not None and definition is not None and calls_macro.search(definition):
        definition = None
    return kind, comment, rows, definition, system


def _sample(table: Table, budget: ProfileBudget) -> str:
    """Return a query of the first rows. It cuts texts and values without a plain form."""

    def value(column: TableColumn) -> str:
        if re.match(r"(u?(tiny|small|big|huge)?int(eger)?|double|float)\b", column.type):
            return quote_name(column.name)
        return f"left(CAST({quote_name(column.name)} AS VARCHAR), {LONGEST})"

    place = ".".join(quote_name(part) for part in (table.relation.schema, table.relation.name) if part)
    return f"SELECT {', '.join(map(value, table.columns))} FROM {place} LIMIT {budget.rows + 1}"


def _table(
    relation: Relation, facts: Row, columns: Sequence[Row], constraints: Sequence[Row], indexes: Sequence[Row]
) -> Table:
    kind, comment, rows, definition, system = facts
    names = _pattern(name for name, *_ in columns)
    return Table(
        relation=relation,
        type=kind,
        columns=tuple(_column(names, *row) for row in columns),
        constraints=tuple(_constraint(*row) for row in constraints if row[0] in {"PRIMARY KEY", "UNIQUE", "CHECK"}),
        foreign_keys=tuple(_foreign_key(relation, row) for row in constraints if row[0] == "FOREIGN KEY"),
        indexes=tuple(_index(*row) for row in indexes),
        comment=comment,
        row_estimate=rows,
        definition=definition,
        system=system,
    )


def _column(
    columns: re.Pattern[str], name: str, type_: str, nullable: bool, default: str | None, comment: str | None
) -> TableColumn:
    """Return a column.

    DuckDB reports the expression of a generated column as its default, and a default names no column.
    """
    spelled = type_ if "'" in type_ else type_.lower()
    made = default is not None and columns.search(_TEXTS.sub(r"\1", default)) is not None
    plain, generated = (None, default) if made else (default, None)
    return TableColumn(name=name, type=spelled, nullable=nullable, default=plain, comment=comment, generated=generated)


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern that finds one of these names in an expression as DuckDB writes it."""
    written = {re.escape(form) for name in names for form in (name, name.replace('"', '""'))}
    return re.compile(rf"(?<!\w)(?:{'|'.join(sorted(written))})(?!\w)", re.IGNORECASE)


def _constraint(kind: Any, name: str | None, columns: Sequence[str], text: str, *_: Any) -> Constraint:
    return Constraint(type=kind, name=name, columns=tuple(columns), definition=text if kind == "CHECK" else None)


def _foreign_key(relation: Relation, row: Row) -> ForeignKey:
    _, name, columns, _, referenced, referenced_columns = row
    return ForeignKey(
        relation=relation,
        columns=tuple(columns),
        references=Relation(referenced, relation.schema),
        referenced_columns=tuple(referenced_columns),
        name=name,
    )


def _index(name: str, unique: bool, primary: bool, expressions: str) -> Index:
    parts = (quoted or plain for quoted, plain in _PARTS.findall(expressions))
    return Index(name=name, parts=tuple(part.strip('"') for part in parts), unique=unique, primary=primary)
