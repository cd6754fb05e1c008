"""What results cost that live on: kept, paged and written to files: `python tests/benchmarks/files.py [--rows N]`.

Each engine's rows of ten columns are kept by the gateway; the ratio is to the time of the driver's own fetch of the
same statement. Kept rows are written to each format in a process of its own, which tells its memory; beside it stand
`psql \\copy` and DuckDB's own COPY. Last come pages at places of chance. Trust ratios, and see what else ran.
"""

import argparse
import asyncio
import random
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import duckdb
from dragoman import Database, Gateway, Principal
from dragoman.config import Configuration, Results
from dragoman.testing.memory import resident
from dragoman_postgres.testing import Server

WHO = Principal("bench")
PAGES = 300
SQL = "SELECT * FROM orders"
COLUMNS = "id, region, name, total, exact, placed, day, token, paid, note"
POSTGRES = """
CREATE TABLE orders AS
SELECT n::bigint AS id, n % 40 AS region, 'customer ' || n % 5000 AS name, (n % 100000 + 0.25)::numeric(12,2) AS total,
  (n + 0.0001)::numeric(20,4) AS exact, timestamptz '2026-01-01' + n * interval '1 minute' AS placed,
  date '2026-01-01' + n % 300 AS day, md5(n::text)::uuid AS token, n % 7 = 0 AS paid, 'note ' || n AS note
FROM generate_series(1, {rows}) AS n;
"""
SQLITE = f"""
CREATE TABLE orders ({COLUMNS});
WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {{rows}})
INSERT INTO orders SELECT n, n % 40, 'customer ' || n % 5000, n % 100000 + 0.25, n || '.0001',
  datetime('2026-01-01', '+' || n || ' minutes'), date('2026-01-01', '+' || n % 300 || ' days'), hex(n), n % 7 = 0,
  'note ' || n FROM s;
"""
DUCKDB = """
CREATE TABLE orders AS
SELECT n AS id, n % 40 AS region, 'customer ' || n % 5000 AS name, (n % 100000 + 0.25)::DECIMAL(12,2) AS total,
  (n + 0.0001)::DECIMAL(20,4) AS exact, TIMESTAMP '2026-01-01' + n * INTERVAL '1 minute' AS placed,
  DATE '2026-01-01' + (n % 300)::INTEGER AS day, md5(n::VARCHAR) AS token, n % 7 = 0 AS paid, 'note ' || n AS note
FROM range(1, {rows} + 1) AS r(n);
"""
_EXPORT = """
import pickle, resource, sys, time
from pathlib import Path
from dragoman.exports import export
rows, columns, ends, form, target = pickle.load(sys.stdin.buffer)
import msgspec
def pages():
    with open(rows, "rb") as file:
        for start, end in zip([0, *ends], ends):
            file.seek(start)
            yield msgspec.json.decode(b"[%b]" % file.read(end - start))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = time.perf_counter()
export(Path(target), form, columns, pages)
print(time.perf_counter() - begun, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


async def timed(action: Callable[[], Awaitable[Any]]) -> float:
    """Return the seconds that something takes."""
    begun = time.perf_counter()
    await action()
    return time.perf_counter() - begun


def say(engine: str, what: str, seconds: float, base: float, more: str = "") -> None:
    """Print one line."""
    print(f"{engine:9} {what:34} {seconds:8.2f} s  x{seconds / base:5.2f}  {more}", flush=True)


async def measure(engine: str, database: Database, driver: Callable[[], Awaitable[Any]], folder: Path) -> float:
    """Keep every row, write it to files, and read pages; return the seconds of the driver's own fetch."""
    base = await timed(driver)
    say(engine, "the driver's own fetch", base, base)
    results = Results(dir=folder / "kept", max_rows=2**40, max_bytes=2**40, max_bytes_per_caller=2**40, timeout=3600)
    async with Gateway.open(Configuration(databases={database.name: database}, results=results)) as gateway:
        await gateway.query(database.name, "SELECT 1", principal=WHO)
        before = resident()
        begun = time.perf_counter()
        kept = await gateway.kept.keep("all", database.name, SQL, principal=WHO, tool="bench")
        peak = resident()
        while kept.running:
            await asyncio.sleep(0.01)
            peak = max(peak, resident())
        say(engine, "kept", time.perf_counter() - begun, base, f"+{(peak - before) >> 20} MiB")
        assert kept.status == "complete", kept.error
        for form in ("csv", "jsonl", "parquet", "arrow"):
            seconds, memory = export(kept, form, folder / f"out.{form}")
            say(engine, f"kept to {form}", seconds, base, f"+{memory:.0f} MiB")
        page(engine, kept)
    return base


def export(kept: Any, form: str, target: Path) -> tuple[float, float]:
    """Write a kept result in a process of its own; return the seconds, and the MiB by which it grew."""
    import pickle

    given = pickle.dumps((str(kept.pages.path), kept.columns, list(kept.pages._ends), form, str(target)))
    done = subprocess.run([sys.executable, "-c", _EXPORT], input=given, capture_output=True, check=True)
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


def page(engine: str, kept: Any) -> None:
    """Read pages of a hundred rows anywhere; print the time below which 99 of 100 are."""
    chance, taken = random.Random(1), list[float]()
    for _ in range(PAGES):
        offset = chance.randrange(kept.pages.rows)
        begun = time.perf_counter()
        kept.pages.read(offset, 100, 100_000)
        taken.append(time.perf_counter() - begun)
    taken.sort()
    middle, high = statistics.median(taken) * 1e3, taken[int(len(taken) * 0.99)] * 1e3
    print(f"{engine:9} a page anywhere: p50 {middle:.2f} ms, p99 {high:.2f} ms (aim: < 20)", flush=True)


async def postgres(rows: int, folder: Path) -> None:
    """Postgres beside asyncpg and psql."""
    server = Server.start()
    try:
        name = await server.create(POSTGRES.format(rows=rows))
        connection = await asyncpg.connect(server.address(name))
        database = server.configure(name, timeout=3600)

        async def driver() -> None:
            async with connection.transaction():
                async for _ in connection.cursor(SQL, prefetch=1000):
                    pass

        base = await measure("postgres", database, driver, folder)
        await connection.close()
        if psql := shutil.which("psql"):
            target = folder / "copy.csv"
            begun = time.perf_counter()
            command = rf"\copy ({SQL}) TO '{target}' WITH (FORMAT csv, HEADER)"
            subprocess.run([psql, server.address(name), "-c", command], check=True, capture_output=True)
            say("postgres", "psql \\copy to csv", time.perf_counter() - begun, base)
        begun = time.perf_counter()
        arguments = ["export", server.address(name), SQL, str(folder / "whole.csv")]
        subprocess.run([sys.executable, "-m", "dragoman", *arguments], check=True, capture_output=True)
        say("postgres", "dragoman export to csv", time.perf_counter() - begun, base)
    finally:
        server.stop()


async def sqlite(rows: int, folder: Path) -> None:
    """SQLite beside the standard library's driver."""
    connection = sqlite3.connect(folder / "orders.db")
    connection.executescript(SQLITE.format(rows=rows))

    async def driver() -> None:
        for _ in connection.execute(SQL):
            pass

    database = Database(name="orders", dialect="sqlite", database="orders.db", folder=folder, timeout=3600)
    await measure("sqlite", database, driver, folder)
    connection.close()


async def duck(rows: int, folder: Path) -> None:
    """DuckDB beside its own fetch and its own COPY."""
    path = str(folder / "orders.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute(DUCKDB.format(rows=rows))

    async def driver() -> None:
        with duckdb.connect(path, read_only=True) as connection:
            found = connection.execute(SQL)
            while found.fetchmany(10_000):
                pass

    database = Database(name="orders", dialect="duckdb", database="orders.duckdb", folder=folder, timeout=3600)
    base = await measure("duckdb", database, driver, folder)
    with duckdb.connect(path) as connection:
        for form in ("csv", "parquet"):
            begun = time.perf_counter()
            connection.execute(f"COPY orders TO '{folder / 'copy'}.{form}'")
            say("duckdb", f"COPY to {form}", time.perf_counter() - begun, base)


async def main(rows: int) -> None:
    """Measure engine after engine."""
    print(f"{rows:,} rows of ten columns; ratios to the driver's own fetch", flush=True)
    for engine in (sqlite, postgres, duck):
        with tempfile.TemporaryDirectory() as folder:
            await engine(rows, Path(folder))
    print(f"peak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    asyncio.run(main(parser.parse_args().rows))
