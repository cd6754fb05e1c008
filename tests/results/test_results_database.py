"""The database `results`: kept results as tables of DuckDB's, each caller's own, judged again at every reading."""

import json
import sqlite3
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from dragoman import Database, Gateway, Principal
from dragoman.config import Configuration, Results, Server
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server as Postgres

ADA = Principal("user", issuer="https://id", subject="ada")
EVE = Principal("user", issuer="https://id", subject="eve")
SHOP = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, total TEXT);
INSERT INTO orders VALUES (1, 1, '12.50'), (2, 2, '0.10'), (3, 1, '0.20');
"""

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def patience(monkeypatch) -> None:
    """A busy machine does not make a small result a long one, which is no table yet."""
    monkeypatch.setattr("dragoman.kept.store.SOON", 60)


@pytest.fixture
def configuration(tmp_path) -> Configuration:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript(SHOP)
    connection.close()
    shop = Database(name="shop", dialect="sqlite", database="shop.db", folder=tmp_path)
    return Configuration(databases={"shop": shop}, results=Results(dir=tmp_path / "kept"))


async def ask(toolbox: Toolbox, tool: str, principal: Principal = ADA, **arguments):
    return json.loads((await toolbox.call(tool, arguments, principal=principal)).text)


async def keep(toolbox: Toolbox, name: str, sql: str, principal: Principal = ADA, **arguments):
    answer = await ask(toolbox, "execute_query", principal, sql=sql, keep=name, **arguments)
    assert "error" not in answer, answer
    return answer


async def test_kept_results_are_tables_that_join(configuration):
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        assert (await ask(toolbox, "execute_query", database="results", sql="SELECT 1"))["error"]["code"] == (
            "UNKNOWN_DATABASE"
        )
        await keep(toolbox, "orders", "SELECT id, customer, total FROM orders")
        await keep(toolbox, "customers", "SELECT 1 AS id, 'Ada' AS name UNION ALL SELECT 2, 'Zo\u00eb'")
        listed = await ask(toolbox, "list_databases")
        assert [(each["name"], each["dialect"]) for each in listed["databases"]] == [
            ("shop", "sqlite"),
            ("results", "duckdb"),
        ]
        joined = await ask(
            toolbox,
            "execute_query",
            database="results",
            sql="SELECT c.name, sum(o.total::DECIMAL(12, 2)) AS total"
            " FROM orders o JOIN customers c ON c.id = o.customer GROUP BY 1 ORDER BY 1",
        )
        assert joined["rows"] == [["Ada", "12.70"], ["Zo\u00eb", "0.10"]]
        tables = await ask(toolbox, "list_tables", database="results")
        assert {"orders", "customers"} <= set(json.dumps(tables).replace('"', " ").split())
        described = await ask(toolbox, "describe_table", database="results", table_name="orders")
        assert "customer" in json.dumps(described)
        plan = await ask(toolbox, "explain_query", database="results", sql="SELECT count(*) FROM orders")
        assert "error" not in plan
        assert str(configuration.results.dir) not in json.dumps([joined, tables, described, plan])


MOMENTS = [
    ("extract(hour FROM seen)", 23),
    ("CAST(CAST(seen AS DATE) AS VARCHAR)", "2026-07-01"),
    ("CAST(seen AS VARCHAR)", "2026-07-01 23:30:00+00"),
    ("seen < TIMESTAMP '2026-07-01 23:45:00'", True),
]


@pytest.mark.parametrize(("expression", "wanted"), MOMENTS)
async def test_a_moment_s_day_is_that_of_utc_wherever_the_server_runs(configuration, monkeypatch, expression, wanted):
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "one", "SELECT 1 AS id")
        moment = "TIMESTAMPTZ '2026-07-01 23:30:00+00'"
        await keep(toolbox, "moments", f"SELECT {moment} AS seen FROM one", database="results")
        answer = await ask(toolbox, "execute_query", database="results", sql=f"SELECT {expression} FROM moments")
        assert answer.get("rows") == [[wanted]], answer


BYTES = [
    ("h", "blob", [2, 0, None], True),
    ("max(h)", "blob", [2], True),
    ("substr(h, 1, 1)", "blob", [1, None, None], True),
    ("CASE id WHEN 1 THEN x'00ff' ELSE 'text' END", "varchar", [4, 4, 4], False),
    ("mixed", "varchar", [4, 4, 4], True),
    ("CAST(NULL AS BLOB)", "varchar", [None, None, None], False),
]


@pytest.mark.parametrize(("expression", "wanted", "lengths", "is_clear"), BYTES)
async def test_bytes_are_bytes_again_in_a_kept_result_and_texts_among_them_stay_texts(
    configuration, tmp_path, expression, wanted, lengths, is_clear
):
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript(
            "CREATE TABLE bits (id INTEGER, h BLOB, mixed BLOB);"
            "INSERT INTO bits VALUES (1, x'00ff', x'00ff'), (2, x'', 'text'), (3, NULL, 'AP8=')"
        )
    connection.close()
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "kept", f"SELECT {expression} AS h FROM bits")
        answer = await ask(toolbox, "execute_query", database="results", sql="SELECT typeof(h), length(h) FROM kept")
        if wanted == "blob":
            answer = await ask(
                toolbox, "execute_query", database="results", sql="SELECT typeof(h), octet_length(h) FROM kept"
            )
        assert answer["rows"] == [[wanted.upper(), length] for length in lengths]
        described = json.dumps(await ask(toolbox, "describe_table", database="results", table_name="kept"))
        assert ("as exact text" in described) == (is_clear and wanted == "varchar")


@pytest.mark.parametrize(
    "listed", ["sqlite_master", "duckdb_views", "pg_catalog.pg_views", "information_schema.views", "pg_settings"]
)
async def test_where_results_are_kept_is_told_by_no_list_of_the_engine(configuration, listed):
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "orders", "SELECT id FROM orders")
        told = await ask(toolbox, "execute_query", database="results", sql=f"SELECT * FROM {listed}")
        assert told["error"]["code"] == "UNSAFE_SQL"


async def test_the_default_database_stays_the_one_that_is_configured(configuration):
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "few", "SELECT id FROM orders WHERE id < 3")
        assert (await ask(toolbox, "execute_query", sql="SELECT count(*) AS n FROM orders"))["rows"] == [[3]]


async def test_a_caller_s_results_are_its_own(configuration):
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "mine", "SELECT id FROM orders")
        await keep(toolbox, "hers", "SELECT 7 AS n", EVE)
        for who, own, other in ((ADA, "mine", "hers"), (EVE, "hers", "mine")):
            assert "error" not in await ask(
                toolbox, "execute_query", who, database="results", sql=f"SELECT * FROM {own}"
            )
            refused = await ask(toolbox, "execute_query", who, database="results", sql=f"SELECT * FROM {other}")
            assert refused["error"]["code"] == "TABLE_NOT_FOUND"
        folders = list(configuration.results.dir.glob("process-*/tables-*"))
        assert [[path.stem for path in folder.iterdir()] for folder in folders] in (
            [["mine"], ["hers"]],
            [["hers"], ["mine"]],
        )
        assert all(folder.stat().st_mode & 0o077 == 0 for folder in folders)


async def test_a_table_that_lacks_rows_says_so_and_so_does_what_is_made_of_it(configuration):
    cut = replace(configuration, results=replace(configuration.results, max_rows=2))
    count = "SELECT count(*) AS n FROM"
    async with Gateway.open(cut) as gateway:
        await gateway.kept.adopt()
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "few", "SELECT id FROM orders")
        await keep(toolbox, "whole", "SELECT id FROM orders WHERE id < 3")
        await keep(toolbox, "counted", f"{count} Few", database="results")
        await keep(toolbox, "again", f'{count} "counted"', database="results")
        for name in ("few", "counted", "again"):
            answer = await ask(toolbox, "execute_query", database="results", sql=f"SELECT * FROM {name}")
            assert any("few is not the whole answer" in notice for notice in answer.get("notices", ())), name
        answer = await ask(toolbox, "execute_query", database="results", sql=f"{count} whole")
        assert answer["rows"] == [[2]]
        assert "notices" not in answer
        exported = await ask(toolbox, "export_result", database="results", sql=f"{count} few", format="csv")
        assert "few is not the whole answer" in json.dumps(exported)
    async with Gateway.open(cut) as gateway:
        await gateway.kept.adopt()
        answer = await ask(Toolbox(gateway, profile="full"), "execute_query", database="results", sql=f"{count} again")
        assert "few is not the whole answer" in json.dumps(answer)


async def test_a_dropped_result_is_no_table_any_more_and_a_replaced_one_is_the_new(configuration):
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "a", "SELECT 1 AS n")
        await keep(toolbox, "b", "SELECT 2 AS n")
        read = "SELECT n FROM a"
        assert (await ask(toolbox, "execute_query", database="results", sql=read))["rows"] == [[1]]
        await keep(toolbox, "a", "SELECT 3 AS n, 4 AS m")
        assert (await ask(toolbox, "execute_query", database="results", sql=read))["rows"] == [[3]]
        assert (await ask(toolbox, "execute_query", database="results", sql="SELECT m FROM a"))["rows"] == [[4]]
        await ask(toolbox, "drop_result", result="a")
        gone = await ask(toolbox, "execute_query", database="results", sql=read)
        assert gone["error"]["code"] == "TABLE_NOT_FOUND"


@pytest.mark.parametrize(("kept", "again"), [("a", "a"), ("a", "A"), ("A", "a"), ("Few", "fEW")])
async def test_a_query_that_would_replace_what_it_reads_is_refused_in_whatever_case(configuration, kept, again):
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, kept, "SELECT 1 AS n")
        read = f"SELECT n FROM {again}"
        refused = await ask(toolbox, "execute_query", database="results", sql=read, keep=again)
        assert refused["error"]["code"] == "PARAMETER_ERROR"
        assert (await ask(toolbox, "execute_query", database="results", sql=read))["rows"] == [[1]]


async def test_a_result_whose_name_is_a_part_of_other_words_is_replaced(configuration):
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "a", "SELECT 1 AS n")
        await keep(toolbox, "data", "SELECT 2 AS n")
        await keep(toolbox, "a", "SELECT max(n) AS a FROM data", database="results")
        answer = await ask(toolbox, "execute_query", database="results", sql="SELECT * FROM a")
        assert answer["rows"] == [[2]]


async def test_a_result_that_is_still_coming_is_waited_for_and_then_told_of(configuration, monkeypatch):
    for module in ("dragoman.kept.store", "dragoman.gateway.kept_database"):
        monkeypatch.setattr(f"{module}.SOON", 0.05)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        assert (await keep(toolbox, "coming", endless))["status"] == "running"
        late = (
            await ask(toolbox, "execute_query", database="results", sql="SELECT * FROM Coming"),
            await ask(toolbox, "describe_table", database="results", table_name="coming"),
        )
        for answer in late:
            assert answer["error"]["code"] == "BUSY"
            assert "coming (0 so far)" in answer["error"]["message"]
            assert "get_result" in answer["error"]["suggestion"]
        other = await ask(toolbox, "execute_query", database="results", sql="SELECT * FROM comin")
        assert other["error"]["code"] == "TABLE_NOT_FOUND"
        await ask(toolbox, "drop_result", result="coming")
        monkeypatch.setattr("dragoman.gateway.kept_database.SOON", 60)
        monkeypatch.setattr("dragoman.kept.store.SOON", 0)
        assert (await keep(toolbox, "soon", "SELECT 7 AS n"))["status"] == "running"
        assert (await ask(toolbox, "execute_query", database="results", sql="SELECT n FROM soon"))["rows"] == [[7]]


async def test_what_is_made_of_a_kept_result_is_judged_by_what_that_was_made_of(configuration):
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "orders", "SELECT id FROM orders")
        await keep(toolbox, "fewer", "SELECT id FROM orders WHERE id > 1", database="results")
        same: dict[str, Any] = {"database": "results", "sql": "SELECT * FROM fewer", "keep": "fewer"}
        assert (await ask(toolbox, "execute_query", **same))["error"]["code"] == "PARAMETER_ERROR"
        assert (await ask(toolbox, "get_result", result="fewer"))["rows"] == [[2], [3]]

        await gateway.reload(
            replace(configuration, databases={"other": replace(configuration.databases["shop"], name="other")})
        )
        for name in ("orders", "fewer"):
            assert (await ask(toolbox, "get_result", result=name))["error"]["code"] == "UNKNOWN_DATABASE"
            read = await ask(toolbox, "execute_query", database="results", sql=f"SELECT * FROM {name}")
            assert read["error"]["code"] == "TABLE_NOT_FOUND"
        await gateway.reload(configuration)
        read = await ask(toolbox, "execute_query", database="results", sql="SELECT count(*) AS n FROM fewer")
        assert read["rows"] == [[2]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"schema": "former"}, {"schema": "present"}),
        ({"schemas": ("former",)}, {"schemas": ("present",)}),
        ({"schemas": ("former", "present")}, {"schemas": ("present",)}),
        ({}, {"schema": "present", "schemas": ("present",)}),
    ],
    ids=["the schema", "the schemas", "fewer schemas", "schemas for the first time"],
)
async def test_rows_of_a_schema_that_the_name_no_longer_means_are_not_read(tmp_path, before, after):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        for schema in ("former", "present", "main"):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            connection.execute(f"CREATE TABLE {schema}.orders AS SELECT '{schema}' AS place")
    shop = Database(name="shop", dialect="duckdb", database="shop.duckdb", folder=tmp_path, **before)
    configuration = Configuration(databases={"shop": shop}, results=Results(dir=tmp_path / "kept"))
    moved = replace(configuration, databases={"shop": replace(shop, **after)})
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        first = await keep(toolbox, "orders", "SELECT place FROM orders", database="shop")
        assert first["rows"] != [["present"]]
        await gateway.reload(replace(configuration, databases={"shop": replace(shop, description="The same rows.")}))
        assert (await ask(toolbox, "get_result", result="orders"))["rows"] == first["rows"]

        await gateway.reload(moved)
        now = await ask(toolbox, "execute_query", database="shop", sql="SELECT place FROM orders")
        assert now["rows"] == [["present"]]
        assert (await ask(toolbox, "get_result", result="orders"))["error"]["code"] == "RESULT_NOT_FOUND"
        read = await ask(toolbox, "execute_query", database="results", sql="SELECT place FROM orders")
        assert read["error"]["code"] == "TABLE_NOT_FOUND"
    async with Gateway.open(moved) as gateway:
        again = await ask(Toolbox(gateway, profile="full"), "get_result", result="orders")
        assert again["error"]["code"] == "RESULT_NOT_FOUND"


async def test_rows_are_not_read_after_another_schema_has_come_first(tmp_path):
    server = Postgres.start()
    name = await server.create(
        "CREATE SCHEMA former; CREATE TABLE former.orders AS SELECT 'former' AS place;"
        "CREATE SCHEMA present; CREATE TABLE present.orders AS SELECT 'present' AS place"
    )
    shop = server.configure(name, schemas=("former", "present"))
    configuration = Configuration(databases={name: shop}, results=Results(dir=tmp_path / "kept"))
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        assert (await keep(toolbox, "orders", "SELECT place FROM orders", database=name))["rows"] == [["former"]]
        await gateway.reload(replace(configuration, databases={name: replace(shop, schemas=("present", "former"))}))
        assert (await ask(toolbox, "get_result", result="orders"))["error"]["code"] == "RESULT_NOT_FOUND"
    server.stop()


@pytest.mark.parametrize(
    "sql",
    [
        "COPY mine TO 'out.csv'",
        "CREATE TABLE t AS SELECT 1",
        "SELECT * FROM read_parquet('mine.parquet')",
        "SELECT * FROM glob('**')",
        "SELECT * FROM 'mine.parquet'",
        "SELECT * FROM query('SELECT 1')",
        "ATTACH 'x.db'",
        "SELECT * FROM duckdb_settings()",
    ],
)
async def test_its_sql_is_judged_like_any_other(configuration, sql):
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "mine", "SELECT id FROM orders")
        refused = await ask(toolbox, "execute_query", database="results", sql=sql)
        assert refused["error"]["code"] in {"WRITE_OPERATION_DENIED", "UNSAFE_SQL"}


async def test_it_can_be_switched_off_and_a_configured_database_of_its_name_wins(configuration, caplog):
    off = replace(configuration, server=Server(results=False))
    async with Gateway.open(off) as gateway:
        await gateway.kept.keep("x", None, "SELECT 1 AS n", principal=ADA, tool="execute_query")
        assert gateway.for_principal(ADA).names == ("shop",)
    own = replace(configuration.databases["shop"], name="results")
    async with Gateway.open(replace(configuration, databases={"results": own})) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await keep(toolbox, "x", "SELECT 1 AS n")
        assert (await ask(toolbox, "execute_query", database="results", sql="SELECT count(*) AS n FROM orders"))[
            "rows"
        ] == [[3]]
    assert "the configured database results" in caplog.text


async def test_only_what_a_statement_names_is_made_a_table(configuration):
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        for name in ("one", "two", "three"):
            await keep(toolbox, name, "SELECT 1 AS n")

        async def written(tool: str, **arguments: Any) -> set[str]:
            answer = await ask(toolbox, tool, database="results", **arguments)
            assert "error" not in answer, answer
            return {path.stem for path in configuration.results.dir.glob("process-*/tables-*/*")}

        assert await written("execute_query", sql="SELECT 1 AS n") == set()
        assert await written("execute_query", sql='SELECT n FROM "One"') == {"one"}
        assert await written("execute_query", sql="SELECT n FROM TWO", keep="four") == {"one", "two"}
        assert await written("explain_query", sql="SELECT n FROM one") == {"one", "two"}
        assert await written("list_tables") == {"one", "two", "three", "four"}


async def test_a_caller_who_dropped_everything_begins_anew(configuration):
    """The folder of its tables went with the last result, and with it the database that had it open."""
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        for number in (1, 2):
            await keep(toolbox, "mine", f"SELECT {number} AS n")
            answer = await ask(toolbox, "execute_query", database="results", sql="SELECT n FROM mine")
            assert answer["rows"] == [[number]]
            await ask(toolbox, "drop_result", result="mine")
        assert list(configuration.results.dir.glob("*/tables-*")) == []
