"""Random ordinary queries of one engine, asked of others: the same answer, a refusal, or a notice of what differs."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random

import asyncpg
import duckdb
import pytest
from comparing import comparable, same
from dragoman import Database, DragomanError, Gateway, Result
from dragoman_postgres.testing.server import Server as Postgres
from dragoman_postgres.testing.server import installations
from ordinary import Made, Maker, declarations

LOCAL = ("sqlite", "postgres", "duckdb")
WEAK = ("no row meets it.", "no row meets all of them.", "Truth values are 1 and 0 in SQLite.")
"""Ends of notices that explain no other value: hints about an empty answer, and the spelling of truth values."""

pytestmark = pytest.mark.full


async def _fill(folder: Path, postgres: Postgres) -> list[Database]:
    """Make the tables in three engines."""
    connection = sqlite3.connect(folder / "ordinary.db")
    for statement in declarations("sqlite"):
        connection.execute(statement)
    connection.commit()
    connection.close()
    with duckdb.connect(folder / "ordinary.duckdb") as local:
        for statement in declarations("duckdb"):
            local.execute(statement)
    made = postgres.configure(await postgres.create())
    server = await asyncpg.connect(host=made.host, port=made.port, user=made.user, database=made.database)
    for statement in declarations("postgres"):
        await server.execute(statement)
    await server.close()
    return [
        Database(name="sqlite", dialect="sqlite", database="ordinary.db", folder=folder),
        Database(name="duckdb", dialect="duckdb", database="ordinary.duckdb", folder=folder),
        replace(made, name="postgres"),
    ]


@pytest.fixture(scope="module")
async def databases(tmp_path_factory, anyio_backend) -> AsyncGenerator[list[Database]]:
    if not installations():
        pytest.skip("no PostgreSQL server: install dragoman-postgres[embedded]")
    postgres = Postgres.start()
    try:
        yield await _fill(tmp_path_factory.mktemp("ordinary"), postgres)
    finally:
        postgres.stop()


async def _ask(gateway: Gateway, engine: str, sql: str, source: str | None = None) -> Result | None:
    """Return an answer; None for a refusal or an error."""
    try:
        return await gateway.query(engine, sql, from_dialect=source, limit=1_000)
    except DragomanError:
        return None


def _differs(own: Result, other: Result, made: Made, binary: bool) -> bool:
    """Whether an answer is another one, and no notice says what may differ."""
    if same(comparable(own, other), comparable(other, own), binary=binary, ordered=made.ordered):
        return False
    return not [notice for notice in other.notices[1:] if not notice.endswith(WEAK)]


async def compare(databases: Sequence[Database], pairs: Sequence[tuple[str, str]], seeds: range) -> Counter[str]:
    """Ask queries that come of seeds, and return how many were answered alike, otherwise with a notice, or not."""
    seen: Counter[str] = Counter()
    async with Gateway.open(databases) as gateway:
        for seed in seeds:
            for source in dict(pairs):
                made = Maker(Random(seed), source).make()
                own = await _ask(gateway, source, made.sql)
                for target in (target for one, target in pairs if one == source and own):
                    assert own is not None
                    other = await _ask(gateway, target, made.sql, source)
                    seen["answered" if other else "refused"] += 1
                    told = other and (seed, source, target, made.sql, other.sql, own.rows[:5], other.rows[:5])
                    assert other is None or not _differs(own, other, made, "sqlite" in (source, target)), told
    return seen


# These were once answered otherwise, without a word. What stands here once came of a seed, or was found beside one.
FOUND = [
    ("postgres", """SELECT "A" FROM (SELECT id AS a, dept AS "A" FROM staff) q"""),
    ("postgres", """WITH "Staff" AS (SELECT 1 AS id) SELECT id FROM staff"""),
    ("sqlite", """WITH "Staff" AS (SELECT 1 AS id) SELECT id FROM staff"""),
    ("sqlite", """SELECT -id AS "Id" FROM staff ORDER BY id"""),
    ("postgres", """SELECT -id AS "ID" FROM staff ORDER BY id"""),
    ("postgres", """SELECT 'x' || id * 2 FROM staff"""),
    ("postgres", """SELECT id + 1 || name FROM staff"""),
    ("sqlite", """SELECT id FROM staff WHERE dept <> boss IN (1)"""),
    ("sqlite", """SELECT id FROM staff WHERE seen <= '2024-02-29'"""),
    ("sqlite", """SELECT id FROM staff WHERE seen IN ('2024-02-29', '2024-02-29 23:59:59')"""),
    ("sqlite", """SELECT id FROM staff WHERE hired >= '2019-01-31 00:00:00'"""),
    ("sqlite", """SELECT id FROM staff WHERE hired = '2019-1-31'"""),
    ("postgres", """SELECT id FROM staff WHERE hired < '2024-02-29 23:59:59'"""),
    ("postgres", """SELECT id FROM staff WHERE hired > '2024-2-1'"""),
    ("postgres", """SELECT cast(active AS varchar) FROM staff"""),
    ("sqlite", """SELECT active || '' FROM staff"""),
    ("postgres", """SELECT 'Price ' || price, concat(price, paid) FROM visit"""),
    ("postgres", """SELECT id FROM staff WHERE dept IN (2, 3, NULL)"""),
]


@pytest.mark.parametrize(("source", "sql"), FOUND)
async def test_a_query_that_was_once_answered_otherwise_is_refused_or_told(databases, source, sql):
    async with Gateway.open(databases) as gateway:
        own = await _ask(gateway, source, sql)
        assert own is not None
        for target in {"sqlite", "postgres"} - {source}:
            other = await _ask(gateway, target, sql, source)
            made = Made(sql, "ORDER BY" in sql)
            assert other is None or not _differs(own, other, made, binary=True), (other.sql, own.rows, other.rows)


@pytest.mark.timeout(300)
async def test_an_ordinary_query_has_one_answer_or_what_differs_is_told(databases):
    seen = await compare(databases, list(permutations(LOCAL, 2)), range(120))
    assert seen["answered"] > seen["refused"] > 0


@pytest.mark.nightly
@pytest.mark.timeout(3_000)
async def test_many_ordinary_queries_have_one_answer_or_what_differs_is_told(databases):
    first = int(os.environ.get("DRAGOMAN_ORDINARY_SEED", "1000000"))
    seen = await compare(databases, list(permutations(LOCAL, 2)), range(first, first + 5_000))
    assert seen["answered"] > seen["refused"] > 0


@pytest.mark.nightly
@pytest.mark.timeout(3_000)
async def test_ordinary_queries_have_one_answer_on_trino_or_what_differs_is_told(databases, trino_server):
    async with trino_server.schema() as schema:
        home = schema.partition(".")[2]
        for statement in declarations("trino"):
            await trino_server.run(statement, schema=home)
        known = [*databases, replace(trino_server.configure("memory", home), name="trino")]
        pairs = [pair for pair in permutations(("sqlite", "postgres", "trino"), 2) if "trino" in pair]
        seen = await compare(known, pairs, range(500))
    assert seen["answered"] > seen["refused"] > 0
