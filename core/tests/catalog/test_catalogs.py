"""Where there is a level above schemas: names, defaults and what the configuration lets see."""

from dataclasses import replace

import pytest
from dragoman import (
    Capability,
    Database,
    DeclaredKey,
    Inspection,
    Inspector,
    ParameterError,
    Relation,
    Schema,
    SchemaNotFound,
    Scope,
    Table,
    TableColumn,
    TableNotFound,
)
from dragoman.catalog import WholeCatalog, place_database

NAMES = ("lake.sales.orders", "lake.sales.leads", "lake.web.logs", "crm.sales.orders", "crm.public.users")


class Lake(Inspector):
    """Two catalogs; `looks` counts how often a relation was looked at alone."""

    def __init__(self, *names: str) -> None:
        self.paths = [name.split(".") for name in names]  # catalog, schema, table
        self.relations = [Relation(*reversed(name)) for name in self.paths]
        self.scopes: list[Scope] = []
        self.looks: list[Relation] = []

    async def version(self) -> str:
        return "1"

    async def schemas(self):
        return [Schema(name=s, catalog=c) for c, s in dict.fromkeys((c, s) for c, s, _ in self.paths)]

    async def tables(self, scope: Scope) -> Inspection:
        self.scopes.append(scope)
        columns = (TableColumn(name="id", type="bigint"), TableColumn(name="user_id", type="bigint"))
        return Inspection(tuple(Table(relation=r, columns=columns) for r in self.relations if r in scope))

    async def details(self, tables):
        self.looks += [table.relation for table in tables]
        return [replace(table, row_estimate=20_000, partitioned_by=("day(at)",)) for table in tables]


@pytest.fixture
def lake(dialect):
    """Make a catalog over the lake."""
    layered = replace(dialect, capabilities=frozenset({Capability.CATALOGS}), default_schema=None)

    def make(inspector: Lake | None = None, **settings):
        database = place_database(Database(name="lake", dialect="facts", **settings), layered)
        return WholeCatalog(inspector or Lake(*NAMES), layered, database)

    return make


@pytest.mark.parametrize(
    ("name", "schema", "settings", "found"),
    [
        ("lake.web.logs", None, {}, "lake.web.logs"),
        ("LAKE.web.logs", None, {}, "lake.web.logs"),
        ("web.logs", None, {}, "lake.web.logs"),
        ("users", None, {}, "crm.public.users"),
        ("orders", "crm.sales", {}, "crm.sales.orders"),
        ("sales.orders", None, {"database": "crm"}, "crm.sales.orders"),
        ("orders", "sales", {"database": "crm"}, "crm.sales.orders"),
        ("orders", None, {"database": "crm", "schema": "sales"}, "crm.sales.orders"),
        ("orders", None, {"database": "crm/sales"}, "crm.sales.orders"),
        ("lake.sales.orders", None, {"database": "crm/sales"}, "lake.sales.orders"),
        ("leads", None, {"database": "crm"}, "lake.sales.leads"),
        ("orders", None, {"schemas": ("lake.sales",)}, "lake.sales.orders"),
        ("orders", None, {"schemas": ("sales",), "database": "crm"}, "crm.sales.orders"),
    ],
)
async def test_names_are_found_below_catalogs(lake, name, schema, settings, found):
    table = await lake(**settings).find(name, schema)
    assert str(table.relation) == found


@pytest.mark.parametrize(
    ("name", "schema", "kind", "near"),
    [
        ("orders", None, ParameterError, "schema"),
        ("orders", "sales", ParameterError, "schema"),
        ("lake.web.log", None, TableNotFound, "lake.web.logs"),
        ("logs", "lake.wed", SchemaNotFound, "lake.web"),
        ("logs", "wed", SchemaNotFound, "lake.web"),
        ("logs", "lake", SchemaNotFound, "lake.sales"),
        ("lakes.web.logs", None, SchemaNotFound, "lake.web"),
        ("lake.sales.order", None, TableNotFound, 'Did you mean "lake.sales.orders" or "crm.sales.orders"?'),
        ("crm.sales.order", None, TableNotFound, 'Did you mean "crm.sales.orders" or "lake.sales.orders"?'),
    ],
)
async def test_a_miss_names_what_is_near_with_its_catalog(lake, name, schema, kind, near):
    with pytest.raises(kind) as caught:
        await lake().find(name, schema)
    assert near in caught.value.suggestion


async def test_of_what_fits_alike_that_of_the_default_schema_comes_first(lake):
    for home in ("crm", "lake"):
        matches, _ = await lake(database=home, schema="sales").search("orders")
        assert next(match.table.relation.catalog for match in matches if match.kind == "table") == home


async def test_names_are_written_with_their_catalog_only_where_it_is_not_the_default(lake):
    catalog = lake(database="lake", schema="sales")
    written = {str(t.relation): catalog.namespace.name(t.relation) for t in (await catalog.snapshot()).tables}
    assert written == {
        "lake.sales.orders": "orders",
        "lake.sales.leads": "leads",
        "lake.web.logs": "web.logs",
        "crm.sales.orders": "crm.sales.orders",
        "crm.public.users": "crm.public.users",
    }


@pytest.mark.parametrize(
    ("settings", "visible"),
    [
        ({"schemas": ("lake.sales",)}, {"lake.sales.orders", "lake.sales.leads"}),
        ({"schemas": ("sales",), "database": "crm"}, {"crm.sales.orders"}),
        ({"schemas": ("sales",)}, {"lake.sales.orders", "lake.sales.leads", "crm.sales.orders"}),
        ({"schemas": ("web", "crm.public"), "database": "lake"}, {"lake.web.logs", "crm.public.users"}),
    ],
)
async def test_configured_schemas_are_all_there_is(lake, settings, visible):
    catalog = lake(**settings)
    assert {str(table.relation) for table in (await catalog.snapshot()).tables} == visible


async def test_a_missed_name_has_only_its_schema_read_again(lake):
    inspector = Lake(*NAMES)
    catalog = lake(inspector)
    with pytest.raises(TableNotFound):
        await catalog.find("lake.web.visits")
    inspector.relations.append(Relation("clicks", "web", "lake"))
    assert str((await catalog.find("lake.web.clicks")).relation) == "lake.web.clicks"
    assert inspector.scopes[-1] == Scope(catalogs=frozenset({"lake"}), schemas=frozenset({"web"}))


async def test_declared_keys_join_across_catalogs(lake):
    keys = (
        DeclaredKey("crm.public.users", ("id",)),
        DeclaredKey("lake.sales.orders", ("user_id",), "crm.public.users"),
    )
    catalog = lake(database="lake", schema="sales", keys=keys)
    (path,) = await catalog.join_paths(await catalog.find("orders"), await catalog.find("crm.public.users"))
    assert catalog.join_sql(path) == (
        "SELECT t1.*, t2.* FROM orders AS t1 JOIN crm.public.users AS t2 ON t1.user_id = t2.id"
    )


async def test_details_are_asked_for_once_and_only_of_what_is_looked_at(lake):
    inspector = Lake(*NAMES)
    catalog = lake(inspector)
    logs = await catalog.find("web.logs")
    for _ in range(2):
        (detailed,) = await catalog.add_details([logs])
        assert (detailed.row_estimate, detailed.partitioned_by) == (20_000, ("day(at)",))
    assert inspector.looks == [logs.relation]
