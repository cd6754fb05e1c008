"""Keys of the configuration, where the engine knows none: views everywhere, and every table of a lake."""

import json
import sqlite3

import pytest
from dragoman import Database, DeclaredKey, Gateway
from dragoman.tools import Toolbox
from dragoman_postgres.testing.server import Server as Postgres
from dragoman_postgres.testing.server import installations
from dragoman_trino.testing.fixtures import trino_server

__all__ = ["trino_server"]

VIEWS = (
    "CREATE VIEW buyers AS SELECT 1 AS region, 7 AS number, 'Ada' AS name",
    "CREATE VIEW sales AS SELECT 10 AS id, 1 AS region, 7 AS buyer UNION ALL SELECT 11, 1, 7",
)
KEYS = (
    DeclaredKey("buyers", ("region", "number")),
    DeclaredKey("SALES", ("region", "buyer"), "buyers"),
    DeclaredKey("sales", ("id",)),
    DeclaredKey("sales", ("nothing",), "buyers", ("number",)),
)


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    connection = sqlite3.connect(folder / "shop.db")
    connection.executescript(";".join(VIEWS))
    connection.close()
    return Database(name="shop", dialect="sqlite", database="shop.db", folder=folder, keys=KEYS)


@pytest.fixture(scope="module")
async def on_postgres(anyio_backend):
    if not installations():
        pytest.skip("no PostgreSQL server: install dragoman-postgres[embedded]")
    server = Postgres.start()
    yield server.configure(await server.create(";".join(VIEWS)), name="shop", keys=KEYS)
    server.stop()


@pytest.fixture(scope="module")
async def on_trino(trino_server, anyio_backend):
    async with trino_server.schema() as schema:
        await trino_server.run(*VIEWS, schema=schema)
        yield trino_server.configure(*schema.split("."), name="shop", schemas=(schema,), keys=KEYS)


@pytest.fixture(params=["sqlite", "postgres", "trino"])
def database(request):
    """The same two views on each engine."""
    return request.getfixturevalue(f"on_{request.param}")


@pytest.fixture
async def toolbox(database):
    async with Gateway.open([database]) as gateway:
        yield Toolbox(gateway)


async def ask(toolbox, tool, **arguments):
    answer = await toolbox.call(tool, arguments)
    assert not answer.is_error, answer.text
    return json.loads(answer.text)


async def test_describe_table_shows_them(toolbox):
    described = (await ask(toolbox, "describe_table", table_name=["sales", "buyers"]))["tables"]
    sales, buyers = described["sales"], described["buyers"]
    assert [line.split()[-1] for line in buyers if "PK" in line] == ["PK1", "PK2"]
    assert [line.split()[0] for line in sales if "PK" in line] == ["id"]
    assert sales[-1] == "(region, buyer) -> buyers(region, number)"


async def test_get_foreign_keys_tells_them_from_both_ends(toolbox):
    schema = (await ask(toolbox, "list_schemas"))["schemas"][0]["name"]
    known = {
        "from_schema": schema,
        "from_table": "sales",
        "from_columns": ["region", "buyer"],
        "to_schema": schema,
        "to_table": "buyers",
        "to_columns": ["region", "number"],
    }
    assert await ask(toolbox, "get_foreign_keys", table_name="sales") == {"outgoing": [known], "incoming": []}
    assert await ask(toolbox, "get_foreign_keys", table_name="buyers") == {"outgoing": [], "incoming": [known]}


async def test_the_sql_of_a_join_path_runs(toolbox):
    (path,) = (await ask(toolbox, "find_join_path", from_table="buyers", to_table="sales"))["paths"]
    result = await ask(toolbox, "execute_query", sql=path["sql"])
    assert sorted(row[-3:] for row in result["rows"]) == [[10, 1, 7], [11, 1, 7]]


async def test_a_key_that_names_nothing_is_told_of(toolbox):
    notices = (await ask(toolbox, "list_tables"))["notices"]
    assert [notice.startswith("A declared key of sales is not used: ") for notice in notices] == [True]
