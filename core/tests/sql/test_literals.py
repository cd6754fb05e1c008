"""A literal with its type before it is translated as its source reads it."""

import duckdb
import pytest
from dragoman.sql.translate import translate

POSTGRES = [
    ("timestamp '2024-01-31 10:20:30'::date::text", "2024-01-31"),
    ("timestamp '2024-01-31 10:20:30'::time::text", "10:20:30"),
    ("timestamp without time zone '2024-01-31 10:20:30'::date::text", "2024-01-31"),
    ("timestamp(3) '2024-01-31 10:20:30'::date::text", "2024-01-31"),
    ("date '2024-01-31'::varchar || 'x'", "2024-01-31x"),
    ("bool 't'::text", "true"),
    ("int '5'::numeric / 2", 2.5),
    ("bigint '5'::float8 / 2", 2.5),
    ("double precision '1.5'::numeric(5, 2)::text", "1.50"),
    ("numeric(5, 1) '1.26'::text", "1.3"),
    ("(date '2024-01-31')::text", "2024-01-31"),
    ("CASE WHEN 'a'::text LIKE 'a'::text THEN 'b'::text ELSE 'c'::text END", "b"),
    ("'it''s date ' || 'x'::text", "it's date x"),
    ("'5'::int + $1::int", 7),
]
TRINO = [
    ("decimal '1.5' * 2", 3.0),
    ("decimal '-0.05'", -0.05),
    ("DECIMAL '12' / decimal '1'", 12.0),
    ("decimal(5, 1) '1.2'", 1.2),
    ("decimal '.5'", 0.5),
]


@pytest.mark.parametrize(
    ("source", "expression", "value"),
    [("postgres", *each) for each in POSTGRES] + [("trino", *each) for each in TRINO],
)
def test_a_literal_is_of_its_type_before_it_is_cast(source: str, expression: str, value: object):
    translation = translate(f"SELECT {expression}", source=source, target="duckdb")
    values = [2] if "$1" in expression else []
    found = duckdb.execute(translation.sql, values).fetchall()[0][0]
    assert found == value if isinstance(value, str | int) else float(found) == value


@pytest.mark.parametrize("word", ["LIKE", "IN ('b') OR x =", "AT TIME ZONE", "IS DISTINCT FROM", "="])
def test_a_word_before_a_text_is_no_type(word: str):
    sql = translate(f"SELECT x {word} 'a'::text", source="postgres", target="duckdb").sql
    assert "CAST('a' AS TEXT)" in sql
