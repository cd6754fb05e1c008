"""What each column of an answer is said to be made of is never less than what its values show.

Every column of a random schema holds one number of its own, a power of four, and random queries mostly add them up. So
the digits of a value tell which columns are in it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import asyncpg
import pytest
from dragoman import Dialect, DragomanError, Relation
from dragoman.plugins import Plugins
from dragoman.sql.lineage import trace_columns
from dragoman_postgres.testing import Server
from naming import SPARE, Schema, query
from seeded import prepare, runs, schemas

Column = tuple[str, str]
Outputs = Sequence[tuple[str | None, frozenset[Column]]]
FIRST = 11
"""The first power that is a column's: counts, small numbers and those of tables are below."""
ROWS = 5


@dataclass
class Account:
    """What came of many queries; `missed`: what a value shows and we did not say."""

    valid: int = 0
    unknown: int = 0
    seen: int = 0
    said: int = 0
    touched: int = 0
    missed: list[str] = field(default_factory=list[str])
    numbers: Mapping[int, Column] = field(default_factory=dict[int, Column])
    """Of the schema that is asked."""

    def add(self, text: str, told: tuple[frozenset[Column], Outputs | None], rows: Sequence[Sequence[Any]]) -> None:
        """Compare the rows of one query with what was told of them."""
        touched, outputs = told
        self.valid += 1
        self.unknown += outputs is None
        if outputs is None or not rows:
            return
        for (_, said), *values in zip(outputs, *rows, strict=True):
            shown = frozenset[Column]().union(*map(self.columns_in, values))
            self.seen += len(shown)
            self.said += len(said)
            self.touched += len(touched)
            if not shown <= said <= touched:
                self.missed.append(f"{text}\n    {sorted(shown - said)} {sorted(said - touched)}")

    def check(self, made: int) -> None:
        """Nothing is missed; enough showed something, little is unknown, and less is said than is touched."""
        assert not self.missed, "\n".join(self.missed[:5])
        assert self.valid > made / 4
        assert self.unknown < self.valid / 10
        assert self.seen > made / 4
        assert self.said < self.touched * 2 / 3

    def columns_in(self, value: Any) -> frozenset[Column]:
        """The columns whose numbers are in a value."""
        if not isinstance(value, int) or value <= 0:
            return frozenset()
        return frozenset(column for power, column in self.numbers.items() if value >> 2 * power & 3)


def numbered(tables: Schema) -> dict[int, Column]:
    """A power for each column but the spare ones."""
    columns = [(name, column) for name, listed in tables.items() for column in listed if column != SPARE]
    return dict(enumerate(columns, FIRST))


def script(tables: Schema, numbers: Mapping[int, Column], kind: str) -> list[str]:
    """The statements that make the tables, with a row in each."""
    values = {column: 4**power for power, column in numbers.items()}
    made: list[str] = []
    for name, columns in tables.items():
        row = ", ".join(str(values.get((name, column), 0)) for column in columns)
        made += [f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column in columns)})"]
        made += [f"INSERT INTO {name} VALUES ({row})"]
    return made


def tell(dialect: Dialect, text: str, tables: Schema) -> tuple[frozenset[Column], Outputs | None] | None:
    """The columns we say a query touches, and those of each output; None: it is refused."""
    prepared = prepare(dialect, text, tables)
    if prepared is None:
        return None
    try:
        touched, outputs = trace_columns(*prepared)
    except DragomanError:
        return None
    plain = None if outputs is None else [(name, frozenset(map(_short, columns))) for name, columns in outputs]
    return frozenset(map(_short, touched)), plain


def _short(column: tuple[Relation, str]) -> Column:
    return column[0].name, column[1]


@runs(3_000, 100_000)
def test_sqlite_shows_no_column_that_is_not_told(seeds: range):
    dialect, account = Plugins.discover().load("sqlite").dialect, Account()
    for tables, numbers in schemas(seeds):
        account.numbers = numbered(tables)
        connection = sqlite3.connect(":memory:")
        for statement in script(tables, account.numbers, "INTEGER"):
            connection.execute(statement)
        for seed in numbers:
            text = query(Random(seed), "sqlite", tables, "main")
            with contextlib.suppress(sqlite3.Error, OverflowError):
                rows = connection.execute(text).fetchmany(ROWS)
                if (told := tell(dialect, text, tables)) is not None:
                    account.add(f"{seed}: {text}", told, rows)
        connection.close()
    account.check(len(seeds))


@pytest.fixture(scope="module")
async def connection(server: Server, anyio_backend: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    name = await server.create("")
    # A series up to a column's number would be long.
    opened = await asyncpg.connect(server.address(name), server_settings={"statement_timeout": "200"})
    yield opened
    await opened.close()
    await server.drop(name)


@runs(1_000, 30_000)
async def test_postgres_shows_no_column_that_is_not_told(seeds: range, connection: asyncpg.Connection[asyncpg.Record]):
    dialect, account = Plugins.discover().load("postgres").dialect, Account()
    for tables, numbers in schemas(seeds):
        account.numbers = numbered(tables)
        await connection.execute(";".join(script(tables, account.numbers, "bigint")))
        for seed in numbers:
            text = query(Random(seed), "postgres", tables, "public")
            with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError):
                rows = await connection.fetch(f"SELECT * FROM ({text}) AS answer LIMIT {ROWS}")
                if (told := tell(dialect, text, tables)) is not None:
                    account.add(f"{seed}: {text}", told, [tuple(row) for row in rows])
        await connection.execute("".join(f"DROP TABLE {name};" for name in tables))
    account.check(len(seeds))
