"""What each column of an answer is made of: exactly where that is certain, and never too little."""

from collections.abc import Sequence

import pytest
from dragoman import Relation, Statement, Table, TableColumn
from dragoman.plugins import Plugins
from dragoman.sql.columns import Names
from dragoman.sql.lineage import trace_columns

SCHEMA = {"customer": ("id", "name", "email"), "orders": ("id", "customer_id", "total"), "notes": ("note",)}
DIALECT = Plugins.discover().load("sqlite").dialect
NAMES = Names(same=DIALECT.same, implicit=DIALECT.implicit_columns, reserved=DIALECT.reserved)
Told = Sequence[tuple[str | None, set[str]]] | None


def table(name: str) -> Table | None:
    columns = tuple(
        TableColumn(name=column, type="", generated="substr(email, 1, 1)" if column == "name" else None)
        for column in SCHEMA.get(name, ())
    )
    kind = "virtual table" if name == "notes" else "table"
    return Table(relation=Relation(name), type=kind, columns=columns) if columns else None


def trace(sql: str) -> Told:
    statement = Statement.parse(sql, sqlglot="sqlite", lexicon=DIALECT.lexicon)
    tables = {written: table(written.name) for written in statement.relations()}
    touched, outputs = trace_columns(statement, tables, NAMES)
    assert {column for _, columns in outputs or () for column in columns} <= set(touched)
    if outputs is None:
        return None
    return [(name, {f"{each.name}.{column}" for each, column in columns}) for name, columns in outputs]


ID, NAME, EMAIL, TOTAL = "customer.id", "customer.name", "customer.email", "orders.total"
WHOLE = [("id", {ID}), ("name", {NAME, EMAIL}), ("email", {EMAIL})]
ORDERS = [("id", {"orders.id"}), ("customer_id", {"orders.customer_id"}), ("total", {TOTAL})]
CASES: dict[str, Told] = {
    "SELECT id, upper(email) AS loud FROM customer WHERE name = 'x'": [("id", {ID}), ("loud", {EMAIL})],
    "SELECT count(*), max(id) + 1 FROM customer GROUP BY email": [(None, set()), (None, {ID})],
    "SELECT * FROM customer": WHOLE,
    "SELECT o.*, c.email FROM customer c JOIN orders o ON o.customer_id = c.id": [*ORDERS, ("email", {EMAIL})],
    "SELECT * FROM customer, orders": [*WHOLE, *ORDERS],
    "SELECT * FROM customer JOIN orders USING (id)": None,
    "SELECT * FROM customer NATURAL JOIN orders": None,
    "SELECT id, max(COLUMNS('e.*')) FROM customer": None,
    "SELECT x.b FROM (SELECT COLUMNS('.*') AS b FROM customer) AS x": [("b", {ID, NAME, EMAIL})],
    # A star behind a value stands for several columns.
    "SELECT (c.*), o.id FROM customer c, orders o": None,
    "SELECT ((c.*)), o.id FROM customer c, orders o": None,
    "SELECT (x.c).*, x.id FROM (SELECT c, id FROM customer c) AS x": None,
    "SELECT ((x.c).d).*, x.id FROM (SELECT c, id FROM customer c) AS x": None,
    "SELECT x.e FROM (SELECT email AS e, id FROM customer) x": [("e", {EMAIL})],
    "WITH x (a, b) AS (SELECT id, email FROM customer) SELECT b, a FROM x": [("b", {EMAIL}), ("a", {ID})],
    "WITH x AS (SELECT id, email FROM customer), y AS (SELECT * FROM x) SELECT * FROM y": [
        ("id", {ID}),
        ("email", {EMAIL}),
    ],
    "SELECT id FROM customer UNION ALL SELECT total FROM orders": [("id", {ID, TOTAL})],
    "SELECT s.id FROM (SELECT id, email FROM customer UNION SELECT total, id FROM orders) s": [("id", {ID, TOTAL})],
    "SELECT email AS e, e || 'x' AS f FROM (SELECT email FROM customer)": [("e", {EMAIL}), ("f", {EMAIL})],
    "SELECT sum(total) OVER w AS s FROM orders WINDOW w AS (ORDER BY id)": [("s", {TOTAL, "orders.id"})],
    "SELECT (SELECT email FROM customer) AS e, id FROM orders": [("e", {EMAIL, "orders.id"}), ("id", {"orders.id"})],
    "WITH RECURSIVE n (i) AS (SELECT id FROM customer UNION SELECT i + 1 FROM n) SELECT i FROM n": [("i", {ID})],
    "SELECT * FROM gone": None,
    "SELECT email FROM gone": [("email", {"gone.email"})],
    "SELECT * FROM notes": None,
    "VALUES (1)": None,
    "SELECT v.x FROM (VALUES (1)) AS v": [("x", set())],
    "SELECT 1 IN customer AS found FROM orders": [("found", {ID, NAME, EMAIL})],
}


@pytest.mark.parametrize(("sql", "told"), CASES.items())
def test_outputs_are_made_of_what_is_followed(sql: str, told: Told):
    assert trace(sql) == told


def test_a_statement_of_very_many_parts_is_not_traced():
    for depth, traced in ((3, True), (30, False)):
        query = "SELECT * FROM customer"
        for _ in range(depth):
            query = f"SELECT a.*, a.* FROM ({query}) AS a"
        assert (trace(query) is not None) == traced
