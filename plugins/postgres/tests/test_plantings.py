"""Nothing that users made runs unseen: their code is planted everywhere, and the server tells whether it ran."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass

import asyncpg
import pytest
from _pytest.mark import ParameterSet
from dragoman import DragomanError, Gateway
from dragoman_postgres.testing import Server
from dragoman_postgres.testing.plantings import SCHEMA, Planting, plantings

PLANTINGS = list(plantings())
COMMON = ("the statement", "a view", "the filter of a view", "a policy", "a function of standard SQL")
# What everybody may ask, whatever was planted beside it.
BESIDE = (
    "SELECT lpad(name, 3), initcap(name), count(*) FROM people WHERE id = 1 AND name < 'z' GROUP BY name ORDER BY name",
    "SELECT o.*, p.name || '!' FROM orders AS o JOIN people AS p USING (id) WHERE o.email LIKE '%@%' AND mood = 'glad'",
)
TABLES = """
CREATE TYPE feeling AS ENUM ('sad', 'glad');
CREATE DOMAIN address AS text CHECK (VALUE LIKE '%@%' AND length(VALUE) < 100);
CREATE TABLE people (id serial PRIMARY KEY, name text NOT NULL CHECK (length(name) > 0));
CREATE TABLE orders (id integer REFERENCES people, email address, mood feeling DEFAULT 'sad');
CREATE INDEX ON people (lower(name));
INSERT INTO people (name) VALUES ('Ann');
INSERT INTO orders VALUES (1, 'ann@example.org', 'glad');
"""


@dataclass
class Garden:
    """A database to plant in, a gateway for it and a superuser's connection."""

    gateway: Gateway
    admin: asyncpg.Connection
    trace: str
    planter: str
    major: int

    async def plant(self, planting: Planting) -> None:
        script = SCHEMA + planting.script
        await self.admin.execute(script.replace("{trace}", self.trace).replace("{planter}", self.planter))

    async def ran(self, run: Callable[[str], Awaitable[object]], query: str) -> bool:
        """Whether a query leaves the trace."""
        await self.admin.execute(f"COPY (SELECT) TO PROGRAM 'cat >/dev/null; rm -f {self.trace}'")
        with contextlib.suppress(DragomanError, asyncpg.PostgresError):
            await run(query.replace("{trace}", self.trace))
        return bool(await self.admin.fetchval("SELECT (pg_stat_file($1, true)).size IS NOT NULL", self.trace))

    async def ask(self, query: str) -> None:
        await self.gateway.query(None, query)

    async def ask_unguarded(self, query: str) -> None:
        async with self.admin.transaction(readonly=True):
            await self.admin.execute("SET LOCAL constraint_exclusion = on")
            await self.admin.fetch(query)


@pytest.fixture(scope="module")
async def garden(server: Server, database_name: str) -> AsyncGenerator[Garden]:
    planter = f"planter_{database_name}"
    await server.run(
        f'{TABLES}; CREATE ROLE {planter}; ALTER DATABASE "{database_name}" SET search_path = planted, public',
        database_name,
    )
    admin = await asyncpg.connect(server.address(database_name), statement_cache_size=0)
    folder = await admin.fetchval("SHOW data_directory")
    async with Gateway.open([server.configure(database_name, catalog_ttl=0.0)]) as gateway:
        yield Garden(gateway, admin, f"{folder}/{planter}", planter, admin.get_server_version().major)
    await admin.execute("DROP SCHEMA IF EXISTS planted CASCADE")
    await admin.execute(f"DROP OWNED BY {planter}; DROP ROLE {planter}")
    await admin.close()


def _parameters() -> Iterator[ParameterSet]:
    """Every object in every place takes minutes: by default each is met in a few."""
    for planting in PLANTINGS:
        marks = [pytest.mark.nightly] if planting.place in COMMON and planting.vehicle != "function" else []
        yield pytest.param(planting, id=str(planting), marks=marks)


@pytest.mark.parametrize("planting", list(_parameters()))
async def test_what_was_planted_does_not_run(garden: Garden, planting: Planting):
    if not planting.since <= garden.major <= planting.until:
        pytest.skip(f"PostgreSQL {garden.major} has no such object")
    await garden.plant(planting)
    ran = [query for query in planting.queries if await garden.ran(garden.ask, query)]
    assert ran == []
    # That it would have run is what makes this worth anything.
    assert [query for query in planting.queries if await garden.ran(garden.ask_unguarded, query)]
    if not planting.everything:
        for query in BESIDE:
            await garden.ask(query)
    await garden.admin.execute(planting.undo)
