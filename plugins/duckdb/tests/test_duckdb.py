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
    Encoded,
    ExplainOptions,
    Gateway,
    InvalidSql,
    ParameterError,
    PermissionDenied,
    QueryError,
    Request,
    SchemaNotFound,
    TableNotFound,
    UnsafeSql,
    WriteDenied,
)
from dragoman.testing.asking import part_of
from dragoman_duckdb.rules import RULES

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
        rows = []
        async for batch in stream.batches:
            assert isinstance(batch, Encoded)
            rows += [tuple(row) for row in batch.values]
        return rows


@pytest.mark.parametrize(
    ("written", "told", "type_"),
    [
        ("170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727", "hugeint"),
        ("INTERVAL '1 month 3 days 4.5 seconds'", "1 month 3 days 00:00:04.5", "interval"),
        ("TIMESTAMP_NS '2024-02-29 13:14:15.123456789'", "2024-02-29 13:14:15.123456789", "timestamp_ns"),
        ("'2024-02-29 13:14:15.123456789+02'::TIMESTAMPTZ_NS", "2024-02-29 11:14:15.123456789+00", "timestamptz_ns"),
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


async def test_what_duckdb_tells_of_itself_and_of_the_host_is_closed(gateway):
    internal = "SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE internal"
    views = await past_our_checks(gateway, internal)
    assert len(views) > 40
    opened = set()
    for catalog, schema, view in views:
        for written in (view, f'"{view}"', f"{schema}.{view}", f"{catalog}.{schema}.{view}"):
            try:
                await gateway.query(None, f"SELECT * FROM {written} LIMIT 1")
                opened.add((schema, view))
            except (UnsafeSql, TableNotFound):
                pass
    assert {schema for schema, _ in opened} == {"information_schema"}
    assert ("information_schema", "tables") in opened
    assert ("information_schema", "views") not in opened


TOLD = {"generate_series", "json_each", "json_tree", "range", "repeat", "unnest"}
"""Table functions that are computed from their arguments alone."""
UNSTEADY = {"random", "uuid", "get_current_timestamp", "today", "transaction_timestamp", "now", "current_date"}
UNSTEADY |= {"get_current_time", "gen_random_uuid", "uuidv4", "uuidv7"}
"""Functions whose answers differ from call to call: a number, or the time."""


@pytest.mark.timeout(400)  # half a minute of processor time
async def test_every_table_function_and_pragma_of_this_duckdb_is_judged(gateway):
    kinds = "function_type IN ('table', 'pragma', 'table_macro')"
    rows = await past_our_checks(gateway, f"SELECT DISTINCT function_name FROM duckdb_functions() WHERE {kinds}")
    assert len(rows) > 100
    opened = set()
    for (name,) in rows:
        for arguments in ("", "'x'", "1, 2", "'main', 'x', 1"):
            for written in (f"{name}({arguments})", f'main."{name}"({arguments})', f"system.main.{name}({arguments})"):
                try:
                    await gateway.query(None, f"SELECT * FROM {written} LIMIT 1")
                except (UnsafeSql, WriteDenied, TableNotFound, InvalidSql):
                    continue
                except DragomanError:
                    pass  # DuckDB was asked
                opened.add(name)
    assert opened <= TOLD


async def test_functions_that_are_open_are_steady_or_known(gateway):
    unsteady = "stability <> 'CONSISTENT' OR has_side_effects"
    rows = await past_our_checks(gateway, f"SELECT DISTINCT function_name FROM duckdb_functions() WHERE {unsteady}")
    assert {name for (name,) in rows} & RULES.functions == UNSTEADY


async def test_what_schemas_leave_out_is_in_none_of_duckdbs_own_lists(shop):
    with duckdb.connect(shop.folder / "two.duckdb") as connection:
        connection.execute("CREATE SCHEMA other; CREATE TABLE other.hidden (n INTEGER); CREATE TABLE seen (n INTEGER)")
    async with Gateway.open([dataclasses.replace(shop, database="two.duckdb", schemas=("main",))]) as gateway:
        for listed in (
            "duckdb_tables",
            "main.duckdb_tables",
            "sqlite_master",
            "pg_tables",
            "information_schema.tables",
        ):
            with pytest.raises((UnsafeSql, SchemaNotFound, TableNotFound)):
                await gateway.query(None, f"SELECT * FROM {listed}")


SCHEMAS = """
    CREATE SCHEMA sales; CREATE SCHEMA "Odd, ""one";
    CREATE TABLE orders (hidden INTEGER); CREATE TABLE only_main (a INTEGER);
    CREATE TABLE sales.orders (open INTEGER); CREATE TABLE "Odd, ""one".things (b INTEGER);
    CREATE MACRO sales.abs(x) AS 42; CREATE VIEW sales.view AS SELECT * FROM main.only_main;
"""


@pytest.fixture(scope="module")
def several(shop) -> Database:
    with duckdb.connect(shop.folder / "several.duckdb") as connection:
        connection.execute(SCHEMAS)
    return dataclasses.replace(shop, database="several.duckdb")


async def names_of(gateway: Gateway, sql: str) -> list[str]:
    return [column.name for column in (await gateway.query(None, sql)).columns]


async def test_every_schema_is_read_by_its_name(several):
    async with Gateway.open([several]) as gateway:
        for sql, names in (
            ("SELECT * FROM sales.orders", ["open"]),
            ("SELECT * FROM SALES.Orders", ["open"]),
            ("SELECT * FROM main.orders", ["hidden"]),
            ("SELECT * FROM orders", ["hidden"]),
            ('SELECT * FROM "Odd, ""one".things', ["b"]),
            ("SELECT * FROM sales.view", ["a"]),
        ):
            assert await names_of(gateway, sql) == names
        assert (await gateway.query(None, "SELECT abs(-1) FROM sales.orders UNION ALL SELECT abs(-2)")).rows == [[2]]


@pytest.mark.parametrize("schemas", [("sales",), ('"sales"',), ("SALES",), ("sales", '"Odd, ""one"')])
async def test_a_name_alone_means_nothing_outside_the_schemas_that_are_open(several, schemas):
    async with Gateway.open([dataclasses.replace(several, schemas=schemas)]) as gateway:
        assert await names_of(gateway, "SELECT * FROM orders") == ["open"]
        assert await names_of(gateway, "SELECT * FROM sales.view") == ["a"]
        for text in ("only_main", "main.orders", "main.only_main"):
            with pytest.raises((SchemaNotFound, TableNotFound)):
                await gateway.query(None, f"SELECT * FROM {text}")


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
    limited = dataclasses.replace(shop, options={"memory_mb": 200, "threads": 1})
    async with Gateway.open([limited]) as gateway:
        settings = "SELECT name, value FROM duckdb_settings() WHERE name IN ('threads', 'temp_directory') ORDER BY name"
        assert await past_our_checks(gateway, settings) == [("temp_directory", ""), ("threads", "1")]
        with pytest.raises(QueryError, match="Out of Memory"):
            await past_our_checks(gateway, "SELECT list(n) FROM range(100000000) AS r(n)")
        assert (await gateway.query(None, "SELECT 1 AS a")).rows == [[1]]


@pytest.mark.parametrize("options", [{"memory_mb": "much"}, {"threads": 0}, {"memory": 1}])
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


@pytest.mark.parametrize("rows", [1, 100, 3000])
async def test_a_deadline_hands_out_the_rows_that_came(shop, rows):
    sql = f"SELECT i FROM range({rows}) t(i) UNION ALL SELECT i FROM range(1000000000000) t(i) WHERE i % 7 = 9"
    async with Gateway.open([dataclasses.replace(shop, max_rows=10_000)]) as gateway:
        part = await part_of(gateway, sql, limit=10_000)
        assert part.rows == [[row] for row in range(rows)]
        assert part.truncated is not None
        assert part.truncated.reason == "timeout"
        assert (await gateway.query(None, "SELECT 1 AS one")).rows == [[1]]


async def test_values_are_told_from_the_rows_and_ddl_changes_the_fingerprint(tmp_path):
    with duckdb.connect(tmp_path / "desk.duckdb") as connection:
        connection.execute(
            "CREATE TABLE tickets AS SELECT n AS id, CASE n % 2 WHEN 0 THEN 'open' ELSE 'done' END AS state,"
            " n % 3 = 0 AS urgent, DATE '2024-01-01' + n::INTEGER AS at, 'a' || n % 2 || '@b.com' AS email"
            " FROM range(40) AS r (n)"
        )
    database = Database(name="desk", dialect="duckdb", database="desk.duckdb", folder=tmp_path)
    async with Gateway.open([database]) as gateway:
        opened = gateway.database("desk")
        (table,) = (await opened.catalog.snapshot()).listed
        profiles = (await opened.insights([table]))[table.relation].profiles
        before = await opened.inspector.fingerprint()
    assert sorted(profiles["state"].values) == ["done", "open"]
    assert (profiles["at"].minimum, profiles["at"].maximum) == ("2024-01-01", "2024-02-09")
    assert profiles["email"].values == ()
    with duckdb.connect(tmp_path / "desk.duckdb") as connection:
        connection.execute("ALTER TABLE tickets ALTER state SET NOT NULL")
    async with Gateway.open([database]) as gateway:
        assert await gateway.database("desk").inspector.fingerprint() != before


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, [1, 2**70], {"a": 10**900}])
async def test_an_integer_of_more_than_64_bits_is_refused_with_a_way_out(shop: Database, value: object):
    async with Gateway.open([shop]) as gateway:
        with pytest.raises(ParameterError, match="64 bits") as caught:
            await gateway.query(None, "SELECT $1", [value])
        assert "CAST" in caught.value.suggestion
        assert (await gateway.query(None, "SELECT CAST($1 AS HUGEINT) AS n", [str(2**64)])).rows == [[str(2**64)]]


@pytest.mark.parametrize(("sql", "values"), [("SELECT 1", [1]), ("SELECT $1", []), ("SELECT ?, ?", [1, 2, 3])])
async def test_as_many_values_as_placeholders_are_wanted(shop: Database, sql: str, values: list[int]):
    async with Gateway.open([shop]) as gateway:
        with pytest.raises(ParameterError):
            await gateway.query(None, sql, values)


async def test_a_parameter_before_two_colons_is_told_how_to_be_cast(shop: Database):
    """The two are one operator to sqlglot."""
    async with Gateway.open([shop]) as gateway:
        with pytest.raises(InvalidSql) as caught:
            await gateway.query(None, "SELECT ?::INTEGER", ["1"])
        assert caught.value.suggestion == "Write CAST(? AS type) where a parameter is cast."
        assert (await gateway.query(None, "SELECT CAST(? AS INTEGER)", ["1"])).rows == [[1]]
