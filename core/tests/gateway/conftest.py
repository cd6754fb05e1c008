"""Gateways over real SQLite files, and how to see from outside what a database is doing."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from dragoman import Database, Gateway

SHOP = '''
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), total REAL, status TEXT);
CREATE TABLE "Odd ""Names""" ("a b" TEXT, "order" INTEGER, "it's" TEXT);
CREATE VIEW paid AS SELECT * FROM orders WHERE status = 'paid';
INSERT INTO customers VALUES (1, 'Ada', 'ada@example.com'), (2, 'Grace', 'secret@example.com');
INSERT INTO "Odd ""Names""" VALUES ('x', 1, 'y');
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO orders SELECT i, 1 + i % 2, i / 2.0, CASE i % 2 WHEN 0 THEN 'paid' ELSE 'open' END FROM n;
'''
WAREHOUSE = "CREATE TABLE stock (item TEXT, pieces INTEGER); INSERT INTO stock VALUES ('bolt', 7);"

ENDLESS = "SELECT count(*) FROM orders a, orders b, orders c, orders d"
"""Reads for hours, and holds the lock of a reader as long."""


def build(path: Path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


@pytest.fixture
def shop(tmp_path: Path) -> Database:
    build(tmp_path / "shop.db", SHOP)
    return Database(name="shop", dialect="sqlite", database="shop.db", folder=tmp_path)


@pytest.fixture
def warehouse(tmp_path: Path) -> Database:
    build(tmp_path / "warehouse.db", WAREHOUSE)
    return Database(name="warehouse", dialect="sqlite", database="warehouse.db", folder=tmp_path)


@pytest.fixture
async def gateway(shop: Database) -> AsyncIterator[Gateway]:
    async with Gateway.open([shop]) as gateway:
        yield gateway


def read_by_nobody(database: Database) -> bool:
    """Whether no statement reads the file just now: only then does SQLite give an exclusive lock."""
    connection = sqlite3.connect(database.folder / str(database.database), timeout=0, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        return True
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()


@pytest.fixture
def idle() -> Callable[[Database], bool]:
    return read_by_nobody


@pytest.fixture
def running() -> Callable[..., Any]:
    """Wait until a statement reads the database."""

    async def wait(database: Database) -> None:
        async with asyncio.timeout(20):
            while read_by_nobody(database):
                await asyncio.sleep(0)

    return wait


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[dict[str, Any]]]:
    """The log's lines of calls so far."""
    caplog.set_level(logging.INFO, "dragoman.calls")

    def read() -> list[dict[str, Any]]:
        return [record.call for record in caplog.records if record.name == "dragoman.calls"]  # type: ignore[attr-defined]

    return read


@pytest.fixture
def endless() -> str:
    return ENDLESS
