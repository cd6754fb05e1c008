"""`*` beside USING: Trino's `t.*` leaves the shared columns out, and SQLite and DuckDB have them in another order."""

import pytest
from dragoman import Unsupported
from dragoman.sql.stars import ORDER
from dragoman.sql.translate import translate

TABLE = "SELECT a.* FROM t a LEFT JOIN u USING (i)"
ALL = "SELECT * FROM t JOIN u USING (i)"
PAIRS = ["trino sqlite", "trino postgres", "trino duckdb", "sqlite trino", "postgres trino", "duckdb trino"]


def told(sql: str, pair: str) -> tuple[str, ...]:
    source, target = pair.split()
    return translate(sql, source=source, target=target, rewrite=lambda tree: tree).notices[1:]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    "sql",
    [
        TABLE,
        f"SELECT count(*) FROM ({TABLE}) x",
        f"WITH w AS ({TABLE}) SELECT i FROM w",
        "SELECT A.* FROM (t a JOIN u USING (i)) JOIN v ON v.x = a.x",
        "SELECT u.* FROM v JOIN ((SELECT 1 AS i) AS a JOIN u USING (i)) ON v.x = a.x",
        "SELECT a.* FROM t AS a JOIN v ON v.x = a.x JOIN u USING (i)",
    ],
)
def test_every_column_of_a_table_beside_using_is_refused_where_it_means_others(pair: str, sql: str):
    with pytest.raises(Unsupported, match="USING") as refusal:
        told(sql, pair)
    assert "ON a.x = b.x" in refusal.value.suggestion


@pytest.mark.parametrize("pair", ["postgres sqlite", "sqlite postgres", "postgres duckdb", "trino presto"])
def test_every_column_of_a_table_beside_using_is_translated_where_it_means_the_same(pair: str):
    assert told(TABLE, pair) == ()


@pytest.mark.parametrize(
    "pair", ["postgres sqlite", "sqlite postgres", "duckdb trino", "trino sqlite", "postgres duckdb"]
)
@pytest.mark.parametrize("sql", [ALL, "SELECT * FROM t NATURAL JOIN u", "SELECT * FROM (t JOIN u USING (i))"])
def test_another_order_of_columns_is_told(pair: str, sql: str):
    source, target = pair.split()
    assert told(sql, pair) == (ORDER.format(source=source, target=target),)


@pytest.mark.parametrize("pair", ["postgres trino", "trino postgres", "sqlite duckdb", "duckdb sqlite"])
def test_the_same_order_of_columns_is_not_spoken_of(pair: str):
    assert told(ALL, pair) == ()


@pytest.mark.parametrize("pair", PAIRS)
def test_every_column_of_a_table_that_is_joined_later_without_using_is_translated(pair: str):
    assert told("SELECT v.* FROM t a JOIN u USING (i) JOIN v ON v.x = a.x", pair) == ()
    assert told("SELECT v.* FROM v JOIN (t a JOIN u USING (i)) ON v.x = a.x", pair) == ()


@pytest.mark.parametrize("pair", PAIRS)
def test_stars_without_using_are_translated(pair: str):
    assert told("SELECT a.*, b.i FROM t a JOIN (SELECT i FROM u JOIN v USING (i)) b ON a.i = b.i", pair) == ()
    assert told("SELECT count(*) FROM t JOIN u USING (i)", pair) == ()
