"""Names resolve as the database would resolve them, and a miss says what was near."""

import asyncio
from dataclasses import replace

import pytest
from dragoman import Dialect, ParameterError, QueryTimeout, Relation, SchemaNotFound, Table, TableNotFound

NAMES = (
    "orders",
    "order_items",
    "Order",
    "order details",
    "a.b",
    "sales.orders",
    "sales.leads",
    "crm.leads",
    "app.settings",
)

FOUND = [
    ("orders", None, "public.orders"),
    ("ORDERS", None, "public.orders"),
    ('"orders"', None, "public.orders"),
    ("`orders`", None, "public.orders"),
    ("[orders]", None, "public.orders"),
    ('"Order"', None, "public.Order"),
    ("Order", None, "public.Order"),
    ("order details", None, "public.order details"),
    ('"order details"', None, "public.order details"),
    ("sales.orders", None, "sales.orders"),
    ('SALES."orders"', None, "sales.orders"),
    ("orders", "sales", "sales.orders"),
    ("orders", '"sales"', "sales.orders"),
    ("sales.orders", "sales", "sales.orders"),
    ("settings", None, "app.settings"),
]

MISSED = [
    ("ordrs", None, TableNotFound, '"orders"'),
    ('"ORDERS"', None, TableNotFound, '"orders"'),
    ("leads", "public", TableNotFound, "leads"),
    ("sales.orders", "public", TableNotFound, "orders"),
    ("orders", "sale", SchemaNotFound, '"sales"'),
    ("sale.orders", None, SchemaNotFound, '"sales"'),
    ("", None, TableNotFound, "list_tables"),
]


def _tables(make_table) -> list[Table]:
    made = [make_table(name, "id") for name in NAMES if name != "a.b"]
    return [*made, replace(made[0], relation=Relation("a.b", "public"))]


@pytest.fixture
def catalog(build, facts, make_table):
    return build(facts(*_tables(make_table), schemas=("empty",)))


async def test_names_without_a_schema_are_looked_for_where_the_database_says(build, facts, make_table):
    catalog = build(facts(*_tables(make_table), path=("crm", "sales")))
    assert str((await catalog.find("orders")).relation) == "sales.orders"
    assert str((await catalog.find("leads")).relation) == "crm.leads"
    assert catalog.namespace.name(Relation("leads", "crm")) == "leads"
    assert catalog.namespace.name(Relation("orders", "public")) == "public.orders"


@pytest.mark.parametrize(("name", "schema", "expected"), FOUND)
async def test_a_name_finds_what_the_database_would(catalog, name, schema, expected):
    assert str((await catalog.find(name, schema)).relation) == expected


async def test_a_name_with_a_dot_in_it_is_found_as_stored(catalog):
    assert (await catalog.find('"a.b"')).relation.name == "a.b"
    assert (await catalog.find("a.b")).relation.name == "a.b"


@pytest.mark.parametrize(("name", "schema", "error", "near"), MISSED)
async def test_a_missed_name_is_an_error_with_near_names(catalog, name, schema, error, near):
    with pytest.raises(error) as caught:
        await catalog.find(name, schema)
    assert near in caught.value.suggestion


async def test_a_name_in_two_schemas_is_an_error_that_lists_both(catalog):
    with pytest.raises(ParameterError, match=r"crm\.leads, sales\.leads"):
        await catalog.find("leads")


async def test_a_single_configured_schema_is_the_default_and_the_only_one(build, facts, make_table):
    catalog = build(facts(*_tables(make_table)), schemas=("sales",))
    assert str((await catalog.find("orders")).relation) == "sales.orders"
    assert {table.relation.schema for table in (await catalog.snapshot()).tables} == {"sales"}
    with pytest.raises(SchemaNotFound):
        await catalog.find("orders", "public")


async def test_the_configured_schema_goes_before_the_dialects(build, facts, make_table):
    catalog = build(facts(*_tables(make_table)), schema="sales")
    assert str((await catalog.find("orders")).relation) == "sales.orders"
    assert str((await catalog.find("order_items")).relation) == "public.order_items"


async def test_an_empty_schema_is_found_too(catalog):
    assert (await catalog.find_schema("empty")).name == "empty"


async def test_quotes_do_not_make_case_matter_where_the_database_ignores_it(build, facts, make_table, dialect):
    loose = Dialect(**{**_fields(dialect), "folding": "insensitive"})
    catalog = build(facts(make_table("Album", "AlbumId")), dialect=loose)
    for name in ("album", '"ALBUM"', "Album", "[album]"):
        assert (await catalog.find(name)).relation.name == "Album"


async def test_catalogs_are_the_level_above_schemas(build, facts, make_table):
    made = [replace(make_table("x", "id"), relation=Relation("x", "tiny", catalog)) for catalog in ("tpch", "hive")]
    catalog = build(facts(*made))
    assert (await catalog.find("x", "tpch.tiny")).relation.catalog == "tpch"
    assert (await catalog.find("hive.tiny.x")).relation.catalog == "hive"
    with pytest.raises(ParameterError, match=r"hive\.tiny\.x, tpch\.tiny\.x"):
        await catalog.find("x")


async def test_long_names_are_cut_in_messages(catalog):
    with pytest.raises(TableNotFound) as caught:
        await catalog.find("x" * 100_000)
    assert len(caught.value.message) < 200


async def test_a_table_made_after_the_load_is_found_at_once(build, facts, make_table):
    known = facts(*_tables(make_table))
    catalog = build(known)
    await catalog.find("orders")
    known.all.append(make_table("fresh", "id"))
    assert (await catalog.find("fresh")).relation.name == "fresh"
    assert known.scopes[-1].schemas == {"public"}
    assert (await catalog.find("leads", "crm")).relation.schema == "crm"


async def test_a_schema_made_after_the_load_is_found_at_once(build, facts, make_table):
    known = facts(*_tables(make_table))
    catalog = build(known)
    await catalog.snapshot()
    known.all.append(make_table("new.fresh", "id"))
    assert (await catalog.find("fresh", "new")).relation.schema == "new"


async def test_a_miss_that_costs_much_is_not_repeated_at_once(build, facts, make_table):
    time = iter(range(0, 1_000_000, 10))  # every look at the clock is ten seconds later, so a load takes ten
    known = facts(*_tables(make_table))
    catalog = build(known, clock=lambda: next(time), catalog_ttl=1e9)
    for _ in range(5):
        with pytest.raises(TableNotFound):
            await catalog.find("nothing")
    assert len(known.scopes) == 2


async def test_callers_share_one_load_and_a_cancelled_one_spoils_nothing(build, facts, make_table):
    known = facts(*_tables(make_table))
    known.gate.clear()
    catalog = build(known)
    first, second = (asyncio.create_task(catalog.snapshot()) for _ in range(2))
    while not known.scopes:
        await asyncio.sleep(0)
    first.cancel()
    known.gate.set()
    assert len((await second).tables) == len(NAMES)
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len(known.scopes) == 1


async def test_a_load_that_takes_too_long_goes_on_without_the_caller(build, facts, make_table):
    known = facts(*_tables(make_table))
    known.gate.clear()
    catalog = build(known, timeout=0.5)
    with pytest.raises(QueryTimeout):
        await catalog.snapshot()
    known.gate.set()
    assert len((await catalog.snapshot()).tables) == len(NAMES)
    assert len(known.scopes) == 1


async def test_a_snapshot_lives_as_long_as_configured(build, facts, make_table):
    now = 0.0
    known = facts(*_tables(make_table))
    catalog = build(known, clock=lambda: now, catalog_ttl=300)
    before = await catalog.snapshot()
    now = 299.0
    assert await catalog.snapshot() is before
    now = 301.0
    await catalog.snapshot()
    assert len(known.scopes) == 2


async def test_the_version_grows_only_when_something_changed(build, facts, make_table):
    known = facts(*_tables(make_table))
    catalog = build(known, catalog_ttl=0)
    assert catalog.version == 0
    await catalog.snapshot()
    await catalog.snapshot()
    assert catalog.version == 1
    known.all.append(make_table("fresh", "id"))
    await catalog.snapshot()
    assert catalog.version == 2


async def test_closing_ends_a_load(build, facts, make_table):
    known = facts(*_tables(make_table))
    known.gate.clear()
    catalog = build(known)
    waiting = asyncio.create_task(catalog.snapshot())
    while not known.scopes:
        await asyncio.sleep(0)
    await catalog.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_near_columns_come_from_the_relations_that_were_named(build, facts, make_table):
    catalog = build(facts(make_table("users", "email"), make_table("logs", "emails")))
    users = (await catalog.find("users")).relation
    assert await catalog.near_columns("emial", [users]) == ["email"]
    assert await catalog.near_columns("emial") == ["email", "emails"]


async def test_near_relations_are_written_as_in_sql(catalog):
    assert await catalog.near_relations("order detail") == ['"order details"', '"Order"']


def _fields(dialect: Dialect) -> dict:
    return {name: getattr(dialect, name) for name in dialect.__slots__}
