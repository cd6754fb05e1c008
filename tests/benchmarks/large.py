"""A kept result of very many rows as a client sees it: `python tests/benchmarks/large.py [--rows N] [--engine NAME]`.

A server process keeps narrow rows that the engine makes as they are read; a client that costs next to nothing asks
for pages meanwhile and afterwards, by `get_result` over stdio. It prints what the server's memory grew by and how long
pages took. Where the machine does other work too, look at the server's processor time.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
from dragoman_postgres.testing import Server
from raw_client import LEGACY, Stdio

PAGES = 2_000
SQL = {
    "duckdb": "SELECT range AS n FROM range({rows})",
    "postgres": "SELECT generate_series(1, {rows}) AS n",
    "sqlite": "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {rows}) SELECT n FROM s",
}


def configure(url: str, folder: Path) -> Path:
    """Write a configuration whose bounds let everything be kept."""
    path = folder / "dragoman.toml"
    most = 2**40
    path.write_text(
        f'[server]\ntools = ["standard", "results"]\n[results]\ndir = "{folder / "kept"}"\nmax_rows = {most}\n'
        f"max_bytes = {most}\nmax_bytes_per_caller = {most}\ntimeout = 7200\n"
        f'[databases.big]\nurl = "{url}"\ntimeout = 7200\n',
        encoding="utf-8",
    )
    return path


def ask(server: Stdio, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool answers."""
    told = server.request("tools/call", {"name": tool, "arguments": arguments})["result"]
    answer: dict[str, Any] = json.loads(told["content"][0]["text"])
    assert "error" not in answer or "rows" in answer, answer
    return answer


def measure(engine: str, url: str, rows: int, folder: Path) -> None:
    """Keep the rows, read pages while they come and when all are there."""
    command = [sys.executable, "-m", "dragoman", "serve", "--config", str(configure(url, folder))]
    server = Stdio(command, LEGACY)
    try:
        ask(server, "execute_query", sql="SELECT 1 AS n")
        before = peak = server.memory()
        begun, used = time.perf_counter(), server.cpu()
        ask(server, "execute_query", sql=SQL[engine].format(rows=rows), keep="all", limit=1)
        while True:
            page = ask(server, "get_result", result="all", limit=1)
            peak = max(peak, server.memory())
            if page["status"] != "running":
                break
            time.sleep(0.05)
        seconds, worked = time.perf_counter() - begun, server.cpu() - used
        assert (page["status"], page["total_rows"]) == ("complete", rows), page
        size = sum(path.stat().st_size for path in (folder / "kept").rglob("*.rows"))
        print(
            f"{engine}: {rows:,} rows, {size / 2**20:,.0f} MiB kept in {seconds:.0f} s, {worked:.0f} s of the server's"
            f" processor; memory {before:.0f} MiB before, +{peak - before:.0f} MiB at most",
            flush=True,
        )
        pages(server, rows)
        print(f"memory after {PAGES} pages: +{server.memory() - before:.0f} MiB; load {os.getloadavg()[0]:.1f}")
    finally:
        server.close()


def pages(server: Stdio, rows: int) -> None:
    """Read pages of a hundred rows anywhere, and see that they are those that stand there."""
    chance = random.Random(1)
    walls, works, undelayed = list[float](), list[float](), list[float]()
    for _ in range(PAGES):
        offset = chance.randrange(rows - 100)
        (ran, waited), begun = server.ran_and_waited(), time.perf_counter()
        page = ask(server, "get_result", result="all", offset=offset, limit=100)
        wall, (ran_then, waited_then) = time.perf_counter() - begun, server.ran_and_waited()
        first = page["rows"][0][0]
        assert [row[0] for row in page["rows"]] == [*range(first, first + 100)], offset
        assert first - offset in (0, 1)
        walls.append(wall)
        works.append(ran_then - ran)
        undelayed.append(max(wall - (waited_then - waited), 0))
    print(f"pages of 100 rows anywhere, {PAGES} of them (aim: p99 < 20 ms); load {os.getloadavg()[0]:.1f}")
    tell("wall time at the client", walls)
    tell("less what the server waited for a processor", undelayed)
    tell("processor time of the server", works)


def tell(what: str, taken: list[float]) -> None:
    """Print how long half of the pages took at most, 99 of 100, and all."""
    taken.sort()
    middle, high, longest = statistics.median(taken), taken[int(len(taken) * 0.99)], taken[-1]
    print(f"  {what:44} p50 {middle * 1e3:6.2f}  p99 {high * 1e3:6.2f}  longest {longest * 1e3:6.2f} ms", flush=True)


async def main(engine: str, rows: int) -> None:
    """Measure one engine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if engine == "postgres":
            server = Server.start()
            try:
                measure(engine, server.address(await server.create("")), rows, folder)
            finally:
                server.stop()
            return
        path = folder / f"big.{engine}"
        if engine == "duckdb":
            duckdb.connect(str(path)).close()
        else:
            path.touch()
        measure(engine, f"{engine}:///{path}", rows, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--engine", choices=SQL, default="duckdb")
    given = parser.parse_args()
    asyncio.run(main(given.engine, given.rows))
