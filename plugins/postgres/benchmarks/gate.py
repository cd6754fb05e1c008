"""What the gate costs over the grammar's own parse, as ratios: `uv run python plugins/postgres/benchmarks/gate.py`.

The whole gate is what the gateway does before a statement is sent: text guard, grammar, walk, and what the catalog has
told of the users' names. Every statement of the corpus that passes is judged beside one parse of it to Python objects,
in turns. Medians over statements are shown, of the best of some rounds each; trust the ratios.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

import pgparse
from dragoman import Gateway, Principal
from dragoman.gateway.judge import Judge
from dragoman.testing.corpus import cases, setup
from dragoman.validators import ReadOnly
from dragoman_postgres.connecting import Cluster
from dragoman_postgres.gate import PostgresGate
from dragoman_postgres.plugin import CatalogReader
from dragoman_postgres.search_path import SearchPath
from dragoman_postgres.testing import Server

TEXTS = [case.sql for case in cases("any") + cases("postgres") if case.allow]
ROUNDS = 15
CALLER = Principal("benchmark")

Action = Callable[[str], Awaitable[object]]


async def parsed(sql: str) -> object:
    """The baseline."""
    return pgparse.parse(sql)


async def nothing(sql: str) -> object:
    """What awaiting costs."""
    return None


async def taken(action: Action, sql: str) -> float:
    begun = time.perf_counter()
    await action(sql)
    return time.perf_counter() - begun


async def run(server: Server) -> None:
    """Everything, on a database with the corpus' tables."""
    database = server.configure(await server.create(setup("postgres")), catalog_ttl=3600.0)
    async with Gateway.open([database]) as gateway:
        opened = gateway.database()
        reader = CatalogReader(database, SearchPath.of(database), Cluster())
        checks = [ReadOnly(opened.dialect, database), PostgresGate(database, reader)]
        place = opened.dialect, database, opened.catalog, checks, opened.source, opened._offload
        best = {name: dict.fromkeys(TEXTS, float("inf")) for name in ("parse", "new", "seen before", "nothing")}
        for _ in range(ROUNDS):
            judge = Judge(*place)  # a database has one; this one has seen nothing

            async def judged(sql: str, judge: Judge = judge) -> object:
                return await judge.judge(sql, "execute_query", CALLER)

            actions: dict[str, Action] = {"parse": parsed, "new": judged, "seen before": judged, "nothing": nothing}
            for sql in TEXTS:
                for name, action in actions.items():
                    best[name][sql] = min(best[name][sql], await taken(action, sql))
        await reader.aclose()
    medians = {name: statistics.median(times.values()) * 1e6 for name, times in best.items()}
    base = medians["parse"] - medians["nothing"]
    print(f"{len(TEXTS)} statements; pgparse.parse {base:.1f} us; sqlglot was asked: {'sqlglot' in sys.modules}")
    for name, aim in (("new", 4.0), ("seen before", 0.4)):
        own = medians[name] - medians["nothing"]
        print(f"{name:12} {own:6.1f} us   x{own / base:.2f} of the parse   aim <= {aim}")


def main() -> None:
    """Start a server, run, stop it."""
    server = Server.start()
    try:
        asyncio.run(run(server))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
