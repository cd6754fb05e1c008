"""Whether callers have a relation whole whatever its columns were: older versions of it may have others."""

from typing import Any

import pytest
from dragoman import Database, Relation, Restriction, Restrictor, Table, TableColumn
from dragoman.access.grants import Grants, ReadGrant
from dragoman.access.restricting import Restrictions
from dragoman.config.roles import Grant
from dragoman_sqlite.plugin import plugin

ORDERS = Table(
    relation=Relation("orders", "main"),
    type="table",
    columns=(TableColumn(name="id", type="integer"), TableColumn(name="note", type="text")),
)
ALL: dict[str, Any] = {}
ALWAYS = [
    [ALL],
    [ALL, {"columns": ("id",)}],
    [ALL, {"masks": {"*.ssn": "null"}}],
    [{"deny_columns": ("main.people.ssn",)}],
    [{"masks": {"main.people.*": "null"}}],
    [{"filter": "id > 1"}, ALL],
]
NOT_ALWAYS = [
    [{"deny_columns": ("ssn",)}],
    [{"deny_columns": ("*.ssn",)}],
    [{"deny_columns": ("main.orders.s*",)}],
    [{"deny_columns": ("main.*.ssn",)}, ALL],
    [{"masks": {"ssn": "null"}}],
    [{"columns": ("id", "note")}],
    [{"columns": ("id", "note")}, {"masks": {"main.o*.ssn": "hash"}}],
    [{"filter": "id > 1"}],
]


def grants(*each: dict[str, Any]) -> Grants:
    read = [
        ReadGrant.read("analyst", Grant(database="shop", tables=("main.*",), key=f"grants.{number}", **fields))
        for number, fields in enumerate(each)
    ]
    return Grants(read, plugin.dialect, Database(name="shop", dialect="sqlite"))


@pytest.mark.parametrize("given", ALWAYS)
def test_grants_that_hide_no_column_of_any_name_give_what_was_there_too(given: list[dict[str, Any]]):
    permission = grants(*given).on(ORDERS)
    assert permission
    assert permission.always


@pytest.mark.parametrize("given", NOT_ALWAYS)
def test_grants_that_may_hide_a_column_of_another_name_give_only_what_is_there(given: list[dict[str, Any]]):
    permission = grants(*given).on(ORDERS)
    assert permission
    assert not permission.always


class _HidesNumbers(Restrictor):
    policy = "numbers"

    def restrict(self, table: Table, dialect: object) -> Restriction | None:
        found = frozenset(column.name for column in table.columns if column.name == "ssn")
        return Restriction(hidden_columns=found) if found else None


def test_a_policy_gives_only_what_is_there():
    restricting: Any = _HidesNumbers()
    permission = Restrictions(restricting, plugin.dialect).on(ORDERS)
    assert permission
    assert permission.whole
    assert not permission.always


HIDDEN_COLUMNS = Table(relation=Relation("report", "main"), type="view", columns=())
SPEAKING = [{"columns": ("id",)}, {"deny_columns": ("*.ssn",)}, {"masks": {"*.ssn": "null"}}]


@pytest.mark.parametrize("given", SPEAKING)
def test_a_view_whose_columns_are_not_known_is_not_granted_by_columns(given: dict[str, Any]):
    assert grants(given).on(HIDDEN_COLUMNS) is None
    assert grants(ALL).on(HIDDEN_COLUMNS)
