"""What reading all catalogs costs beside the `trino` client used directly, as ratios.

`uv run python plugins/trino/benchmarks/introspection.py [--all]`; a running server is used when
DRAGOMAN_TEST_TRINO_URL names one. Both sides take turns in one run. The client asks of each catalog, one statement
after another, for its tables, its columns with comments, and its tables' comments, and keeps the rows. What many
programs do instead, SHOW COLUMNS of every table, is measured once. `--all`: with a thousand tables more.
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

import trino
from dragoman import Inspection, Scope
from dragoman_trino.client import Client
from dragoman_trino.inspector import TrinoInspector
from dragoman_trino.testing import Server
from dragoman_trino.testing.server import ENVIRONMENT

ROUNDS = 9
FEW = 500
"""Tables that can be asked about one by one in reasonable time."""
QUESTIONS = (
    "SELECT table_schema, table_name, table_type FROM {}.information_schema.tables",
    "SELECT table_schem, table_name, column_name, type_name, remarks FROM system.jdbc.columns WHERE table_cat = '{}'",
    "SELECT schema_name, table_name, comment FROM system.metadata.table_comments WHERE catalog_name = '{}'",
)

Action = Callable[[], Awaitable[object]]


class Direct:
    """The client as one would use it."""

    def __init__(self, server: Server) -> None:
        self._connection = trino.dbapi.connect(host=server.host, port=server.port, user=server.user)

    def rows(self, sql: str) -> list[list[str]]:
        """The rows of one statement."""
        return list(self._connection.cursor().execute(sql).fetchall())

    def everything(self, catalogs: list[str]) -> None:
        """The same questions, one after another."""
        for catalog in catalogs:
            for question in QUESTIONS:
                self.rows(question.format(catalog))

    def table_by_table(self, catalogs: list[str]) -> None:
        """The columns of every table by itself."""
        for catalog in catalogs:
            for schema, name, _ in self.rows(QUESTIONS[0].format(catalog)):
                self.rows(f'SHOW COLUMNS FROM {catalog}."{schema}"."{name}"')


async def taken(action: Action) -> float:
    """Seconds."""
    begun = time.perf_counter()
    await action()
    return time.perf_counter() - begun


async def compare(name: str, ours: Action, theirs: Action, rounds: int = ROUNDS) -> None:
    """Run both in turns and print the medians and their ratio."""
    pairs = [(await taken(theirs), await taken(ours)) for _ in range(rounds + 1)][1:]
    base, own = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{name:52} {own * 1e3:9.1f} ms {base * 1e3:9.1f} ms  x{own / base:5.2f}", flush=True)


async def run(server: Server) -> None:
    """Every comparison."""
    direct = Direct(server)
    database = server.configure("tpch", "tiny")
    client = Client(database)
    inspector = TrinoInspector(database, client)
    catalogs = [row[0] for row in direct.rows("SELECT catalog_name FROM system.metadata.catalogs")]

    async def ours() -> Inspection:
        await inspector.schemas()
        return await inspector.tables(Scope())

    async def theirs() -> None:
        await asyncio.to_thread(direct.everything, catalogs)

    async def one_by_one() -> None:
        await asyncio.to_thread(direct.table_by_table, catalogs)

    count = len((await ours()).tables)
    print(f"{'':52} {'ours':>12} {'client':>12}  ratio")
    await compare(f"{len(catalogs)} catalogs, {count} tables : the same in bulk", ours, theirs)
    if count < FEW:
        await compare(f"{len(catalogs)} catalogs, {count} tables : table by table", ours, one_by_one, 1)
    await client.aclose()


async def many(server: Server, tables: int) -> None:
    """With a schema of many tables."""
    async with server.schema() as schema:
        columns = ", ".join(f"c{number} varchar COMMENT 'What it holds'" for number in range(10))
        for start in range(0, tables, 100):
            await server.run(*(f"CREATE TABLE t{start + n} (id bigint, {columns})" for n in range(100)), schema=schema)
        await run(server)


async def measure(server: Server) -> None:
    """What was asked for on the command line."""
    await run(server)
    if "--all" in sys.argv:
        await many(server, 1_000)


def main() -> None:
    """Use the environment's server, or start one and stop it."""
    url = os.environ.get(ENVIRONMENT)
    server = Server.at(url) if url else Server.start()
    try:
        asyncio.run(measure(server))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
