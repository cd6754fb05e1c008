"""Search finds what people mean, the best first."""

import pytest
from dragoman.catalog.search import words

CASES = [
    ("orders", "orders"),
    ("order", "orders"),
    ("ORDERS", "orders"),
    ("order items", "order_items"),
    ("OrderItem", "order_items"),
    ("email", "users.email"),
    ("users email", "users.email"),
    ("revenue", "v_sales"),
    ("custmer", "customer_notes"),
    ("categories", "product_category"),
    ("category", "product_category"),
    ("straße", "straße"),
]


@pytest.fixture
def catalog(build, facts, make_table):
    return build(
        facts(
            make_table("orders", "id", "user_id", "placed_at"),
            make_table("order_items", "order_id", "quantity"),
            make_table("users", "id", "email"),
            make_table("newsletter", "recipient_email_hash"),
            make_table("customer_notes", "note"),
            make_table("product_category", "id"),
            make_table("straße", "id"),
            make_table("v_sales", "amount", type="view", comment="Monthly revenue by region"),
            make_table("hidden_orders", "id", system=True),
        )
    )


def _named(match) -> str:
    name = match.table.relation.name
    return name if match.column is None else f"{name}.{match.column.name}"


@pytest.mark.parametrize(("query", "best"), CASES)
async def test_the_best_match_comes_first(catalog, query, best):
    matches, _ = await catalog.search(query)
    assert _named(matches[0]) == best


async def test_kinds_and_limit_narrow_a_search(catalog):
    views, _ = await catalog.search("sales revenue order", ("view",))
    assert [_named(match) for match in views] == ["v_sales"]
    columns, _ = await catalog.search("order", ("column",), 1)
    assert [_named(match) for match in columns] == ["order_items.order_id"]


async def test_system_relations_are_not_searched(catalog):
    matches, _ = await catalog.search("hidden orders")
    assert "hidden_orders" not in [_named(match) for match in matches]


@pytest.mark.parametrize("query", ["", "???", "zzzzqqqq"])
async def test_what_matches_nothing_finds_nothing(catalog, query):
    assert await catalog.search(query) == ([], ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OrderItems_2", ("order", "item", "2")),
        ("HTTPStatus", ("http", "status")),
        ("companies addresses boxes", ("company", "address", "box")),
        ("status bus glass", ("status", "bus", "glass")),
        ("größe", ("größe",)),
        ("注文明細", ("注文明細",)),
    ],
)
def test_names_split_into_words(text, expected):
    assert words(text) == expected
