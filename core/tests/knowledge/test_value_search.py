"""The index of values only finds; whether a relation holds a value now is judged by what is known of it now."""

from types import MappingProxyType

import pytest
from dragoman.catalog import Insight
from dragoman.knowledge.search import EXACT, PARTLY, ValueIndex, fitting
from dragoman.model import ColumnProfile, Relation, Table, TableColumn

PAID = TableColumn(name="state", type="text")
KIND = TableColumn(name="kind", type="kind", enum=("Gift card", "Refund"))
ORDERS = Table(relation=Relation("orders", "shop"), type="table", columns=(PAID, KIND))


def insight(*values: str) -> Insight:
    return Insight(MappingProxyType({"state": ColumnProfile(name="state", values=values)}))


@pytest.fixture
def index() -> ValueIndex:
    index = ValueIndex([ORDERS])
    index.replace(ORDERS.relation, insight("paid in part", "void", "+").profiles)
    return index


def search(index: ValueIndex, query: str, known: Insight, table: Table = ORDERS) -> dict[str | None, float]:
    found = fitting(index.find(query), {table.relation: (table, known)}, query)
    return {match.value: -match.rank[0] for match in found}


def test_values_are_found_by_their_words_and_as_a_whole(index: ValueIndex):
    known = insight("paid in part", "void", "+")
    assert search(index, "PARTS", known) == {"paid in part": PARTLY}
    assert search(index, "paid order", known) == {"paid in part": PARTLY / 2}
    assert search(index, " Void ", known) == {"void": EXACT}
    assert search(index, "+", known) == {"+": EXACT}
    assert search(index, "gift", known) == {"Gift card": PARTLY}
    assert search(index, "nothing", known) == {}


def test_values_that_were_replaced_are_not_found(index: ValueIndex):
    index.replace(ORDERS.relation, insight("open").profiles)
    assert index.find("void") == set()
    assert search(index, "open", insight("open")) == {"open": EXACT}
    assert search(index, "refund", insight("open")) == {"Refund": EXACT}


def test_what_is_not_known_any_more_is_not_told(index: ValueIndex):
    assert search(index, "void", Insight()) == {}
    smaller = Table(relation=ORDERS.relation, type="table", columns=())
    assert search(index, "void gift", insight("void"), smaller) == {}
