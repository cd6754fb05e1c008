"""Nothing that users made runs unseen: their code is planted everywhere, and the server tells whether it ran."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass

import asyncpg
import pytest
from _pytest.mark import ParameterSet
from dragoman import Database, DragomanError, Gateway
from dragoman.tools import Toolbox
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

    database: Database
    gateway: Gateway
    admin: asyncpg.Connection
    trace: str
    planter: str
    major: int

    async def plant(self, planting: Planting) -> None:
        """Plant it, or skip the test: on a server without such objects."""
        if not planting.since <= self.major <= planting.until:
            pytest.skip(f"PostgreSQL {self.major} has no such object")
        if planting.extension:
            there = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = $1)"
            if not await self.admin.fetchval(there, planting.extension):
                pytest.skip(f"this server has no {planting.extension}")
            await self.admin.execute(f"CREATE EXTENSION IF NOT EXISTS {planting.extension} SCHEMA public")
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

    async def ask_tools(self, query: str) -> None:
        """Call every tool with a query, or with every relation that there is, as one who just came."""
        async with Gateway.open([self.database]) as gateway:
            toolbox = Toolbox(gateway, profile="full")
            tables = [str(table.relation) for table in (await gateway.database().catalog.snapshot()).visible]
            for name, arguments in _tool_calls(query, tables):
                assert name in {tool.name for tool in toolbox.tools}
                await toolbox.call(name, arguments)

    async def ask_unguarded(self, query: str) -> None:
        async with self.admin.transaction(readonly=True):
            await self.admin.execute("SET LOCAL constraint_exclusion = on")
            await self.admin.fetch(query)


def _tool_calls(query: str, tables: list[str]) -> Iterator[tuple[str, dict[str, object]]]:
    yield "execute_query", {"sql": query, "keep": True}
    for how in ({}, {"verbose": True}, {"analyze": True}, {"analyze": True, "buffers": True, "verbose": True}):
        yield "explain_query", {"sql": query, **how}
    yield "describe_table", {"table_name": tables, "detail": "full"}
    for table in tables:
        yield "get_sample_rows", {"table_name": table}
        yield "get_sample_rows", {"table_name": table, "where_clause": f"EXISTS ({query})"}
        yield "get_row", {"table_name": table, "key": 1}
        yield "get_foreign_keys", {"table_name": table}
        yield "find_join_path", {"from_table": table, "to_table": "people"}
    yield "search_catalog", {"query": "Ann", "kinds": ["table", "column", "value"]}
    yield "list_tables", {"detail": "full"}
    for how in ("json", "sql", "mermaid"):
        yield "read_schema", {"format": how}
    yield "server_info", {}


@pytest.fixture(scope="module")
async def garden(server: Server, database_name: str) -> AsyncGenerator[Garden]:
    planter = f"planter_{database_name}"
    await server.run(
        f'{TABLES}; CREATE ROLE {planter}; ALTER DATABASE "{database_name}" SET search_path = planted, public',
        database_name,
    )
    admin = await asyncpg.connect(server.address(database_name), statement_cache_size=0)
    folder = await admin.fetchval("SHOW data_directory")
    database = server.configure(database_name, catalog_ttl=0.0)
    async with Gateway.open([database]) as gateway:
        yield Garden(
            server.configure(database_name),
            gateway,
            admin,
            f"{folder}/{planter}",
            planter,
            admin.get_server_version().major,
        )
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
    await garden.plant(planting)
    ran = [query for query in planting.queries if await garden.ran(garden.ask, query)]
    assert ran == []
    # That it would have run is what makes this worth anything.
    assert [query for query in planting.queries if await garden.ran(garden.ask_unguarded, query)]
    if not planting.everything:
        for query in (*BESIDE, *planting.harmless):
            await garden.ask(query)
    await garden.admin.execute(planting.undo)


def _asked_by_tools() -> Iterator[ParameterSet]:
    """A hundred calls for each take some seconds: in CI one planting in forty.

    Casts between the system's own types, which only a superuser can make, run in the gateway's own reads too.
    """
    for number, planting in enumerate(PLANTINGS):
        if not (planting.place == "types of the system" and planting.vehicle.endswith("cast")):
            mark = pytest.mark.nightly if number % 40 else pytest.mark.full
            yield pytest.param(planting, id=str(planting), marks=mark)


@pytest.mark.parametrize("planting", list(_asked_by_tools()))
async def test_what_was_planted_does_not_run_through_any_tool(garden: Garden, planting: Planting):
    await garden.plant(planting)
    assert [query for query in planting.queries if await garden.ran(garden.ask_tools, query)] == []
    await garden.admin.execute(planting.undo)
