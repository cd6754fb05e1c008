"""`dragoman queries`: a folder of saved queries, from the command line."""

from __future__ import annotations

import json

import pytest

BIG = (
    "-- description: Big orders\n-- param: least number = 20\nSELECT id FROM orders WHERE total > :least ORDER BY id\n"
)


@pytest.fixture
def queries(folder, configured):
    configured.write_text(configured.read_text() + '[server]\nqueries_dir = "queries"\n')
    (folder / "queries").mkdir()
    (folder / "queries" / "big.sql").write_text(BIG)
    return folder / "queries"


def test_saved_queries_are_listed(dragoman, queries):
    outcome = dragoman("queries", "list", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["queries"][0]["name"] == "big"
    assert "least number" in dragoman("queries", "list").out


def test_a_saved_query_runs(dragoman, queries):
    rows = dragoman("queries", "run", "big", "--param", "least=100", "--json")
    assert json.loads(rows.out)["rows"] == [[3]]


def test_a_parameter_of_another_type_is_told(dragoman, queries):
    outcome = dragoman("queries", "run", "big", "--param", "least=much")
    assert (outcome.code, "least must be a number" in outcome.err) == (1, True)


def test_check_compiles_every_query_on_its_database(dragoman, queries):
    outcome = dragoman("queries", "check")
    assert (outcome.code, outcome.out.split(":")[0], "problems: 0" in outcome.out) == (0, "saved queries", True)
    (queries / "broken.sql").write_text("SELECT totl FROM orders")
    (queries / "unread.sql").write_text("-- param: x\nSELECT 1")
    outcome = dragoman("queries", "check")
    assert outcome.code == 1
    assert "broken.sql: COLUMN_NOT_FOUND" in outcome.err
    assert "unread.sql:1:" in outcome.err


ROLE = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.orders"]
filter = "total < 50"
"""


def test_with_roles_a_saved_query_runs_for_the_caller_who_is_named(dragoman, queries, configured):
    configured.write_text(configured.read_text() + ROLE)
    assert dragoman("queries", "run", "big").code == 2
    rows = dragoman("queries", "run", "big", "--as", "ann:analysts", "--json")
    assert json.loads(rows.out)["rows"] == [[2]]


def test_with_roles_check_compiles_every_query(dragoman, queries, configured):
    configured.write_text(configured.read_text() + ROLE)
    (queries / "customers.sql").write_text("SELECT count(*) FROM customers")
    assert "problems: 0" in dragoman("queries", "check").out
    outcome = dragoman("queries", "check", "--as", "ann:analysts")
    assert (outcome.code, "customers.sql: TABLE_NOT_FOUND" in outcome.err) == (1, True)
    (queries / "broken.sql").write_text("SELECT totl FROM orders")
    assert "broken.sql: COLUMN_NOT_FOUND" in dragoman("queries", "check").err


def test_without_a_folder_the_remedy_is_told(dragoman, configured):
    outcome = dragoman("queries", "list")
    assert (outcome.code, "server.queries_dir" in outcome.err) == (2, True)
