"""`dragoman may` says what somebody may, and which grant says so."""

import json

import pytest
from dragoman.cli import main

from .test_grants import ROLES

PARTS = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.orders"]
filter = "tenant = $claim.tenant"
masks = { note = "partial" }
"""


@pytest.fixture
def may(shop, capsys):
    """`may(*words)`: the exit code and what was printed."""
    (shop / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{ROLES}')

    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["may", *words, "--config", str(shop / "dragoman.toml")])
        assert isinstance(ended.value.code, int)
        return ended.value.code, capsys.readouterr().out

    return run


def test_it_names_roles_tables_columns_and_the_grant_behind_each(may):
    code, told = may("ann:analysts", "shop")
    assert code == 0
    assert "roles: analyst" in told
    assert "  main.customers (id, name, email)  by roles.analyst.grants.0" in told
    assert "  main.orders  by roles.analyst.grants.0" in told
    assert "salaries" not in told
    assert "at most 2 rows" in told


def test_it_says_whether_a_statement_may_run(may):
    allowed = "roles: analyst\ntools: all\nallowed\n  main.orders  by roles.analyst.grants.0\n"
    assert may("ann:analysts", "shop", "select id from orders") == (0, allowed)
    _, told = may("ann:analysts", "shop", "with o as (select * from orders) select * from o", "--json")
    assert json.loads(told)["tables"] == {"main.orders": {"columns": "all", "by": ["roles.analyst.grants.0"]}}
    code, told = may("ann:analysts", "shop", "select * from salaries")
    assert code == 1
    assert "refused: TABLE_NOT_FOUND" in told
    assert told.endswith("\n  main.salaries  denied by roles.analyst.grants.0.deny\n")


def test_it_says_which_tables_of_a_refused_statement_no_grant_gives(may):
    _, told = may("olga", "shop", "select * from orders, salaries", "--json")
    assert json.loads(told)["tables"] == {"main.orders": {"by": [], "denied_by": []}}
    _, told = may("olga", "shop", "select * from orders")
    assert told.endswith("\n  main.orders  by no grant\n")
    _, told = may("olga", "shop", "delete from orders")
    assert "main.orders" not in told
    _, told = may("olga", "shop", "select * from nothing")
    assert "by no grant" not in told


def test_somebody_without_a_role_may_nothing(may):
    code, told = may("eve", "--json")
    assert code == 1
    assert json.loads(told) == {"roles": [], "tools": [], "databases": {}}
    assert may("eve", "shop") == (1, "roles: none\ntools: none\ndatabases: none\n")
    code, told = may("eve", "shop", "select id from orders")
    assert code == 1
    assert "refused: UNKNOWN_DATABASE" in told
    assert may("eve", "shoop")[0] == 2


def test_it_tells_filters_and_masks(shop, capsys):
    (shop / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{PARTS}')
    with pytest.raises(SystemExit):
        main(["may", "ann:analysts", "shop", "--config", str(shop / "dragoman.toml")])
    told = capsys.readouterr().out
    assert "  main.orders (id, tenant, customer_id, total, note)  by roles.analyst.grants.0\n" in told
    assert "    rows where ( tenant = $claim.tenant )\n" in told
    assert "    note as substr(note, 1, 1) || '***'" in told
