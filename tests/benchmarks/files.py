"""What results cost that live on: kept, paged and written to files: `python tests/benchmarks/files.py [--rows N]`.

Each engine's rows of ten columns are kept by the gateway; the ratio is to the time of the driver's own fetch of the
same statement. Kept rows are written to each format in a process of its own, which tells its memory; beside it stand
`psql \\copy` and DuckDB's own COPY. Last come pages at places of chance, from the file and by `get_result`. `cpu` is
processor time of the process that writes: trust it and ratios, and see what else ran. Trino is measured where
`DRAGOMAN_TEST_TRINO_URL` names a server.
"""

import argparse
import asyncio
import os
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
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server
from dragoman_trino.testing.server import ENVIRONMENT
from dragoman_trino.testing.server import Server as TrinoServer
from trino.dbapi import connect

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
TRINO = """
SELECT n AS id, n % 40 AS region, 'customer ' || cast(n % 5000 AS varchar) AS name,
  cast(n % 100000 + 0.25 AS decimal(12,2)) AS total, cast(n + 0.0001 AS decimal(20,4)) AS exact,
  date_add('minute', n, timestamp '2026-01-01 00:00:00 UTC') AS placed,
  date_add('day', n % 300, date '2026-01-01') AS day,
  cast(n AS varchar) AS token, n % 7 = 0 AS paid, 'note ' || cast(n AS varchar) AS note
FROM (SELECT 1000 * (a - 1) + b AS n FROM UNNEST(sequence(1, {thousands})) AS x(a)
  CROSS JOIN UNNEST(sequence(1, 1000)) AS y(b))
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
begun, used = time.perf_counter(), time.process_time()
export(Path(target), form, columns, pages)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(time.perf_counter() - begun, time.process_time() - used, grown / 1024)
"""


async def timed(action: Callable[[], Awaitable[Any]]) -> float:
    """Return the seconds that something takes."""
    begun = time.perf_counter()
    await action()
    return time.perf_counter() - begun


def say(engine: str, what: str, seconds: float, base: float, more: str = "") -> None:
    """Print one line."""
    print(f"{engine:9} {what:34} {seconds:8.2f} s  x{seconds / base:5.2f}  {more}", flush=True)


async def measure(
    engine: str, database: Database, driver: Callable[[], Awaitable[Any]], folder: Path, sql: str = SQL
) -> float:
    """Keep every row, write it to files, and read pages; return the seconds of the driver's own fetch."""
    used = time.process_time()
    base = await timed(driver)
    say(engine, "the driver's own fetch", base, base, f"cpu {time.process_time() - used:.2f} s")
    results = Results(dir=folder / "kept", max_rows=2**40, max_bytes=2**40, max_bytes_per_caller=2**40, timeout=3600)
    async with Gateway.open(Configuration(databases={database.name: database}, results=results)) as gateway:
        await gateway.query(database.name, "SELECT 1", principal=WHO)
        before = resident()
        begun, used = time.perf_counter(), time.process_time()
        kept = await gateway.kept.keep("all", database.name, sql, principal=WHO, tool="bench")
        peak = resident()
        while kept.running:
            await asyncio.sleep(0.01)
            peak = max(peak, resident())
        spent = f"cpu {time.process_time() - used:.2f} s  +{(peak - before) >> 20} MiB"
        say(engine, "kept", time.perf_counter() - begun, base, spent)
        assert kept.status == "complete", kept.error
        for form in ("csv", "jsonl", "parquet", "arrow"):
            seconds, used, memory = export(kept, form, folder / f"out.{form}")
            say(engine, f"kept to {form}", seconds, base, f"cpu {used:.2f} s  +{memory:.0f} MiB")
        page(engine, kept)
        await ask(engine, Toolbox(gateway, profile="full"), kept.pages.rows)
    return base


def export(kept: Any, form: str, target: Path) -> tuple[float, float, float]:
    """Write a kept result in a process of its own; return seconds, its processor's, and MiB it grew by."""
    import pickle

    given = pickle.dumps((str(kept.pages.path), kept.columns, kept.pages.index[0], form, str(target)))
    done = subprocess.run([sys.executable, "-c", _EXPORT], input=given, capture_output=True, check=True)
    seconds, used, memory = map(float, done.stdout.split())
    return seconds, used, memory


def export_whole(engine: str, url: str, folder: Path, base: float) -> None:
    """Write the whole answer by the command, from its start to its end."""
    for form in ("csv", "parquet"):
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        arguments = ["export", url, SQL, str(folder / f"whole.{form}")]
        subprocess.run([sys.executable, "-m", "dragoman", *arguments], check=True, capture_output=True)
        seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        say(engine, f"dragoman export to {form}", seconds, base, f"cpu {used:.2f} s")


def page(engine: str, kept: Any) -> None:
    """Read pages of a hundred rows anywhere."""
    chance, taken = random.Random(1), list[float]()
    for _ in range(PAGES):
        offset = chance.randrange(kept.pages.rows)
        begun = time.perf_counter()
        kept.pages.read(offset, 100, 100_000)
        taken.append(time.perf_counter() - begun)
    tell(engine, "a page anywhere", taken)


async def ask(engine: str, toolbox: Toolbox, rows: int) -> None:
    """The same by the tool `get_result`, which asks today's policy first."""
    chance, taken = random.Random(2), list[float]()
    for _ in range(PAGES):
        arguments = {"result": "all", "offset": chance.randrange(rows), "limit": 100}
        begun = time.perf_counter()
        answer = await toolbox.call("get_result", arguments, principal=WHO)
        taken.append(time.perf_counter() - begun)
        assert not answer.is_error, answer.text
    tell(engine, "get_result anywhere", taken)


def tell(engine: str, what: str, taken: list[float]) -> None:
    """Print how long half of the pages took at most, and 99 of 100."""
    taken.sort()
    middle, high = statistics.median(taken) * 1e3, taken[int(len(taken) * 0.99)] * 1e3
    print(f"{engine:9} {what}: p50 {middle:.2f} ms, p99 {high:.2f} ms (aim: < 20)", flush=True)


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
        export_whole("postgres", server.address(name), folder, base)
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
    export_whole("duckdb", f"duckdb:///{path}", folder, base)


async def trino(rows: int, folder: Path) -> None:
    """Trino beside its own client; the rows are made as they are read."""
    if ENVIRONMENT not in os.environ:
        print(f"trino     not measured: {ENVIRONMENT} names no server")
        return
    server = TrinoServer.at(os.environ[ENVIRONMENT])
    sql = TRINO.format(thousands=rows // 1000)

    async def driver() -> None:
        await asyncio.to_thread(fetch)

    def fetch() -> None:
        with connect(host=server.host, port=server.port, user=server.user) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            while cursor.fetchmany(1000):
                pass

    await measure("trino", server.configure("memory", timeout=3600), driver, folder, sql)


ENGINES = {"sqlite": sqlite, "postgres": postgres, "duckdb": duck, "trino": trino}


async def main(rows: int, engines: list[Callable[[int, Path], Awaitable[None]]]) -> None:
    """Measure engine after engine."""
    print(f"{rows:,} rows of ten columns; ratios to the driver's own fetch", flush=True)
    for engine in engines:
        with tempfile.TemporaryDirectory() as folder:
            await engine(rows, Path(folder))
    print(f"peak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--engine", choices=ENGINES, action="append")
    given = parser.parse_args()
    asyncio.run(main(given.rows, [ENGINES[name] for name in given.engine or ENGINES]))
