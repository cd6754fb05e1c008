"""The columns that statements are said to touch are never fewer than those the engines themselves say they read.

SQLite tells its authorizer each column it compiles a read of. PostgreSQL checks a privilege for each column, and so a
role that has those of the columns we found must be able to run the statement. Trino names the columns of every table
that its analyzer met.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import urllib.request
from dataclasses import dataclass, field
from random import Random
from typing import Any

import asyncpg
import pytest
from dragoman import Dialect, DragomanError
from dragoman.plugins import Plugins
from dragoman.sql.columns import find_touched_columns
from naming import SPARE, Schema, query
from seeded import prepare, runs, schemas

Columns = set[tuple[str, str]]


@dataclass
class Account:
    """What came of many queries. `missed`: what the engine read of which we did not know."""

    valid: int = 0
    refused: int = 0
    missed: list[str] = field(default_factory=list[str])

    def add(self, seed: int, text: str, read: Columns, told: Columns | None) -> None:
        """Count one query."""
        self.valid += 1
        self.refused += told is None
        if told is not None and read - told:
            self.missed.append(f"{seed}: {text}\n    {sorted(read - told)}")

    def check(self, made: int) -> None:
        """Nothing is missed; enough queries were valid, and few were refused."""
        assert not self.missed, "\n".join(self.missed[:5])
        assert self.valid > made / 4
        assert self.refused < self.valid / 20


def told(dialect: Dialect, text: str, tables: Schema) -> Columns | None:
    """The columns we say a query touches; None: it is refused."""
    prepared = prepare(dialect, text, tables)
    try:
        return prepared and {(relation.name, column) for relation, column in find_touched_columns(*prepared)}
    except DragomanError:
        return None


@pytest.fixture(scope="module")
def dialects() -> dict[str, Dialect]:
    plugins = Plugins.discover()
    return {name: plugins.load(name).dialect for name in ("sqlite", "postgres", "trino")}


SHOP: Schema = {"customer": ("id", "name", "email"), "places": ("id", "title")}
WHOLE = {("customer", "id"), ("customer", "name"), ("customer", "email")}
EMAIL, ID = ("customer", "email"), ("customer", "id")
# Shapes that the generator does not make, and what they touch, exactly.
SHAPES = [
    (
        "trino",
        "SELECT m.x FROM customer MATCH_RECOGNIZE (PARTITION BY id ORDER BY id MEASURES last(a.email) AS x"
        " PATTERN (a b+) DEFINE b AS email > '1') AS m",
        {EMAIL, ID},
    ),
    ("trino", "SELECT 1 FROM TABLE(exclude_columns(input => TABLE(customer), columns => DESCRIPTOR(email)))", WHOLE),
    ("trino", "SELECT memory.s.customer.email FROM memory.s.customer", {EMAIL}),
    ("trino", "SELECT c.id FROM customer c CROSS JOIN UNNEST(split(c.email, 'x')) AS u (y)", {EMAIL, ID}),
    ("trino", "SELECT title FROM places WHERE id IN (TABLE customer)", {*WHOLE, ("places", "id"), ("places", "title")}),
    ("trino", "SELECT count(*) FROM customer GROUP BY GROUPING SETS ((email), (id))", {EMAIL, ID}),
    (
        "trino",
        "WITH RECURSIVE a (x) AS (SELECT email FROM customer), customer (email) AS (SELECT 'x') SELECT x FROM a",
        {EMAIL},
    ),
    ("postgres", "SELECT x.email FROM customer AS x (email, a, b)", WHOLE),
    ("postgres", "SELECT (x).email FROM (SELECT customer AS x FROM customer) y", WHOLE),
    ("postgres", "SELECT email FROM places p LEFT JOIN LATERAL (SELECT * FROM customer) s ON true", WHOLE),
    ("postgres", "SELECT json_agg(c) FROM customer c", WHOLE),
    ("postgres", "SELECT 1 FROM customer c WHERE c IN (SELECT d FROM customer d)", WHOLE),
    ("postgres", "SELECT max(id) FROM customer GROUP BY CUBE (email)", {EMAIL, ID}),
    ("postgres", "SELECT date_trunc('day', now()) AS d, count(id) FROM customer GROUP BY d", {ID}),
    ("postgres", "SELECT 'email' AS email, id FROM customer ORDER BY email", {EMAIL, ID}),
    ("sqlite", "SELECT title FROM places WHERE 1 IN 'customer'", {*WHOLE, ("places", "title")}),
    ("sqlite", "SELECT id FROM customer INDEXED BY by_email WHERE +email > 1", {EMAIL, ID}),
    ("sqlite", "VALUES ((SELECT email FROM customer))", {EMAIL}),
    ("sqlite", "SELECT id email FROM customer", {EMAIL, ID}),
    ("sqlite", "SELECT id AS email FROM customer", {ID}),
]


@pytest.mark.parametrize(("engine", "text", "columns"), SHAPES)
def test_odd_shapes_touch_what_is_known_of_them(engine: str, text: str, columns: Columns, dialects: dict[str, Dialect]):
    assert told(dialects[engine], text, SHOP) == columns


@runs(1_600, 40_000)
def test_sqlite_reads_no_column_that_is_not_told(seeds: range, dialects: dict[str, Dialect]):
    account = Account()
    for tables, numbers in schemas(seeds):
        connection = sqlite3.connect(":memory:")
        for name, columns in tables.items():
            # The first column is the row number too.
            connection.execute(f"CREATE TABLE {name} ({columns[0]} INTEGER PRIMARY KEY, {', '.join(columns[1:])})")
        for seed in numbers:
            text = query(Random(seed), "sqlite", tables, "main")
            read = authorized(connection, text, tables)
            if read is not None:
                account.add(seed, text, read, told(dialects["sqlite"], text, tables))
        connection.close()
    account.check(len(seeds))


def authorized(connection: sqlite3.Connection, text: str, tables: Schema) -> Columns | None:
    """What SQLite asks leave to read, by its own names; None: the query is not valid."""
    read: Columns = set()

    def note(action: int, table: str | None, column: str | None, database: str | None, _: str | None) -> int:
        if action == sqlite3.SQLITE_READ and database and column and table and table in tables:
            read.add((table, column))
        return sqlite3.SQLITE_OK

    connection.set_authorizer(note)
    try:
        connection.execute(f"EXPLAIN {text}").fetchall()
    except sqlite3.Error:
        return None
    finally:
        connection.set_authorizer(None)
    return read


ROLE = "dragoman_reader_of_columns"


@pytest.fixture(scope="module")
async def connection(server, anyio_backend):
    name = await server.create(f"DROP ROLE IF EXISTS {ROLE}; CREATE ROLE {ROLE};")
    opened = await asyncpg.connect(server.address(name))
    yield opened
    await opened.close()
    await server.drop(name)
    await server.run(f"DROP ROLE {ROLE}")


@runs(1_600, 40_000)
async def test_postgres_needs_no_privilege_on_a_column_that_is_not_told(
    seeds: range, dialects: dict[str, Dialect], connection: asyncpg.Connection
):
    account = Account()
    for tables, numbers in schemas(seeds):
        for name, columns in tables.items():
            listed = ", ".join(f"{column} integer" for column in columns)
            # A role must have some column of every table of a query, so it has those that tell nothing.
            await connection.execute(
                f"CREATE TABLE {name} ({listed}); GRANT SELECT ({SPARE}, tableoid) ON {name} TO {ROLE}"
            )
        for seed in numbers:
            text = query(Random(seed), "postgres", tables, "public")
            if not await explains(connection, text):
                continue
            found = told(dialects["postgres"], text, tables)
            denied = found is not None and not await explains(connection, text, granted(found, tables))
            account.add(seed, f"{text}\n    {sorted(found or ())}", {("?", "?")} if denied else set(), found)
        await connection.execute("".join(f"DROP TABLE {name};" for name in tables))
    account.check(len(seeds))


def granted(found: Columns, tables: Schema) -> str:
    """The statements that make a role of somebody who may read these columns and no others."""
    mine = ((name, column) for name, column in sorted(found) if column in tables.get(name, ()))
    return "".join(f"GRANT SELECT ({column}) ON {name} TO {ROLE};" for name, column in mine) + f"SET LOCAL ROLE {ROLE};"


async def explains(connection: asyncpg.Connection, text: str, before: str = "") -> bool:
    """Whether PostgreSQL plans a query, for which it checks every privilege."""
    try:
        await connection.execute(f"BEGIN; {before} EXPLAIN {text}")
    except asyncpg.InsufficientPrivilegeError:
        return False
    except asyncpg.PostgresError:
        assert not before
        return False
    finally:
        await connection.execute("ROLLBACK")
    return True


@runs(300, 8_000)
async def test_trino_refers_to_no_column_that_is_not_told(seeds: range, dialects: dict[str, Dialect], trino_server):
    account = Account()
    for tables, numbers in schemas(seeds):
        async with trino_server.schema() as home:
            listed = {name: ", ".join(f"{column} integer" for column in columns) for name, columns in tables.items()}
            await trino_server.run(
                *(f"CREATE TABLE {name} ({columns})" for name, columns in listed.items()), schema=home
            )
            texts = {seed: query(Random(seed), "trino", tables, home.split(".")[1]) for seed in numbers}
            together = asyncio.Semaphore(4)

            async def ask(text: str, home: str = home, together: asyncio.Semaphore = together) -> Columns | None:
                async with together:
                    return await asyncio.to_thread(referenced, trino_server.origin, home, text)

            answers = await asyncio.gather(*map(ask, texts.values()))
            for (seed, text), read in zip(texts.items(), answers, strict=True):
                if read is not None:
                    account.add(seed, text, read, told(dialects["trino"], text, tables))
    account.check(len(seeds))


SPELLED = {"ssn": "\u017fsn", "gip": "g\u0131p", "kok": "\u212aok", "straße": "STRAßE", "οδοσ": "οδος", "µg": "μg"}
"""Names of columns, and other spellings of them: Trino compares names without case, letter by letter."""


async def test_trino_reads_no_column_under_a_spelling_that_is_not_told(dialects: dict[str, Dialect], trino_server):
    tables: Schema = {"wide": tuple(SPELLED)}
    texts = {
        name: f'SELECT x.a FROM (SELECT 1 AS a, 2 AS "{written}") AS x JOIN wide USING ("{written}")'
        for name, written in SPELLED.items()
    }
    async with trino_server.schema() as home:
        listed = ", ".join(f'"{name}" integer' for name in SPELLED)
        await trino_server.run(f"CREATE TABLE wide ({listed})", schema=home)
        read = {name: await asyncio.to_thread(referenced, trino_server.origin, home, texts[name]) for name in texts}
    assert ("wide", "ssn") in (read["ssn"] or ())
    assert ("wide", "gip") in (read["gip"] or ())
    for name, columns in read.items():
        assert (columns or set()) <= (told(dialects["trino"], texts[name], tables) or set()), name


def referenced(origin: str, home: str, text: str) -> Columns | None:
    """The columns Trino's analyzer met, table by table; None: the query is not valid. The tables are empty."""
    catalog, name = home.split(".")
    headers = {"X-Trino-User": "admin", "X-Trino-Catalog": catalog, "X-Trino-Schema": name}
    page = fetched(urllib.request.Request(f"{origin}/v1/statement", data=text.encode(), headers=headers))
    query_id = page["id"]
    while "nextUri" in page:
        page = fetched(urllib.request.Request(page["nextUri"], headers=headers))
    if "error" in page:
        return None
    info = fetched(urllib.request.Request(f"{origin}/v1/query/{query_id}", headers=headers))
    return {(table["table"], column["column"]) for table in info["referencedTables"] for column in table["columns"]}


def fetched(request: urllib.request.Request) -> dict[str, Any]:
    with urllib.request.urlopen(request) as response:
        answer: dict[str, Any] = json.load(response)
    return answer
