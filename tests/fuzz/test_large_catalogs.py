"""Catalogs of thousands of relations: whatever reads, lists and searches them, the event loop goes on meanwhile."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dragoman import Database, Gateway
from dragoman.tools import Toolbox
from pauses import failures, sqlite_file


def describing(count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls that read, list and search a catalog whose tables are numbered."""
    yield "list_tables", {}
    yield "list_tables", {"limit": count, "name_pattern": "%1%"}
    yield "list_tables", {"limit": 1000, "detail": "full"}
    yield "list_schemas", {}
    yield "search_catalog", {"query": "table 77"}
    yield "search_catalog", {"query": "value", "kinds": ["value", "column"]}
    yield "describe_table", {"table_name": [f"table_{number}" for number in range(1000)]}
    yield "describe_table", {"table_name": [f"tabel_{number}" for number in range(1000)], "detail": "full"}
    yield "find_join_path", {"from_table": "table_1", "to_table": "table_2"}
    yield "read_schema", {}
    yield "execute_query", {"sql": "SELECT * FROM tabel_1"}


def tables(count: int) -> Iterator[str]:
    """Tables that all refer to the first one."""
    yield "CREATE TABLE table_0 (id INTEGER PRIMARY KEY)"
    facts = ", ".join(f"fact_{number} INTEGER" for number in range(6))
    for number in range(1, count):
        yield f"CREATE TABLE table_{number} (id INTEGER, parent INTEGER REFERENCES table_0 (id), {facts})"


SIZES = [
    ("sqlite", 2_000),
    ("duckdb", 1_000),
    ("postgres", 2_000),
    *(pytest.param(dialect, 10_000, marks=pytest.mark.nightly) for dialect in ("sqlite", "duckdb", "postgres")),
]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("dialect", "count"), SIZES)
async def test_catalogs_of_thousands_of_relations_hold_nobody_up(
    dialect: str, count: int, tmp_path: Path, request: pytest.FixtureRequest
):
    database = await large(dialect, tables(count), tmp_path, request)
    # What was read is old at once, so that every call reads it again.
    async with Gateway.open([replace(database, catalog_ttl=0.001)]) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await toolbox.call("execute_query", {"sql": "SELECT 1"})
        assert not await failures(toolbox, describing(count))


async def large(dialect: str, statements: Iterator[str], folder: Path, request: pytest.FixtureRequest) -> Database:
    """A database that statements have filled."""
    if dialect == "sqlite":
        return sqlite_file(folder, "large", ";".join(statements) + ";")
    if dialect == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(folder / "large.duckdb")) as connection:
            connection.execute(";".join(statements))
        return Database(name="large", dialect="duckdb", database=str(folder / "large.duckdb"))
    testing = pytest.importorskip("dragoman_postgres.testing")
    server = testing.Server.start()
    request.addfinalizer(server.stop)
    while some := ";".join(itertools.islice(statements, 500)):
        await server.run(some)
    return server.configure("postgres", name="large")
