"""What an empty answer says is true: a reason that no row can meet the conditions is not told if a row can."""

import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from random import Random

import pytest
from dragoman import ColumnProfile, Database, Gateway, TableColumn
from dragoman.knowledge.emptiness import explain_unmet
from dragoman.sql.selection import Comparison

ITEMS = """
CREATE TABLE item (id integer PRIMARY KEY, label text NOT NULL CHECK (label IN ('paid', 'open')),
  stock integer NOT NULL, price decimal(10,2) CHECK (price IN (1.5, 2)), name text, code char(3), day date,
  at timestamp);
INSERT INTO item VALUES (1, 'paid', 0, 1.5, 'Paid', 'ab', '2024-01-05', '2024-01-05 00:00:00'),
  (2, 'open', 5, 2, 'stra\u00dfe', 'ab ', '2024-02-01', '2024-01-05 12:30:00'),
  (3, 'open', -5, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE part (id integer PRIMARY KEY, item_id integer NOT NULL REFERENCES item);
INSERT INTO part VALUES (1, 1);
CREATE TABLE empty (id integer PRIMARY KEY, item_id integer NOT NULL)
"""
CONDITIONS = (
    *("label = 'paid'", "label > 'a'", "label < 'z'", "label <> 'open'", "label IN ('open', 'paid')", "label IS NULL"),
    *(
        "stock = 5",
        "stock = '5'",
        "stock = '05'",
        "stock >= 5.0",
        "stock < 6",
        "stock BETWEEN '-5' AND '05'",
        "stock > 9",
    ),
    *("price = 1.5", "price = 1.50", "price = '1.5'", "price = '1.50'", "price > 1.4999999999999999999", "price < 1.6"),
    *(
        "name = 'Paid'",
        "name > 'A'",
        "lower(name) = 'paid'",
        "upper(name) = 'PAID'",
        "name LIKE 'P%'",
        "name NOT LIKE 'x'",
    ),
    *("name IS NULL", "name IS NOT NULL", "stock NOT IN (1)", "stock NOT BETWEEN 9 AND 3", "NOT stock = 9"),
    *("upper(name) = 'STRA\u00dfE'", "lower(name) = 'stra\u00dfe'", "code = 'ab'", "code = 'ab '", "code IS NOT NULL"),
    *("day = '2024-01-05'", "day >= '2024-1-5'", "day = '2024-1-5'", "day < '2024-02-01'", "day <= '2024-01-06'"),
    *("at >= '2024-01-05T00:00:00'", "at <= '2024-01-05 23:00'", "at = '2024-01-05'", "at = '2024-01-05 00:00:00'"),
    *("at >= '2024-01-05 00:00:00'", "at <= '2024-01-05'", "at BETWEEN '2024-01-05T00:00:00' AND '2024-01-05 23:00'"),
)
NO_ROW = re.compile("exclude each other|comes second|never|NOT NULL")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
async def gateway(request, tmp_path_factory: pytest.TempPathFactory, anyio_backend) -> AsyncIterator[Gateway]:
    if request.param == "sqlite":
        folder: Path = tmp_path_factory.mktemp("items")
        with sqlite3.connect(folder / "items.db") as connection:
            connection.executescript(ITEMS.replace("name text", "name text COLLATE NOCASE"))
        connection.close()
        async with Gateway.open(
            [Database(name="items", dialect="sqlite", database="items.db", folder=folder)]
        ) as gateway:
            yield gateway
        return
    server = request.getfixturevalue("postgres")
    name = await server.create(f"{ITEMS}; ANALYZE")
    async with Gateway.open([server.configure(name)]) as gateway:
        yield gateway
    await server.drop(name)


@pytest.mark.parametrize(
    "aggregate",
    [
        *(
            "sum(stock)",
            "min(stock)",
            "max(-stock * stock)",
            "count(*) FILTER (WHERE stock > 50)",
            "count(*) - count(*)",
        ),
        *("coalesce(max(stock), 0) - max(stock)", "nullif(max(stock), 5)", "count(*) * 0"),
    ],
)
async def test_a_zero_or_null_that_is_calculated_is_an_answer(gateway: Gateway, aggregate: str):
    result = await gateway.query(None, f"SELECT {aggregate} AS found FROM item WHERE id <= 2")
    assert result.row_count == 1
    assert result.notices == ()


async def test_a_count_of_zero_and_a_sum_of_nothing_say_why(gateway: Gateway):
    for aggregate in ("count(*)", "count(stock)", "sum(stock)"):
        (told,) = (await gateway.query(None, f"SELECT {aggregate} AS found FROM item WHERE stock > 50")).notices
        assert told.startswith("stock > 50: ")
    (told,) = (await gateway.query(None, "SELECT max(price) FROM item WHERE id = 3")).notices
    assert told == "Rows meet the conditions; what is aggregated is null in all of them."


@pytest.mark.parametrize(
    "source", ["item i LEFT JOIN part p ON p.item_id = i.id", "part p RIGHT JOIN item i ON p.item_id = i.id"]
)
async def test_a_row_without_a_partner_is_not_ruled_out(gateway: Gateway, source: str):
    if "RIGHT" in source and gateway.database().dialect.name == "sqlite" and sqlite3.sqlite_version_info < (3, 39):
        pytest.skip("this SQLite has no RIGHT JOIN")
    sql = f"SELECT i.id FROM {source} WHERE p.id IS NULL AND i.stock"
    assert (await gateway.query(None, f"{sql} = 5")).row_count == 1
    (told,) = (await gateway.query(None, f"{sql} = 77")).notices
    assert told == "i.stock = 77: no row meets it."


async def test_an_optional_table_without_rows_is_no_reason(gateway: Gateway):
    sql = "SELECT i.id FROM item i LEFT JOIN empty n ON n.item_id = i.id WHERE i.stock = 77"
    assert (await gateway.query(None, sql)).notices == ("i.stock = 77: no row meets it.",)


async def test_a_member_of_with_is_not_the_table_of_its_name(gateway: Gateway):
    sql = "WITH item AS (SELECT 'new' AS label, 1 AS stock) SELECT * FROM item WHERE label = 'new' AND stock = 2"
    assert (await gateway.query(None, sql)).notices == ("stock = 2: no row meets it.",)


async def test_what_was_known_is_not_said_of_what_is_there_now(gateway: Gateway):
    """A value that came after the values were learned is one of them, whatever was known."""
    opened = gateway.database()
    table = await opened.catalog.find("part")
    await opened.knowledge.of([table])
    sql = "SELECT id FROM part WHERE item_id = 1.0 AND id = 5"
    assert (await gateway.query(None, sql)).notices == ("id = 5: no row meets it.",)


def pairs() -> Iterator[str]:
    for one, other in combinations(CONDITIONS, 2):
        yield f"{one} AND {other}"


@pytest.mark.parametrize("chunk", range(8))
async def test_conditions_that_a_row_meets_do_not_exclude_each_other(gateway: Gateway, chunk: int):
    untrue: list[str] = []
    for pair in Random(chunk).sample(list(pairs()), 40):
        result = await gateway.query(None, f"SELECT id FROM item WHERE {pair} AND id = 77")
        met = await gateway.query(None, f"SELECT count(*) AS n FROM item WHERE {pair}")
        if met.rows != [[0]] and any(map(NO_ROW.search, result.notices)):
            untrue.append(f"{pair}: {result.notices}")
    assert untrue == []


@pytest.mark.parametrize(
    "number", ["7.0", "1e28", "1e400", "-1e400", "12345678901234567890123456789.0", "1e-400", "1.5"]
)
def test_a_number_is_compared_with_known_values_however_large_it_is(number: str):
    profile = ColumnProfile(name="id", values=("1", "2"), kind="all")
    told = explain_unmet(
        Comparison("id", None, "=", (Decimal(number),)), TableColumn(name="id", type="integer"), profile, certain=True
    )
    assert told.startswith("no such value")
