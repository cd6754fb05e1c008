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
    (f"date /* {'-' * 300} */ '2024-01-31'::text", "2024-01-31"),
    ("timestamp (3)\n without time zone '2024-01-31 10:20:30'::date::text", "2024-01-31"),
    ("character varying (5) 'abc'::text", "abc"),
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
    ("decimal '1.23456'", 1.23456),
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


@pytest.mark.parametrize(
    "before",
    [
        "x LIKE", "x IN ('b') OR x =", "x AT TIME ZONE", "x AT TIME /* its */ ZONE", "x IS DISTINCT FROM", "x =",
        "x ||", "x BETWEEN SYMMETRIC 'b' AND", "x ISNULL AND", "CASE x WHEN 'b' THEN x ELSE", "position('b' IN",
        "sum(x) OVER (ORDER BY x ROWS", "sum(x) OVER (ORDER BY x RANGE", "sum(x) OVER (ORDER BY x GROUPS",
    ],
)  # fmt: skip
def test_a_word_before_a_text_is_no_type(before: str):
    ends = {"C": " END", "p": ")", "s": " PRECEDING)"}.get(before[0], "")
    sql = translate(f"SELECT {before} 'a'::text{ends} FROM t", source="postgres", target="duckdb").sql
    assert "CAST('a' AS TEXT)" in sql


@pytest.mark.parametrize("between", ["SYMMETRIC", "ASYMMETRIC"])
def test_a_text_after_a_word_of_between_is_translated(between: str):
    sql = f"SELECT 1 FROM t WHERE x BETWEEN {between} 'a'::text AND 'b'::text"
    assert "CAST('a' AS TEXT)" in translate(sql, source="postgres", target="duckdb").sql


def test_a_number_in_parentheses_after_a_word_makes_no_type_of_it():
    sql = translate("SELECT DISTINCT ON (1) 'a'::text FROM t", source="postgres", target="duckdb").sql
    assert "DISTINCT ON (1) CAST('a' AS TEXT)" in sql
