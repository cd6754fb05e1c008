"""What the gateway costs, as ratios, in one run: `uv run python tests/benchmarks/bench.py`.

The two sides of every comparison take turns, so that a busy machine slows both. Medians are shown; trust the ratios.
"""

import asyncio
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from dragoman import Gateway

BARE = Path(__file__).with_name("bare_server.py")
LOOKUP = "SELECT id, note FROM orders WHERE id = 77"
ALL = "SELECT id, note, amount, placed FROM orders LIMIT {}"
BIG = "SELECT a.id, a.note, b.id AS other FROM orders AS a, orders AS b"
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


@dataclass
class Comparison:
    """Seconds of ours and of what it is compared with, taken in turns."""

    name: str
    aim: str
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    @property
    def medians(self) -> tuple[float, float]:
        return statistics.median(self.ours), statistics.median(self.theirs)

    def show(self) -> None:
        ours, theirs = self.medians
        print(f"{self.name:46} {ours * 1e3:9.3f} ms {theirs * 1e3:9.3f} ms  x{ours / theirs:5.2f}   {self.aim}")


def build(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT, amount REAL, placed TEXT)")
        rows = ((n, f"note {n}", n * 1.25, "2026-11-22 10:00:00") for n in range(1, 20_001))
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
    connection.close()


class StdioServer:
    """An MCP server process, spoken to in lines."""

    def __init__(self, *command: str) -> None:
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.request("initialize", INITIALIZE)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> Any:
        assert self.process.stdout is not None
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return msgspec.json.decode(self.process.stdout.readline())["result"]

    def call(self, **arguments: Any) -> Any:
        return self.request("tools/call", {"name": "execute_query", "arguments": arguments})

    def memory(self) -> float:
        """MiB of the process and of everything below it."""
        listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)
        rows = [tuple(map(int, line.split())) for line in listing.stdout.splitlines()]
        ours = {self.process.pid}
        for pid, parent, _ in sorted(rows):
            if parent in ours:
                ours.add(pid)
        return sum(size for pid, _, size in rows if pid in ours) / 1024

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


async def timed(action: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await action()
    return time.perf_counter() - begun


async def against_the_driver(path: Path) -> list[Comparison]:
    """The gateway beside the driver in this process, which fetches and encodes the same rows once."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    encode = msgspec.json.Encoder().encode
    comparisons: list[Comparison] = []
    async with Gateway.open(_configured(path)) as gateway:
        for rows, rounds, aim in ((1, 400, ""), (1_000, 100, ""), (10_000, 30, "<= 1.5")):
            sql = LOOKUP if rows == 1 else ALL.format(rows)

            async def driver(sql: str = sql) -> object:
                return encode(connection.execute(sql).fetchall())

            async def ours(sql: str = sql) -> object:
                return await gateway.query(None, sql, limit=10_000, max_bytes=10_000_000)

            name = "gateway : driver, primary key" if rows == 1 else f"gateway : driver, {rows:,} rows"
            comparison = Comparison(name, aim)
            for _ in range(5):
                await ours()
            for _ in range(rounds):
                comparison.theirs.append(await timed(driver))
                comparison.ours.append(await timed(ours))
            comparisons.append(comparison)
    connection.close()
    return comparisons


def _configured(path: Path) -> Any:
    from dragoman.config import load

    return load(urls=[f"shop=sqlite:///{path}"], environ={}, folder=path.parent)


def against_the_sdk(serve: list[str]) -> Comparison:
    """A whole MCP call over stdio, database included, beside one that the SDK answers with a constant."""
    comparison = Comparison("MCP call over stdio : SDK's bare server", "")
    ours, bare = StdioServer(*serve), StdioServer(sys.executable, str(BARE))
    for turn in range(420):
        for server, seconds in ((bare, comparison.theirs), (ours, comparison.ours)):
            begun = time.perf_counter()
            server.call(sql=LOOKUP)
            if turn >= 20:
                seconds.append(time.perf_counter() - begun)
    ours.close()
    bare.close()
    return comparison


def start(serve: list[str]) -> Comparison:
    """From the start of the process to the answer of `tools/list`, beside importing the SDK and nothing else."""
    comparison = Comparison("start to tools/list : import of the SDK", "<= 1.25")
    for _ in range(8):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import mcp.server"], check=True)
        comparison.theirs.append(time.perf_counter() - begun)
        server = StdioServer(*serve)
        server.request("tools/list", {})
        comparison.ours.append(time.perf_counter() - server.begun)
        server.close()
    return comparison


def memory(serve: list[str]) -> None:
    """RSS before and after answers that are cut from far more rows than fit."""
    server = StdioServer(*serve)
    server.call(sql=LOOKUP)
    before = server.memory()
    answer = [server.call(sql=BIG, limit=200_000) for _ in range(3)][-1]
    after = server.memory()
    server.close()
    rows = answer["structuredContent"]["row_count"]
    print(
        f"{'memory after 200,000 rows asked for, 3 times':46} {before:6.1f} -> {after:6.1f} MiB, {rows} rows answered"
    )


def main() -> None:
    """Run everything and print one line each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        build(path)
        serve = [sys.executable, "-m", "dragoman", "serve", f"shop=sqlite:///{path}"]
        print(f"{'':46} {'ours':>12} {'theirs':>12}  ratio   aim")
        driver = asyncio.run(against_the_driver(path))
        sdk = against_the_sdk(serve)
        for comparison in (*driver, sdk, start(serve)):
            comparison.show()
        (gateway, alone), (_, bare) = driver[0].medians, sdk.medians
        share = (gateway - alone) / bare
        print(f"{'what the gateway adds : SDK call of its own':46} {'':28} x{share:5.2f}   < 0.5")
        memory(serve)


if __name__ == "__main__":
    main()
