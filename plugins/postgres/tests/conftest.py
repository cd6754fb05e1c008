"""What the tests of this distribution share."""

import math
from collections.abc import AsyncGenerator

import asyncpg
import pytest
from dragoman_postgres import pool
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.testing.fixtures import database_name, server

__all__ = ["database_name", "server"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def executor(server, database_name, anyio_backend) -> AsyncGenerator[PostgresExecutor]:
    """An executor over the module's database."""
    executor = PostgresExecutor(server.configure(database_name))
    yield executor
    await executor.aclose()


@pytest.fixture(scope="module")
async def admin(server, database_name, anyio_backend) -> AsyncGenerator["asyncpg.Connection"]:
    """A connection of the superuser to the module's database, for looking at what happens."""
    connection = await asyncpg.connect(server.address(database_name))
    yield connection
    await connection.close()


@pytest.fixture
def lasting(monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection is replaced because it has worked for long."""
    monkeypatch.setattr(pool, "MOST_WORK", math.inf)
