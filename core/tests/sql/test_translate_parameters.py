"""Parameters and numbers that cannot be translated are refused in the caller's words, whatever the source writes."""

import contextlib

import pytest
from dragoman.errors import DragomanError
from dragoman.sql.translate import translate

SOURCES = ("postgres", "mysql", "sqlite", "duckdb", "clickhouse", "redshift", "snowflake", "bigquery", "tsql", "trino")
TARGETS = ("sqlite", "duckdb", "postgres", "trino")
DIGITS = 5000 * "9"
WRITTEN = (
    *("?", "?0", "?1", "?2", "$0", "$1", "$2", ":id", ':"a"', "%s", "%(id)s", "@id", "{id}", "{id:Int32}", "??", "$a"),
    *(f"${DIGITS}", f"?{DIGITS}", DIGITS, f"0x{5000 * 'f'}", f"1e{DIGITS}", f"CAST(1 AS DECIMAL({DIGITS}, 2))"),
    *(f"CAST('a' AS VARCHAR({DIGITS}))", f"INTERVAL {DIGITS} DAY", f"INTERVAL '1' DAY({DIGITS})"),
)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("written", WRITTEN, ids=lambda written: written[:20])
def test_a_parameter_or_number_is_translated_or_refused(source: str, written: str):
    for target in TARGETS:
        for query in (f"SELECT {written}", f"SELECT a FROM t WHERE a = {written} LIMIT 1"):
            with contextlib.suppress(DragomanError):  # every other error would be the gateway's own
                translate(query, source=source, target=target)


@pytest.mark.parametrize("source", ["postgres", "redshift"])
def test_a_named_parameter_says_what_to_write(source: str):
    with pytest.raises(DragomanError, match="no place among the values") as caught:
        translate("SELECT a FROM t WHERE a = :id", source=source, target="sqlite")
    assert "$1" in caught.value.suggestion


@pytest.mark.parametrize(
    ("query", "target", "sql", "order"),
    [
        ("SELECT strpos(?, ?)", "sqlite", "SELECT INSTR(?, ?)", None),
        ("SELECT strpos($2, $1)", "sqlite", "SELECT INSTR(?, ?)", (2, 1)),
        ("SELECT '?', \"?\", [?]", "trino", "SELECT '?', \"?\", ARRAY[?]", None),
        ("SELECT x FROM t LIMIT ? OFFSET ?", "trino", "SELECT x FROM t OFFSET ? LIMIT ?", (2, 1)),
        ("FROM (SELECT ? AS a) SELECT a, ?", "sqlite", "SELECT a, ? FROM (SELECT ? AS a)", (2, 1)),
    ],
)
def test_a_plain_mark_is_a_parameter_of_duckdb_as_in_its_own_sql(query: str, target: str, sql: str, order):
    translated = translate(query, source="duckdb", target=target)
    assert (translated.sql, translated.order) == (sql, order)
