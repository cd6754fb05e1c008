"""What is DuckDB's own: what it may reach, how much it may take, and its types to the last digit."""

import asyncio
import dataclasses
import time
from pathlib import Path

import duckdb
import pytest
from dragoman import (
    ConfigurationError,
    ConnectionFailed,
    Database,
    DragomanError,
    ExplainOptions,
    Gateway,
    InvalidSql,
    PermissionDenied,
    QueryError,
    Request,
    UnsafeSql,
    WriteDenied,
)

SHOP = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL UNIQUE, since DATE DEFAULT current_date);
    CREATE SCHEMA sales;
    CREATE TABLE sales.orders (
        id HUGEINT PRIMARY KEY, total DECIMAL(30, 10) CHECK (total > 0), mood ENUM ('Glad', 'sad'),
        place STRUCT(x INTEGER)
    );
    CREATE INDEX by_name ON customers (lower(name), since);
    COMMENT ON COLUMN customers.since IS 'first order';
    INSERT INTO customers VALUES (1, 'Ada', '2024-02-29'), (2, 'Zoë', 'infinity');
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Database:
    folder: Path = tmp_path_factory.mktemp("shop")
    with duckdb.connect(folder / "shop.duckdb") as connection:
        connection.execute(SHOP)
    (folder / "secret.csv").write_text("a,b\n1,2\n")
    return Database(name="shop", dialect="duckdb", database="shop.duckdb", folder=folder)


@pytest.fixture
async def gateway(shop):
    async with Gateway.open([shop]) as opened:
        yield opened


async def past_our_checks(gateway: Gateway, sql: str) -> list:
    async with gateway.database().executor.open(Request(statement=sql)) as stream:
        return [row async for batch in stream.batches for row in batch]


@pytest.mark.parametrize(
    ("written", "told", "type_"),
    [
        ("170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727", "hugeint"),
        ("INTERVAL '1 month 3 days 4.5 seconds'", "1 month 3 days 00:00:04.5", "interval"),
        ("TIMESTAMP_NS '2024-02-29 13:14:15.123456789'", "2024-02-29 13:14:15.123456789", "timestamp_ns"),
        ("TIMESTAMP 'infinity'", "infinity", "timestamp"),
        ("DATE '0044-03-15 (BC)'", "0044-03-15 (BC)", "date"),
        ("DATE '12024-01-01'", "12024-01-01", "date"),
        ("TIME '24:00:00'", "24:00:00", "time"),
        ("TIMETZ '12:00:00+05:30'", "12:00:00+05:30", "timetz"),
        ("'10101'::BIT", "10101", "bit"),
        ("'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::UUID", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "uuid"),
        ("CAST('Glad' AS ENUM('Glad', 'sad'))", "Glad", "ENUM('Glad', 'sad')"),
        ("[INTERVAL '1 month', NULL]", ["1 month", None], "interval[]"),
        ("struct_pack(DATE := DATE '2024-02-29', n := 1)", {"DATE": "2024-02-29", "n": 1}, None),
        ("struct_pack(\"DATE, x\" := 1, d := DATE 'infinity')", {"DATE, x": 1, "d": "infinity"}, None),
        ("CAST('a DATE)' AS ENUM('a DATE)', 'b'))", "a DATE)", "ENUM('a DATE)', 'b')"),
        ("[INTERVAL 1 MONTH]::VARIANT", ["1 month"], "variant"),
        ("MAP(['a'], [12.50])", {"a": "12.50"}, None),
        ("""'{"a": [1, 2]}'::JSON""", {"a": [1, 2]}, "json"),
    ],
)
async def test_every_type_is_told_to_its_last_digit(gateway, written, told, type_):
    result = await gateway.query(None, f"SELECT {written} AS v")
    assert result.rows == [[told]]
    assert type_ is None or result.columns[0].type == type_


async def test_an_order_is_kept_where_columns_must_be_cast(gateway):
    result = await gateway.query(
        None, "SELECT DATE '2024-01-01' + n::INTEGER AS day, n FROM range(3000) AS r(n) ORDER BY n DESC", limit=3000
    )
    assert [row[1] for row in result.rows] == list(range(2999, -1, -1))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('secret.csv')",
        "SELECT * FROM read_text('secret.csv')",
        "SELECT * FROM glob('*')",
        "SELECT * FROM 'secret.csv'",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM duckdb_settings()",
        "SELECT current_setting('temp_directory')",
        "SELECT nextval('s')",
        "SELECT sleep_ms(60000)",
    ],
)
async def test_files_settings_and_sequences_are_refused_by_the_rules(gateway, sql):
    with pytest.raises(UnsafeSql):
        await gateway.query(None, sql)


@pytest.mark.parametrize("sql", ["SELECT * FROM read_csv('{}')", "SELECT * FROM '{}'", "SELECT * FROM glob('{}')"])
async def test_files_are_closed_by_the_engine_alone(gateway, shop, sql):
    file = shop.folder.absolute() / "secret.csv"
    with pytest.raises(PermissionDenied) as caught:
        await past_our_checks(gateway, sql.format(file))
    assert str(shop.folder) not in caught.value.message


@pytest.mark.parametrize(
    "sql",
    [
        "COPY customers TO 'out.csv'",
        "ATTACH 'other.duckdb'",
        "INSTALL httpfs",
        "LOAD json",
        "SET memory_limit = '100GB'",
        "RESET lock_configuration",
        "CREATE TEMP TABLE t (a INTEGER)",
        "PRAGMA enable_profiling",
        "CHECKPOINT",
    ],
)
async def test_whatever_is_no_query_is_refused_by_duckdb_s_own_parser(gateway, sql):
    with pytest.raises(WriteDenied):
        await past_our_checks(gateway, sql)


async def test_two_statements_are_refused_by_duckdb_s_own_parser(gateway):
    with pytest.raises(UnsafeSql, match="2 statements"):
        await past_our_checks(gateway, "SELECT 1; SELECT 2")


async def test_settings_are_what_was_configured_and_locked(shop):
    limited = dataclasses.replace(shop, options={"memory_limit": "200MB", "threads": 1})
    async with Gateway.open([limited]) as gateway:
        settings = "SELECT name, value FROM duckdb_settings() WHERE name IN ('threads', 'temp_directory') ORDER BY name"
        assert await past_our_checks(gateway, settings) == [("temp_directory", ""), ("threads", "1")]
        with pytest.raises(QueryError, match="Out of Memory"):
            await past_our_checks(gateway, "SELECT list(n) FROM range(100000000) AS r(n)")
        assert (await gateway.query(None, "SELECT 1 AS a")).rows == [[1]]


@pytest.mark.parametrize("options", [{"memory_limit": "much"}, {"threads": 0}, {"memory": "1GB"}])
async def test_options_that_mean_nothing_are_told_before_anything_is_opened(shop, options):
    with pytest.raises(ConfigurationError):
        async with Gateway.open([dataclasses.replace(shop, options=options)]) as gateway:
            gateway.database()


@pytest.mark.parametrize("name", ["missing.duckdb", "secret.csv"])
async def test_a_file_that_is_not_there_or_no_database_is_not_made(shop, name):
    async with Gateway.open([dataclasses.replace(shop, database=name)]) as gateway:
        with pytest.raises(ConnectionFailed):
            await gateway.query(None, "SELECT 1")
    assert not (shop.folder / "missing.duckdb").exists()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT 1 /* a /* b */ c */ AS n", [[1]]),
        ("SELECT $$it's; -- plain$$ AS t", [["it's; -- plain"]]),
        (r"SELECT E'a\'b' AS t", [["a'b"]]),
        ("SELECT '12'::INTEGER AS n", [[12]]),
        ("FROM customers SELECT name WHERE id = $1", [["Ada"]]),
        ("SELECT name FROM customers QUALIFY row_number() OVER (ORDER BY id) = 1", [["Ada"]]),
        ("SELECT unnest(list_transform([1, 2], lambda x : x + 1)) AS n", [[2], [3]]),
    ],
)
async def test_duckdb_s_own_sql_is_read_as_duckdb_reads_it(gateway, sql, rows):
    assert (await gateway.query(None, sql, [1] if "$1" in sql else ())).rows == rows


async def test_the_catalog_is_told_with_every_fact(gateway):
    catalog = gateway.database().catalog
    customers, orders = await catalog.find("customers"), await catalog.find("orders", "sales")
    assert [(index.name, index.parts) for index in customers.indexes] == [("by_name", ('(lower("name"))', "since"))]
    constraints = {each.type: each.columns for each in customers.constraints}
    assert constraints == {"PRIMARY KEY": ("id",), "UNIQUE": ("name",)}
    assert (customers.columns[2].default, customers.columns[2].comment) == ("current_date", "first order")
    assert [column.type for column in orders.columns] == [
        "hugeint",
        "decimal(30,10)",
        "ENUM('Glad', 'sad')",
        "struct(x integer)",
    ]
    assert [each.definition for each in orders.constraints if each.type == "CHECK"] == ["CHECK((total > 0))"]


async def test_plans_are_told_as_text_and_as_json(gateway):
    text = await gateway.explain(None, "SELECT * FROM customers WHERE id = ?", [1])
    assert "customers" in text.plan
    options = ExplainOptions(format="json")
    assert isinstance((await gateway.explain(None, "SELECT * FROM customers", options=options)).plan, list)


async def test_two_databases_do_not_share_anything(shop):
    other = dataclasses.replace(shop, name="other")
    async with Gateway.open([shop, other]) as gateway:
        count = "SELECT count(*) FROM customers"
        answers = await asyncio.gather(*(gateway.query(name, count) for name in ("shop", "other")))
    assert [answer.rows for answer in answers] == [[[2]], [[2]]]


async def test_a_query_that_is_cut_short_frees_its_threads(gateway):
    endless = "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000000) c"
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(DragomanError):
            await gateway.query(None, endless, timeout=0.2)
    assert time.monotonic() - began < 20
    with pytest.raises(InvalidSql):
        await gateway.query(None, "SELECT FROM")
