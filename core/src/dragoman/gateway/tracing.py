"""Finds the columns of statements, in a thread or a process. What is sent there must be a function of a module."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from dragoman.dialect import Dialect
from dragoman.errors import InvalidSql
from dragoman.gateway.offload import SHORT, Offload
from dragoman.model import Relation, RelationType, Table, TableColumn
from dragoman.sql import Statement
from dragoman.validators import inner_query, view_query

if TYPE_CHECKING:
    from dragoman.sql.columns import Names

Columns = tuple[tuple[Relation, str], ...]
Outputs = tuple[tuple[str | None, Columns], ...]
Tables = Mapping[Relation, Table | None]
"""Relations as a statement names them, and what the catalog knows of each."""
_Outline = tuple[Relation, RelationType, tuple[tuple[str, str | None], ...]]
_Outlines = Mapping[Relation, _Outline | None]
MOST_COLUMNS = 10_000
"""The most columns that a statement may touch: a policy checks them on the event loop."""
P = ParamSpec("P")
T = TypeVar("T")


async def apart(offload: Offload, size: int, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function that parses `size` characters, and not on the event loop.

    Short texts are parsed in a thread, long ones in a process that can be killed.
    """
    if size <= SHORT:
        return await asyncio.to_thread(function, *arguments, **named)
    return await offload.call(size, function, *arguments, **named)


def outline(tables: Tables) -> _Outlines:
    """Return what is needed to resolve columns. For a thousand wide tables, sending it takes milliseconds."""
    return {written: _outline(table) if table else None for written, table in tables.items()}


def trace_columns(dialect: Dialect, statement: Statement, outlines: _Outlines) -> tuple[Columns, Outputs | None]:
    """Return the columns that a statement touches, and those that each column of its answer is computed from."""
    from dragoman.sql.lineage import trace_columns as trace  # sqlglot is slow to import

    columns, outputs = trace(*_prepare(dialect, statement, outlines))
    return _check_number(columns), outputs


def find_columns(dialect: Dialect, definition: str, outlines: _Outlines) -> Columns:
    """Return the columns that the query of a view touches."""
    from dragoman.sql.columns import find_touched_columns

    return _check_number(find_touched_columns(*_prepare(dialect, view_query(dialect, definition), outlines)))


def _prepare(
    dialect: Dialect, statement: Statement, outlines: _Outlines
) -> tuple[Statement, Mapping[Relation, Table | None], Names]:
    """Return what both functions need: the query itself, its tables, and the dialect's treatment of names."""
    from dragoman.sql.columns import Names

    names = Names(same=dialect.same, implicit=dialect.implicit_columns, reserved=dialect.reserved)
    tables = {written: _restore(known) if known else None for written, known in outlines.items()}
    return inner_query(statement, dialect.loaded_rules), tables, names


def _outline(table: Table) -> _Outline:
    return table.relation, table.type, tuple((column.name, column.generated) for column in table.columns)


def _restore(known: _Outline) -> Table:
    relation, kind, columns = known
    restored = tuple(TableColumn(name=name, type="", generated=generated) for name, generated in columns)
    return Table(relation=relation, type=kind, columns=restored)


def _check_number(columns: Columns) -> Columns:
    if len(columns) > MOST_COLUMNS:
        raise InvalidSql(
            f"The statement touches more than {MOST_COLUMNS} columns.", suggestion="Name the columns you need."
        )
    return columns
