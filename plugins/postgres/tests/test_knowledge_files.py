"""On Postgres, the database's own comments and keys win over what files tell, and schemas tell relations apart."""

import json
from pathlib import Path

from dragoman import Gateway, KnowledgeSettings
from dragoman.tools import Toolbox

TABLES = """
CREATE SCHEMA mart;
CREATE TABLE mart.customers (id int PRIMARY KEY);
CREATE TABLE mart.orders (id int, customer_id int, status text);
CREATE TABLE orders (id int);
COMMENT ON TABLE mart.orders IS 'Said by the database';
COMMENT ON COLUMN mart.orders.status IS 'Here too';
"""
CUSTOMERS, ORDERS = "model.p.customers", "model.p.orders"


def _node(kind: str, name: str, **facts) -> dict:
    return {"resource_type": kind, "database": "warehouse", "schema": "MART", "name": name, **facts}


def _column(name: str, text: str) -> dict:
    return {"name": name, "description": text}


MANIFEST = {
    "metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json"},
    "nodes": {
        CUSTOMERS: _node("model", "customers", description="Who buys"),
        ORDERS: _node(
            "model",
            "orders",
            description="Said by dbt",
            columns={"STATUS": _column("STATUS", "by dbt"), "ID": _column("ID", "the key")},
        ),
        "test.p.keys": _node(
            "test",
            "keys",
            test_metadata={"name": "relationships", "kwargs": {"field": "id", "to": "ref('customers')"}},
            column_name="customer_id",
            attached_node=ORDERS,
            depends_on={"nodes": [CUSTOMERS, ORDERS]},
        ),
    },
    "sources": {},
}


async def test_what_the_database_does_not_tell_comes_from_the_project(server, database_name, tmp_path):
    await server.run(TABLES, database_name)
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    knowledge = KnowledgeSettings(files=(Path("manifest.json"),))
    async with Gateway.open([server.configure(database_name, folder=tmp_path, knowledge=knowledge)]) as gateway:
        names = ["mart.orders", "mart.customers", "public.orders"]
        told = (await Toolbox(gateway).call("describe_table", {"table_name": names})).structured
    assert told is not None
    assert told["tables"] == {
        "mart.orders": [
            "-- Said by the database",
            "id integer NULL -- the key",
            "customer_id integer NULL -> customers.id",
            "status text NULL -- Here too",
        ],
        "mart.customers": ["-- Who buys", "id integer PK"],
        "orders": ["id integer NULL"],
    }
