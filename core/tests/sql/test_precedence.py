"""What an operator is applied to in one SQL, it is applied to in another."""

import pytest
from dragoman import Unsupported
from dragoman.sql.translate import translate


def written(expression: str, source: str, target: str) -> str:
    made = translate(f"SELECT {expression} FROM t", source=source, target=target, rewrite=lambda tree: tree).sql
    return made.removeprefix("SELECT ").removesuffix(" FROM t")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'x' || a * 2", "'x' || (a * 2)"),
        ("a + 1 || b", "(a + 1) || b"),
        ("a || b || c", "a || b || c"),
        ("-a || b", "-a || b"),
        ("1 | 2 & 4", "(1 | 2) & 4"),
        ("'x' || a & b", "('x' || a) & b"),
        ("a & b = c", "a & b = c"),
        ("a = b IN (1)", "a = (b IN (1))"),
        ("a = 'x' || b * 2 IN (1)", "a = ('x' || (b * 2) IN (1))"),
        ("a = b LIKE 'x'", "a = (b LIKE 'x')"),
        ("a - b - c", "a - b - c"),
        ("a - (b - c)", "a - (b - c)"),
        ("a * b + c / d", "a * b + c / d"),
        ("a = 1 AND b + 1 > 2 OR NOT c = 3", "a = 1 AND b + 1 > 2 OR NOT c = 3"),
        ("NOT a IN (1) AND NOT b BETWEEN 1 AND 2", "NOT a IN (1) AND NOT b BETWEEN 1 AND 2"),
    ],
)
@pytest.mark.parametrize("target", ["sqlite", "duckdb"])
def test_operands_that_another_sql_would_read_otherwise_are_in_parentheses(expression: str, expected: str, target: str):
    assert written(expression, "postgres", target) == expected


@pytest.mark.parametrize("pattern", ["a LIKE 'x!%' ESCAPE '!'", "NOT a LIKE 'x!%' ESCAPE '!'", 'a COLLATE "C" = b'])
def test_clauses_of_an_operator_stay_with_it(pattern: str):
    assert written(pattern, "postgres", "duckdb") == pattern


@pytest.mark.parametrize("chain", ["a <> b IN (1)", "a <> b NOT IN (1)", "a < b LIKE 'x'", "a = b BETWEEN 1 AND 2"])
def test_a_chain_of_comparisons_of_sqlite_is_refused(chain: str):
    with pytest.raises(Unsupported, match="chain"):
        written(chain, "sqlite", "postgres")


@pytest.mark.parametrize("sum_", ["~a + b", "c * ~a + b", "~a % 2", "- ~a * 2", "a - ~b * c", "b * -~a + 1"])
def test_a_complement_before_arithmetic_of_postgres_is_refused(sum_: str):
    with pytest.raises(Unsupported, match="~"):
        written(sum_, "postgres", "sqlite")


@pytest.mark.parametrize("source", ["postgres", "redshift", "materialize", "risingwave"])
@pytest.mark.parametrize("root", ["|/ a + b", "||/ a", "b + |/ a", "|/(a)"])
def test_an_operator_of_roots_is_refused(root: str, source: str):
    with pytest.raises(Unsupported, match=r"\|/"):
        written(root, source, "duckdb")


def test_a_complement_before_arithmetic_of_duckdb_is_refused():
    with pytest.raises(Unsupported, match="~"):
        written("~a + b", "duckdb", "sqlite")


@pytest.mark.parametrize("clear", ["(~a) + b", "~(a + b)", "a + ~b", "~a = b", "~a & b", "~(-a)"])
def test_a_complement_of_postgres_that_reads_one_way_is_translated(clear: str):
    assert written(clear, "postgres", "sqlite")


@pytest.mark.parametrize("clear", ["a <> (b IN (1))", "a IN (1) = b", "a = b IS NULL", "a < b = c"])
def test_a_comparison_of_sqlite_that_reads_one_way_is_translated(clear: str):
    assert written(clear, "sqlite", "duckdb")
