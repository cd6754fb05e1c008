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
]
ONE = [
    "SELECT Id, ID FROM Staff WHERE staff.id = 3",
    'SELECT "Id" AS id FROM t ORDER BY id',
    'SELECT u."userId" AS userid FROM "Users" AS users JOIN d AS u ON u.a = users.b ORDER BY userid',
    'SELECT "A", "B" FROM "T" ORDER BY "A"',
    'SELECT a AS "Total" FROM t ORDER BY "Total"',
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
