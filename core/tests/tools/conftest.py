"""Toolboxes over real SQLite files."""

import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dragoman import Database, Gateway
from dragoman.tools import Toolbox

SHOP = """
CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE, manager_id INTEGER REFERENCES users (id));
CREATE TABLE branches (region TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (region, id)) WITHOUT ROWID;
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    region TEXT NOT NULL,
    branch INTEGER,
    total NUMERIC(12, 2) CHECK (total >= 0),
    FOREIGN KEY (region, branch) REFERENCES branches (region, id)
);
CREATE INDEX orders_user ON orders (user_id);
CREATE TABLE "Order Details" ("order" INTEGER REFERENCES orders (id), "a.b" TEXT, "quote""d" TEXT);
CREATE TABLE lonely (id INTEGER PRIMARY KEY);
CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 100;
INSERT INTO users VALUES (1, 'ada@example.com', NULL), (2, 'grace@example.com', 1);
INSERT INTO branches VALUES ('north', 1);
INSERT INTO orders VALUES (1, 1, 'north', 1, 12.5), (2, 2, 'north', 1, 250), (3, 1, 'south', NULL, 7);
INSERT INTO "Order Details" VALUES (1, 'x', 'y');
"""
CRM = """
CREATE TABLE leads (id INTEGER PRIMARY KEY, email TEXT);
INSERT INTO leads VALUES (1, 'x@example.com');
"""

Open = Callable[..., AbstractAsyncContextManager[Toolbox]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _file(path: Path, script: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()


@pytest.fixture
def database(tmp_path: Path) -> Callable[..., Database]:
    """Make a SQLite database and its configuration: `database("shop", script)`."""

    def make(name: str, script: str, **settings: Any) -> Database:
        _file(tmp_path / f"{name}.db", script)
        return Database(name=name, dialect="sqlite", database=f"{name}.db", folder=tmp_path, **settings)

    return make


@pytest.fixture
def open_toolbox() -> Open:
    """Open a gateway and its toolbox: `async with open_toolbox(*databases, profile="minimal") as toolbox`."""

    @asynccontextmanager
    async def opened(*databases: Database, **settings: Any) -> AsyncIterator[Toolbox]:
        async with Gateway.open(databases) as gateway:
            yield Toolbox(gateway, **settings)

    return opened


@pytest.fixture
async def toolbox(database, open_toolbox) -> AsyncIterator[Toolbox]:
    """The shop and the CRM."""
    async with open_toolbox(database("shop", SHOP), database("crm", CRM, description="Leads")) as toolbox:
        yield toolbox


@pytest.fixture
async def shop(database, open_toolbox) -> AsyncIterator[Toolbox]:
    """The shop alone."""
    async with open_toolbox(database("shop", SHOP)) as toolbox:
        yield toolbox


@pytest.fixture
def scripts() -> dict[str, str]:
    return {"shop": SHOP, "crm": CRM}


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Call a tool and return its answer as an object; an error fails the test."""

    async def asked(toolbox: Toolbox, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await toolbox.call(tool, arguments)
        assert not answer.is_error, answer.text
        assert answer.structured is not None
        return answer.structured

    return asked


@pytest.fixture
def fail() -> Callable[..., Any]:
    """Call a tool that must fail and return its error."""

    async def failed(toolbox: Toolbox, tool: str, arguments: Any) -> dict[str, Any]:
        answer = await toolbox.call(tool, arguments)
        assert answer.is_error
        assert answer.structured is None
        told = json.loads(answer.text)
        assert told["tool_name"] == tool
        return told["error"]

    return failed
