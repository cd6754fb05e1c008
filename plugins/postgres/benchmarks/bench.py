"""What the plugin costs over asyncpg doing the same, as ratios: `uv run python plugins/postgres/benchmarks/bench.py`.

Both sides of a comparison take turns in one run, so that a busy machine slows both. The baseline is one asyncpg
connection (or its pool): one message that begins and sets the deadline, `fetch` of the wrapped statement, ROLLBACK, and
one pass of encoding. Medians are shown, the ratio is the median of those of the turns; trust the ratios.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import msgspec
from dragoman import Database, Gateway, Limits, Request, Scope
from dragoman_postgres import queries
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.inspector import PostgresInspector
from dragoman_postgres.pool import Connections
from dragoman_postgres.testing import Server

PRELUDE = "BEGIN READ ONLY; SET LOCAL statement_timeout = 30000"
SETUP = """
CREATE TABLE orders AS
SELECT n AS id, 'note ' || n AS note, (n % 1000) * 1.25 AS amount, n % 7 = 0 AS paid, n * 0.5::float8 AS weight,
  timestamptz '2026-01-01' + n * interval '1 minute' AS placed, gen_random_uuid() AS token, n % 40 AS region,
  n * 3::bigint AS code, jsonb_build_object('a', n, 'tags', ARRAY['x', 'y'], 'note', md5(n::text)) AS details
FROM generate_series(1, 120000) AS n;
ALTER TABLE orders ADD PRIMARY KEY (id);
ANALYZE orders;
"""
LOOKUP = "SELECT id, note, amount FROM orders WHERE id = 77"
ROWS = "SELECT * FROM orders LIMIT {}"
PLAIN = "SELECT id, note, amount, paid, weight, placed, token, region, code FROM orders LIMIT {}"
SETTINGS = {"DateStyle": "ISO", "IntervalStyle": "iso_8601", "TimeZone": "UTC"}
TEXT_TYPES = ("numeric", "timestamptz", "uuid", "jsonb")

Action = Callable[[], Awaitable[object]]
encode = msgspec.json.Encoder().encode


def wrapped(sql: str, rows: int) -> str:
    """The statement as the baseline sends it."""
    return f"SELECT * FROM (\n{sql}\n) AS _q LIMIT {rows + 1}"


async def prepared(connection: Any) -> None:
    """Have values come as text, as an exact answer needs them."""
    for name in TEXT_TYPES:
        await connection.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=str, format="text")


async def bare(connection: Any, sql: str) -> bytes:
    """What anyone would do at least."""
    await connection.execute(PRELUDE)
    rows = await connection.fetch(sql)
    await connection.execute("ROLLBACK")
    return encode([tuple(row) for row in rows])


async def compare(name: str, aim: str, ours: Action, theirs: Action, rounds: int) -> None:
    """Run both in turns and print the medians and their ratio."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 3):
        for action, taken in zip((theirs, ours), times, strict=True):
            begun = time.perf_counter()
            await action()
            if turn >= 3:
                taken.append(time.perf_counter() - begun)
    base, own = (statistics.median(taken) for taken in times)
    ratio = statistics.median(ours / theirs for theirs, ours in zip(*times, strict=True))
    print(f"{name:58} {own * 1e3:9.3f} ms {base * 1e3:9.3f} ms  x{ratio:5.2f}   {aim}", flush=True)


async def rows(server: Server, database: Database) -> None:
    """The executor, then the whole gateway, beside the driver."""
    connection = await asyncpg.connect(server.address(database.name), server_settings=SETTINGS)
    await prepared(connection)
    executor = PostgresExecutor(database)
    async with Gateway.open([database]) as gateway:
        for name, sql, limit, rounds, aim in (
            ("primary key", LOOKUP, 1000, 400, "<= 1.5"),
            ("1,000 rows", ROWS.format(1000), 1000, 60, "<= 1.2"),
            ("10,000 rows with jsonb", ROWS.format(10_000), 10_000, 15, "<= 1.2"),
            ("10,000 rows without jsonb", PLAIN.format(10_000), 10_000, 15, "<= 1.2"),
            ("100,000 rows asked, the default limit", ROWS.format(100_000), 1000, 60, "<= 1.2"),
        ):
            limits = Limits(max_rows=limit, max_bytes=10_000_000)
            request = Request(statement=sql, limits=limits)

            async def execute(request: Request = request) -> object:
                async with executor.open(request) as stream:
                    return [[encode([tuple(row) for row in batch])] async for batch in stream.batches]

            async def query(sql: str = sql, limit: int = limit) -> object:
                return await gateway.query(None, sql, limit=limit, max_bytes=10_000_000)

            async def driver(sql: str = wrapped(sql, limit)) -> object:
                return await bare(connection, sql)

            await compare(f"executor : asyncpg, {name}", aim, execute, driver, rounds)
            await compare(f"gateway : asyncpg, {name}", "", query, driver, rounds)
    await executor.aclose()
    await connection.close()


async def many(server: Server, database: Database) -> None:
    """Fifty callers at once, over five connections."""
    executor = PostgresExecutor(database)
    pool = await asyncpg.create_pool(server.address(database.name), min_size=5, max_size=5, server_settings=SETTINGS)
    request = Request(statement=LOOKUP)

    async def ours() -> None:
        async with executor.open(request) as stream:
            async for batch in stream.batches:
                encode([tuple(row) for row in batch])

    async def theirs() -> None:
        async with pool.acquire() as connection:
            await bare(connection, wrapped(LOOKUP, 1000))

    async def all_at_once(action: Action) -> None:
        await asyncio.gather(*(action() for _ in range(50)))

    await compare(
        "50 callers on 5 connections : asyncpg's pool",
        "<= 1.2",
        lambda: all_at_once(ours),
        lambda: all_at_once(theirs),
        40,
    )
    await executor.aclose()
    await pool.close()


async def catalog(server: Server, tables: int) -> None:
    """Everything about many tables, beside the time the catalog queries take by themselves."""
    script = [
        f"CREATE TABLE t{n} (id integer PRIMARY KEY, other integer REFERENCES t{max(n - 1, 1)} (id),"
        f" a text NOT NULL DEFAULT 'x', b numeric(10,2), c timestamptz, d jsonb, e text, f boolean, g date, h uuid);"
        f" CREATE INDEX ON t{n} (a);"
        for n in range(1, tables + 1)
    ]
    name = await server.create()
    for part in range(0, tables, 500):
        await server.run("\n".join(script[part : part + 500]), name)
    await server.run("ANALYZE t1", name)
    connections = Connections(server.configure(name))
    inspector = PostgresInspector(server.configure(name), connections)
    raw = await asyncpg.connect(server.address(name))
    oids = [row[0] for row in await raw.fetch("SELECT oid FROM pg_class WHERE relkind = 'r' AND relname LIKE 't%'")]

    async def alone() -> None:
        await raw.fetch(queries.RELATIONS, None, None)
        await raw.fetch(queries.COLUMNS, oids, [])
        for query in (queries.CONSTRAINTS, queries.INDEXES, queries.STORAGE):
            await raw.fetch(query, oids)

    async def ours() -> None:
        inspection = await inspector.tables(Scope(schemas=frozenset({"public"})))
        assert len(inspection.tables) == tables

    await compare(
        f"inspector : its queries alone, {tables:,} tables", "<= 1.5", ours, alone, 5 if tables > 2000 else 10
    )
    await raw.close()
    await connections.aclose()
    await server.drop(name)


async def run(server: Server) -> None:
    """Everything, on a fresh database."""
    name = await server.create(SETUP)
    database = server.configure(name, max_rows=200_000, max_bytes=10_000_000)
    print(f"{'':58} {'ours':>12} {'theirs':>12}  ratio   aim")
    await rows(server, database)
    await many(server, database)
    for tables in (1_000, 10_000) if "--all" in sys.argv else (1_000,):
        await catalog(server, tables)


def main() -> None:
    """Start a server, run, stop it."""
    server = Server.start(settings={"shared_buffers": "128MB", "max_locks_per_transaction": "1024"})
    try:
        asyncio.run(run(server))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
