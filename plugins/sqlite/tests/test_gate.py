"""What the gate reads in a statement by SQLite's own grammar, and that it needs no other parser."""

import subprocess
import sys

import pytest
from dragoman import (
    Call,
    Database,
    DragomanError,
    InvalidSql,
    ParsedStatement,
    Principal,
    Statement,
    UnsafeSql,
    WriteDenied,
)
from dragoman.validators import ReadOnly, read
from dragoman_sqlite.plugin import plugin
from dragoman_sqlite.rules import LEXICON


def statement(text: str) -> Statement:
    return Statement.parse(text, sqlglot="sqlite", lexicon=LEXICON)


def judged(text: str) -> ParsedStatement:
    """What a statement reads, once the core has judged it."""
    parsed = read(plugin.dialect, statement(text))
    ReadOnly(plugin.dialect, None).judge(parsed)
    return parsed


async def checked(text: str, database: Database) -> ParsedStatement:
    """The same as the gateway does it; the catalog is not asked."""

    async def nothing() -> tuple[()]:
        raise AssertionError("the catalog was asked")

    parsed = read(plugin.dialect, statement(text))
    call = Call(
        principal=Principal(),
        tool="execute_query",
        database=database,
        resolve=nothing,  # type: ignore[arg-type]
        relations=nothing,
        parsed=parsed,
        dialect=plugin.dialect,
    )
    await ReadOnly(plugin.dialect, database).check(statement(text), call)
    return parsed


RELATIONS = [
    ("SELECT 1", []),
    ("SELECT * FROM a, b.c JOIN d ON 1 = 1, e", ["a", "b.c", "d", "e"]),
    ("SELECT (SELECT 1 FROM a) FROM b WHERE c IN (SELECT d FROM e)", ["a", "b", "e"]),
    ("SELECT * FROM \"a b\", [c d], `e f`, 'g h'", ["a b", "c d", "e f", "g h"]),
    ("SELECT * FROM a AS b, b AS a", ["a", "b"]),
    ("SELECT * FROM (a JOIN (b, c) USING (x, y)) LEFT JOIN d ON f IN (1, 2), e", ["a", "b", "c", "d", "e"]),
    ("SELECT * FROM a UNION SELECT x, y FROM b ORDER BY c, d LIMIT 1, 2", ["a", "b"]),
    ("SELECT * FROM json_each('[]') AS j, a", ["a"]),
    ("SELECT 1 IN a, 2 IN b.c, 3 IN 'd', 4 IN (5, e), 6 IN json_each(7)", ["a", "b.c", "d"]),
    ("SELECT a IS DISTINCT FROM b, c IS NOT DISTINCT FROM d FROM e", ["e"]),
    ("SELECT * FROM a INDEXED BY i, b NOT INDEXED WHERE c", ["a", "b"]),
    ("WITH a AS (SELECT 1) SELECT * FROM a, b", ["b"]),
    ("WITH a(x, y) AS NOT MATERIALIZED (SELECT * FROM c), b AS (SELECT * FROM a) SELECT * FROM b", ["c"]),
    ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", []),
    ("WITH a AS (SELECT 1) SELECT * FROM main.a", ["main.a"]),
    ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a), a", ["a"]),
    ("WITH A AS (SELECT 1) SELECT * FROM a", []),
    ("SELECT sum(x) OVER w2 FROM w2 WINDOW w1 AS (ORDER BY x), w2 AS (ORDER BY y)", ["w2"]),
    ("SELECT * FROM notes('words') JOIN other('a', 'b')", ["notes", "other"]),
    ("EXPLAIN QUERY PLAN SELECT * FROM a", ["a"]),
    ("VALUES (1, 2), (3, (SELECT 4 FROM a))", ["a"]),
]


@pytest.mark.parametrize(("text", "names"), RELATIONS)
def test_relations_are_those_that_are_read(text: str, names: list[str]):
    assert sorted(str(relation) for relation in judged(text).names) == names


FUNCTIONS = [
    ("SELECT abs(1) + max(2, lower('x'))", {"abs", "max", "lower"}),
    ("SELECT count(*) FILTER (WHERE a IN (1)) OVER (PARTITION BY b) FROM t", {"count"}),
    ("WITH a(b) AS (SELECT 1) SELECT * FROM a WHERE NOT (b AND (b)) AND EXISTS (SELECT 1)", set()),
    ("SELECT CAST(a AS VARCHAR(10)), CAST(b AS DOUBLE PRECISION(1, 2)) FROM t", set()),
    ('SELECT "abs"(1), [lower](2)', {"abs", "lower"}),
    ("SELECT value FROM json_each('[]')", {"json_each"}),
]


@pytest.mark.parametrize(("text", "names"), FUNCTIONS)
def test_functions_are_those_that_are_called(text: str, names: set[str]):
    assert set(judged(text).functions) == names


REFUSED = [
    ("SELECT * FROM t FOR UPDATE", WriteDenied),
    ("WITH a AS (SELECT 1) DELETE FROM t", WriteDenied),
    ("WITH a AS (SELECT 1) REPLACE INTO t SELECT * FROM a", WriteDenied),
    ("SELECT evil(1)", UnsafeSql),
    ("SELECT \"load_extension\"('x')", UnsafeSql),
    ("WITH sqlite_dbpage AS (SELECT 1) SELECT * FROM (SELECT * FROM sqlite_dbpage)", UnsafeSql),
    ("SELECT 1 IN sqlite_dbpage", UnsafeSql),
    ("SELECT * FROM evil(1)", UnsafeSql),
    ("SELECT * FROM t WHERE", InvalidSql),
    ("SELECT FROM t", InvalidSql),
    ("SELECT " + "NOT " * 5000 + "1", InvalidSql),
    ("SELECT " + " + ".join("1" * 2000), InvalidSql),
]


@pytest.mark.parametrize(("text", "kind"), REFUSED)
def test_what_is_no_harmless_query_is_refused(text: str, kind: type[DragomanError]):
    with pytest.raises(kind) as refusal:
        judged(text)
    assert refusal.value.offset is not None


async def test_configuration_opens_and_closes_what_it_names():
    shop = Database(
        name="x",
        dialect="sqlite",
        schemas=("main",),
        allow_functions=frozenset({"Evil"}),
        allow_relations=frozenset({"sqlite_dbpage"}),
    )
    assert (await checked("SELECT evil(1) FROM sqlite_dbpage, MAIN.t", shop)).functions == ("evil",)
    with pytest.raises(UnsafeSql, match="schema"):
        await checked("SELECT * FROM other.t", shop)


def test_a_query_is_parsed_and_not_compiled():
    windows = ", ".join(f"sum(x) OVER (ORDER BY x + {number})" for number in range(1000))
    assert judged(f"SELECT {windows} FROM t").functions == ("sum",)


@pytest.mark.parametrize(("text", "offset"), [("SELECT 'é', FROM t", 12), ("SELECT ?, FROM t", 10), ("SELECT (", 8)])
def test_a_refusal_of_the_grammar_tells_the_place(text: str, offset: int):
    with pytest.raises(InvalidSql) as refusal:
        judged(text)
    assert refusal.value.offset == offset


def test_judging_needs_no_other_parser():
    code = (
        "import sys; from dragoman.validators import check_text; from dragoman_sqlite.plugin import plugin\n"
        "check_text(plugin.dialect, 'WITH a AS (SELECT 1 AS x) SELECT count(*) FROM a JOIN t ON a.x = t.x')\n"
        "assert 'sqlglot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_functions_of_other_databases_are_answered_with_sqlite_s_own():
    with pytest.raises(UnsafeSql) as refused:
        judged("SELECT now()")
    assert refused.value.suggestion == "Write CURRENT_TIMESTAMP, or datetime('now') instead."
