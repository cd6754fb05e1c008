"""Trino's queries on SQLite: each answer below is the one Trino gives, or the query is refused."""

from typing import Any

import apsw
import pytest
from dragoman import Unsupported
from dragoman.sql.translate import Translation, translate
from dragoman_sqlite.rewrite import rewrite

SETUP = """
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price REAL, qty INTEGER, day TEXT, seen TEXT, doc TEXT);
INSERT INTO t VALUES
    (1, 'Apple', 1.5, 7, '2024-01-31', '2024-01-31 10:20:30', '{"a": 1, "b": [true, "x"], "c": {"d": "e"}}'),
    (2, 'apple_pie', 2.5, 3, '2023-12-31', '2023-12-31 23:59:59', '{"a": "1"}');
"""


@pytest.fixture(scope="module")
def database() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(SETUP)
    return connection


def from_trino(sql: str) -> Translation:
    return translate(sql, source="trino", target="sqlite", rewrite=rewrite)


ONE = [
    ("price % 1 FROM t WHERE id = 1 --", 0.5),
    ("count(*) FROM t WHERE date_trunc('month', seen) = DATE '2024-01-01' --", 1),
    ("count(*) FROM t WHERE date_trunc('month', day) = DATE '2024-01-01' --", 1),
    ("count(*) FROM t WHERE day IN (TIMESTAMP '2024-01-31 00:00:00') --", 1),
    ("-id AS id FROM t ORDER BY -id LIMIT 1 --", -1),
    ("id + 1 AS next FROM t ORDER BY next * -1 LIMIT 1 --", 3),
    ("'Apple' LIKE 'a%'", 0),
    ("'a_b' LIKE 'a\\_b'", 0),
    ("greatest(1, NULL, 3)", None),
    ("concat('a', NULL)", None),
    ("trim(chr(9) || 'a' || chr(10))", "a"),
    ("extract(dow FROM DATE '2024-01-28')", 7),
    ("day_of_week(DATE '2024-01-28')", 7),
    ("second(TIMESTAMP '2024-01-31 10:20:30') + quarter(DATE '2024-05-01')", 32),
    ("date_add('month', 1, DATE '2024-01-31')", "2024-02-29"),
    ("date_add('quarter', -1, DATE '2024-05-31')", "2024-02-29"),
    ("date_diff('hour', TIMESTAMP '2024-01-01 12:30:00', TIMESTAMP '2024-01-01 10:00:00')", -2),
    ("date_diff('day', DATE '2024-02-01', DATE '2024-03-01')", 29),
    ("DATE '2024-01-31' + INTERVAL '1' MONTH", "2024-02-29"),
    ("day + INTERVAL '1' DAY FROM t WHERE id = 1", "2024-02-01"),
    ("seen + INTERVAL '1' DAY FROM t WHERE id = 1", "2024-02-01 10:20:30"),
    ("date_trunc('month', day) FROM t WHERE id = 1", "2024-01-01"),
    ("date_trunc('month', seen) FROM t WHERE id = 1", "2024-01-01 00:00:00"),
    ("day - day FROM t WHERE id = 1", "0 00:00:00.000"),
    ("qty - id FROM t WHERE id = 1", 6),
    ("max(day) - min(day) FROM t", "31 00:00:00.000"),
    ("last_day_of_month(DATE '2024-02-01')", "2024-02-29"),
    ("to_unixtime(TIMESTAMP '1970-01-02 00:00:00')", 86400.0),
    ("date_format(TIMESTAMP '2024-01-31 10:20:30', '%Y-%m-%d %H:%i:%s')", "2024-01-31 10:20:30"),
    ("DATE '2024-03-01' = TIMESTAMP '2024-03-01 00:00:00'", 1),
    ("CAST('1.005' AS decimal(10, 2))", 1.01),
    ("CAST(1.5 AS decimal)", 2),
    ("bitwise_and(6, 3) * 2", 4),
    ("codepoint('a')", 97),
    ("starts_with('abc', 'ab')", 1),
    ("substr('hello', strpos('hello', 'l') + 1)", "lo"),
    ("substr('ab', 1, strpos('ab', '-') - 1)", ""),
    ("json_extract_scalar(doc, '$.c.d') FROM t WHERE id = 1", "e"),
    ("json_extract_scalar(doc, '$.c') FROM t WHERE id = 1", None),
    ("approx_distinct(qty) FROM t", 2),
    ("arbitrary(name) FROM t WHERE id = 1", "Apple"),
    ("every(id > 0) FROM t", 1),
    ("listagg(name) WITHIN GROUP (ORDER BY id DESC) FROM t", "apple_pieApple"),
]


@pytest.mark.parametrize(("expression", "expected"), ONE)
def test_an_expression_gives_the_answer_of_trino(database: apsw.Connection, expression: str, expected: Any):
    assert database.execute(from_trino(f"SELECT {expression}").sql).fetchall() == [(expected,)]


REFUSED = [
    ("max(id, 2) FROM t", "several rows"),
    ("min(id, 2) FROM t", "several rows"),
    ("sum(qty) / 7 FROM t", "sum by a whole number"),
    ("DATE '2024-01-02' - DATE '2024-01-01'", "interval in Trino"),
    ("date_diff('month', day, seen) FROM t", "difference of dates"),
    ("date_add('month', qty, DATE '2024-01-31') FROM t", "date_add"),
    ("substr(name, qty) FROM t", "computed place"),
    ("substr(name, -2) FROM t", "before the beginning"),
    ("lower('À')", "beyond ASCII"),
    ("replace(name, '', 'x') FROM t", "empty text"),
    ("round(2.675e0, 2)", "literal double"),
    ("CAST(1.5 AS varchar)", "decimals as text"),
    ("split_part(name, '-', 1) FROM t", "split_part"),
    ("regexp_like(name, 'a') FROM t", "regexp_like"),
    ("ARRAY[1, 2]", "array"),
    ("max_by(name, qty) FROM t", "arg_max"),
    ("try(1 / 0)", "try"),
    ("TIMESTAMP '2024-01-01 10:00:00 UTC'", "cast"),
]


@pytest.mark.parametrize(("expression", "named"), REFUSED)
def test_what_sqlite_would_answer_otherwise_is_refused_by_name(expression: str, named: str):
    with pytest.raises(Unsupported, match=named) as refusal:
        from_trino(f"SELECT {expression}")
    assert refusal.value.suggestion


NOTED = [
    ("1.0 / 3", "decimal places"),
    ("avg(price) FROM t", "decimal places"),
    ("qty / id FROM t", "drops the fraction"),
    ("round(price, 1) FROM t", "binary number"),
    ("CAST(price AS varchar) FROM t", "truth values"),
    ("qty - id FROM t", "cast timestamps to date"),
]


@pytest.mark.parametrize(("expression", "said"), NOTED)
def test_what_may_differ_is_said(expression: str, said: str):
    assert any(said in notice for notice in from_trino(f"SELECT {expression}").notices)
