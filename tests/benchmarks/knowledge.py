"""What learning and a warm start cost on Postgres: `uv run python tests/benchmarks/knowledge.py [--quick]`.

1,000 tables of 20 columns, read by a role that may only SELECT. Cold: the catalog and all values are read. Warm:
both come from `server.state_dir`, as after a restart, until the catalog is told and one table with its values.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import asyncpg
from dragoman import Gateway, ProfileBudget, Secret
from dragoman.config import Configuration
from dragoman.config import Server as Settings
from dragoman_postgres.testing import Server

TABLES, COLUMNS, ROWS = 1_000, 20, 200
PORTION = 100
"""Tables of one transaction: it holds a lock for each."""
MAKE = """
DO $$ BEGIN FOR n IN {first}..{last} LOOP
    EXECUTE format('CREATE TABLE orders_%s AS SELECT i AS id, {columns} FROM generate_series(1, {rows}) AS i', n);
    EXECUTE format('ANALYZE orders_%s', n);
END LOOP; END $$
"""
KINDS = "(ARRAY[''paid'', ''open'', ''void''])[1 + mod(i, 3)] AS status_{0}"
READER = """
CREATE ROLE reader LOGIN PASSWORD 'reader';
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader
"""


async def grow(url: str) -> None:
    connection = await asyncpg.connect(url)
    columns = ", ".join([KINDS.format(n) for n in range(10)] + [f"i * {n} AS amount_{n}" for n in range(COLUMNS - 11)])
    for first in range(1, TABLES, PORTION):
        await connection.execute(MAKE.format(first=first, last=first + PORTION - 1, columns=columns, rows=ROWS))
    await connection.execute(READER)
    await connection.close()


async def cold(configuration: Configuration) -> tuple[float, float]:
    """Seconds to read the catalog, and to learn what every table holds."""
    async with Gateway.open(configuration) as gateway:
        opened, begun = gateway.database(), time.perf_counter()
        tables = (await opened.catalog.snapshot()).listed
        read = time.perf_counter()
        await opened.knowledge.learn(tables, ProfileBudget(seconds=60))
        learned = time.perf_counter()
        insight = opened.knowledge.get_known(tables[-1])
        assert insight.profiles["status_3"].values, "values were not learned"
        return read - begun, learned - read


async def warm(configuration: Configuration) -> float:
    """Seconds from an open connection until the catalog and a table's values are told."""
    async with Gateway.open(configuration) as gateway:
        opened = gateway.database()
        await opened.inspector.version()
        begun = time.perf_counter()
        snapshot = await opened.catalog.snapshot()
        table = snapshot.find("orders_77", None)
        insight = (await opened.knowledge.of([table], 5.0))[table.relation]
        taken = time.perf_counter() - begun
        assert len(snapshot.listed) == TABLES
        assert insight.profiles["status_3"].values
        return taken


async def repeat(rounds: int, work: Callable[[], Coroutine[Any, Any, Any]]) -> list[Any]:
    return [await work() for _ in range(rounds)]


async def measure(server: Server, folder: Path, rounds: int) -> None:
    name = await server.create(name="bench")
    await grow(server.address(name))
    reader = server.configure(name, user="reader", password=Secret("reader"), timeout=60)
    fresh = Configuration(databases={name: reader})
    reads, learns = zip(*await repeat(rounds, lambda: cold(fresh)), strict=True)
    print(f"catalog of {TABLES:,} tables, cold: {line(reads)}", flush=True)
    print(f"values of {TABLES:,} tables by a plain role: {line(learns)}  aim <= 3,000 ms", flush=True)
    kept = Configuration(databases={name: reader}, server=Settings(state_dir=folder))
    await cold(kept)
    print(f"warm start: {line(await repeat(rounds, lambda: warm(kept)))}  aim <= 100 ms", flush=True)


def line(seconds: Any) -> str:
    return f"median {statistics.median(seconds) * 1e3:,.0f} ms, least {min(seconds) * 1e3:,.0f} ms"


def main() -> None:
    """Run everything and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    quick = parser.parse_args().quick
    print(f"load of the machine at the start: {os.getloadavg()[0]:.1f} of {os.cpu_count()}")
    server = Server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(server, Path(folder), 3 if quick else 9))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
