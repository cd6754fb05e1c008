"""What the catalog's tools cost beside the raw queries: `uv run python tests/benchmarks/catalog.py [--quick]`.

A bare driver and dragoman over stdio take turns on one Postgres with 1,000 and with 10,000 tables. Cold: a server that
has a connection and has not looked at the catalog. Warm: what a tool takes more than `SELECT 1` in the same server.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
from dragoman_postgres import queries
from dragoman_postgres.testing import Server
from raw_client import LEGACY, Stdio, call, message

SIZES = (1_000, 10_000)
COLUMNS = ", ".join(f"value_{number} text" for number in range(8))
TABLES = f"""
DO $$ BEGIN FOR n IN {{}}..{{}} LOOP
    EXECUTE format('CREATE TABLE orders_%s (id int PRIMARY KEY, parent_id int REFERENCES first_one, {COLUMNS})', n);
END LOOP; END $$
"""
CONFIGURATION = """
[server]
log_level = "warning"
[databases.shop]
url = "{url}"
max_bytes = 10000000
max_rows = 20000
catalog_ttl = 3600
"""


def tool(name: str, **arguments: Any) -> bytes:
    return message(LEGACY, "tools/call", {"name": name, "arguments": arguments})


ONE = message(LEGACY, "tools/call", call("SELECT 1"))


async def raw(url: str) -> float:
    """Seconds of a bare driver for the queries that tell the names, and one encoding."""
    connection = await asyncpg.connect(url)
    await connection.fetch("SELECT 1")
    begun = time.perf_counter()
    await connection.fetch(queries.SCHEMAS)
    rows = await connection.fetch(queries.NAMES, None, None)
    msgspec.json.encode([name for row in rows for name in row[-1]])
    taken = time.perf_counter() - begun
    await connection.close()
    return taken


def timed(server: Stdio, request: bytes) -> float:
    begun = time.perf_counter()
    answer = server.exchange(request)
    taken = time.perf_counter() - begun
    assert b'isError":true' not in answer, answer[:500]
    return taken


def cold(command: list[str], url: str, size: int, rounds: int) -> None:
    driver, ours = list[float](), list[float]()
    for _ in range(rounds):
        driver.append(asyncio.run(raw(url)))
        server = Stdio(command, LEGACY)
        server.request("no/such/method", {})  # the SDK is loaded
        for _ in range(5):
            timed(server, ONE)
        ours.append(timed(server, tool("list_tables", limit=size + 10)))
        server.close()
    told, bare = statistics.median(ours) * 1e3, statistics.median(driver) * 1e3
    print(f"list {size:,} tables, cold: driver {bare:.1f} ms, ours {told:.1f} ms (min {min(ours) * 1e3:.1f})", end="")
    print(f" x{told / bare:.2f}  aim <= 60 ms for 1,000, <= 1.3x for 10,000", flush=True)


def warm(command: list[str], size: int, rounds: int) -> None:
    server = Stdio(command, LEGACY)
    server.request("no/such/method", {})
    asked = {
        "SELECT 1": ONE,
        "list_tables, all": tool("list_tables", limit=size + 10),
        "list_tables, as it is": tool("list_tables"),
        "describe_table": tool("describe_table", table_name="orders_77"),
        "search_catalog": tool("search_catalog", query="orders 77"),
        "search_catalog, a rare word": tool("search_catalog", query="first"),
    }
    for request in asked.values():
        for _ in range(5):
            timed(server, request)
    taken = {name: list[float]() for name in asked}
    for _ in range(rounds):
        for name, request in asked.items():
            taken[name].append(timed(server, request))
    one, least = statistics.median(taken["SELECT 1"]) * 1e3, min(taken["SELECT 1"]) * 1e3
    for name, seconds in taken.items():
        more, most = statistics.median(seconds) * 1e3 - one, min(seconds) * 1e3 - least
        print(f"{size:6,} tables, warm: {name:28} median {more:+7.2f} ms, least {most:+7.2f} ms", end="")
        print(f" beside SELECT 1 ({one:.2f}, {least:.2f})  aim <= 1.5", flush=True)
    server.close()


def main() -> None:
    """Run everything and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    quick = parser.parse_args().quick
    server = Server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(server.create("CREATE TABLE first_one (id int PRIMARY KEY)", name="bench"))
            url, made = server.address("bench"), 0
            config = Path(folder) / "dragoman.toml"
            config.write_text(CONFIGURATION.format(url=url))
            config.chmod(0o600)
            command = [sys.executable, "-m", "dragoman", "serve", "--config", str(config)]
            print(f"load of the machine at the start: {os.getloadavg()[0]:.1f} of {os.cpu_count()}")
            for size in SIZES:
                asyncio.run(grow(url, made, size))
                made = size
                cold(command, url, size, 4 if quick else 12)
                warm(command, size, 40 if quick else 200)
    finally:
        server.stop()


async def grow(url: str, made: int, size: int) -> None:
    connection = await asyncpg.connect(url)
    for start in range(made, size, 1_000):  # in portions: a transaction holds a lock for each table
        await connection.execute(TABLES.format(start + 1, min(start + 1_000, size)))
    await connection.execute("VACUUM ANALYZE pg_class, pg_attribute, pg_namespace, pg_constraint, pg_index")
    await connection.close()


if __name__ == "__main__":
    main()
