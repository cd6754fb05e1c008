"""The conformance kit over PostgreSQL."""

from contextlib import asynccontextmanager
from typing import ClassVar

import asyncpg
import pytest
from dragoman.testing import DialectConformance

TYPES = (
    "CREATE TYPE kit_pair AS (a integer, b varchar)",
    "CREATE TYPE kit_numbers AS (a bigint, b numeric(4, 2))",
    'CREATE TYPE kit_named AS ("DATE, x" integer)',
)


class TestPostgres(DialectConformance):
    generated = "GENERATED ALWAYS AS (id + 1) STORED"  # what all versions have
    literals: ClassVar = {
        "binary": "'\\x00ff10'::bytea",
        "row": "CAST(ROW(1, 'x') AS kit_pair)",
        "json_with_a_key_twice": """'{"a": 1, "a": 2}'::jsonb""",
        "row_of_null": "CAST(ROW(NULL, '') AS kit_pair)",
        "row_of_long_numbers": "CAST(ROW(9007199254740993, 1.50) AS kit_numbers)",
        "row_with_a_name_like_a_type": "CAST(ROW(1) AS kit_named)",
        "map": """'{"Kit A": 1}'::jsonb""",
        "map_of_integers": """'{"1": "x"}'::jsonb""",
    }

    @pytest.fixture(scope="class")
    @classmethod
    async def database(cls, server, anyio_backend):
        name = await server.create("; ".join([*TYPES, *cls.statements("postgres")]))
        yield server.configure(name)
        await server.drop(name)

    async def is_idle(self, gateway):
        async with _connected(gateway.database().config) as connection:
            return await _becomes_idle(connection)

    async def alter(self, database, statement):
        async with _connected(database) as connection:
            await connection.execute(statement)
        return database


@asynccontextmanager
async def _connected(config):
    connection = await asyncpg.connect(host=config.host, port=config.port, user=config.user, database=config.database)
    try:
        yield connection
    finally:
        await connection.close()


async def _becomes_idle(connection):
    """Whether no other statement runs any more; the server itself waits for it."""
    active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()"
    active += " AND datname = current_database() AND backend_type = 'client backend'"
    for _ in range(50):
        if not await connection.fetchval(active):
            return True
        await connection.execute("SELECT pg_sleep(0.1)")
    return False
