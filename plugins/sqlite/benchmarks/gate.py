"""What the gate costs over SQLite's own compiling, as ratios: `uv run python plugins/sqlite/benchmarks/gate.py`.

The gate here is what the gateway does before a statement is sent to the worker, whose authorizer judges it again while
SQLite compiles it. Every statement of the corpus that passes is judged beside one compilation of it, in turns. Medians
over statements are shown, of the best of some rounds each; trust the ratios.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
from dragoman import Database, Gateway, Principal
from dragoman.gateway.judge import Judge
from dragoman.testing.corpus import cases, setup
from dragoman.validators import ReadOnly

TEXTS = [case.sql for case in cases("any") + cases("sqlite") if case.allow]
ROUNDS = 15
CALLER = Principal("benchmark")

Action = Callable[[str], Awaitable[object]]


async def nothing(sql: str) -> object:
    """What awaiting costs."""
    return None


async def taken(action: Action, sql: str) -> float:
    begun = time.perf_counter()
    await action(sql)
    return time.perf_counter() - begun


def compiler(path: Path) -> Action:
    """The baseline: SQLite compiles a statement and nothing runs; of one it cannot compile, as far as it comes."""
    connection = apsw.Connection(str(path), statementcachesize=0)
    connection.exec_trace = lambda *_: False

    async def compiled(sql: str) -> object:
        try:
            return connection.execute(sql)
        except apsw.Error:
            return None

    return compiled


async def run(folder: Path) -> None:
    """Everything, on a database with the corpus' tables."""
    database = Database(name="bench", dialect="sqlite", database="bench.db", folder=folder)
    connection = apsw.Connection(str(folder / "bench.db"))
    connection.execute(setup("sqlite"))
    connection.close()
    async with Gateway.open([database]) as gateway:
        opened = gateway.database()
        checks = [ReadOnly(opened.dialect, database)]
        place = opened.dialect, database, opened.catalog, checks, opened.source, opened._offload
        kept = Judge(*place)

        async def new(sql: str) -> object:
            return await Judge(*place).judge(sql, "execute_query", CALLER)

        async def again(sql: str) -> object:
            return await kept.judge(sql, "execute_query", CALLER)

        actions: dict[str, Action] = {
            "compile": compiler(folder / "bench.db"),
            "new": new,
            "seen before": again,
            "nothing": nothing,
        }
        best = {name: dict.fromkeys(TEXTS, float("inf")) for name in actions}
        for _ in range(ROUNDS):
            for sql in TEXTS:
                for name, action in actions.items():
                    best[name][sql] = min(best[name][sql], await taken(action, sql))
    medians = {name: statistics.median(times.values()) * 1e6 for name, times in best.items()}
    base = medians["compile"] - medians["nothing"]
    print(f"{len(TEXTS)} statements; SQLite compiles in {base:.1f} us; sqlglot was asked: {'sqlglot' in sys.modules}")
    for name, aim in (("new", 4.0), ("seen before", 0.4)):
        own = medians[name] - medians["nothing"]
        print(f"{name:12} {own:6.1f} us   x{own / base:.2f} of the compilation   aim <= {aim}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(run(Path(temporary)))
