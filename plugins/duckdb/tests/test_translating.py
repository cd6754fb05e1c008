"""What is said of a query that was translated to DuckDB."""

import pytest
from dragoman.sql.translate import translate
from dragoman_duckdb.rewrite import DIVISION, UNKNOWN, rewrite


def told(expression: str, source: str) -> tuple[str, ...]:
    found = translate(f"SELECT {expression} FROM t", source=source, target="duckdb", rewrite=rewrite)
    return found.notices[1:]


@pytest.mark.parametrize("source", ["postgres", "sqlite", "trino"])
@pytest.mark.parametrize("expression", ["count(*) / 2", "a / b", "sum(a) / 7", "(a + 1) / -b"])
def test_a_division_that_drops_its_fraction_elsewhere_is_told(source: str, expression: str):
    assert told(expression, source) == (UNKNOWN, DIVISION)


@pytest.mark.parametrize(
    "expression", ["a / 2.0", "CAST(a AS DOUBLE PRECISION) / b", "a / (-1.5)", "avg(a) / 2", "a + 1"]
)
def test_a_division_with_a_fraction_is_not_spoken_of(expression: str):
    assert told(expression, "postgres") == (UNKNOWN,)


def test_a_source_that_keeps_the_fraction_is_not_spoken_of():
    assert told("a / b", "mysql") == (UNKNOWN,)
