"""Checks that roles match the database they name.

A `deny` that matches nothing would leave open what it should close.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dragoman.access.expressions import check_mask, problem
from dragoman.access.grants import Grants, ReadGrant
from dragoman.access.patterns import ANY, ColumnPattern, NamePattern, RelationPattern, key_of
from dragoman.dialect import Dialect
from dragoman.model import Database, Relation, Table
from dragoman.words import nearest


class Misfit(NamedTuple):
    """A name in a grant that does not exist: its key, the problem, and what may have been meant."""

    key: str
    message: str
    remedy: str


def misfits(
    grants: Iterable[ReadGrant], tables: Sequence[Table], dialect: Dialect, database: Database
) -> Iterator[Misfit]:
    """Yield a misfit for each name in grants on a database that is not among its `tables`."""
    checker = _Checker([table for table in tables if not table.system], dialect, database)
    for grant in grants:
        yield from checker.check(grant)


class _Tables:
    """Tables indexed for search by a pattern of their names."""

    def __init__(self, tables: Sequence[Table], dialect: Dialect) -> None:
        self._all = tables
        self._dialect = dialect
        self._by_name: dict[str, list[Table]] = {}
        for table in tables:
            self._by_name.setdefault(key_of(table.relation.name, dialect), []).append(table)

    def find(self, pattern: NamePattern) -> Sequence[Table]:
        """Return the tables whose name a pattern may match."""
        key = pattern.key(self._dialect)
        return self._all if key is None else self._by_name.get(key, ())


class NamedTables:
    """The tables of a database, indexed for search by a pattern of relations."""

    def __init__(self, tables: Sequence[Table], dialect: Dialect, database: Database) -> None:
        self._by_name = _Tables(tables, dialect)
        self._whole = Grants((), dialect, database)

    def find(self, pattern: RelationPattern) -> Iterator[Table]:
        """Yield the tables that a pattern matches."""
        for table in self._by_name.find(pattern.parts[-1]):
            if self._whole.fits(pattern, table.relation):
                yield table


class _Checker:
    def __init__(self, tables: Sequence[Table], dialect: Dialect, database: Database) -> None:
        self._tables = tables
        self._named = NamedTables(tables, dialect, database)
        self._granted: dict[tuple[RelationPattern, ...], tuple[Sequence[Table], _Tables]] = {}
        self._dialect = dialect
        self._database = database

    def check(self, grant: ReadGrant) -> Iterator[Misfit]:
        for name in ("tables", "deny"):
            for pattern in getattr(grant, name):
                if not self._is_any_table(pattern):
                    yield self._no_table(f"{grant.key}.{name}", pattern)
        yield from self._check_parts(grant)
        granted, named = self._find_granted(grant.tables)
        columns = {
            "columns": grant.columns,
            "deny_columns": grant.deny_columns,
            "masks": [each for each, _ in grant.masks],
        }
        for name, patterns in columns.items():
            for pattern in patterns:
                if granted and not self._is_any_column(pattern, named, hiding=name != "columns"):
                    yield self._no_column(f"{grant.key}.{name}", pattern, granted)

    def _check_parts(self, grant: ReadGrant) -> Iterator[Misfit]:
        """Yield the filters and masks that this dialect cannot enforce, or that do not parse."""
        if grant.confines and self._dialect.confine is None:
            message = f"{self._dialect.name} cannot filter rows or mask columns for a role"
            yield Misfit(grant.key, message, "Grant a view that does, or other tables and columns.")
        if grant.filter and (wrong := problem(grant.filter, self._dialect)):
            yield Misfit(f"{grant.key}.filter", wrong.message.removesuffix("."), wrong.suggestion)
        for pattern, shown in grant.masks:
            wrong = None if isinstance(shown, str) else problem(shown, self._dialect, check_mask)
            if wrong:
                yield Misfit(f'{grant.key}.masks."{pattern.text}"', wrong.message.removesuffix("."), wrong.suggestion)

    def _is_any_table(self, pattern: RelationPattern) -> bool:
        return any(True for _ in self._named.find(pattern))

    def _find_granted(self, patterns: tuple[RelationPattern, ...]) -> tuple[Sequence[Table], _Tables]:
        """Return the tables that patterns match. Cached, since many roles have the same patterns."""
        if patterns not in self._granted:
            named = {table.relation: table for pattern in patterns for table in self._named.find(pattern)}
            granted = list(named.values())
            self._granted[patterns] = granted, _Tables(granted, self._dialect)
        return self._granted[patterns]

    def _no_table(self, key: str, pattern: RelationPattern) -> Misfit:
        written = ".".join(part.text for part in pattern.parts)
        schemas = {_schema(table.relation) for table in self._tables}
        names = [f"{_schema(table.relation)}.{table.relation.name}" for table in self._tables]
        near = nearest(written, names) if pattern.exact else nearest(written.removesuffix(f".{ANY}"), schemas)
        remedy = f"Did you mean {near[0]}?" if near else "`dragoman describe` shows what exists."
        return Misfit(key, f"{written} names no table of {self._database.name}", remedy)

    def _is_any_column(self, pattern: ColumnPattern, tables: _Tables, *, hiding: bool) -> bool:
        means = pattern.hides if hiding else pattern.fits
        some = tables.find(pattern.relation)
        return any(means(table.relation, column.name, self._dialect) for table in some for column in table.columns)

    def _no_column(self, key: str, pattern: ColumnPattern, tables: Sequence[Table]) -> Misfit:
        of = [table for table in tables if pattern.fits_relation(table.relation, self._dialect)]
        near = nearest(pattern.column.text, {column.name for table in of or tables for column in table.columns})
        remedy = f"Did you mean {near[0]}?" if near else "`dragoman describe` shows what exists."
        return Misfit(key, f"{pattern.text} names no column of the granted tables", remedy)


def _schema(relation: Relation) -> str:
    return ".".join(part for part in (relation.catalog, relation.schema) if part)
