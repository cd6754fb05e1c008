"""What the MCP edge costs, in ratios, in one run: `uv run python tests/benchmarks/edge.py [--quick]`.

A bare driver, the SDK's own floor and dragoman take turns on one Postgres, over stdio and HTTP and in both eras of the
protocol, with a client that speaks plain bytes. Figures are medians; on a shared machine trust the ratios.
"""

import argparse
import asyncio
import functools
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
from dragoman_postgres.testing import Server
from raw_client import ENVIRON, LEGACY, MODERN, Http, Stdio, call, message, per_second

FLOOR = str(Path(__file__).with_name("sdk_server.py"))
ONE = "SELECT 1"
ROWS = "SELECT * FROM things ORDER BY id LIMIT {}"
LOOKUP = "SELECT * FROM things WHERE id = {}"
TABLE = """
CREATE TABLE things AS SELECT n AS id, 'note number ' || n AS note, n * 7 AS qty, (n * 1.25)::numeric(12,2) AS amount,
    n / 3.0::float8 AS price, now() + n * interval '1 s' AS placed, (date '2020-01-01' + n % 2000) AS day,
    n % 2 = 0 AS flag, gen_random_uuid() AS ref, jsonb_build_object('n', n, 'tags', array['a', 'b']) AS extra
FROM generate_series(1, 20000) AS n;
ALTER TABLE things ADD PRIMARY KEY (id);
ANALYZE things;
"""
CONFIGURATION = """
[server]
log_level = "warning"
[databases.shop]
url = "{url}"
pool_size = 8
max_bytes = 16000000
"""


@dataclass
class Measure:
    """One thing measured on several sides; `aim` is the most our ratio to `against` may be."""

    name: str
    against: str = "floor"
    aim: float | None = None
    least: bool = False
    unit: str = "ms"
    taken: dict[str, list[float]] = field(default_factory=dict)

    def add(self, side: str, value: float) -> None:
        self.taken.setdefault(side, []).append(value)

    def show(self) -> None:
        medians = {side: statistics.median(values) for side, values in self.taken.items()}
        scale = 1e3 if self.unit == "ms" else 1
        figures = "  ".join(f"{side} {value * scale:9.3f}" for side, value in medians.items())
        verdict = ""
        if self.against in medians and "ours" in medians:
            ratio = medians["ours"] / medians[self.against]
            verdict = f"x{ratio:5.2f}"
            if self.aim is not None:
                met = ratio >= self.aim if self.least else ratio <= self.aim
                verdict += f"  aim {'>=' if self.least else '<='} {self.aim}{'' if met else '  MISSED'}"
        elif self.aim is not None and "ours" in medians:
            met = medians["ours"] * scale <= self.aim
            verdict = f"aim <= {self.aim} {self.unit}{'' if met else '  MISSED'}"
        print(f"{self.name:40} {self.unit:5} {figures}  {verdict}", flush=True)


PARTS = ("start", "memory", "calls", "load")


class Bench:
    def __init__(self, url: str, folder: Path, quick: bool) -> None:
        self.url = url
        self.quick = quick
        config = folder / "dragoman.toml"
        config.write_text(CONFIGURATION.format(url=url))
        config.chmod(0o600)
        self.commands = {
            "floor": [sys.executable, FLOOR, url],
            "ours": [sys.executable, "-m", "dragoman", "serve", "--config", str(config)],
        }

    def rounds(self, many: int) -> int:
        return max(3, many // 10) if self.quick else many

    def http(self, side: str, *more: str) -> Http:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        extra = [str(port)] if side == "floor" else ["--transport", "http", "--port", str(port), *more]
        return Http([*self.commands[side], *extra], port)

    def start(self) -> None:
        """From the start of the process to the first tools, and what only tells of itself."""
        for era in (LEGACY, MODERN):
            first = Measure(f"start to tools/list, stdio {era}", aim=0.12)
            query = Measure(f"start to SELECT 1, stdio {era}")
            for turn in range(self.rounds(10) + 1):
                for side, command in self.commands.items():
                    server = Stdio(command, era)
                    assert "tools" in server.request("tools/list", {})["result"]
                    listed = time.perf_counter() - server.begun
                    assert "result" in server.request("tools/call", call(ONE))
                    if turn:  # the first one compiles
                        first.add(side, listed)
                        query.add(side, time.perf_counter() - server.begun)
                    server.close()
            first.show()
            query.show()
        for word in ("--version", "-h"):
            told = Measure(f"dragoman {word}", against="", aim=80)
            for _ in range(self.rounds(20)):
                for side, command in (("python", ["-c", "pass"]), ("ours", ["-m", "dragoman", word])):
                    begun = time.perf_counter()
                    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, env=ENVIRON)
                    told.add(side, time.perf_counter() - begun)
            told.show()

    def memory(self) -> None:
        """What the process takes for a client of tools, and for one that needs the SDK for something else."""
        for era in (LEGACY, MODERN):
            server = Stdio(self.commands["ours"], era)
            server.request("tools/list", {})
            server.request("tools/call", call(ONE))
            tools = server.memory()
            server.request("no/such/method", {})
            server.request("tools/call", call(ONE))
            print(f"memory, stdio {era}: {tools:.1f} MiB for tools (aim <= 66), {server.memory():.1f} with the SDK")
            server.close()

    def calls(self) -> None:
        """One call after the other: time, processor time, big results and memory."""
        for era in (LEGACY, MODERN):
            servers = {side: Stdio(command, era) for side, command in self.commands.items()}
            for server in servers.values():
                server.request("tools/list", {})
            exchanges = {side: server.exchange for side, server in servers.items()}
            self._compare(f"stdio {era}", era, servers, exchanges, lambda _, body: body, 0.3)
        for era in (LEGACY, MODERN):
            servers = {side: self.http(side) for side in self.commands}
            connections = {side: server.connect() for side, server in servers.items()}
            exchanges = {side: each.exchange for side, each in connections.items()}
            heads = {side: functools.partial(each.head, era) for side, each in connections.items()}
            self._compare(f"HTTP {era}", era, servers, exchanges, lambda side, body, to=heads: to[side](body), 0.4)

    def _compare(
        self,
        face: str,
        era: str,
        servers: dict[str, Any],
        exchanges: dict[str, Callable[[bytes], bytes]],
        framed: Callable[[str, bytes], bytes],
        aim: float,
    ) -> None:
        one, cpu = Measure(f"SELECT 1, {face}", aim=aim), Measure(f"processor per call, {face}", "", 0.35)
        requests = {side: framed(side, message(era, "tools/call", call(ONE))) for side in servers}
        for side, exchange in exchanges.items():
            for _ in range(20):
                answer = exchange(requests[side])
                assert b'isError":true' not in answer, answer
                assert b"structuredContent" in answer, answer
        idle = {side: server.memory() for side, server in servers.items()}
        for _ in range(self.rounds(20)):
            for side, exchange in exchanges.items():
                before = servers[side].cpu()
                for _ in range(50):
                    begun = time.perf_counter()
                    exchange(requests[side])
                    one.add(side, time.perf_counter() - begun)
                cpu.add(side, (servers[side].cpu() - before) / 50)
        one.show()
        cpu.taken = {side: [statistics.mean(values)] for side, values in cpu.taken.items()}
        cpu.show()
        asyncio.run(self._rows(face, era, exchanges, framed))
        memory = Measure(f"memory after, {face}", "", unit="MiB")
        for side, server in servers.items():
            memory.add(f"{side} idle", idle[side])
            memory.add(side, server.memory())
        memory.show()
        grown = memory.taken["ours"][0] - idle["ours"]
        print(f"{'':40}       idle {idle['ours']:.1f} (aim <= 66 over stdio), grown {grown:+.1f} (aim <= 20)")
        for server in servers.values():
            server.close()

    async def _rows(
        self,
        face: str,
        era: str,
        exchanges: dict[str, Callable[[bytes], bytes]],
        framed: Callable[[str, bytes], bytes],
    ) -> None:
        connection = await asyncpg.connect(self.url)
        encode = msgspec.json.Encoder().encode
        for rows, rounds, aim in ((1_000, 30, 1.5), (10_000, 12, 1.6)):
            many = Measure(f"{rows:,} rows x 10 columns, {face}", against="driver", aim=aim)
            sql = ROWS.format(rows)
            request = message(era, "tools/call", call(sql, limit=rows))
            for turn in range(self.rounds(rounds) + 2):
                begun = time.perf_counter()
                encode([tuple(row) for row in await connection.fetch(sql)])
                taken = {"driver": time.perf_counter() - begun}
                for side, exchange in exchanges.items():
                    framed_request = framed(side, request)
                    begun = time.perf_counter()
                    answer = exchange(framed_request)
                    taken[side] = time.perf_counter() - begun
                    assert len(answer) > rows * 100, answer[:300]
                for side, seconds in taken.items() if turn >= 2 else ():
                    many.add(side, seconds)
            many.show()
        await connection.close()

    def load(self) -> None:
        """Lookups a second."""
        bodies = {
            era: [message(era, "tools/call", call(LOOKUP.format(n)), n) for n in range(1, 200)]
            for era in (LEGACY, MODERN)
        }
        for era in (LEGACY, MODERN):
            servers = {side: self.http(side) for side in self.commands}
            for clients in (8, 32):
                rate = Measure(f"lookups a second, {clients} clients, HTTP {era}", aim=3.5, least=True, unit="/s")
                cpu = Measure(f"processor per lookup, {clients} clients", "", 0.35)
                for _ in range(self.rounds(5)):
                    for side, server in servers.items():
                        before = server.cpu()
                        rate.add(side, per_second(server, era, clients, bodies[era], 0.5 if self.quick else 1.5))
                        spent = server.cpu() - before
                        cpu.add(side, spent / (rate.taken[side][-1] * (0.5 if self.quick else 1.5)))
                rate.show()
                cpu.show()
            for server in servers.values():
                server.close()


def main() -> None:
    """Run everything and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    parser.add_argument("--only", choices=PARTS, help="one part")
    given = parser.parse_args()
    server = Server.start()
    try:
        asyncio.run(server.create(TABLE, name="bench"))
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(server.address("bench"), Path(folder), given.quick)
            print(f"load of the machine at the start: {os.getloadavg()[0]:.1f} of {os.cpu_count()}")
            for part in PARTS:
                if given.only in (None, part):
                    getattr(bench, part)()
            print(f"load of the machine at the end: {os.getloadavg()[0]:.1f} of {os.cpu_count()}, ours included")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
