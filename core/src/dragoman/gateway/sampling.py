"""Builds the SELECT for a sample of rows, from names in the catalog and one judged expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.catalog import did_you_mean
from dragoman.dialect import Dialect
from dragoman.errors import ColumnNotFound, DragomanError, Unsupported
from dragoman.gateway.failures import locate
from dragoman.model import Table
from dragoman.sql.expressions import read_expression
from dragoman.words import display, nearest, quote_foreign

FEW = 20
"""The number of columns named if none is similar."""
CHANCE: Final = ("random", "newid", "rand", "randcanonical", "dbms_random.value")
"""Functions of several engines that return a new random value for each row. SQL Server's `rand` does not."""


LIMITING: Final = frozenset(
    "athena bigquery clickhouse databricks doris duckdb hive mysql postgres presto redshift risingwave singlestore"
    " snowflake spark sqlite starrocks trino".split()
)
"""Dialects, as sqlglot calls them, in which LIMIT ends a SELECT. Others have other words."""


def sample_sql(
    table: Table,
    dialect: Dialect,
    *,
    columns: Sequence[str] | None,
    where: str | None,
    randomize: bool,
    limit: int | None = None,
) -> str:
    """Return the SELECT of at most `limit` rows. Where the dialect has no LIMIT, the call's own limit bounds it.

    With LIMIT, the database plans for a few rows, and estimates the cost of those. Raises `ColumnNotFound`; for
    `where`, `UnsafeSql` or `InvalidSql`; `Unsupported` if rows cannot be chosen at random.
    """
    picked = ", ".join(dialect.quote(find_column(name, table, dialect)) for name in columns or ()) or "*"
    sql = f"SELECT {picked} FROM {dialect.qualify(table.relation)}"
    if where is not None:
        sql += f" WHERE (\n{_expression(where, dialect)}\n)"
    sql += f" ORDER BY {_chance(dialect)}()" if randomize else ""
    return sql + (f" LIMIT {limit}" if limit is not None and limit > 0 and dialect.sqlglot in LIMITING else "")


def _chance(dialect: Dialect) -> str:
    """Return the function that orders this dialect's rows at random."""
    found = next((name for name in CHANCE if name in dialect.loaded_rules.functions), None)
    if found is None:
        raise Unsupported(f"The rules of {dialect.name} allow no random function.", suggestion="Leave out randomize.")
    return found


def find_column(written: str, table: Table, dialect: Dialect) -> str:
    """Return the stored name of the column that is meant. Raises `ColumnNotFound`."""
    names = [column.name for column in table.columns]
    if written in names:
        return written
    found = next((name for name in names if dialect.same(written, name)), None)
    if found is not None:
        return found
    near = nearest(written, names)
    raise ColumnNotFound(
        f"{display(table.relation.name)} has no column {display(written)!r}.",
        suggestion=did_you_mean([dialect.quote(name) for name in near]) or f"Its columns are: {_some(names)}.",
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(map(quote_foreign, names[:FEW])) + more


def _expression(where: str, dialect: Dialect) -> str:
    """Return the text of one expression, which must not leave the parentheses it is put into."""
    try:
        return read_expression(where, "where_clause", sqlglot=dialect.sqlglot, lexicon=dialect.lexicon).text
    except DragomanError as error:
        raise locate(error, where) from None
