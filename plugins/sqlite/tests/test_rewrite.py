"""Postgres' queries on SQLite: each answer below is the one Postgres gives, or the query is refused."""

from typing import Any

import apsw
import pytest
from dragoman import InvalidSql, ParameterError, Unsupported
from dragoman.sql.translate import Translation, translate
from dragoman_sqlite.rewrite import rewrite
from dragoman_sqlite.rewrite.rewriting import POSTGRES, TRINO
from sqlglot.dialects.dialect import Dialects

SETUP = """
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price REAL, qty INTEGER, day TEXT, seen TEXT, doc TEXT);
INSERT INTO t VALUES
    (1, 'Apple', 1.5, 7, '2024-01-31', '2024-01-31 10:20:30', '{"a": 1, "b": [true, "x"], "c": {"d": "e"}}'),
    (2, 'apple_pie', 2.5, 3, '2023-12-31', '2023-12-31 23:59:59', '{"a": "1"}'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE "order" (id INTEGER, "select" TEXT);
INSERT INTO "order" VALUES (1, 'x');
"""


@pytest.fixture(scope="module")
def database() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(SETUP)
    return connection


def from_postgres(sql: str) -> Translation:
    return translate(sql, source="postgres", target="sqlite", rewrite=rewrite)


ONE = [
    # patterns heed case, as in Postgres
    ("'Apple' LIKE 'a%'", 0),
    ("'Apple' LIKE 'A%'", 1),
    ("'Apple' NOT LIKE 'a%'", 1),
    ("'a*b' LIKE 'a*b' AND 'axb' NOT LIKE 'a*b'", 1),
    ("'a[b' LIKE '%[%' AND 'a?b' LIKE '_?_'", 1),
    (r"'a_b' LIKE 'a\_b' AND 'axb' NOT LIKE 'a\_b'", 1),
    ("'50%' LIKE '50!%' ESCAPE '!' AND '500' NOT LIKE '50!%' ESCAPE '!'", 1),
    ("'Apple' ILIKE 'aPP%'", 1),
    (r"'A_b' ILIKE 'a\_B' AND 'Axb' NOT ILIKE 'a\_B'", 1),
    ("NULL LIKE 'a'", None),
    ("ascii('')", 0),
    ("ascii('a')", 97),
    ("ascii(NULL)", None),
    ("3 << 2", 12),
    # numbers
    ("0.06 + 0.01", 0.07),
    ("0.1 + 0.2 = 0.3", 1),
    ("0.06 - 0.01", 0.05),
    ("1 - 1.5", -0.5),
    ("1.1 * 3", 3.3),
    ("7 / 2", 3),
    ("-7 / 2", -3),
    ("-7 % 3", -1),
    ("7.0 / 2", 3.5),
    ("7 / 2::numeric", 3.5),
    ("7::float / 2", 3.5),
    ("1.5::int", 2),
    ("(-1.5)::int", -2),
    ("'12'::int + 1", 13),
    ("round(2.345::numeric, 1)", 2.3),
    ("2.345::numeric(10, 2)", 2.35),
    ("2 ^ 10", 1024),
    ("mod(7, 3)", 1),
    ("greatest(1, NULL, 3)", 3),
    ("least(2, NULL, 1)", 1),
    ("greatest(NULL, NULL)", None),
    ("ceil(1.2) + floor(1.8) + abs(-1) + sign(-3) + sqrt(4)", 5),
    ("price % 1 FROM t WHERE id = 1 --", 0.5),
    ("mod(price, qty) FROM t WHERE id = 2 --", 2.5),
    ("qty % 4 FROM t WHERE id = 1 --", 3),
    ("(qty + 1) % 3 FROM t WHERE id = 1 --", 2),
    ("log(100)", 2),
    ("log(2, 8)", 3),
    # texts
    ("'a' || NULL", None),
    ("concat('a', NULL, 'b')", "ab"),
    ("concat_ws('-', 'a', NULL, 'b')", "a-b"),
    ("'a' || 1", "a1"),
    ("left('abc', 2) || right('abc', 1) || right('abc', 0)", "abc"),
    ("position('c' in 'abc') * 10 + strpos('abc', 'b')", 32),
    ("substring('abcdef' from 2 for 3)", "bcd"),
    ("trim(both 'x' from 'xax') || trim(leading 'x' from 'xax') || trim('  b ')", "aaxb"),
    ("char_length('abc') + ascii('a')", 100),
    ("chr(65)", "A"),
    ("'abcdef'::varchar(3)", "abc"),
    ("12::text || 'x'", "12x"),
    ("upper('a') || lower('B') || replace('c', 'c', 'd')", "Abd"),
    ("coalesce(NULL, 'a') || nullif('b', 'c')", "ab"),
    ("E'a\\nb'", "a\nb"),
    ("$$it's$$", "it's"),
    # truth
    ("true AND NOT false", 1),
    ("NULL IS TRUE", 0),
    ("NULL IS NOT DISTINCT FROM NULL", 1),
    ("1 = ANY(ARRAY[1, 2]) AND 3 <> ALL(ARRAY[1, 2])", 1),
    ("1 = ANY(SELECT 1)", 1),
    ("'yes'::boolean", 1),
    ("(1, 2) = (1, 2)", 1),
    # dates
    ("date '2024-01-31' + 7", "2024-02-07"),
    ("7 + 1 + qty FROM t WHERE id = 1 --", 15),
    ("date '2024-03-01' - 1", "2024-02-29"),
    ("date '2024-03-01' - date '2024-02-01'", 29),
    ("'2024-03-01'::date - '2024-02-01'::date", 29),
    ("(date '1998-12-01' - interval '90' day)::date", "1998-09-02"),
    ("(date '2024-01-31' + interval '1 month')::date", "2024-02-29"),
    ("(date '2024-02-29' + interval '1 year 2 days')::date", "2025-03-02"),
    ("(interval '1 week' + date '2024-01-31')::date", "2024-02-07"),
    ("timestamp '2024-01-31 10:00:00' - interval '1 day 2 hours'", "2024-01-30 08:00:00"),
    ("timestamp '2024-01-31 10:00:00' + '30 minutes'::interval", "2024-01-31 10:30:00"),
    ("extract(year from date '2024-01-31') + extract(month from date '2024-01-31')", 2025),
    ("extract(dow from date '2024-01-28')", 0),
    ("extract(isodow from date '2024-01-28')", 7),
    ("extract(doy from date '2024-02-01')", 32),
    ("extract(week from date '2024-01-01')", 1),
    ("extract(quarter from date '2024-05-01')", 2),
    ("extract(month from date '2024-05-01') / 4", 1.25),
    ("(extract(month from date '2024-05-01') - 1) / 3", 4 / 3),
    ("ceil(extract(month from date '2024-05-01') / 3)", 2),
    ("extract(quarter from date '2024-05-01') / 4", 0.5),
    ("extract(month from date '2024-05-01')::int / 4", 1),
    ("sum(extract(day from seen)) / count(*) FROM t WHERE id < 3 --", 31),
    ("extract(epoch from timestamp '2024-01-01 00:00:00')", 1704067200),
    ("extract(second from timestamp '2024-01-01 00:00:07')", 7),
    ("date_part('day', date '2024-01-31')", 31),
    ("date_trunc('month', timestamp '2024-01-31 10:20:30')", "2024-01-01 00:00:00"),
    ("date_trunc('hour', timestamp '2024-01-31 10:20:30')", "2024-01-31 10:00:00"),
    ("date_trunc('week', timestamp '2024-01-31 10:20:30')", "2024-01-29 00:00:00"),
    ("date_trunc('week', timestamp '2024-01-29 10:20:30')", "2024-01-29 00:00:00"),
    ("date_trunc('month', timestamp '2024-03-31 10:20:30')::date - interval '1 month' < date '2024-02-02'", 1),
    ("to_char(timestamp '2024-01-31 10:20:30', 'YYYY-MM-DD HH24:MI:SS')", "2024-01-31 10:20:30"),
    ("current_date - current_date", 0),
    ("current_date - interval '7 days' < current_date", 1),
    # JSON
    ("doc ->> 'a' FROM t WHERE id = 1 --", "1"),
    ("count(*) FROM t WHERE doc ->> 'a' = '1' --", 2),
    ("doc -> 'b' ->> 0 FROM t WHERE id = 1 --", "true"),
    ("doc -> 'c' ->> 'd' FROM t WHERE id = 1 --", "e"),
    ("(doc ->> 'a')::int + 1 FROM t WHERE id = 1 --", 2),
    ("""'{"a": 1}'::jsonb -> 'a'""", "1"),
    ("""'{"a": {"b": 2}}'::jsonb -> 'a' ->> 'b'""", "2"),
    ("json_build_object('a', 1)", '{"a":1}'),
    ("jsonb_build_array(1, 'x')", '[1,"x"]'),
]


@pytest.mark.parametrize(("expression", "expected"), ONE)
def test_an_expression_gives_the_answer_of_postgres(database: apsw.Connection, expression: str, expected: Any):
    found = database.execute(from_postgres(f"SELECT {expression}").sql).fetchall()[0][0]
    assert found == pytest.approx(expected) if isinstance(expected, float) else found == expected


WHOLE = [
    ("SELECT id FROM t ORDER BY price", [(1,), (2,), (3,)]),
    ("SELECT id FROM t ORDER BY price DESC", [(3,), (2,), (1,)]),
    ("SELECT id FROM t ORDER BY price DESC NULLS LAST LIMIT 1 OFFSET 1", [(1,)]),
    ("SELECT id FROM t ORDER BY id OFFSET 2", [(3,)]),
    ("SELECT id FROM t ORDER BY id FETCH FIRST 2 ROWS ONLY", [(1,), (2,)]),
    ("SELECT id FROM t WHERE name ILIKE 'APPLE%' ORDER BY 1", [(1,), (2,)]),
    ("SELECT id FROM t WHERE price BETWEEN 1.6 - 0.1 AND 1.4 + 0.1", [(1,)]),
    ("SELECT string_agg(name, ',' ORDER BY id DESC) FROM t", [("apple_pie,Apple",)]),
    ("SELECT bool_and(qty > 1), bool_or(qty > 5) FROM t", [(1, 1)]),
    ("SELECT count(*) FILTER (WHERE qty > 5), sum(qty), avg(qty) FROM t", [(1, 10, 5)]),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY qty) FROM t", [(5,)]),
    ("SELECT a, b FROM (SELECT id, name FROM t WHERE id = 1) AS x (a, b)", [(1, "Apple")]),
    ("SELECT b, a FROM (VALUES (1, 'x'), (2, 'y')) AS v (a, b) ORDER BY a", [("x", 1), ("y", 2)]),
    ("WITH v (a) AS (VALUES (1), (2)) SELECT sum(a) FROM v", [(3,)]),
    ("(SELECT 1) UNION ALL (SELECT 2)", [(1,), (2,)]),
    ("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT max(i) FROM n", [(3,)]),
    ("SELECT id, sum(qty) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) FROM t WHERE qty > 0", [(1, 7), (2, 10)]),
    ("SELECT lag(id, 1, 0) OVER w, row_number() OVER w FROM t WINDOW w AS (ORDER BY id)", [(0, 1), (1, 2), (2, 3)]),
    ("SELECT date_trunc('year', seen)::date, count(*) FROM t WHERE id < 3 GROUP BY 1 ORDER BY 1",
     [("2023-01-01", 1), ("2024-01-01", 1)]),
    ("SELECT id FROM t WHERE day >= date '2024-01-01' - interval '1 day'", [(1,), (2,)]),
    ("SELECT id FROM t WHERE day::date - date '2024-01-01' = 30", [(1,)]),
    ('SELECT "select" FROM "order"', [("x",)]),
    ("SELECT json_agg(id ORDER BY id) FROM t", [("[1,2,3]",)]),
    ("SELECT (qty::numeric / 2) FROM t WHERE id = 1", [(3.5,)]),
    ("SELECT qty / 2 FROM t WHERE id = 1", [(3,)]),
    ("SELECT price::int FROM t WHERE id < 3", [(2,), (3,)]),
    ("SELECT a.id FROM t a JOIN t b ON b.id = a.id + 1 WHERE b.id IS NOT DISTINCT FROM 2", [(1,)]),
    ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.id = t.id + 2)", [(1,)]),
    ("SELECT CASE WHEN qty > 5 THEN 'many' ELSE 'few' END FROM t WHERE id < 3", [("many",), ("few",)]),
]  # fmt: skip


TRUTHS = """
CREATE TABLE flags (id INTEGER PRIMARY KEY, done BOOLEAN, answer TEXT, number INTEGER);
INSERT INTO flags VALUES (1, 1, 'yes', 5), (2, 0, 'no', 7), (3, NULL, NULL, NULL), (4, 1, '1', 1);
"""
BESIDE_TEXTS = [
    ("done = 'true'", [1, 4]),
    ("'t' = done", [1, 4]),
    ("done <> 'F'", [1, 4]),
    ("done IN ('yes')", [1, 4]),
    ("done NOT IN ('on', 'y')", [2]),
    ("done IS DISTINCT FROM 'true'", [2, 3]),
    ("done > 'off'", [1, 4]),
    ("done = '1'", [1, 4]),
    ("coalesce(done, false) = 'no'", [2, 3]),
    ("CASE done WHEN 'true' THEN 1 WHEN 'false' THEN 2 END = 2", [2]),
    ("answer = 'yes'", [1]),
    ("answer IN ('no', 'maybe')", [2]),
    ("answer <> 'yes'", [2, 4]),
    ("nullif(done, 'true') IS NULL", [1, 3, 4]),
    ("nullif(number, '5') IS NULL", [1, 3]),
    ("nullif(answer, 'yes') IS NULL", [1, 3]),
    ("number + '5' = 10", [1]),
    # beside what is computed
    ("(number = 5) = 'true'", [1]),
    ("(number > 5) IS DISTINCT FROM 'f'", [2, 3]),
    ("(done IS NULL) IN ('t')", [3]),
    ("nullif(number = 5, 't') IS NULL", [1, 3]),
    ("CASE (number = 5) WHEN 't' THEN true END", [1]),
    ("(SELECT done) = 't'", [1, 4]),
    ("number + 1 = '6'", [1]),
    ("'-5' = - number", [1]),
    ("number * 2 > '9'", [1, 2]),
    ("number + 1 IN ('6')", [1]),
    ("number + 1 BETWEEN '4' AND '6'", [1]),
    ("coalesce(number, 0) = '5'", [1]),
    ("coalesce(number + 1, '6') = 6", [1, 3]),
    ("CASE coalesce(number, 0) WHEN '5' THEN true END", [1]),
    ("nullif(number + 1, '6') IS NULL", [1, 3]),
    ("(SELECT max(number) FROM flags) = '7'", [1, 2, 3, 4]),
    ("length(answer) = '3'", [1]),
    ("5 = '5'", [1, 2, 3, 4]),
    ("coalesce(answer, '0') = '1'", [4]),
    ("lower(answer) = '1'", [4]),
    ("substr(answer, 1, 1) IN ('y', '1')", [1, 4]),
    ("coalesce(number % 2, '0') = 0", [3]),
    ("greatest((SELECT count(*) FROM flags), '30') = 30", [1, 2, 3, 4]),
    ("coalesce((SELECT sum(number) FROM flags WHERE id > 4), '0') = 0", [1, 2, 3, 4]),
    ("coalesce((SELECT sum(number) FILTER (WHERE id > 4) FROM flags), '0') = 0", [1, 2, 3, 4]),
    ("coalesce((SELECT lag(number + 1) OVER (ORDER BY id) FROM flags LIMIT 1), '0') = 0", [1, 2, 3, 4]),
    ("greatest(CASE WHEN id > 2 THEN 1 ELSE number + 1 END, '10') = 10", [1, 2, 3, 4]),
    ("coalesce(number::numeric::int, '0') < 1", [3]),
    # in lists, rows, ranges and conditions
    ("'true' IN (done)", [1, 4]),
    ("'5' IN (number, 7)", [1]),
    ("'true' = ANY (ARRAY[done])", [1, 4]),
    ("(done, number) = ('true', 5)", [1]),
    ("(done, number + 1) IN (('true', '6'), ('false', 8))", [1, 2]),
    ("done BETWEEN 'true' AND 'true'", [1, 4]),
    ("'f' BETWEEN done AND done", [2]),
    ("'6' BETWEEN number AND 10", [1, 4]),
    ("done AND 'true'", [1, 4]),
    ("'t'", [1, 2, 3, 4]),
    ("NOT 'f' AND number = 5", [1]),
    ("CASE WHEN 'true' THEN done END", [1, 4]),
    ("CASE WHEN id = 1 THEN 2 ELSE '1' END = 1", [2, 3, 4]),
    # in what inner queries compute
    ("id IN (SELECT n FROM (SELECT id + 1 AS n FROM flags) AS f WHERE n = '2')", [2]),
    ("id IN (SELECT n FROM (SELECT id AS n, number = 5 AS d FROM flags) AS f WHERE d = 't')", [1]),
    ("id IN (WITH f AS (SELECT coalesce(number, 0) AS n FROM flags) SELECT n FROM f WHERE n IN ('1', '5'))", [1]),
]


@pytest.mark.parametrize(("condition", "rows"), BESIDE_TEXTS)
def test_a_text_is_of_the_type_of_the_value_beside_it(condition: str, rows: list[int]):
    database = apsw.Connection(":memory:")
    database.execute(TRUTHS)
    translation = from_postgres(f"SELECT id FROM flags WHERE {condition} ORDER BY id")
    assert [row[0] for row in database.execute(translation.sql)] == rows


@pytest.mark.parametrize(
    "value", ["coalesce(done, 'true')", "coalesce(number, '0')", "CASE WHEN id = 1 THEN done ELSE 'f' END",
              "greatest(number, '6')", "coalesce(max(done), 't')", "coalesce((SELECT done FROM flags LIMIT 1), 'f')",
              "coalesce(lag(done) OVER (ORDER BY id), '0')"]
)  # fmt: skip
def test_a_text_that_may_be_chosen_instead_of_a_column_is_noted(value: str):
    assert any("beside a value in" in notice for notice in from_postgres(f"SELECT {value} FROM flags").notices)


@pytest.mark.parametrize("value", ["coalesce(answer, 'n/a')", "coalesce(number, 0)", "coalesce(number > 5, 'f')"])
def test_a_text_that_is_of_one_type_is_not_noted(value: str):
    assert not any("beside a value in" in notice for notice in from_postgres(f"SELECT {value} FROM flags").notices)


def test_a_text_beside_nested_values_is_refused_before_it_doubles_with_each():
    value = "done"
    for _ in range(30):
        value = f"coalesce({value}, false) = 't'"
    with pytest.raises(Unsupported, match="long value"):
        from_postgres(f"SELECT {value} FROM flags")


def test_a_date_is_compared_in_nullif_and_case_as_elsewhere(database: apsw.Connection):
    sql = "SELECT nullif(seen, '2024-02-29') IS NULL, CASE seen WHEN '2024-02-29' THEN 1 ELSE 0 END FROM m"
    database.execute("CREATE TEMP TABLE m AS SELECT '2024-02-29 00:00:00' AS seen")
    assert list(database.execute(from_postgres(sql).sql)) == [(1, 1)]


def test_a_parameter_beside_a_column_may_be_a_date():
    assert any("column::date" in notice for notice in from_postgres("SELECT day - $1 FROM t").notices)


@pytest.mark.parametrize(("sql", "rows"), WHOLE)
def test_a_query_gives_the_rows_of_postgres(database: apsw.Connection, sql: str, rows: list[tuple[Any, ...]]):
    translation = from_postgres(sql)
    assert database.execute(translation.sql).fetchall() == rows
    assert translation.notices[0] == "Translated from postgres to sqlite."


REFUSED = [
    ("SELECT DISTINCT ON (name) id FROM t ORDER BY name, id", "DISTINCT ON"),
    ("SELECT day - interval '1 day' FROM t", "interval"),
    ("SELECT time '10:00' - time '09:30'", "date"),
    ("SELECT seen::time + interval '1 hour' FROM t", "time"),
    ("SELECT extract(epoch from seen - lag(seen) over (order by id)) FROM t", "difference"),
    ("SELECT extract(day from seen - day) FROM t", "difference"),
    ("SELECT current_date - day FROM t", "date"),
    ("SELECT date '2024-01-01' + qty FROM t", "date"),
    ("SELECT qty * interval '1 day' FROM t", "INTERVAL"),
    ("SELECT 'a' || true", "truth"),
    ("SELECT name || (id = 1) FROM t", "truth"),
    ("SELECT 1 << 31", "Shifting"),
    ("SELECT id << 2 FROM t", "Shifting"),
    ("SELECT doc::jsonb::text FROM t", "JSON as text"),
    ("SELECT 'infinity'::timestamp", "infinity"),
    ("SELECT 'Jan 1 2024'::date", "Jan 1 2024"),
    ("SELECT date '2024-01-01' + interval '1.5 days'", "interval"),
    ("SELECT interval '1 day'", "INTERVAL"),
    ("SELECT name ~ '^a' FROM t", "regexp"),
    ("SELECT name SIMILAR TO 'a' FROM t", "SIMILAR"),
    ("SELECT ARRAY[1, 2]", "array"),
    ("SELECT array_agg(id) FROM t", "array_agg"),
    ("SELECT unnest(names) FROM t", "explode"),
    ("SELECT * FROM generate_series(1, 3)", "table function"),
    ("SELECT generate_series(1, 3)", "generate_series"),
    ("SELECT 1 = ANY($1)", "ANY"),
    ("SELECT 1 > ALL(SELECT 1)", "ALL"),
    ("SELECT seen::timestamptz FROM t", "cast"),
    ("SELECT seen AT TIME ZONE 'UTC' FROM t", "ATTIMEZONE"),
    ("SELECT random()", "random"),
    ("SELECT true::text", "truth"),
    ("SELECT doc #>> '{a,b}' FROM t", "(?i)extract"),
    ("SELECT doc -> 'b' -> -1 FROM t", "path"),
    ("SELECT doc @> '{}' FROM t", "array_contains_all"),
    ("SELECT name ILIKE 'é%' FROM t", "ASCII"),
    ("SELECT day - '2024-01-01' FROM t", "no written type"),
    ("SELECT '2024-12-31' - day FROM t", "no written type"),
    ("SELECT coalesce(day, '2024-01-01') - '2024-01-01' FROM t", "no written type"),
    ("SELECT seen + '1 day' FROM t", "no written type"),
    ("SELECT ('1 day' * qty) FROM t", "no written type"),
    ("SELECT 1 WHERE 'true' IN (SELECT name FROM t)", "a query's values"),
    ("SELECT 1 WHERE '8' IN (SELECT qty + 1 FROM t)", "a query's values"),
    ("SELECT (qty = 7) = 'maybe' FROM t", "truth value"),
    ("SELECT 5.5 % 2", "remainder"),
    ("SELECT round(123, -1)", "Rounding"),
    ("SELECT substring(name from 'a.') FROM t", "substring"),
    ("SELECT split_part(name, 'p', 1) FROM t", "split_part"),
    ("SELECT md5(name) FROM t", "md5"),
    ("SELECT regexp_replace(name, 'a', 'b') FROM t", "regexp_replace"),
    ("SELECT stddev(qty) FROM t", "stddev"),
    ("SELECT age(seen) FROM t", "age"),
    ("SELECT to_char(price, '999.99') FROM t", "format"),
    ("SELECT to_char(day, 'Mon YYYY') FROM t", "format"),
    ("SELECT name, sum(qty) FROM t GROUP BY ROLLUP (name)", "ROLLUP"),
    ("SELECT * FROM t, LATERAL (SELECT t.id) x", "LATERAL"),
    ("SELECT * FROM t TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
    ("SELECT count(DISTINCT (id, name)) FROM t", "count"),
    ("SELECT my_own(id) FROM t", "my_own"),
    ("SELECT x'00'", "HEXSTRING"),
    ("SELECT B'01'", "BITSTRING"),
    ("DELETE FROM t", "Only queries"),
]


@pytest.mark.parametrize(("sql", "named"), REFUSED)
def test_what_sqlite_would_answer_otherwise_is_refused_by_name(sql: str, named: str):
    with pytest.raises(Unsupported, match=named) as refusal:
        from_postgres(sql)
    assert refusal.value.suggestion


PARAMETERS = [
    ("SELECT $1::text || $2::text", "ab", None),
    ("SELECT $2::text || $1::text", "ba", (2, 1)),
    ("SELECT $1::text || $2::text || $1::text", "aba", (1, 2, 1)),
    ("SELECT 1 FROM t WHERE $2 = 'b' AND $1 LIKE 'a' LIMIT 1", 1, (2, 1)),
]


@pytest.mark.parametrize(("sql", "expected", "order"), PARAMETERS)
def test_parameters_keep_the_numbers_of_the_source(
    database: apsw.Connection, sql: str, expected: Any, order: tuple[int, ...] | None
):
    translation = from_postgres(sql)
    values = ("a", "b")
    bound = [values[number - 1] for number in translation.order] if translation.order else values
    assert translation.order == order
    assert database.execute(translation.sql, bound).fetchall() == [(expected,)]


def test_a_pattern_that_is_a_parameter_heeds_case(database: apsw.Connection):
    translation = from_postgres("SELECT id FROM t WHERE name LIKE $1")
    for pattern, ids in (("A%", [(1,)]), ("a%", [(2,)]), ("%_pie", [(2,)]), ("*", [])):
        assert database.execute(translation.sql, [pattern]).fetchall() == ids


MIDNIGHTS = ("date '2024-02-29'", "'2024-02-29'", "timestamp '2024-02-29 00:00:00'", "'2024-02-29 00:00:00'")
AFTER = ("date '2024-02-28' + 1", "date_trunc('month', date '2024-02-29')::date + 28")


@pytest.mark.parametrize("stored", ["2024-02-28", "2024-02-29", "2024-02-29 00:00:00", "2024-02-29 10:00:00"])
@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("midnight", MIDNIGHTS + AFTER)
def test_a_midnight_compares_with_dates_and_timestamps_alike(
    database: apsw.Connection, midnight: str, operator: str, stored: str
):
    moment, limit = f"{stored} 00:00:00"[:19] if len(stored) == 10 else stored, "2024-02-29 00:00:00"
    expected = {"=": moment == limit, "<>": moment != limit, "<": moment < limit, "<=": moment <= limit}
    expected |= {">": moment > limit, ">=": moment >= limit}
    mirrored = operator.translate(str.maketrans("<>", "><")) if operator != "<>" else operator
    for condition in (f"x {operator} {midnight}", f"{midnight} {mirrored} x"):
        found = from_postgres(f"SELECT {condition} FROM (SELECT '{stored}' AS x) q").sql
        assert database.execute(found).get == expected[operator]


@pytest.mark.parametrize("stored", ["2024-02-01", "2024-02-01 00:00:00", "2024-02-29", "2024-02-29 00:00:00"])
def test_the_ends_of_a_range_of_days_are_in_it(database: apsw.Connection, stored: str):
    for condition in ("between date '2024-02-01' and date '2024-02-29'", "in (date '2024-02-01', '2024-02-29')"):
        found = from_postgres(f"SELECT x {condition} FROM (SELECT '{stored}' AS x) q").sql
        assert database.execute(found).get == 1


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("x > '2024-2-1'", True),
        ("x = '2024-02-01 12:00'", True),
        ("'2024-02-01 12:00:00' > x", True),
        ("x >= '2024-02-01 12:00:00'", True),
        ("x BETWEEN '2024-01-01' AND '2024-2-1'", True),
        ("x IN ('2024-01-01', '2024-1-2')", True),
        ("x::date = '2024-02-01 12:00:00'", True),
        ("x <= '2024-02-01 23:59:59'", False),
        ("x::timestamp = '2024-02-01 12:00:00'", False),
        ("x BETWEEN '2024-01-01' AND '2024-02-01'", False),
        ("x = '2024-02-01 00:00'", False),
        ("x = 'b'", False),
    ],
)
def test_a_date_in_another_spelling_than_its_column_has_is_told(condition: str, told: bool):
    notices = from_postgres(f"SELECT 1 FROM t WHERE {condition}").notices
    assert any("compared as a text" in notice for notice in notices) is told


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("'x' || price", True),
        ("price % 3 || 'x'", True),
        ("concat('x', price)", True),
        ("concat_ws('-', 'x', price)", True),
        ("price::text", True),
        ("price::float8::text", True),
        ("'x' || (name || count(*) OVER ())", True),
        ("'x' || lower(name)", False),
        ("'x' || 1 || count(*)", False),
        ("'x' || NULL", False),
    ],
)
def test_a_value_that_may_be_spelled_otherwise_as_a_text_is_told(expression: str, told: bool):
    notices = from_postgres(f"SELECT {expression} FROM t").notices
    assert any("truth values" in notice for notice in notices) is told


def test_a_cast_that_rounds_halves_otherwise_is_told():
    assert any("halves" in notice for notice in from_postgres("SELECT price::int FROM t").notices)
    assert not any("halves" in notice for notice in from_postgres("SELECT count(*)::int FROM t").notices)


def test_numbered_parameters_come_from_question_marks():
    found = translate("SELECT ?, ?3, ?", source="sqlite", target="postgres", placeholder="$1")
    assert (found.sql, found.order) == ("SELECT $1, $3, $4", None)


def test_the_source_and_the_target_may_be_the_same():
    assert translate("SELECT 1", source="sqlite", target="sqlite", rewrite=rewrite) == Translation("SELECT 1")


def test_an_unknown_source_names_near_ones():
    with pytest.raises(ParameterError) as refusal:
        translate("SELECT 1", source="postgrs", target="sqlite", rewrite=rewrite)
    assert "postgres" in refusal.value.suggestion
    assert translate("SELECT 1", source="PostgreSQL", target="sqlite", rewrite=rewrite).sql == "SELECT 1"


def test_what_does_not_parse_is_told_before_anything_else():
    with pytest.raises(InvalidSql):
        from_postgres("SELECT FROM WHERE")


def test_mysql_ignores_case_in_patterns(database: apsw.Connection):
    found = translate("SELECT `id` FROM t WHERE name LIKE 'APPLE'", source="mysql", target="sqlite", rewrite=rewrite)
    assert database.execute(found.sql).fetchall() == [(1,)]


OTHERS = [
    ("mysql", "length('é')", 2),
    ("mysql", "instr('hello', 'L')", 3),
    ("mysql", "qty / 2", 3.5),
    ("mysql", "sum(qty) / 2", 3.5),
    ("bigquery", "length('é')", 1),
    ("bigquery", "countif(qty > 5)", 1),
    ("bigquery", "date_trunc(date '2024-05-05', month)", "2024-05-01"),
    ("trino", "year(date '2024-05-05')", 2024),
    ("trino", "date_trunc('week', date '2024-05-05')", "2024-04-29"),
    ("trino", r"'a%b' LIKE 'a\%b'", 0),
    ("duckdb", "'ab' LIKE 'a_'", 1),
    ("tsql", "len('ab  ')", 2),
    ("tsql", "name + 'x'", "Applex"),
    ("snowflake", "2.5::int", 3),
    ("postgres", "round(1.005, 2)", 1.01),
    ("postgres", "round(-2.5, 0)", -3),
]


@pytest.mark.parametrize(("source", "expression", "expected"), OTHERS)
def test_an_expression_gives_the_answer_of_its_source(
    database: apsw.Connection, source: str, expression: str, expected: Any
):
    found = translate(f"SELECT {expression} FROM t WHERE id = 1", source=source, target="sqlite", rewrite=rewrite)
    assert database.execute(found.sql).get == expected


OTHERS_REFUSED = [
    ("postgres", "round(2.5::float8)"),
    ("postgres", "(2.5::float8)::int"),
    ("postgres", "cast('12abc' AS int)"),
    ("postgres", "1.50::text"),
    ("trino", "cast(1e0 AS varchar)"),
    ("tsql", "'a' LIKE '[a-c]'"),
    ("tsql", "name + '1'"),
    ("bigquery", "* EXCEPT (id)"),
]


@pytest.mark.parametrize(("source", "expression"), OTHERS_REFUSED)
def test_what_would_be_answered_otherwise_is_refused(source: str, expression: str):
    with pytest.raises(Unsupported):
        translate(f"SELECT {expression} FROM t", source=source, target="sqlite", rewrite=rewrite)


@pytest.mark.parametrize("source", ["mysql", "bigquery", "snowflake", "duckdb"])
def test_a_division_that_keeps_its_fraction_is_not_said_to_drop_it(source: str):
    found = translate("SELECT price / 3, qty / 3 FROM t", source=source, target="sqlite", rewrite=rewrite)
    assert not any("fraction" in notice for notice in found.notices)


def test_a_comparison_that_heeds_case_only_here_is_told():
    found = translate("SELECT id FROM t WHERE name = 'a'", source="mysql", target="sqlite", rewrite=rewrite)
    assert any("case-sensitive" in notice for notice in found.notices)


@pytest.mark.parametrize("source", sorted({each.value for each in Dialects} - {"", "sqlite", "dax", "prql", "solr"}))
def test_a_source_that_no_rules_cover_is_noticed(source: str):
    found = translate("SELECT id FROM t", source=source, target="sqlite", rewrite=rewrite)
    covered = source in POSTGRES | TRINO
    assert any("No translation rules" in notice for notice in found.notices) is not covered


def test_notices_say_what_changed():
    notices = from_postgres("SELECT id FROM t WHERE name ILIKE 'a%' AND day > current_date - 7").notices
    assert "ILIKE became LIKE, which ignores the case of ASCII letters only." in notices
    assert any("YYYY-MM-DD" in notice for notice in notices)
