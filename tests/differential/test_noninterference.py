"""Two databases that differ only in what a caller does not see answer it alike, whatever it asks by whatever tool."""

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import apsw
import duckdb
import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.tools import Toolbox
from interference import Flavour, Maker, differences
from prying import DUCKDB
from prying import SQLITE as PRYING

SQLITE = Flavour(
    schema="main",
    failing=(
        "abs(CASE {n} WHEN {k} THEN -9223372036854775808 ELSE 1 END) > 0",
        "json({t}) IS NULL",
        "json_extract({t}, '$') IS NULL",
        "substr({t}, 1, {n}) = 'x'",
    ),
)
MASKED = replace(SQLITE, tables=("accounts", "accounts", "customers"))
SEEN = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, ssn TEXT, age INT, born TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, customer_id INTEGER REFERENCES customers(id),
  total INTEGER, note TEXT, secret TEXT);
CREATE TABLE salaries (id INTEGER PRIMARY KEY, amount INTEGER);
CREATE INDEX orders_total ON orders(total);
CREATE INDEX customers_email ON customers(email);
INSERT INTO orders (id, tenant, customer_id, total, note)
  VALUES (1, 'a', 1, 10, 'first'), (5, 'a', 2, 20, '{}'), (9, 'a', 1, 30, NULL), (20, 'a', 3, 5, 'third');
INSERT INTO customers (id, name, email, age, born)
  VALUES (1, 'Ada', 'a@1', 20, '1990-01-01'), (2, 'Bob', 'b@1', 30, '1991-01-01'), (3, 'Cem', NULL, 40, NULL);
CREATE TABLE accounts (id INTEGER PRIMARY KEY, holder TEXT, email TEXT, born TEXT, iban TEXT, pin TEXT, balance INT);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 29)
INSERT INTO accounts
  SELECT i, nullif('{' || (i % 5), '{4'), i % 3, (1990 + i % 4) || '-01-01', NULL, NULL, i % 7 - 2 FROM n;
CREATE INDEX accounts_email ON accounts(email);
CREATE INDEX accounts_pin ON accounts(pin, holder);
CREATE INDEX accounts_balance ON accounts(balance);
ANALYZE accounts;
"""
HIDDEN = """
INSERT INTO orders VALUES (2, 'b', 1, -9223372036854775808, 'zyxmark', 's'), (8, 'b', 2, 8, '{bad', 's'),
  (3, 'c', 3, 100, '(', 's'), (100, 'b', 9, 0, '', 's');
UPDATE orders SET secret = 'zyxmark' || id;
UPDATE customers SET ssn = 'zyx' || id, email = substr(email, 1, 1) || 'zyxmark', born = substr(born, 1, 5) || '07-07';
INSERT INTO customers VALUES (7, 'Eve', 'e@zyx', '1', 99, 'x'), (8, 'Fay', 'f', '2', -7, 'y');
INSERT INTO salaries VALUES (1, 5);
UPDATE accounts SET email = email || replace(hex(zeroblob(id % 9 * 100)), '00', 'zyxmark' || id),
  pin = hex(zeroblob(900)) || (id / 2), born = substr(born, 1, 5) || '07-1' || (id % 9), iban = 'zyx' || id;
ANALYZE;
"""
ROLES = """
[databases.shop]
url = "sqlite:///shop.db"
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.orders"]
filter = "tenant = $claim.tenant"
deny_columns = ["secret"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.customers"]
filter = "id IN (SELECT customer_id FROM main.orders WHERE tenant = $claim.tenant)"
deny_columns = ["ssn"]
masks = { email = "partial", born = "year" }
[[roles.analyst.grants]]
database = "shop"
tables = ["main.accounts"]
deny_columns = ["pin"]
masks = { email = "partial", born = "year", iban = "null" }
"""


TABLES = SEEN.partition("WITH RECURSIVE")[0].replace("REFERENCES customers(id)", "")
"""What DuckDB can make of it. It refuses updates of rows that others refer to."""
ON_DUCKDB = """
[databases.shop]
url = "duckdb:///shop.db"
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.orders", "main.customers", "main.accounts"]
deny_columns = ["secret", "ssn", "pin"]
"""
ACCOUNTS = "INSERT INTO accounts (id, holder, balance) VALUES (1, 'a', 2), (2, NULL, 3);"
COLUMNS_HIDDEN = """
UPDATE orders SET secret = 'zyxmark' || id;
UPDATE customers SET ssn = 'zyx' || id;
UPDATE accounts SET pin = 'zyx' || id;
INSERT INTO salaries VALUES (1, 5);
"""


@asynccontextmanager
async def opened(parent, roles, make, *scripts):
    """Open a gateway with these roles over a file of each script, which `make` runs."""
    async with AsyncExitStack() as stack:
        boxes = []
        for number, sql in enumerate(scripts):
            folder = parent / str(number)
            folder.mkdir(parents=True)
            make(folder / "shop.db", sql)
            (folder / "dragoman.toml").write_text(roles)
            configuration = load(folder / "dragoman.toml", environ={}, folder=folder)
            boxes.append(Toolbox(await stack.enter_async_context(Gateway.open(configuration))))
        yield boxes


def make_sqlite(path, sql):
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()


def make_duckdb(path, sql):
    with duckdb.connect(path) as connection:
        connection.execute(sql)


@pytest.fixture
async def twins(tmp_path):
    """Two shops with the same visible part."""
    async with opened(tmp_path, ROLES, make_sqlite, SEEN, SEEN + HIDDEN) as boxes:
        yield boxes


@pytest.fixture
async def twins_on_duckdb(tmp_path):
    """Two DuckDB files with the same visible part."""
    seen = TABLES + ACCOUNTS
    async with opened(tmp_path / "duckdb", ON_DUCKDB, make_duckdb, seen, seen + COLUMNS_HIDDEN) as boxes:
        yield boxes


async def compare(twins, seeds, maker: Maker = SQLITE):
    answered, different = await differences(twins, maker, seeds)
    assert not different, different
    return answered


@pytest.mark.full
@pytest.mark.timeout(1_200)
async def test_what_is_hidden_changes_no_answer(twins):
    # The last one: a condition that fails on a row that is seen, where a plan of counted rows came to that row.
    assert await compare(twins, [*range(1_000), 2_126]) > 500


@pytest.mark.full
@pytest.mark.timeout(1_200)
async def test_masked_cells_of_any_width_change_no_answer(twins):
    assert await compare(twins, range(500), MASKED) > 300


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
async def test_masked_cells_of_any_width_change_no_answer_of_many(twins):
    assert await compare(twins, range(1_000, 51_000), MASKED) > 25_000


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
async def test_what_is_hidden_changes_no_answer_of_many(twins):
    assert await compare(twins, range(2_000, 102_000)) > 50_000


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_no_syntax_pries_into_what_is_hidden(twins):
    assert await compare(twins, range(400), PRYING) > 50


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_no_syntax_pries_into_what_is_hidden_on_duckdb(twins_on_duckdb):
    assert await compare(twins_on_duckdb, range(400), DUCKDB) > 20


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
async def test_no_syntax_of_many_pries_into_what_is_hidden(twins, twins_on_duckdb):
    assert await compare(twins, range(1_000, 21_000), PRYING) > 2_000
    assert await compare(twins_on_duckdb, range(1_000, 21_000), DUCKDB) > 1_000
