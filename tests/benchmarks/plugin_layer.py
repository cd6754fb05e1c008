"""What the plugin layer costs when a statement runs: the executor a plugin makes, and the one the gateway was given.

    python tests/benchmarks/plugin_layer.py [--rounds 40]

Both answer without a database, so that nothing hides the difference. Also: what a watched call costs.
"""

import argparse
import asyncio
import statistics
import time
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint

import pluggy
from dragoman import (
    CONTRACT,
    Capability,
    Column,
    Database,
    Dialect,
    DialectPlugin,
    Encoded,
    Executor,
    Gateway,
    Inspection,
    Inspector,
    Kind,
    Request,
    RowStream,
    Rules,
    hookimpl,
)
from dragoman.gateway.watchdog import Watchdog
from dragoman.plugins import Plugins
from dragoman.plugins import plugins as layer

ANSWER = Encoded(b"[1]", 1)
COLUMNS = [Column("a", "integer", Kind("integer"))]
AT_ONCE = 2000


class Constant(Executor):
    """Answers every query with one row."""

    @asynccontextmanager
    async def open(self, request):
        async def batches():
            yield ANSWER

        yield RowStream(COLUMNS, batches())


class Empty(Inspector):
    async def version(self):
        return "1"

    async def schemas(self):
        return []

    async def tables(self, scope):
        return Inspection(())


class Plugin(DialectPlugin):
    dialect = Dialect(
        name="constant",
        contract=CONTRACT,
        sqlglot="sqlite",
        capabilities=frozenset({Capability.READ_ONLY_SESSION}),
        rules=Rules(functions=frozenset()),
    )

    @hookimpl
    def executor(self, database):
        return Constant()

    @hookimpl
    def inspector(self, database, executor):
        return Empty()


async def read(executor: Executor) -> None:
    async with executor.open(Request(statement="SELECT 1 AS a")) as stream:
        async for _ in stream.batches:
            pass


async def microseconds(work) -> float:
    """The mean of one round."""
    began = time.perf_counter()
    for _ in range(AT_ONCE):
        await work()
    return (time.perf_counter() - began) / AT_ONCE * 1e6


class Calls:
    """How often pluggy is called."""

    def __init__(self) -> None:
        self.count = 0

    def begun(self, *told: object) -> None:
        self.count += 1


def installed(calls: Calls) -> Plugins:
    """The plugins of this process, the constant one among them, as if it had come from a distribution."""
    plugins = Plugins.discover()
    point = EntryPoint("constant", "plugin_layer:plugin", layer.DIALECTS)
    plugins._entry_points = {**plugins._entry_points, "constant": [point]}
    plugins._register(plugin, point)
    plugins._loaded["constant"] = plugin
    plugins._manager.add_hookcall_monitoring(calls.begun, lambda *told: None)
    return plugins


async def main(rounds: int) -> None:
    calls = Calls()
    gateway = Gateway(_configuration(), installed(calls))
    direct, built = Constant(), gateway.database().executor
    opened = calls.count
    figures = {
        "executor as the plugin makes it": lambda: read(direct),
        "executor as the gateway has it": lambda: read(built),
        "Gateway.query, all of it": lambda: gateway.query(None, "SELECT 1 AS a"),
    }
    taken = {name: [] for name in figures}
    for _ in range(rounds):
        for name, work in figures.items():
            taken[name].append(await microseconds(work))
    for name, values in taken.items():
        low, middle, high = (statistics.quantiles(values, n=20)[place] for place in (0, 9, 18))
        print(f"{name:34} {middle:8.2f} us   (5% {low:.2f}, 95% {high:.2f})")
    print(
        f"pluggy {pluggy.__version__}: {opened} hook calls to open the database, {calls.count - opened} in all queries"
    )
    await watched(gateway)
    await gateway._close()


async def watched(gateway: Gateway) -> None:
    watchdog = Watchdog(gateway.plugins.culprit)
    watchdog.wake()
    began = time.perf_counter()
    for _ in range(AT_ONCE * 50):
        watchdog.under_way += 1
        if watchdog.asleep:
            watchdog.wake()
        watchdog.under_way -= 1
    print(f"{'to be watched, per call':34} {(time.perf_counter() - began) / AT_ONCE / 50 * 1e6:8.2f} us")
    watchdog.close()


def _configuration():
    from dragoman.config import Configuration

    return Configuration(databases={"x": Database(name="x", dialect="constant")})


plugin = Plugin()

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    asyncio.run(main(parser.parse_args().rounds))
