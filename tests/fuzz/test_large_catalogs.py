"""Catalogs of thousands of relations: whatever reads, lists and searches them, the event loop goes on meanwhile."""

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from dragoman import Database, Gateway, Relation, Table, TableColumn
from dragoman.access import Permission
from dragoman.catalog.mentions import Comments
from dragoman.tools import Toolbox
from pauses import MOST, failures, paused, sqlite_file, unit


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
    yield "describe_table", {"table_name": [f"table_1{number}" for number in range(1000)], "detail": "full"}
    yield "read_schema", {}
    yield "read_schema", {"format": "json"}
    yield "read_resource", {"uri": "schema://large"}
    yield "execute_query", {"sql": "SELECT * FROM tabel_1"}


def tables(count: int, referring: int | None = None) -> Iterator[str]:
    """Tables that all refer to the first one, or `referring` of them to each that is referred to."""
    facts = ", ".join(f"fact_{number} INTEGER" for number in range(6))
    for number in range(count):
        parent = number - number % (referring or count)
        if parent == number:
            yield f"CREATE TABLE table_{number} (id INTEGER PRIMARY KEY)"
        else:
            yield f"CREATE TABLE table_{number} (id INTEGER, parent INTEGER REFERENCES table_{parent} (id), {facts})"


def commented(count: int) -> Iterator[str]:
    """The same on Postgres, with comments, defaults, checks and indexes that callers with a part do not all see."""
    yield "CREATE TABLE table_0 (id INTEGER PRIMARY KEY)"
    facts = ", ".join(f"fact_{number} INTEGER DEFAULT {number} CHECK (fact_{number} >= 0)" for number in range(6))
    words = "the table of customers and of orders, with a region, a branch and a day; " * 3
    for number in range(1, count):
        yield f"CREATE TABLE table_{number} (id INTEGER, parent INTEGER REFERENCES table_0 (id), {facts})"
        yield f"COMMENT ON TABLE table_{number} IS '{words}'"
        yield f"COMMENT ON COLUMN table_{number}.fact_1 IS '{words}'"
        yield f"COMMENT ON COLUMN table_{number}.fact_4 IS '{words}'"


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
    # To read a file, DuckDB takes time with the square of the tables that refer to one: 10 s for 1,000.
    statements = tables(count, referring=50 if dialect == "duckdb" else None)
    database = await large(dialect, statements, tmp_path, request)
    # What was read is old at once, so that every call reads it again.
    async with Gateway.open([replace(database, catalog_ttl=0.001)]) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await toolbox.call("execute_query", {"sql": "SELECT 1"})
        assert not await failures(toolbox, describing(count))


ROLES = """
[server]
state_dir = "state"

[databases.large]
url = "URL"

[roles.reader]
principals = ["*"]
[[roles.reader.grants]]
database = "large"
tables = ["SCHEMA.table_0", "SCHEMA.table_1*", "SCHEMA.t*_2*", "SCHEMA.*_3*"]
deny = ["SCHEMA.*_13*"]
deny_columns = ["SCHEMA.table_2.fact_1", "SCHEMA.table_3.*_2"]
masks = { "SCHEMA.table_1.fact_3" = "null" }
"""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("dialect", "count"),
    [
        ("sqlite", 2_000),
        ("postgres", 2_000),
        *(pytest.param(dialect, 10_000, marks=pytest.mark.nightly) for dialect in ("sqlite", "postgres")),
    ],
)
async def test_callers_with_a_part_of_thousands_of_relations_hold_nobody_up(
    dialect: str, count: int, tmp_path: Path, request: pytest.FixtureRequest
):
    statements = commented(count) if dialect == "postgres" else tables(count)
    database = await large(dialect, statements, tmp_path, request)
    url, schema = ("sqlite:///large.db", "main") if dialect == "sqlite" else (address(database), "public")
    configuration = tmp_path / "dragoman.toml"
    configuration.write_text(ROLES.replace("URL", url).replace("SCHEMA", schema))

    async def first_pauses() -> list[float]:
        """How long the first calls of a server keep the loop: it decides about all, and loads what it knew."""
        async with Gateway.open(configuration) as gateway:
            toolbox = Toolbox(gateway, profile="full")
            answer, longest = await paused(toolbox.call("describe_table", {"table_name": ["table_1", "table_2"]}))
            assert json.loads(answer.text)["tables"]["table_1"]
            assert "fact_1 " not in str(json.loads(answer.text)["tables"]["table_2"])
            values, second = await paused(toolbox.call("search_catalog", {"query": "value", "kinds": ["value"]}))
            assert not values.is_error
            assert not await failures(toolbox, describing(count))
            return [longest, second]

    pauses = [await first_pauses() for _ in range(3)]
    assert max(map(min, zip(*pauses, strict=True))) < MOST * unit()


CONFINING = """
[databases.large]
url = "sqlite:///large.db"

[roles.reader]
principals = ["*"]
[[roles.reader.grants]]
database = "large"
tables = ["main.*"]
filter = "id > 0"
"""


async def test_a_check_of_roles_that_confine_thousands_of_relations_holds_nobody_up(tmp_path: Path):
    sqlite_file(tmp_path, "large", ";".join(tables(2_000)) + ";")
    configuration = tmp_path / "dragoman.toml"
    configuration.write_text(CONFINING)
    async with Gateway.open(configuration) as gateway:
        opened = gateway.database("large")
        snapshot, fit = await opened.catalog.snapshot(), opened.fitting(gateway.roles.everything("large"))
        checks = [await paused(fit.problems(snapshot)) for _ in range(3)]
        assert [problems for problems, _ in checks] == [[]] * 3
        assert min(longest for _, longest in checks) < MOST * unit()


def described(number: int) -> Table:
    """A table with a comment that has the first word of thousands of names, and names none of them."""
    return Table(
        relation=Relation(f"order_{number}", "main"),
        type="table",
        comment=f"An order of a customer, an order again, {number}" * 20,
        columns=(TableColumn(name="id", type="int", nullable=False),),
    )


def seconds_to_prune(hidden: int) -> float:
    """How long it takes to look for the names of many hidden relations in the comments of a few others."""
    shown = [described(number) for number in range(20)]
    others = [described(number) for number in range(100_000, 100_000 + hidden)]
    permission = Permission(columns=("id",), whole=True, named=False)
    comments = Comments([*shown, *others], {table.relation: permission for table in shown})

    def once() -> float:
        began = time.thread_time()
        assert [comments.prune(table).comment for table in shown] == [table.comment for table in shown]
        return time.thread_time() - began

    return min(once() for _ in range(5))


def test_how_long_comments_take_does_not_grow_with_what_is_hidden():
    assert seconds_to_prune(5_000) < 20 * seconds_to_prune(5)


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


def address(database: Database) -> str:
    """The URL of a Postgres database on a socket."""
    return f"postgresql://{database.user}@{quote(database.host or '', safe='')}/{database.database}"
