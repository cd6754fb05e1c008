"""Queries of Trino and SQLite as they are written for Postgres; that they answer alike is shown in tests/matrix."""

import pytest
from dragoman import Unsupported
from dragoman.sql.translate import Translation, translate
from dragoman_postgres.rewrite import rewrite


def translated(sql: str, source: str) -> Translation:
    return translate(sql, source=source, target="postgres", rewrite=rewrite, placeholder="$1")


FROM_TRINO = [
    ("-a AS a FROM t ORDER BY -a, a", "-a AS a FROM t ORDER BY -(-a), a"),
    ("sum(a) AS s FROM t GROUP BY b ORDER BY -s", "SUM(a) AS s FROM t GROUP BY b ORDER BY -(SUM(a))"),
    ("'a_b' LIKE 'a\\_b'", "'a_b' LIKE 'a\\_b' ESCAPE ''"),
    ("name LIKE '50!%' ESCAPE '!'", "name LIKE '50!%' ESCAPE '!'"),
    ("greatest(a, b)", "CASE WHEN NUM_NULLS(a, b) = 0 THEN GREATEST(a, b) END"),
    ("greatest(1, 2)", "GREATEST(1, 2)"),
    ("split_part(name, '-', 2)", "(STRING_TO_ARRAY(name, '-'))[2]"),
    ("split(name, ',')", "CASE WHEN name = '' THEN ARRAY[''] ELSE STRING_TO_ARRAY(name, ',') END"),
    ("extract(dow FROM day)", "CAST(EXTRACT(ISODOW FROM day) AS INT)"),
    ("year(day) / 2", "CAST(EXTRACT(YEAR FROM day) AS INT) / 2"),
    ("second(seen)", "CAST(TRUNC(EXTRACT(SECOND FROM seen)) AS INT)"),
    ("DATE '2024-01-31' + INTERVAL '1' MONTH", "CAST(CAST('2024-01-31' AS DATE) + INTERVAL '1 MONTH' AS DATE)"),
    (
        "TIMESTAMP '2024-01-31 10:00:00' - INTERVAL '1' HOUR",
        "CAST('2024-01-31 10:00:00' AS TIMESTAMP(0)) - INTERVAL '1 HOUR'",
    ),
    ("day + INTERVAL '1' DAY < DATE '2024-01-31'", "day + INTERVAL '1 DAY' < CAST('2024-01-31' AS DATE)"),
    (
        "date_add('quarter', 1, DATE '2024-01-31')",
        "CAST((CAST('2024-01-31' AS DATE) + 1 * INTERVAL '3 MONTH') AS DATE)",
    ),
    (
        "date_diff('hour', a, b)",
        "CAST(TRUNC(CAST(EXTRACT(EPOCH FROM (CAST(b AS TIMESTAMP) - CAST(a AS TIMESTAMP))) AS DOUBLE "
        "PRECISION) / 3600) AS BIGINT)",
    ),
    ("date_trunc('month', CAST(day AS date))", "CAST(DATE_TRUNC('month', CAST(day AS DATE)) AS DATE)"),
    ("date_format(day, '%Y-%m')", "TO_CHAR(day, 'YYYY-MM')"),
    ("last_day_of_month(day)", "CAST(DATE_TRUNC('month', CAST(day AS TIMESTAMP)) + INTERVAL '1 month -1 day' AS DATE)"),
    ("a - b", "a - 1 * b"),
    (
        "sum(a) / 7",
        "CASE WHEN CAST(PG_TYPEOF(SUM(a)) AS TEXT) <> 'double precision' AND SCALE(CAST(SUM(a) AS "
        "DECIMAL)) = 0 THEN DIV(CAST(SUM(a) AS DECIMAL), CAST(7 AS DECIMAL)) ELSE SUM(a) / 7 END",
    ),
    (
        "s / b FROM (SELECT sum(a) AS s, b FROM t GROUP BY b)",
        "CASE WHEN CAST(PG_TYPEOF(s) AS TEXT) <> 'double precision' AND SCALE(CAST(s AS DECIMAL)) = 0 "
        "AND CAST(PG_TYPEOF(b) AS TEXT) <> 'double precision' AND SCALE(CAST(b AS DECIMAL)) = 0 THEN "
        "DIV(CAST(s AS DECIMAL), CAST(b AS DECIMAL)) ELSE s / b END FROM (SELECT SUM(a) AS s, b FROM t "
        "GROUP BY b)",
    ),
    ("sum(CASE WHEN a > 1 THEN 1 ELSE 0 END) / count(*)", "DIV(SUM(CASE WHEN a > 1 THEN 1 ELSE 0 END), COUNT(*))"),
    ("CAST(a AS decimal)", "CAST(a AS DECIMAL(38, 0))"),
    ("CAST(a AS integer)", "CAST(ROUND(CAST(a AS DECIMAL)) AS INT)"),
    ("CAST(a AS timestamp)", "CAST(a AS TIMESTAMP(3))"),
    ("round(a, 2)", "ROUND(CAST(a AS DECIMAL), 2)"),
    ("log10(a)", "LOG(a)"),
    ("trim(BOTH 'x' FROM name)", "TRIM(BOTH 'x' FROM name)"),
    ("approx_distinct(a)", "COUNT(DISTINCT a)"),
    ("max_by(a, b)", "(ARRAY_AGG(a ORDER BY b DESC NULLS LAST) FILTER(WHERE NOT b IS NULL))[1]"),
    ("arbitrary(a)", "(ARRAY_AGG(a) FILTER(WHERE NOT a IS NULL))[1]"),
    ("count_if(a > 1)", "COUNT(CASE WHEN a > 1 THEN 1 END)"),
    ("cardinality(list)", "CARDINALITY(list)"),
    ("contains(list, 1)", "(1 = ANY(list))"),
    ("sequence(1, 3)", "ARRAY(SELECT GENERATE_SERIES(1, 3))"),
    ("regexp_like(name, 'a.c')", "name ~ '(?p)a.c'"),
    ("regexp_extract(name, '[0-9]+')", "SUBSTRING(name, '[0-9]+')"),
    ("regexp_replace(name, '[0-9]', 'x')", "REGEXP_REPLACE(name, '[0-9]', 'x', 'g')"),
    (
        "json_extract_scalar(doc, '$.a.b')",
        "CASE WHEN JSONB_TYPEOF(JSONB_EXTRACT_PATH(CAST(doc AS JSONB), 'a', 'b')) IN ('object', "
        "'array') THEN NULL ELSE JSONB_EXTRACT_PATH_TEXT(CAST(doc AS JSONB), 'a', 'b') END",
    ),
    ("bitwise_and(6, 3) * 2", "(6 & 3) * 2"),
    ('"user"', '"user"'),
    ("x FROM t ORDER BY x DESC", "x FROM t ORDER BY x DESC NULLS LAST"),
]


@pytest.mark.parametrize(("expression", "expected"), FROM_TRINO)
def test_what_trino_means_is_said_in_postgres(expression: str, expected: str):
    assert translated(f"SELECT {expression}", "trino").sql == f"SELECT {expected}"


FROM_SQLITE = [
    ("a < 0.06 + 0.01", "a < CAST(0.06 AS DOUBLE PRECISION) + CAST(0.01 AS DOUBLE PRECISION)"),
    ("name LIKE 'aB%'", "LOWER((CAST(name AS TEXT) COLLATE \"C\")) LIKE 'ab%'"),
    ("name LIKE '50!%' ESCAPE '!'", "LOWER((CAST(name AS TEXT) COLLATE \"C\")) LIKE '50!%' ESCAPE '!'"),
    ("name GLOB 'a*_'", "CAST(name AS TEXT) LIKE 'a%\\_'"),
    ("upper(name)", 'UPPER((CAST(name AS TEXT) COLLATE "C"))'),
    ("a / b", "a / NULLIF(b, 0)"),
    ("a % b", "a % NULLIF(b, 0)"),
    ("7 / 2.0", "CAST(7 AS DOUBLE PRECISION) / NULLIF(CAST(2.0 AS DOUBLE PRECISION), 0)"),
    ("max(a, b)", "CASE WHEN NUM_NULLS(a, b) = 0 THEN GREATEST(a, b) END"),
    ("substr(name, -2)", "RIGHT(CAST(name AS TEXT), 2)"),
    (
        "substr(name, 1, instr(name, '-') - 1)",
        "SUBSTRING(CAST(name AS TEXT) FROM 1 FOR GREATEST(POSITION('-' IN CAST(name AS TEXT)) - 1, 0))",
    ),
    ("instr(name, 'x')", "POSITION('x' IN CAST(name AS TEXT))"),
    ("a || b", "CAST(a AS TEXT) || CAST(b AS TEXT)"),
    ("CAST(a AS integer)", "CAST(TRUNC(CAST(a AS DECIMAL)) AS BIGINT)"),
    ("CAST(a AS real)", "CAST(a AS DOUBLE PRECISION)"),
    ("total(a)", "COALESCE(CAST(SUM(a) AS DOUBLE PRECISION), 0)"),
    ("date(day, '+1 day')", "CAST((CAST(day AS TIMESTAMP) + INTERVAL '1 day') AS DATE)"),
    (
        "date(day, '-1 month')",
        "CAST(((DATE_TRUNC('month', CAST(day AS TIMESTAMP)) + INTERVAL '-1 month') + (CAST(day AS "
        "TIMESTAMP) - DATE_TRUNC('month', CAST(day AS TIMESTAMP)))) AS DATE)",
    ),
    ("date('now')", "CAST(DATE_TRUNC('second', CURRENT_TIMESTAMP AT TIME ZONE 'UTC') AS DATE)"),
    ("datetime(seen, 'start of day')", "TO_CHAR(DATE_TRUNC('day', CAST(seen AS TIMESTAMP)), 'YYYY-MM-DD HH24:MI:SS')"),
    (
        "seen >= datetime('now', '-7 days')",
        "seen >= DATE_TRUNC('second', (DATE_TRUNC('second', CURRENT_TIMESTAMP AT TIME ZONE 'UTC') + "
        "INTERVAL '-7 day'))",
    ),
    (
        "datetime(seen) > '2024-01-01'",
        "(TO_CHAR(CAST(seen AS TIMESTAMP), 'YYYY-MM-DD HH24:MI:SS') COLLATE \"C\") > '2024-01-01'",
    ),
    ("strftime('%Y', day)", "TO_CHAR(CAST(day AS TIMESTAMP), 'YYYY')"),
    ("CAST(strftime('%m', day) AS integer)", "CAST(TO_CHAR(CAST(day AS TIMESTAMP), 'MM') AS BIGINT)"),
    ("strftime('%w', day)", "CAST(CAST(FLOOR(EXTRACT(DOW FROM CAST(day AS TIMESTAMP))) AS BIGINT) AS TEXT)"),
    (
        "julianday(a) - julianday(b)",
        "(CAST(EXTRACT(EPOCH FROM CAST(a AS TIMESTAMP)) AS DOUBLE PRECISION) / 86400 + 2440587.5) - "
        "(CAST(EXTRACT(EPOCH FROM CAST(b AS TIMESTAMP)) AS DOUBLE PRECISION) / 86400 + 2440587.5)",
    ),
    ("unixepoch(seen)", "CAST(FLOOR(EXTRACT(EPOCH FROM CAST(seen AS TIMESTAMP))) AS BIGINT)"),
    ("sum(a = 1)", "SUM(CAST(a = 1 AS INT))"),
    ("CASE WHEN 1 THEN 'x' END", "CASE WHEN (1 <> 0) THEN 'x' END"),
    ("name = 'x' COLLATE NOCASE", 'LOWER((CAST(name AS TEXT) COLLATE "C")) = LOWER((\'x\' COLLATE "C"))'),
    ("2147483647 + 1", "CAST(2147483647 AS BIGINT) + 1"),
    ("1 << 40", "CAST(1 AS BIGINT) << 40"),
    ("group_concat(a)", "STRING_AGG(CAST(a AS TEXT), ',')"),
    ("n FROM main.t WHERE user = 1", 'n FROM t WHERE "user" = 1'),
    ("x FROM t ORDER BY x LIMIT -1", "x FROM t ORDER BY x NULLS FIRST LIMIT NULL"),
]


@pytest.mark.parametrize(("expression", "expected"), FROM_SQLITE)
def test_what_sqlite_means_is_said_in_postgres(expression: str, expected: str):
    assert translated(f"SELECT {expression}", "sqlite").sql == f"SELECT {expected}"


REFUSED = [
    ("trino", "try(1 / 0)", "try"),
    ("trino", "try_cast(a AS integer)", "try_cast"),
    ("trino", "DATE '2024-01-01' + INTERVAL '1' HOUR", "beside a date"),
    ("trino", "DATE '2024-01-02' - DATE '2024-01-01'", "an interval in Trino"),
    ("trino", "INTERVAL '1' DAY", "interval as a value"),
    ("trino", "date_diff('month', a, b)", "date_diff of MONTH"),
    ("trino", "date_format(day, '%d %M')", "format of dates"),
    ("trino", "substr(name, -2)", "before the beginning"),
    ("trino", "substr(name, a)", "computed place"),
    ("trino", "lower('À')", "beyond ASCII"),
    ("trino", "regexp_like(name, '(?=a)')", "regular expression"),
    ("trino", "regexp_extract(name, 'a|ab')", "regular expression"),
    ("trino", "regexp_replace(name, '(a)', '$1')", "replacement"),
    ("trino", "transform(list, x -> x + 1)", "transform"),
    ("trino", "element_at(list, -1)", "from the end"),
    ("trino", "tags['a']", "map"),
    ("trino", "CAST(1e10 AS varchar)", "double or a timestamp as text"),
    ("trino", "CAST(a AS char(3))", "cast to CHAR"),
    ("trino", "TIMESTAMP '2024-01-01 10:00:00 UTC'", "TIMESTAMPTZ"),
    ("trino", "corr(a, b)", "whole numbers"),
    ("trino", "row(1, 'a')", "struct"),
    ("trino", "max(a, 2) FROM t", "several rows"),
    ("trino", "min(a, 2) FROM t", "several rows"),
    ("trino", "my_own(a)", "my_own"),
    ("trino", "a FROM TABLE(sequence(1, 3))", "table function"),
    ("sqlite", "1 = '1'", "text with a number"),
    ("sqlite", "sum(a) / 7", "drops the fraction"),
    ("sqlite", "CAST(a AS numeric) / 4", "whole numbers whole"),
    ("sqlite", "7.5 % 2", "remainder"),
    ("sqlite", "CAST('12abc' AS integer)", "12abc"),
    ("sqlite", "CAST('2024-01-01' AS date)", "cast to DATE"),
    ("sqlite", "'a' || 1.50", "decimals as text"),
    ("sqlite", "round(2.675, 2)", "binary number"),
    ("sqlite", "date('2024-02-30')", "time value"),
    ("sqlite", "date(day, 'weekday 0')", "modifier"),
    ("sqlite", "strftime('%W', day)", "format of dates"),
    ("sqlite", "typeof(a)", "typeof"),
    ("sqlite", "rowid FROM t", "number of a row"),
    ("sqlite", "printf('%d', a)", "printf"),
    ("sqlite", "json_extract(doc, '$.a')", "JSON"),
    ("sqlite", "x'61'", "bytes"),
    ("sqlite", "name GLOB '[a-c]*'", "GLOB"),
    ("sqlite", "name COLLATE NOCASE", "NOCASE"),
    ("sqlite", "a, max(b) FROM t", "neither grouped nor aggregated"),
    ("sqlite", "b, count(*) AS c FROM t GROUP BY b HAVING c > 1", "name of a result"),
    ("sqlite", "CASE WHEN a THEN 1 ELSE 'x' END", "text or a number"),
    ("sqlite", "random()", "random"),
    ("mysql", "find_in_set('a', names)", "find_in_set"),
]


@pytest.mark.parametrize(("source", "expression", "named"), REFUSED)
def test_what_postgres_would_answer_otherwise_is_refused_by_name(source: str, expression: str, named: str):
    with pytest.raises(Unsupported, match=named) as refusal:
        translated(f"SELECT {expression}", source)
    assert refusal.value.suggestion


NOTED = [
    ("trino", "1.0 / 3", "decimal places"),
    ("trino", "avg(a)", "decimal places"),
    ("trino", "day + INTERVAL '1' DAY", "cast to date"),
    ("trino", "date_trunc('month', day)", "cast to date"),
    ("trino", "round(a)", "15th digit"),
    ("trino", "approx_distinct(a)", "exact count"),
    ("trino", "upper(name)", "collation"),
    ("trino", "a - b", "date_diff"),
    ("trino", "name FROM t ORDER BY name", "collation"),
    ("sqlite", "a / b", "drops the fraction"),
    ("sqlite", "a % 2", "% of columns"),
    ("sqlite", "date(day)", "in UTC"),
    ("sqlite", "a || b", "truth values"),
    ("sqlite", "a > '2024-02-29'", "midnight"),
    ("sqlite", "'2024-02-29' < a", "midnight"),
    ("sqlite", "a BETWEEN '2024-01-01' AND '2024-02-29'", "midnight"),
    ("sqlite", "a IN ('2024-02-29')", "midnight"),
    ("sqlite", "a = '2024-2-29'", "midnight"),
    ("sqlite", "a >= '2024-02-29 12:00:00'", "midnight"),
    ("sqlite", "a <= date('2024-02-29')", "midnight"),
    ("sqlite", "nullif(a, '2024-02-29')", "midnight"),
    ("sqlite", "group_concat(a)", "no particular order"),
    ("mysql", "ifnull(a, 1)", "check the result"),
]


@pytest.mark.parametrize(("source", "expression", "said"), NOTED)
def test_what_may_differ_is_said(source: str, expression: str, said: str):
    assert any(said in notice for notice in translated(f"SELECT {expression}", source).notices)


@pytest.mark.parametrize(
    "condition",
    ["a >= '2024-01-01' AND a < '2024-02-01'", "'2024-01-01' <= a", "a < date('now', '-1 day')", "a = 'b'"],
)
def test_a_range_of_days_means_the_same_for_texts_and_for_dates(condition: str):
    assert not any("midnight" in notice for notice in translated(f"SELECT {condition}", "sqlite").notices)


def test_what_is_the_same_needs_no_notice_but_that_it_was_translated():
    sql = "SELECT t.a, COUNT(*) AS n FROM t JOIN u ON t.id = u.id WHERE t.b = 1 GROUP BY t.a HAVING COUNT(*) > 2"
    assert translated(sql, "trino") == Translation(sql, None, ("Translated from trino to postgres.",))


def test_parameters_keep_their_numbers():
    found = translated("SELECT greatest(?, a) FROM t WHERE b = ?", "trino")
    assert found.sql == "SELECT CASE WHEN NUM_NULLS($1, a) = 0 THEN GREATEST($1, a) END FROM t WHERE b = $2"
    assert found.order is None
