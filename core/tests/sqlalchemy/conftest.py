import inspect
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from dragoman import CONTRACT, ColumnNotFound, Database, Dialect, InvalidSql, Request, TableNotFound, WriteDenied
from dragoman.sqlalchemy import SQLAlchemyExecutor

DIALECT = Dialect(name="lite", contract=CONTRACT, sqlglot="sqlite")
SHOP = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY,
        customer_id INTEGER NOT NULL,
        total NUMERIC(10, 2) DEFAULT 0 CHECK (total >= 0),
        FOREIGN KEY (customer_id) REFERENCES customers (id) ON DELETE CASCADE
    );
    CREATE INDEX orders_customer ON orders (customer_id);
    CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 100;
    INSERT INTO customers VALUES (1, 'Zoë'), (2, 'it''s "odd" 100%');
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
    INSERT INTO orders SELECT i, 1 + i % 2, i FROM n;
"""


class LiteExecutor(SQLAlchemyExecutor):
    """SQLite, once through a blocking driver and once through an asynchronous one."""

    failures = (
        (r"no such table: (?P<name>\S+)", TableNotFound),
        (r"no such column: (?P<name>\S+)", ColumnNotFound),
        (r"syntax error|incomplete input", InvalidSql),
        (r"readonly database", WriteDenied),
    )

    def prelude(self, request: Request):
        return ("PRAGMA query_only = ON",)

    async def interrupt(self, connection):
        answer = connection.interrupt()
        if inspect.isawaitable(answer):
            await answer


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(SHOP)
    connection.close()
    return path


@pytest.fixture
def lite():
    def build(url: str, name: str = "shop", pool_size: int = 2) -> LiteExecutor:
        return LiteExecutor(Database(name=name, dialect="lite", pool_size=pool_size, timeout=20), DIALECT, url)

    return build


@pytest.fixture(params=["sqlite+pysqlite", "sqlite+aiosqlite"])
async def executor(request: pytest.FixtureRequest, shop: Path, lite) -> AsyncIterator[LiteExecutor]:
    executor = lite(f"{request.param}:///{shop}")
    yield executor
    await executor.aclose()
