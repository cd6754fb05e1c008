"""The policy over SQLite, from its entry point and a configuration file. Any other dialect would do."""

import sqlite3
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from dragoman import (
    ConfigurationError,
    Database,
    Dialect,
    DragomanError,
    Executor,
    Gateway,
    PathNotFound,
    Principal,
    Request,
    TableNotFound,
    UnsafeSql,
)
from dragoman_tagging_policy import Options, TaggingPolicy

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE salary_internal (customer_id INTEGER REFERENCES customer (id), grade INTEGER, amount INTEGER);
CREATE TABLE payroll (id INTEGER PRIMARY KEY, amount INTEGER);
CREATE TABLE payment (customer_id INTEGER REFERENCES customer (id), payroll_id INTEGER REFERENCES payroll (id));
CREATE VIEW totals AS SELECT sum(amount) AS total FROM payroll;
INSERT INTO customer VALUES (1, 'Ada');
INSERT INTO payroll VALUES (1, 5);
"""
CONFIGURATION = """
[databases.shop]
url = "sqlite:///shop.db"
[policies.tagging]
tags = { team = "growth" }
"""
HIDE = "hide = ['*_internal', 'main.payroll']\nrefuse_functions = ['pragma_*']"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def configuration(tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript(SHOP)
    connection.close()

    def write(policy: str) -> Path:
        file = tmp_path / "dragoman.toml"
        file.write_text(CONFIGURATION + policy)
        return file

    return write


async def test_hidden_relations_are_not_told(configuration):
    async with Gateway.open(configuration(HIDE)) as gateway:
        catalog = gateway.database("shop").catalog
        assert [table.relation.name for table in (await catalog.snapshot()).tables if not table.system] == [
            "customer",
            "payment",
            "totals",
        ]
        assert {match.table.relation.name for match in (await catalog.search("amount payroll grade salary"))[0]} <= {
            "payment"
        }
        for name in ("payroll", "salary_internal"):
            with pytest.raises(TableNotFound):
                await catalog.find(name)


async def test_no_key_and_no_path_leads_to_a_hidden_relation(configuration):
    async with Gateway.open(configuration(HIDE)) as gateway:
        catalog = gateway.database("shop").catalog
        payment, customer = await catalog.find("payment"), await catalog.find("customer")
        assert [key.references.name for key in payment.foreign_keys] == ["customer"]
        assert len(await catalog.join_paths(payment, customer)) == 1
        with pytest.raises(PathNotFound) as raised:
            await catalog.join_paths(customer, await catalog.find("totals"))
        assert "payroll" not in f"{raised.value.message} {raised.value.suggestion}"


async def test_a_view_s_definition_is_not_told(configuration):
    async with Gateway.open(configuration(HIDE)) as gateway:
        catalog = gateway.database("shop").catalog
        for totals in (await catalog.find("totals"), *await catalog.add_details([await catalog.find("totals")])):
            assert [column.name for column in totals.columns] == ["total"]
            assert "payroll" not in str(totals)


REFUSED = [
    "SELECT * FROM payroll",
    "SELECT 1 FROM PAYROLL",
    'SELECT amount FROM "main"."payroll"',
    "SELECT id FROM customer WHERE id IN (SELECT customer_id FROM salary_internal)",
    "WITH x AS (SELECT * FROM payroll) SELECT id FROM x",
    "SELECT name FROM sqlite_schema",
    "SELECT name FROM sqlite_master",
    "SELECT * FROM pragma_table_list",
    "SELECT * FROM pragma_table_info('payroll')",
    "PRAGMA table_list",
    "PRAGMA table_info(payroll)",
    "EXPLAIN QUERY PLAN SELECT * FROM payroll",
]


@pytest.mark.parametrize("sql", REFUSED)
async def test_no_query_reaches_or_reveals_a_hidden_relation(sql: str, configuration):
    async with Gateway.open(configuration(HIDE)) as gateway:
        with pytest.raises((TableNotFound, UnsafeSql)):
            await gateway.query("shop", sql)


async def test_a_hidden_relation_and_one_that_is_not_there_look_the_same(configuration):
    async with Gateway.open(configuration(HIDE)) as gateway:
        told = []
        for name in ("payroll", "payrule"):
            with pytest.raises(DragomanError) as raised:
                await gateway.query("shop", f"SELECT * FROM {name}")
            told.append(str(raised.value.as_dict()).replace(name, "x"))
        assert told[0] == told[1]


@pytest.mark.parametrize("sql", ["SELECT * FROM customer", "SELECT total FROM totals", "SELECT 'payroll' AS payroll"])
async def test_everything_else_is_answered(sql: str, configuration):
    async with Gateway.open(configuration(HIDE)) as gateway:
        assert (await gateway.query("shop", sql)).row_count == 1


async def test_with_nothing_hidden_nothing_is_refused(configuration):
    async with Gateway.open(configuration("")) as gateway:
        assert (await gateway.query("shop", "SELECT count(*) FROM sqlite_schema")).rows == [[5]]


class Recorder(Executor):
    """Notes the requests that come through."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    @asynccontextmanager
    async def open(self, request):
        self.requests.append(request)
        yield None

    async def describe(self, request):
        self.requests.append(request)

    async def explain(self, request, options):
        self.requests.append(request)

    async def prepare(self, request):
        self.requests.append(request)


async def test_every_request_is_tagged_with_who_asks():
    recorder = Recorder()
    policy = TaggingPolicy().configure(Options(tags={"team": "growth"}))
    database, dialect = Database(name="shop", dialect="any"), Dialect(name="any", contract=1, sqlglot="")
    executor = policy.wrap_executor(recorder, database, dialect)
    request = Request(statement="SELECT 1", principal=Principal("ada"), tags={"call": "7"})
    async with executor.open(request):
        await executor.describe(request)
        await executor.explain(request, None)
        await executor.prepare(request)
    tags = [dict(seen.tags) for seen in recorder.requests]
    assert tags == [{"call": "7", "principal": "ada", "team": "growth"}] * 4


async def test_options_that_do_not_fit_stop_the_start(configuration):
    with pytest.raises(ConfigurationError, match="too many dots"):
        async with Gateway.open(configuration("hide = ['a.b.c.d']")):
            pass
