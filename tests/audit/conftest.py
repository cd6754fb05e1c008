"""A gateway whose audit is in a database, on every engine that keeps one."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dragoman.config import Configuration, load
from dragoman.dialect import AuditStore
from dragoman.plugins import Plugins
from dragoman_postgres.testing import Server

ROLES = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.*"]

[roles.auditor]
principals = ["olga"]
[[roles.auditor.grants]]
database = "audit"
tables = ["*"]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A Postgres server of this module."""
    server = Server.start()
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "postgres"])
async def url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Where the audit is kept."""
    if request.param == "sqlite":
        yield "sqlite:///audit/calls.db"
        return
    server: Server = request.getfixturevalue("server")
    name = await server.create()
    yield server.address(name)
    await server.drop(name)


@pytest.fixture
def configured(url: str, tmp_path: Path) -> Callable[..., Configuration]:
    """`configured(more)`: a shop that is audited; `more` is TOML. `place`: another URL of the audit."""
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript("CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1), (2);")

    def make(more: str = "", audit: str = "", place: str = url) -> Configuration:
        text = f'[databases.shop]\nurl = "sqlite:///shop.db"\n[audit]\nurl = "{place}"\n{audit}\n{more}'
        (tmp_path / "dragoman.toml").write_text(text)
        return load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)

    return make


@pytest.fixture
async def store(configured: Callable[..., Configuration]) -> AsyncIterator[AuditStore]:
    """The table, as the gateway has it."""
    database = configured().audit.database
    assert database is not None
    store = Plugins.discover().audit_store(database)
    await store.open()
    yield store
    await store.aclose()


@pytest.fixture
def run(url: str, store: AuditStore, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Any]:
    """`await run(sql)`: what somebody does who may write the audit's database."""

    async def run(sql: str) -> None:
        if url.startswith("sqlite"):
            with sqlite3.connect(tmp_path / "audit" / "calls.db") as connection:
                connection.executescript(sql)
            return
        server: Server = request.getfixturevalue("server")
        await server.run(sql, url.partition("?")[0].rpartition("/")[2])

    return run
