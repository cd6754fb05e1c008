"""The columns a statement touches, compared with what SQLite's own authorizer sees of it."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
from dragoman import InvalidSql, Relation, Statement, Table, TableColumn, testing
from dragoman.plugins import Plugins
from dragoman.sql.columns import Names, find_touched_columns

SCHEMA = {
    "customers": ("id", "name", "email", "region"),
    "orders": ("id", "customer_id", "total", "status", "doc"),
    "regions": ("region", "title"),
    "paid": ("id", "total"),
    "Odd Table": ("a b", "Order"),
}
VIEWS = {"paid": "SELECT id, total FROM orders WHERE status = 'paid'"}
HIDDEN = {*VIEWS, "big_orders"}
TABLES = {
    name: Table(
        relation=Relation(name, "main"), columns=tuple(TableColumn(name=column, type="text") for column in columns)
    )
    for name, columns in SCHEMA.items()
}

DIALECT = Plugins.discover().load("sqlite").dialect
LEXICON = DIALECT.lexicon
NAMES = Names(same=DIALECT.same, implicit=frozenset({"rowid", "oid", "_rowid_"}), reserved=DIALECT.reserved)
KNOWN = {name.lower(): table for name, table in TABLES.items()}
CORPUS = Path(testing.__file__).parent / "corpus"


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    for name, columns in SCHEMA.items():
        listed = ", ".join(f'"{column}"' for column in columns)
        connection.execute(
            f'CREATE VIEW "{name}" AS {VIEWS[name]}' if name in VIEWS else f'CREATE TABLE "{name}" ({listed})'
        )
    yield connection
    connection.close()


def touched(sql: str, by_name: Mapping[str, Table] = KNOWN) -> set[tuple[str, str]]:
    statement = Statement.parse(sql, sqlglot="sqlite", lexicon=LEXICON)
    tables = {written: by_name.get(written.name.lower()) for written in statement.relations()}
    return {(relation.name, column) for relation, column in find_touched_columns(statement, tables, NAMES)}


def read(connection: sqlite3.Connection, sql: str, names: Collection[str] = SCHEMA) -> set[tuple[str, str]]:
    """What SQLite reads for a statement itself, not for the views it uses."""
    seen: set[tuple[str, str]] = set()

    def note(action: int, table: str | None, column: str | None, _: str | None, view: str | None) -> int:
        if action == sqlite3.SQLITE_READ and table and table in names and column and view not in HIDDEN:
            seen.add((table, column))
        return sqlite3.SQLITE_OK

    connection.set_authorizer(note)
    try:
        connection.execute(f"EXPLAIN {sql}").fetchall()
    finally:
        connection.set_authorizer(None)
    return seen


# Statements whose columns are told exactly: as many as SQLite itself reads, and no more.
EXACT = [
    "SELECT id FROM customers",
    "SELECT c.name, o.total FROM customers AS c JOIN orders o ON o.customer_id = c.id",
    "SELECT name FROM customers WHERE email LIKE 'a%' ORDER BY region",
    "SELECT * FROM customers",
    "SELECT c.* FROM customers c JOIN orders ON orders.customer_id = c.id",
    "SELECT count(*) FROM customers",
    "SELECT total AS t FROM orders GROUP BY status HAVING max(total) > 3 ORDER BY t",
    "SELECT n FROM (SELECT name AS n FROM customers) AS s",
    "SELECT s.n, total FROM (SELECT id, name AS n FROM customers) s JOIN orders ON customer_id = s.id",
    "WITH x AS (SELECT id, name FROM customers) SELECT name FROM x",
    "WITH x (k, n) AS (SELECT id, name FROM customers) SELECT x.n FROM x WHERE k > 1",
    "WITH x AS (SELECT * FROM regions), y AS (SELECT title FROM x) SELECT title FROM y",
    "SELECT (SELECT max(total) FROM orders WHERE customer_id = c.id) FROM customers c",
    "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.status = 'x')",
    "SELECT id FROM customers WHERE id IN (SELECT customer_id FROM orders)",
    "SELECT name FROM customers UNION SELECT title FROM regions ORDER BY 1",
    "SELECT NAME, [email], `region` FROM CUSTOMERS",
    'SELECT "a b" FROM "Odd Table" WHERE "Order" = 1',
    "SELECT sum(total) OVER (PARTITION BY status ORDER BY id) FROM orders",
    "SELECT sum(total) FILTER (WHERE status = 'x') FROM orders",
    "SELECT sum(total) OVER w FROM orders WINDOW w AS (PARTITION BY status)",
    "SELECT CASE WHEN region IS NULL THEN name ELSE 'x' END FROM customers",
    "SELECT a.id FROM orders a, orders b WHERE a.total < b.total",
    "SELECT main.customers.name FROM main.customers",
    "SELECT j.value FROM orders, json_each(orders.doc) AS j",
    "SELECT value FROM orders, json_each(doc)",
    "SELECT doc ->> '$.a' FROM orders",
    "VALUES (1), (2)",
    "SELECT id FROM orders WHERE (id, total) = (1, 2)",
    "WITH RECURSIVE r (i) AS (SELECT id FROM orders UNION ALL SELECT i + 1 FROM r WHERE i < 5) SELECT i FROM r",
    "SELECT id FROM (SELECT id FROM orders UNION ALL SELECT id FROM customers)",
    "SELECT x.id FROM ((SELECT id FROM orders)) x",
    "SELECT DISTINCT status FROM orders LIMIT (SELECT count(region) FROM regions)",
    "SELECT id FROM customers ORDER BY (SELECT title FROM regions WHERE regions.region = customers.region)",
]
# Statements of which a little too much is said, and never too little.
MORE = [
    "SELECT customers.rowid FROM customers",
    "SELECT name FROM customers JOIN regions USING (region)",
    "SELECT rowid AS rowid FROM customers ORDER BY rowid",
    "SELECT name AS rowid FROM customers WHERE rowid = 1",
    "SELECT name FROM customers NATURAL JOIN regions",
    "SELECT id FROM customers WHERE (id, name) IN regions",
    "SELECT id, total FROM paid",
    "SELECT * FROM paid JOIN orders USING (id)",
    "SELECT name FROM customers WHERE EXISTS (SELECT * FROM orders WHERE id = customer_id)",
    "SELECT s.title FROM (SELECT * FROM customers NATURAL JOIN regions) s",
    "SELECT name FROM customers WHERE id IN (SELECT id FROM orders WHERE region = 'x')",
    "SELECT 1 FROM customers c LEFT JOIN orders o ON c.id = o.customer_id AND o.id IN (SELECT id FROM paid)",
    "WITH orders AS (SELECT name FROM customers) SELECT * FROM orders",
    "WITH x AS (WITH y AS (SELECT email FROM customers) SELECT * FROM y) SELECT * FROM x",
    "SELECT (SELECT (SELECT c.email)) FROM customers c",
    "SELECT * FROM (SELECT id FROM orders) a JOIN (SELECT id, name FROM customers) b USING (id)",
    "SELECT id FROM customers GROUP BY id HAVING count(*) > (SELECT avg(total) FROM orders)",
    "SELECT max(id) AS id FROM orders ORDER BY id",
    "SELECT email AS id FROM customers ORDER BY id",
    "SELECT id FROM orders WHERE total BETWEEN (SELECT min(total) FROM paid) AND (SELECT count(email) FROM customers)",
    "SELECT rowid FROM customers",
    "SELECT * FROM customers AS a JOIN customers AS b ON a.id = b.id",
]


@pytest.mark.parametrize("sql", EXACT)
def test_the_columns_touched_are_those_the_database_reads(sql: str, connection: sqlite3.Connection):
    assert touched(sql) == read(connection, sql)


@pytest.mark.parametrize("sql", MORE)
def test_no_column_the_database_reads_is_missed(sql: str, connection: sqlite3.Connection):
    lower = {(table, name.lower()) for table, name in touched(sql)}
    assert lower >= {(table, name.lower()) for table, name in read(connection, sql)}


def test_no_column_is_missed_in_any_query_of_the_corpus():
    connection = sqlite3.connect(":memory:")
    connection.executescript((CORPUS / "sqlite.sql").read_text(encoding="utf-8"))
    names = [name for (name,) in connection.execute("SELECT name FROM pragma_table_list")]
    found = {name.lower(): described(connection, name) for name in names}
    cases = [json.loads(line) for file in CORPUS.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    compared = 0
    for sql in (case["sql"] for case in cases if case["allow"]):
        try:
            expected = read(connection, sql, {name for name in names if not name.startswith("big_")})
        except sqlite3.Error:
            continue  # for a newer SQLite than Python's own
        lower = {(table.lower(), name.lower()) for table, name in touched(sql, found)}
        assert lower >= {(table.lower(), name.lower()) for table, name in expected}, sql
        compared += 1
    connection.close()
    assert compared > 200


def described(connection: sqlite3.Connection, name: str) -> Table:
    columns = [column for (column,) in connection.execute("SELECT name FROM pragma_table_xinfo(?)", (name,))]
    return Table(relation=Relation(name), columns=tuple(TableColumn(name=column, type="") for column in columns))


def test_a_view_stays_one_relation():
    assert touched("SELECT total FROM paid") == {("paid", "total")}


def test_columns_of_what_the_catalog_does_not_know_stay_as_written():
    assert touched("SELECT a, t.b FROM nowhere t") == {("nowhere", "a"), ("nowhere", "b")}
    assert touched("SELECT * FROM nowhere") == {("nowhere", "*")}


def test_a_name_that_nothing_has_is_taken_for_a_column_of_everything():
    assert touched("SELECT ctid FROM paid, regions") == {
        *(("paid", column) for column in ("ctid", "id", "total")),
        *(("regions", column) for column in ("ctid", "region", "title")),
    }


def test_a_whole_row_is_all_its_columns():
    assert touched("SELECT regions FROM regions") == {("regions", "region"), ("regions", "title")}


def test_under_other_names_all_columns_are_touched():
    whole = {("regions", "region"), ("regions", "title")}
    assert touched("SELECT x.title FROM regions AS x (title, region)") == whole
    assert touched("SELECT j.a FROM (regions CROSS JOIN paid) AS j (a)") >= whole


def test_what_cannot_be_followed_is_refused():
    deep = "SELECT id FROM orders UNION " * 3000 + "SELECT id FROM orders"
    with pytest.raises(InvalidSql):
        touched(deep)


SPELLINGS = [
    ("gip", "g\u0130p"),
    ("gip", "g\u0131p"),
    ("ssn", "\u017fsn"),
    ("kok", "\u212aok"),
    ("å", "\u212b"),
    ("οδοσ", "ΟΔΟΣ"),
    ("οδοσ", "οδος"),
    ("größe", "grõße"),
    ("straße", "straśe"),
    ("i\u0307d", "\u0130d"),
    ("mí", "m\u0131"),
    ("kí", "k\u0130"),
    ("ś", "\u017f"),
    ("ß", "\u017f"),
    ("σα", "\u03f2α"),
    ("ἰδ", "\u1fbeδ"),
]


@pytest.mark.parametrize(("stored", "written"), SPELLINGS)
def test_every_spelling_that_some_database_takes_for_a_column_means_it(stored: str, written: str):
    table = Table(relation=Relation("t"), columns=(TableColumn(name=stored, type=""),))
    query = f'SELECT x.a FROM (SELECT 1 AS a, 2 AS "{written}") AS x JOIN t USING ("{written}")'
    assert touched(query, {"t": table}) == {("t", stored)}


@pytest.mark.parametrize(("one", "other"), [("주소", "점수"), ("がく", "かく"), ("\u0958", "क"), ("año", "ano")])
def test_other_syllables_and_letters_are_another_column(one: str, other: str):
    table = Table(relation=Relation("t"), columns=(TableColumn(name=one, type=""), TableColumn(name=other, type="")))
    assert touched(f'SELECT "{one}" FROM t', {"t": table}) == {("t", one)}


@pytest.mark.parametrize(
    "name", ["i\u0130\u0131" * 30, "sk\u212a\u017f" * 20, "\u1e9b\u00e9a\u0301" * 20, "жЖß日" * 12]
)
def test_a_name_that_the_server_cuts_means_what_is_left(name: str):
    stored = name.encode()[:63].decode(errors="ignore")
    table = Table(relation=Relation("t"), columns=(TableColumn(name=stored, type=""),))
    assert touched(f'SELECT 1 FROM t JOIN (SELECT 2 AS "{name}") AS x USING ("{name}")', {"t": table}) == {
        ("t", stored)
    }


@pytest.mark.parametrize(
    "relations", ["orders", "(orders)", "(orders CROSS JOIN (SELECT 1) AS o)", "orders JOIN paid ON 1=1"]
)
@pytest.mark.parametrize("pivot", ["PIVOT (sum(total) FOR status IN ('a'))", "UNPIVOT (v FOR k IN (total, id))"])
def test_a_pivot_groups_by_every_column_of_its_relation(relations: str, pivot: str):
    statement = Statement.parse(f"SELECT count(*) FROM {relations} {pivot}", sqlglot="duckdb", lexicon=LEXICON)
    tables = {written: KNOWN[written.name] for written in statement.relations()}
    found = {column for relation, column in find_touched_columns(statement, tables, NAMES) if relation.name == "orders"}
    assert found >= {*SCHEMA["orders"]}
