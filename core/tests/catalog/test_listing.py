"""Names come first: a list of relations waits for nothing that it does not show."""

import asyncio

import pytest
from dragoman import DeclaredKey, Names, Relation, SchemaNotFound


@pytest.fixture
def told(facts, make_table):
    """Facts that tell names apart, and everything else once the gate is open."""

    class Named(facts):
        asked = 0

        async def names(self, scope):
            self.asked += 1
            groups = {}
            for each in self.all:
                where = (each.relation.schema, each.type, each.system, each.partition_of)
                groups.setdefault(where, []).append(each.relation.name)
            return [
                Names(names=tuple(names), schema=schema, type=type_, system=system, partition_of=parent)
                for (schema, type_, system, parent), names in groups.items()
            ]

    return Named(
        make_table("zebra", "id"),
        make_table("orders", "id"),
        make_table("orders_2026", "id", partition_of=Relation("orders", "public")),
        make_table("lone_part", "id", partition_of=Relation("elsewhere", "hidden")),
        make_table("sales", "amount", type="view"),
        make_table("stock.Items", "id"),
        make_table("pg_things", "id", system=True),
    )


def _plain(listing):
    return {key.name: entries for key, entries in listing.schemas.items()}


async def test_names_are_listed_while_everything_else_is_still_being_read(build, told):
    told.gate.clear()
    catalog = build(told)
    names = [entry.name for entry in _plain(await catalog.listing())["public"]]
    assert names == ["lone_part", "orders", "orders_2026", "pg_things", "sales", "zebra"]
    assert catalog.loaded is None
    told.gate.set()
    assert (await catalog.find("orders")).columns[0].name == "id"
    assert len(told.scopes) == 1  # what was begun behind the list is what `find` waited for


async def test_names_alone_are_listed_as_everything_is(build, told):
    early = await (catalog := build(told)).listing()
    full = (await catalog.snapshot()).listing
    assert early == full
    assert {entry.name for entry in _plain(early)["public"] if entry.part} == {"orders_2026"}


async def test_names_are_asked_for_once_however_many_ask(build, told):
    told.gate.clear()
    catalog = build(told)
    await asyncio.gather(*(catalog.listing() for _ in range(5)))
    await catalog.listing()
    assert told.asked == 1


async def test_names_outside_of_the_configured_schemas_are_not_listed(build, told):
    listing = await build(told, schemas=("stock",)).listing()
    assert [key.name for key, entries in listing.schemas.items() if entries] == ["stock"]


async def test_a_schema_is_found_by_its_name_before_everything_is_read(build, told):
    told.gate.clear()
    catalog = build(told)
    listing, key = await catalog.list_schema("STOCK")
    assert [entry.written for entry in listing.schemas[key]] == ['"Items"']
    assert catalog.loaded is None


async def test_a_missed_schema_is_looked_for_in_everything(build, told):
    catalog = build(told)
    with pytest.raises(SchemaNotFound, match="There is no schema nowhere"):
        await catalog.list_schema("nowhere")
    assert catalog.loaded is not None


async def test_a_list_is_made_of_everything_where_names_are_not_told_apart(build, facts, make_table):
    catalog = build(facts(make_table("orders", "id")))
    assert [entry.name for entry in _plain(await catalog.listing())["public"]] == ["orders"]
    assert catalog.loaded is not None


async def test_a_list_waits_for_everything_where_a_declared_key_may_be_wrong(build, told):
    listing = await build(told, keys=(DeclaredKey(table="orders", columns=("nothing",)),)).listing()
    assert [notice for notice in listing.notices if "declared key" in notice]
    assert told.asked == 0
