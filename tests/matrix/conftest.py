"""Three databases with the same generated data, behind one gateway: what is asked of one is asked of another."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from dragoman import Database, Gateway
from dragoman_postgres.testing.server import Server as Postgres
from dragoman_postgres.testing.server import installations
from dragoman_trino.testing.fixtures import trino_server
from tpch import TABLES

__all__ = ["trino_server"]

# Its own for every run: several may share one server.
CATALOG = f"tpch_matrix_{os.getpid()}"
_CREATE = f"""CREATE CATALOG {CATALOG} USING tpch WITH ("tpch.column-naming" = 'STANDARD',
"tpch.double-type-mapping" = 'DECIMAL', "tpch.splits-per-node" = '2')"""


@pytest.fixture(scope="session")
async def gateway(trino_server, tmp_path_factory, anyio_backend) -> AsyncGenerator[Gateway]:
    """A gateway over the three, each with TPC-H's tables at scale 0.01 and the same rows."""
    if not installations():
        pytest.skip("no PostgreSQL server: install dragoman-postgres[embedded]")
    await trino_server.run(_CREATE)
    postgres = Postgres.start()
    try:
        rows = {table: await trino_server.run(f"SELECT * FROM {CATALOG}.tiny.{table}") for table in TABLES}
        folder: Path = tmp_path_factory.mktemp("matrix")
        fill_sqlite(folder / "tpch.db", rows)
        name = await postgres.create()
        await fill_postgres(postgres.configure(name), rows)
        databases = [
            Database(name="sqlite", dialect="sqlite", database="tpch.db", folder=folder),
            replace(postgres.configure(name), name="postgres"),
            replace(trino_server.configure(CATALOG, "tiny"), name="trino"),
        ]
        async with Gateway.open([replace(database, max_bytes=10_000_000) for database in databases]) as opened:
            yield opened
    finally:
        postgres.stop()
        await trino_server.run(f"DROP CATALOG {CATALOG}")


def fill_sqlite(file: Path, rows: dict[str, list[list[Any]]]) -> None:
    connection = sqlite3.connect(file)
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {table} ({columns})")
        places = ", ".join("?" * len(columns.split(", ")))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", map(_for_sqlite, rows[table]))
    connection.execute("CREATE INDEX lineitem_orders ON lineitem (l_orderkey)")
    connection.execute("CREATE INDEX lineitem_parts ON lineitem (l_partkey, l_suppkey)")
    connection.execute("CREATE INDEX orders_customers ON orders (o_custkey)")
    connection.execute("ANALYZE")
    connection.commit()
    connection.close()


def _for_sqlite(row: Sequence[Any]) -> list[Any]:
    return [float(v) if isinstance(v, Decimal) else v if isinstance(v, int | None) else str(v) for v in row]


async def fill_postgres(database: Database, rows: dict[str, list[list[Any]]]) -> None:
    connection = await asyncpg.connect(
        host=database.host, port=database.port, user=database.user, database=database.database
    )
    for table, columns in TABLES.items():
        await connection.execute(f"CREATE TABLE {table} ({columns})")
        await connection.copy_records_to_table(table, records=rows[table])
    await connection.execute("CREATE INDEX ON lineitem (l_orderkey); CREATE INDEX ON lineitem (l_partkey, l_suppkey)")
    await connection.execute("CREATE INDEX ON orders (o_custkey); ANALYZE")
    await connection.close()
