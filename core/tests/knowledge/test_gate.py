"""The privacy gate lets lists of kinds pass and nothing that leads to a person."""

import pytest
from dragoman import ColumnProfile, Constraint, ForeignKey, KnowledgeSettings, Relation, Table, TableColumn
from dragoman.knowledge.gate import Gate

ORDERS = Relation("orders", "sales")


def shown(column: TableColumn, *values: str, gate: Gate | None = None, rows: int = 1000, **table) -> tuple[str, ...]:
    """The values of one column of `orders` that pass."""
    profile = ColumnProfile(name=column.name, values=values, distinct=len(values), rows=rows)
    own = Table(**{"relation": ORDERS, "columns": (column,), "row_estimate": rows, **table})
    gate = gate or Gate(KnowledgeSettings())
    return gate.filter(own, [profile], referenced=own.relation.name == "kinds")[column.name].values


def text(name: str) -> TableColumn:
    return TableColumn(name=name, type="text")


@pytest.mark.parametrize("name", ["status", "orderStatus", "payment_method", "currency", "size", "shipping_class"])
def test_a_list_of_kinds_passes(name):
    assert shown(text(name), "a", "b") == ("a", "b")


@pytest.mark.parametrize(
    "name",
    [
        "email",
        "EMailAddress",
        "home_phone",
        "Fax",
        "first_name",
        "LastName",
        "customer",
        "created_by",
        "assigned_to",
        "street",
        "postal_code",
        "birth_place",
        "api_token",
        "notes",
        "username",
        "custphone",
        "ip",
        "ship_name",
    ],
)
def test_a_name_that_speaks_of_people_stops(name):
    assert shown(text(name), "a", "b") == ()


@pytest.mark.parametrize(
    "value",
    [
        "ada@example.com",
        "+49 30 1234567",
        "https://example.com/ada",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "DE89 3704 0044 0532 0130 00",
        "d41d8cd98f00b204e9800998ecf8427e",
        "192.168.100.24",
        "x" * 41,
    ],
)
def test_one_value_that_leads_to_somebody_stops_the_whole_list(value):
    assert shown(text("status"), "open", value) == ()


def test_a_value_that_stands_for_few_rows_stops():
    assert shown(text("status"), "a", "b", rows=9) == ()
    assert shown(text("status"), "a", "b", rows=10) == ("a", "b")


def test_keys_stop():
    unique = Constraint(type="UNIQUE", columns=("status",))
    assert shown(text("status"), "a", constraints=(unique,)) == ()
    key = ForeignKey(relation=ORDERS, columns=("status",), references=Relation("s"), referenced_columns=("id",))
    assert shown(text("status"), "a", foreign_keys=(key,)) == ()


def test_many_numbers_are_measurements():
    column = TableColumn(name="level", type="integer")
    assert shown(column, "1", "2") == ("1", "2")
    assert shown(column, *map(str, range(13))) == ()
    assert shown(TableColumn(name="level", type="numeric(8,2)"), "1.00") == ()


def test_the_names_of_a_small_list_of_kinds_pass_and_those_of_people_do_not():
    assert shown(text("name"), "Rock", "Jazz", rows=2, relation=Relation("kinds")) == ("Rock", "Jazz")
    assert shown(text("phone"), "12", rows=1, relation=Relation("kinds")) == ()
    assert shown(text("name"), "Rock", "Jazz", rows=2) == ()
    people = Gate(KnowledgeSettings())
    table = Table(relation=Relation("customers"), columns=(text("name"),), row_estimate=2)
    profile = ColumnProfile(name="name", values=("Ada", "Grace"), distinct=2, rows=2)
    assert people.filter(table, [profile], referenced=True)["name"].values == ()


def test_the_configuration_decides_otherwise_and_hiding_wins():
    showing = Gate(KnowledgeSettings(show_values=("orders.*",)))
    assert shown(text("email"), "ada@example.com", gate=showing) == ("ada@example.com",)
    hiding = Gate(KnowledgeSettings(show_values=("*",), hide_values=("sales.orders.st?tus",)))
    assert shown(text("status"), "open", gate=hiding) == ()
    assert shown(text("state"), "open", gate=hiding) == ("open",)


def test_a_range_is_stopped_by_the_name():
    gate = Gate(KnowledgeSettings())
    table = Table(relation=ORDERS, columns=(TableColumn(name="salary", type="integer"),))
    told = gate.filter(table, [ColumnProfile(name="salary", minimum="1", maximum="9", null_fraction=0.5)])["salary"]
    assert (told.minimum, told.maximum, told.null_fraction) == (None, None, 0.5)


def test_a_veto_stops_everything():
    gate = Gate(KnowledgeSettings(), vetoed=True)
    table = Table(relation=ORDERS, columns=(text("status"),))
    assert gate.filter(table, [ColumnProfile(name="status", values=("a",), rows=100)]) == {}
