"""Gateways over real SQLite files, with a scripted model behind a real socket."""

import sqlite3
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from dragoman import Database, Gateway
from dragoman.config import Configuration, ModelSettings, Server
from dragoman.model import Secret
from scripted import KEY, scripted

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), total REAL, status TEXT);
INSERT INTO customers VALUES (1, 'Ada', 'ada@example.com'), (2, 'Grace', 'secret@example.com');
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
INSERT INTO orders SELECT i, 1 + i % 2, i / 2.0, CASE i % 4 WHEN 0 THEN 'paid' ELSE 'open' END FROM n;
"""
WAREHOUSE = "CREATE TABLE stock (item TEXT, pieces INTEGER); INSERT INTO stock VALUES ('bolt', 7);"


def build(path: Path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


@pytest.fixture
def shop(tmp_path: Path) -> Database:
    build(tmp_path / "shop.db", SHOP)
    return Database(name="shop", dialect="sqlite", database="shop.db", folder=tmp_path, description="Orders")


@pytest.fixture
def warehouse(tmp_path: Path) -> Database:
    build(tmp_path / "warehouse.db", WAREHOUSE)
    return Database(name="warehouse", dialect="sqlite", database="warehouse.db", folder=tmp_path)


@pytest.fixture
def asking(shop: Database) -> Callable:
    """Open a gateway on databases (the shop) with a model that follows a script; settings of the model by name."""

    @asynccontextmanager
    async def opened(script, *databases: Database, server: Server | None = None, audit=None, roles=None, **settings):
        named = {database.name: database for database in databases or (shop,)}
        async with scripted(script) as model:
            configured = ModelSettings(
                **{"name": "openai:scripted", "base_url": model.url, "api_key": Secret(KEY), **settings}
            )
            configuration = Configuration(databases=named, model=configured)
            changes = {"server": server, "audit": audit, "roles": roles}
            configuration = replace(configuration, **{key: value for key, value in changes.items() if value})
            async with Gateway.open(configuration) as gateway:
                yield gateway, model

    return opened
