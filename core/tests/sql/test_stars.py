"""`*` beside USING: Trino's `t.*` leaves the shared columns out, and SQLite has them in another order."""

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
@pytest.mark.parametrize("sql", [TABLE, f"SELECT count(*) FROM ({TABLE}) x", f"WITH w AS ({TABLE}) SELECT i FROM w"])
def test_every_column_of_a_table_beside_using_is_refused_where_it_means_others(pair: str, sql: str):
    with pytest.raises(Unsupported, match="USING") as refusal:
        told(sql, pair)
    assert "ON a.x = b.x" in refusal.value.suggestion


@pytest.mark.parametrize("pair", ["postgres sqlite", "sqlite postgres", "postgres duckdb", "trino presto"])
def test_every_column_of_a_table_beside_using_is_translated_where_it_means_the_same(pair: str):
    assert told(TABLE, pair) == ()


@pytest.mark.parametrize("pair", ["postgres sqlite", "sqlite postgres", "sqlite trino", "trino sqlite"])
@pytest.mark.parametrize("sql", [ALL, "SELECT * FROM t NATURAL JOIN u"])
def test_another_order_of_columns_is_told(pair: str, sql: str):
    assert told(sql, pair) == (ORDER,)


@pytest.mark.parametrize("pair", ["postgres trino", "trino postgres"])
def test_the_same_order_of_columns_is_not_spoken_of(pair: str):
    assert told(ALL, pair) == ()


@pytest.mark.parametrize("pair", PAIRS)
def test_stars_without_using_are_translated(pair: str):
    assert told("SELECT a.*, b.i FROM t a JOIN (SELECT i FROM u JOIN v USING (i)) b ON a.i = b.i", pair) == ()
    assert told("SELECT count(*) FROM t JOIN u USING (i)", pair) == ()
