"""Names that differ only in case are two names in Postgres if they are quoted, and one in SQLite, DuckDB and Trino."""

import pytest
from dragoman import Unsupported
from dragoman.sql.translate import translate

TWO = [
    'SELECT "A" FROM (SELECT x AS a, y AS "A" FROM t) q',
    'WITH w AS (SELECT x AS a, y AS "A" FROM t) SELECT "A" FROM w',
    'SELECT "T".x FROM s "T" JOIN u t ON true WHERE t.y = 10',
    'WITH "Staff" AS (SELECT 1 AS id) SELECT id FROM staff',
    'SELECT -id AS "ID" FROM t ORDER BY id',
    'SELECT upper(name) AS "NAME", count(*) FROM t GROUP BY "NAME", name',
    'SELECT q."A" FROM t AS q (a, "A")',
    'SELECT "Id", id FROM t',
    'SELECT 1 FROM t JOIN u USING ("Id") WHERE id = 1',
    'SELECT "Id" AS id, x AS "Id" FROM t',
    'SELECT "Id" AS id FROM t AS q (a, "Id")',
    'SELECT upper("Name") AS name FROM t ORDER BY "Name"',
    'SELECT upper("Name") AS name FROM t ORDER BY length("Name")',
    'SELECT upper("Name") AS name, count(*) FROM t GROUP BY name',
    'SELECT upper("Name") AS name, (SELECT max(name) FROM u) FROM t',
    'SELECT name FROM (SELECT upper("Name") AS name, "Name" FROM t) q',
    'SELECT name FROM (SELECT upper("Name") AS name FROM t) q JOIN u ON u.a = "Name"',
    'WITH w AS (SELECT upper("Name") AS name FROM t) SELECT name, (SELECT max("Name") FROM u) FROM w',
    'WITH w AS (SELECT upper("Name") AS name FROM t) SELECT name FROM w, u',
    'WITH w AS (SELECT upper("Name") AS name FROM t), v AS (SELECT * FROM t) SELECT name FROM w JOIN v ON true',
    'WITH w AS (SELECT upper("Name") AS name FROM t) SELECT (SELECT "Name" FROM u WHERE u.id = w.id) FROM w',
    'SELECT * FROM t JOIN LATERAL (SELECT upper("Name") AS name FROM u) q ON name = 1',
]
ONE = [
    "SELECT Id, ID FROM Staff WHERE staff.id = 3",
    'SELECT "Id" AS id FROM t ORDER BY id',
    'SELECT u."userId" AS userid FROM "Users" AS users JOIN d AS u ON u.a = users.b ORDER BY userid',
    'SELECT "A", "B" FROM "T" ORDER BY "A"',
    'SELECT a AS "Total" FROM t ORDER BY "Total"',
    'SELECT upper("Name") AS name FROM "Customer"',
    'SELECT c."Name", sum(i."Total") AS total FROM c JOIN i ON i.a = c.a WHERE i."Total" > 0 GROUP BY 1 ORDER BY total',
    'SELECT a, sum("Total") AS total FROM t GROUP BY a HAVING sum("Total") > 1 ORDER BY total DESC LIMIT 5',
    'WITH w AS (SELECT a, sum("Total") AS total FROM t GROUP BY a) SELECT a, total FROM w ORDER BY total DESC',
    'SELECT q.total / 2 AS half FROM (SELECT sum("Total") AS total FROM t) AS q WHERE q.total > 1',
    'WITH w AS (SELECT sum("Total") AS total FROM t), v AS (SELECT max(total) AS best FROM w) SELECT best FROM v',
]


@pytest.mark.parametrize(
    "pair", ["postgres sqlite", "postgres trino", "postgres duckdb", "sqlite postgres", "trino postgres"]
)
@pytest.mark.parametrize("sql", TWO)
def test_names_that_differ_only_in_case_are_refused_where_they_mean_something_else(pair: str, sql: str):
    source, target = pair.split()
    with pytest.raises(Unsupported, match="differ only in case"):
        translate(sql, source=source, target=target, rewrite=lambda tree: tree)


@pytest.mark.parametrize("pair", ["postgres sqlite", "sqlite postgres", "trino postgres", "snowflake sqlite"])
@pytest.mark.parametrize("sql", ONE)
def test_names_in_another_case_are_translated_where_they_mean_the_same(pair: str, sql: str):
    source, target = pair.split()
    assert translate(sql, source=source, target=target, rewrite=lambda tree: tree).sql


@pytest.mark.parametrize("pair", ["sqlite trino", "duckdb sqlite", "mysql sqlite", "mysql trino"])
def test_names_in_another_case_are_translated_between_databases_that_ignore_it(pair: str):
    source, target = pair.split()
    assert translate("SELECT Id FROM t ORDER BY id", source=source, target=target).sql
