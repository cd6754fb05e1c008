"""The policy over SQLite, from its entry point and a configuration file. Any other dialect would do."""

import sqlite3
from pathlib import Path

import pytest
from dragoman import ConfigurationError, Gateway, UnsafeSql

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, email TEXT, country TEXT);
CREATE TABLE contact (customer_id INTEGER, email TEXT, note TEXT);
CREATE TABLE country (country TEXT, title TEXT);
INSERT INTO customer VALUES (1, 'Ada', 'ada@example', 'UK'), (2, 'Chi', 'chi@example', 'NG');
INSERT INTO contact VALUES (1, 'ada@example', 'called');
CREATE VIEW addresses AS SELECT id, email AS address FROM customer;
CREATE VIEW letters AS SELECT address AS line FROM addresses;
CREATE VIEW written (number, line) AS WITH x AS (SELECT * FROM customer) SELECT id, email FROM x;
CREATE VIEW places AS SELECT id, country FROM customer;
CREATE TABLE person (id INTEGER PRIMARY KEY, email TEXT, host TEXT AS (substr(email, 5)));
CREATE VIRTUAL TABLE letter USING fts5(title, email);
"""
CONFIGURATION = """
[databases.shop]
url = "sqlite:///shop.db"
[policies.columns]
"""


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


REFUSED = [
    "SELECT email FROM customer",
    "SELECT EMAIL FROM Customer",
    'SELECT "email" FROM [customer]',
    "SELECT c.email AS x FROM customer AS c",
    "SELECT * FROM customer",
    "SELECT c.* FROM customer c JOIN country USING (country)",
    "SELECT count(*) FROM customer WHERE email LIKE 'a%'",
    "SELECT id FROM customer ORDER BY email",
    "SELECT country FROM customer GROUP BY country HAVING max(email) > 'a'",
    "SELECT x.y FROM (SELECT email AS y FROM customer) AS x",
    "SELECT id FROM (SELECT * FROM customer)",
    "WITH x AS (SELECT * FROM customer) SELECT id FROM x",
    "WITH x (a, b) AS (SELECT id, email FROM customer) SELECT b FROM x",
    "SELECT (SELECT email FROM customer WHERE id = 1)",
    "SELECT id FROM customer WHERE id IN (SELECT customer_id FROM contact WHERE email = 'x')",
    "SELECT country FROM customer UNION SELECT email FROM contact",
    "SELECT note FROM contact JOIN customer USING (email)",
    "SELECT note FROM contact NATURAL JOIN customer",
    "SELECT sum(id) OVER (PARTITION BY email) FROM customer",
    "SELECT address FROM addresses",
    "SELECT line FROM letters",
    "SELECT * FROM letters",
    "SELECT number FROM written",
    "EXPLAIN QUERY PLAN SELECT address FROM addresses",
    "SELECT sql FROM sqlite_schema",
    "SELECT u.email FROM (customer CROSS JOIN places) AS u",
    "SELECT email FROM places AS email, customer",
    "SELECT (SELECT email FROM places AS email) FROM customer",
    "SELECT (SELECT c.email FROM places AS c) FROM customer AS c",
    "SELECT (SELECT email FROM country AS c JOIN places AS p ON email = 1, contact) FROM customer",
    "SELECT 'customer'.email FROM customer",
    "SELECT customer.'email' FROM customer",
    "SELECT name FROM customer JOIN contact USING ('email')",
    "SELECT id FROM customer, (WITH customer AS (SELECT 1 AS email) SELECT 1 FROM customer) ORDER BY customer.email",
    "SELECT host FROM person",
    "SELECT title FROM letter WHERE letter MATCH 'email:x'",
    "SELECT l.title FROM letter AS l WHERE letter MATCH 'email:x'",
    "SELECT title FROM letter WHERE title MATCH 'email:x'",
    "SELECT title FROM letter('email:x')",
    "SELECT title FROM letter WHERE letter = 'email:x'",
    "SELECT highlight(letter, 1, '', '') FROM letter",
    "SELECT * FROM no_such_table",
]
ANSWERED = [
    "SELECT id, country FROM customer",
    "SELECT count(*) FROM customer",
    "SELECT c.name FROM customer c JOIN country k ON k.country = c.country",
    "SELECT name FROM customer JOIN country USING (country)",
    "SELECT 'email' AS email",
    "SELECT country AS email FROM customer",
    "SELECT id FROM places",
    "SELECT note FROM contact",
    "SELECT country FROM country",
    "WITH x AS (SELECT email FROM customer), customer AS (SELECT 1 AS email) SELECT 1 FROM x",
    "SELECT id FROM person",
    "SELECT title FROM letter",
    "SELECT (SELECT max(k.title) FROM country AS k WHERE k.country = c.country) AS email FROM customer AS c",
]


@pytest.mark.parametrize("sql", REFUSED)
async def test_a_statement_that_touches_the_column_is_refused(sql: str, configuration):
    async with Gateway.open(configuration("refuse = ['email']")) as gateway:
        with pytest.raises(UnsafeSql):
            await gateway.query("shop", sql)


@pytest.mark.parametrize("sql", ANSWERED)
async def test_a_statement_that_does_not_is_answered(sql: str, configuration):
    async with Gateway.open(configuration("refuse = ['email']")) as gateway:
        await gateway.query("shop", sql)


async def test_the_refusal_names_the_column_and_what_brought_it(configuration):
    async with Gateway.open(configuration("refuse = ['email']")) as gateway:
        with pytest.raises(UnsafeSql, match=r"The column customer\.email must not be queried"):
            await gateway.query("shop", "SELECT * FROM customer")
        with pytest.raises(UnsafeSql, match=r"The view letters reads customer\.email"):
            await gateway.query("shop", "SELECT line FROM letters")


async def test_samples_and_plans_are_statements_too(configuration):
    async with Gateway.open(configuration("refuse = ['email']")) as gateway:
        for ask in (
            gateway.sample("shop", "customer"),
            gateway.sample("shop", "customer", columns=["id"], where="email LIKE 'a%'"),
            gateway.sample("shop", "country", where="EXISTS (SELECT email FROM customer)"),
            gateway.explain("shop", "SELECT id FROM customer WHERE email = 'a'"),
        ):
            with pytest.raises(UnsafeSql):
                await ask
        assert (await gateway.sample("shop", "customer", columns=["id"], limit=1)).rows == [[1]]


@pytest.mark.parametrize(
    ("pattern", "refused"),
    [
        ("customer.email", {"customer.email"}),
        ("main.customer.*", {"customer.email", "customer.name"}),
        ("C*.E*", {"customer.email", "contact.email"}),
        ("?ame", {"customer.name"}),
        ("other.customer.email", set()),
    ],
)
async def test_a_pattern_may_name_tables_and_schemas(pattern: str, refused: set[str], configuration):
    found = set()
    async with Gateway.open(configuration(f"refuse = ['{pattern}']")) as gateway:
        for column in ("customer.email", "customer.name", "contact.email", "contact.note"):
            try:
                await gateway.query("shop", f"SELECT {column} FROM {column.partition('.')[0]}")
            except UnsafeSql:
                found.add(column)
    assert found == refused


async def test_a_view_may_be_allowed_as_it_is(configuration):
    async with Gateway.open(configuration("refuse = ['email']\nallow_views = ['addresses']")) as gateway:
        assert (await gateway.query("shop", "SELECT count(address) FROM addresses")).rows == [[2]]
        with pytest.raises(UnsafeSql):
            await gateway.query("shop", "SELECT a.id FROM addresses a JOIN customer c ON c.email = a.address")


@pytest.mark.parametrize(
    ("policy", "what"),
    [("", "refuse is missing"), ("refuse = ['a.b.c.d.e']", "too many dots"), ("refuze = []", "unknown option")],
)
async def test_options_that_do_not_fit_stop_the_start(policy: str, what: str, configuration):
    with pytest.raises(ConfigurationError, match=what):
        async with Gateway.open(configuration(policy)):
            pass
