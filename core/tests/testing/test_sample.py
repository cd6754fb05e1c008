"""What the kit's own statements promise: their numbers, and a FROM wherever an engine wants one."""

import sqlite3

import pytest
from dragoman.sql.lexicon import Lexicon
from dragoman.sql.text import tokens
from dragoman.testing import DialectConformance
from dragoman.testing.base import product
from dragoman.testing.sample import numbers, with_from

CLAUSE = "FROM dual"
STATEMENTS = (
    "SELECT 1 AS a",
    "SELECT 1 AS a UNION ALL SELECT 2",
    "SELECT 'from' AS a, (SELECT 2) AS b",
    "SELECT a.n FROM (SELECT 1 AS n UNION ALL SELECT 2) a ORDER BY (SELECT 1)",
    "SELECT (1 + 2) * 3 AS n ORDER BY n",
    "SELECT n FROM (SELECT 1 AS n) q WHERE n IN (SELECT 1)",
    numbers(3),
    product(3),
    DialectConformance.failing_late_query,
)


@pytest.fixture
def engine():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE dual AS SELECT 'x' AS dummy")
    yield connection
    connection.close()


def test_the_last_row_is_the_largest_of_many_that_count_from_one(engine: sqlite3.Connection):
    asked = f"SELECT MIN(q.n), MAX(q.n), COUNT(DISTINCT q.n), COUNT(*) FROM ({DialectConformance.many_rows}) q"
    last = DialectConformance.last_row
    assert engine.execute(asked).fetchone() == (1, last, last, last)


@pytest.mark.parametrize("statement", STATEMENTS, ids=range(len(STATEMENTS)))
def test_every_select_has_a_from_where_the_engine_wants_one(engine: sqlite3.Connection, statement: str):
    changed = with_from(statement, CLAUSE)
    words = [token.text.upper() for token in tokens(changed, Lexicon())]
    assert words.count("SELECT") == words.count("FROM")
    assert engine.execute(changed).fetchall() == engine.execute(statement).fetchall()


def test_without_a_clause_a_statement_stays_as_it_is():
    assert with_from("SELECT 1 AS a", "") == "SELECT 1 AS a"
