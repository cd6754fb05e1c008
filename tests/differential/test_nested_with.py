"""What names mean that WITH defines at several levels: no engine reads a table that its dialect takes for such a name.

A query reads a table if the engine compiles it with all tables, and does not where that one is missing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import asyncpg
import duckdb
import pytest
from dragoman import Database, Dialect, DragomanError, Gateway, Statement
from dragoman.plugins import Plugins
from dragoman.validators import read
from dragoman_trino.testing import Server as TrinoServer
from nesting import NAMES, query
from seeded import runs

Compiles = Callable[[str, str | None], Awaitable[bool]]
"""Whether an engine compiles a text where all tables are, or all but one."""


@dataclass
class Account:
    """What came of many queries. `missed`: those that read a table of which the dialect knows nothing."""

    dialect: Dialect
    compiles: Compiles
    valid: int = 0
    missed: list[str] = field(default_factory=list[str])

    async def add(self, text: str) -> None:
        """Compare what one query reads with what the dialect says."""
        if not await self.compiles(text, None):
            return
        self.valid += 1
        told = names_told(self.dialect, text)
        for name in NAMES:
            if name not in told and not await self.compiles(text, name):
                self.missed.append(f"{name}: {text}")


def names_told(dialect: Dialect, text: str) -> set[str]:
    """The tables that a dialect finds in a query; all, if it refuses it."""
    try:
        parsed = read(dialect, Statement.parse(text, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon))
    except DragomanError:
        return set(NAMES)
    return set(NAMES) if parsed.refusal else {relation.name for relation in parsed.names}


async def compare(engine: str, compiles: Compiles, seeds: range, share: int, *, joined: bool = True) -> None:
    """Compare many queries. `share`: one of so many is valid at least."""
    account = Account(Plugins.discover().load(engine).dialect, compiles)
    for seed in seeds:
        await account.add(query(Random(seed), joined=joined))
    assert not account.missed, "\n".join(sorted(account.missed, key=len)[:5])
    assert account.valid >= len(seeds) / share


def create(missing: str | None, schema: str = "") -> list[str]:
    """The statements that create all tables but one."""
    return [f"CREATE TABLE {schema}{name} (a integer)" for name in NAMES if name != missing]


@runs(1_500, 40_000)
async def test_sqlite_reads_no_table_that_its_dialect_takes_for_a_member_of_with(seeds: range):
    files = {missing: sqlite3.connect(":memory:") for missing in (None, *NAMES)}
    for missing, connection in files.items():
        connection.executescript(";".join(create(missing)))

    async def compiles(text: str, missing: str | None) -> bool:
        try:
            files[missing].execute(f"EXPLAIN {text}")
        except sqlite3.Error:
            return False
        return True

    await compare("sqlite", compiles, seeds, 4, joined=False)


@runs(300, 20_000)
async def test_duckdb_reads_no_table_that_its_dialect_takes_for_a_member_of_with(seeds: range):
    files = {missing: duckdb.connect() for missing in (None, *NAMES)}
    for missing, connection in files.items():
        connection.execute(";".join(create(missing)))

    async def compiles(text: str, missing: str | None) -> bool:
        try:
            files[missing].execute(f"EXPLAIN {text}")
        except duckdb.Error:
            return False
        return True

    await compare("duckdb", compiles, seeds, 2, joined=False)


@runs(300, 20_000)
async def test_duckdb_reads_no_table_that_was_not_judged(seeds: range, tmp_path: Path):
    """Its worker compares what its own parser reads with that. A difference is refused."""
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.execute(";".join(create(None)))
    shop = Database(name="shop", dialect="duckdb", database="shop.duckdb", folder=tmp_path)
    refused: list[str] = []
    async with Gateway.open([shop]) as gateway:
        for seed in seeds:
            try:
                await gateway.query("shop", query(Random(seed), joined=False))
            except DragomanError as error:
                refused.append(error.message)
    assert len(refused) < len(seeds) / 2
    assert not [message for message in refused if "DuckDB reads" in message]


@runs(1_500, 40_000)
async def test_postgres_reads_no_table_that_its_dialect_takes_for_a_member_of_with(seeds: range, server):
    name = await server.create(
        ";".join(
            f"CREATE SCHEMA without_{missing};" + ";".join(create(missing, f"without_{missing}."))
            for missing in (None, *NAMES)
        )
    )
    connection = await asyncpg.connect(server.address(name))

    async def compiles(text: str, missing: str | None) -> bool:
        try:
            await connection.execute(f"SET search_path = without_{missing}; EXPLAIN {text}")
        except asyncpg.PostgresError:
            return False
        return True

    await compare("postgres", compiles, seeds, 12)
    await connection.close()
    await server.drop(name)


@pytest.mark.full
@runs(200, 6_000)
async def test_trino_reads_no_table_that_its_dialect_takes_for_a_member_of_with(
    seeds: range, trino_server: TrinoServer
):
    schemas = {missing: f"without_{missing}" for missing in (None, *NAMES)}
    for missing, schema in schemas.items():
        await trino_server.run(f"CREATE SCHEMA memory.{schema}", *create(missing, f"memory.{schema}."))

    async def compiles(text: str, missing: str | None) -> bool:
        from trino.exceptions import TrinoUserError

        try:
            await trino_server.run(f"EXPLAIN (TYPE VALIDATE) {text}", schema=f"memory.{schemas[missing]}")
        except TrinoUserError:
            return False
        return True

    await compare("trino", compiles, seeds, 6)
    for schema in schemas.values():
        await trino_server.run(f"DROP SCHEMA memory.{schema} CASCADE")
