"""The base inspector on SQLite: everything SQLAlchemy's reflection tells, in bulk."""

import pytest
from dragoman import Constraint, ForeignKey, Index, Relation, Scope, TableColumn
from dragoman.sqlalchemy import SQLAlchemyInspector


@pytest.fixture
def inspector(executor):
    return SQLAlchemyInspector(executor)


async def tables(inspector, **scope):
    inspection = await inspector.tables(Scope(**scope))
    return {table.relation.name: table for table in inspection.tables}


async def test_the_version_is_the_server_s(inspector):
    assert (await inspector.version()).startswith("3.")


async def test_schemas_are_told(inspector):
    assert [schema.name for schema in await inspector.schemas()] == ["main"]


async def test_every_relation_is_told_with_its_kind(inspector):
    found = await tables(inspector)
    assert {name: table.type for name, table in found.items()} == {
        "big_orders": "view",
        "customers": "table",
        "orders": "table",
    }


async def test_a_scope_of_names_restricts(inspector):
    assert set(await tables(inspector, names=frozenset({"orders"}))) == {"orders"}


async def test_a_relation_is_told_with_every_fact(inspector):
    orders = (await tables(inspector))["orders"]
    relation = Relation("orders", "main")
    assert orders.relation == relation
    assert orders.columns == (
        TableColumn(name="id", type="integer"),
        TableColumn(name="customer_id", type="integer", nullable=False),
        TableColumn(name="total", type="numeric(10, 2)", default="0"),
    )
    assert orders.primary_key == ("id",)
    assert orders.constraints[1] == Constraint(type="CHECK", definition="CHECK (total >= 0)")
    assert orders.foreign_keys == (
        ForeignKey(
            relation=relation,
            columns=("customer_id",),
            references=Relation("customers", "main"),
            referenced_columns=("id",),
            on_delete="CASCADE",
        ),
    )
    assert orders.indexes == (Index(name="orders_customer", parts=("customer_id",)),)


async def test_what_the_driver_cannot_reflect_is_a_notice_and_not_an_error(inspector):
    inspection = await inspector.tables(Scope())
    assert inspection.notices == ("The driver does not report table comment.",)
