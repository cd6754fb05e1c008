"""What the plugin costs over the `trino` client: `uv run python plugins/trino/benchmarks/bench.py`.

Both sides of a comparison take turns in one run, so that a busy machine slows both. The baseline is a cursor of the
`trino` client in a thread, with the server's own texts as values (the faster of its two ways), one pass of encoding,
and cancelled when it has as many rows as are wanted. Medians are shown; trust the ratios.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

import msgspec
import trino
from dragoman import Gateway, Limits, Request
from dragoman_trino.executor import TrinoExecutor
from dragoman_trino.testing import Server

Action = Callable[[], Awaitable[object]]
encode = msgspec.json.Encoder().encode
CASES = (
    ("SELECT 1", "SELECT 1", 1000, 60),
    ("small select", "SELECT * FROM nation WHERE nationkey = 7", 1000, 60),
    ("10,000 rows of lineitem", "SELECT * FROM lineitem LIMIT 10000", 10_000, 20),
    ("100,000 rows of lineitem", "SELECT * FROM tpch.sf1.lineitem LIMIT 100000", 100_000, 5),
    ("100,000 rows asked, the default limit", "SELECT * FROM tpch.sf1.lineitem LIMIT 100000", 1000, 20),
)


async def compare(name: str, ours: Action, theirs: Action, rounds: int) -> None:
    """Run both in turns and print the medians and their ratio."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 3):
        for action, taken in zip((theirs, ours), times, strict=True):
            begun = time.perf_counter()
            await action()
            if turn >= 3:
                taken.append(time.perf_counter() - begun)
    base, own = (statistics.median(taken) for taken in times)
    print(f"{name:60} {own * 1e3:9.1f} ms {base * 1e3:9.1f} ms  x{own / base:5.2f}", flush=True)


class Watch:
    """The longest time the event loop was not there for others."""

    longest = 0.0

    async def run(self) -> None:
        """Look every millisecond."""
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            self.longest, last = max(self.longest, now - last - 0.001), now


def client(server: Server) -> trino.dbapi.Connection:
    """The client, used directly."""
    return trino.dbapi.connect(host=server.host, port=server.port, user="admin", catalog="tpch", schema="tiny")


def direct(connection: trino.dbapi.Connection, sql: str, limit: int) -> bytes:
    """What anyone would do at least."""
    cursor = connection.cursor(legacy_primitive_types=True)
    cursor.execute(sql)
    rows = cursor.fetchmany(limit + 1)
    if len(rows) > limit:
        cursor.cancel()
    return encode(rows)


async def rows(server: Server) -> None:
    """The executor, then the whole gateway, beside the client."""
    database = server.configure("tpch", "tiny", max_rows=200_000, max_bytes=50_000_000)
    executor = TrinoExecutor(database)
    connection = client(server)
    async with Gateway.open([database]) as gateway:
        for name, sql, limit, rounds in CASES:
            request = Request(statement=sql, limits=Limits(max_rows=limit, max_bytes=50_000_000))

            async def execute(request: Request = request) -> object:
                async with executor.open(request) as stream:
                    return [batch async for batch in stream.batches]

            async def query(sql: str = sql, limit: int = limit) -> object:
                return await gateway.query(None, sql, limit=limit, max_bytes=50_000_000)

            async def driver(sql: str = sql, limit: int = limit) -> object:
                return await asyncio.to_thread(direct, connection, sql, limit)

            await compare(f"executor : client, {name}", execute, driver, rounds)
            await compare(f"gateway : client, {name}", query, driver, rounds)
        watch = Watch()
        watching = asyncio.ensure_future(watch.run())
        for _ in range(3):
            await gateway.query(None, CASES[3][1], limit=100_000, max_bytes=50_000_000)
        watching.cancel()
        print(f"event loop away for at most {watch.longest * 1e3:.1f} ms while 100,000 rows are read")
    await executor.aclose()


async def many(server: Server) -> None:
    """Twenty callers at once, over five places and five connections."""
    executor = TrinoExecutor(server.configure("tpch", "tiny", pool_size=5))
    connections = [client(server) for _ in range(5)]
    free = asyncio.Semaphore(5)
    request = Request(statement=CASES[1][1])

    async def ours() -> None:
        async with executor.open(request) as stream:
            assert [batch async for batch in stream.batches]

    async def theirs() -> None:
        async with free:
            connection = connections.pop()
            await asyncio.to_thread(direct, connection, CASES[1][1], 1000)
            connections.append(connection)

    async def all_at_once(action: Callable[[], Awaitable[None]]) -> None:
        await asyncio.gather(*(action() for _ in range(20)))

    await compare("20 callers, five at a time", lambda: all_at_once(ours), lambda: all_at_once(theirs), 10)
    await executor.aclose()


async def run(server: Server) -> None:
    """Everything."""
    print(f"{'':60} {'ours':>12} {'theirs':>12}  ratio")
    await rows(server)
    await many(server)


def main() -> None:
    """Use the server of the first argument, or start one and stop it."""
    server = Server.at(sys.argv[1]) if len(sys.argv) > 1 else Server.start()
    try:
        asyncio.run(run(server))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
