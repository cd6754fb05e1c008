"""What files tell reaches descriptions, search, join paths and resources, and only those who see the whole database."""

import sqlite3
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copy

import pytest
from dragoman import ConfigurationError, Database, Gateway, KnowledgeSettings, Principal
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.model import LOCAL
from dragoman.tools import Toolbox
from dragoman.tools.surfaces import Surfaces

FILES = Path(__file__).parent / "files"
TABLES = """
CREATE TABLE customers (customer_id INTEGER, first_name TEXT, last_name TEXT);
CREATE TABLE orders (order_id INTEGER, customer_id INTEGER, status TEXT, amount INTEGER, order_date TEXT);
INSERT INTO customers VALUES (1, 'Ada', 'L'), (2, 'Grace', 'H');
INSERT INTO orders VALUES (1, 1, 'placed', 5, '2026-01-01'), (2, 2, 'shipped', 7, '2026-01-02');
"""
NOTES = """\
Orders of a shop.

## Glossary
- **big order**: of more than 100 euros

## Examples

### How many orders were shipped?
```sql
SELECT count(*) FROM orders WHERE status = 'shipped'
```

### Which orders are gone?
```sql
SELECT gone FROM orders
```

### May I?
```sql
DELETE FROM orders
```
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def shop(tmp_path: Path) -> Callable[..., Database]:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript(TABLES)
    connection.close()
    for file in FILES.iterdir():
        copy(file, tmp_path)
    (tmp_path / "shop.md").write_text(NOTES)

    def make(*files: str) -> Database:
        knowledge = KnowledgeSettings(files=tuple(map(Path, files)), values="off", infer_joins=False)
        return Database(name="shop", dialect="sqlite", database="shop.db", folder=tmp_path, knowledge=knowledge)

    return make


@asynccontextmanager
async def toolbox(database: Database):
    async with Gateway.open([database]) as gateway:
        yield Toolbox(gateway, profile="full")


async def call(tools: Toolbox, name: str, **arguments):
    answer = await tools.call(name, arguments)
    assert not answer.is_error, answer.text
    assert answer.structured is not None
    return answer.structured


async def test_a_dbt_project_describes_tables_and_joins_them(shop):
    async with toolbox(shop("manifest.json", "catalog.json")) as tools:
        told = await call(tools, "describe_table", table_name=["orders", "customers"])
        assert told["tables"] == {
            "orders": [
                "-- One row for each order.",
                "order_id integer NULL PK",
                "customer_id integer NULL -> customers",
                "status text NULL {placed|shipped|returned} -- How far it is.",
                "amount integer NULL -- in cents",
                "order_date text NULL",
            ],
            "customers": [
                "-- Who ordered",
                "customer_id integer NULL",
                "first_name text NULL",
                "last_name text NULL",
            ],
        }
        path = await call(tools, "find_join_path", from_table="orders", to_table="customers")
        assert path["paths"][0]["steps"][0]["from_columns"] == ["customer_id"]
        metric = await call(tools, "search_catalog", query="revenue")
        assert any(note.startswith("metric revenue: All that was ever") for note in metric["notes"])
        assert (await call(tools, "search_catalog", query="cents"))["results"][0]["column"] == "amount"


async def test_what_the_database_says_itself_wins(shop, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("DROP TABLE customers")
        connection.execute("CREATE TABLE customers (customer_id INTEGER PRIMARY KEY)")
    connection.close()
    (tmp_path / "own.md").write_text("## Tables\n### customers\nMine.\n- customer_id: the key {1|2}\n")
    async with toolbox(shop("own.md", "manifest.json", "catalog.json")) as tools:
        told = await call(tools, "describe_table", table_name="customers")
    assert told["tables"]["customers"] == ["-- Mine.", "customer_id integer PK {1|2} -- the key"]


async def test_an_ossie_model_describes_and_is_searched_by_its_synonyms(shop):
    async with toolbox(shop("model.yaml")) as tools:
        assert (await call(tools, "search_catalog", query="purchases"))["results"][0]["table"] == "orders"
        assert (await call(tools, "search_catalog", query="turnover"))["notes"] == [
            "metric total_revenue: Total revenue; also called turnover; SUM(orders.amount)"
        ]
        (row,) = (await call(tools, "list_databases"))["databases"]
        assert row["description"] == "Sales of the shop"


async def test_the_overview_of_a_database_tells_notes_and_examples_that_ran(shop, caplog):
    async with toolbox(shop("shop.md")) as tools:
        told = await call(tools, "search_catalog")
        assert set(told["tables"]) == {"orders", "customers"}
        assert told["notes"] == [
            "term big order: of more than 100 euros",
            "example How many orders were shipped?: SELECT count(*) FROM orders WHERE status = 'shipped'",
        ]
        assert (await call(tools, "read_schema"))["schema"].startswith("-- term big order: of more than 100 euros\n")
        text = (await Surfaces(tools.gateway).read("schema://shop", LOCAL)).text
        assert text.splitlines()[1:3] == ["-- Orders of a shop.", "-- term big order: of more than 100 euros"]
    dropped = [record.getMessage() for record in caplog.records if "is dropped" in record.getMessage()]
    assert [line.split(":")[:2] for line in dropped] == [["shop.md", "13"], ["shop.md", "18"]]


async def test_who_sees_a_part_of_the_database_is_told_no_notes(shop):
    database = shop("shop.md")
    for tables, seen in ((("main.*",), True), (("main.orders",), False)):
        grant = Grant(database="shop", tables=tables)
        configuration = Configuration(
            databases={"shop": database}, roles={"all": Role(name="all", principals=frozenset({"*"}), grants=(grant,))}
        )
        async with Gateway.open(configuration) as gateway:
            answer = await Toolbox(gateway, profile="full").call("search_catalog", {}, principal=Principal("ada"))
            assert answer.structured is not None
            assert ("notes" in answer.structured) is seen


async def test_a_bad_file_stops_the_start(shop, tmp_path):
    (tmp_path / "bad.md").write_text("\n## Glosary\n")
    with pytest.raises(ConfigurationError, match=r"knowledge\.files: bad\.md:2: "):
        async with Gateway.open([shop("bad.md")]):
            pass


async def test_texts_of_tables_that_are_not_there_are_told_in_the_log(shop, tmp_path, caplog):
    (tmp_path / "own.md").write_text("## Tables\n### nothing\nMine.\n")
    text = (FILES / "manifest.json").read_text().replace('"alias": "', '"alias": "other_')
    (tmp_path / "manifest.json").write_text(text)
    async with toolbox(replace(shop("own.md", "manifest.json"))) as tools:
        await call(tools, "list_tables")
        await call(tools, "describe_table", table_name="orders")
    assert "own.md:2: shop has no table nothing" in caplog.text
    assert "manifest.json: shop has none of its tables" in caplog.text


async def test_a_written_key_ends_when_its_table_is_gone(shop, tmp_path):
    async with Gateway.open([shop("model.yaml")]) as gateway:
        catalog = gateway.database().catalog
        assert (await catalog.find("orders")).foreign_keys
        with sqlite3.connect(tmp_path / "shop.db") as connection:
            connection.execute("DROP TABLE customers")
        connection.close()
        await catalog.refresh()
        assert (await catalog.find("orders")).foreign_keys == ()
