"""Queries that could take everything are bounded in time, answer and memory, and the next one is answered."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import asyncpg
import pytest
from dragoman import ConfigurationError, DragomanError, Gateway, Secret
from dragoman.testing.asking import failure_of, value_of
from dragoman.testing.memory import within_memory
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.options import Options
from dragoman_postgres.testing import Server

DEADLINE = 0.4
BOUNDED = ("answered", "QUERY_TIMEOUT", "RESULT_TOO_LARGE", "QUERY_ERROR", "UNSAFE_SQL", "INVALID_SQL")
MOST_BYTES = 100_000
MOST_MEMORY = 150 * 1024 * 1024
"""Of our process beyond what it had: far less than any of the answers would take."""

BOMBS = {
    "a cross join": "SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000000000) b",
    "many rows": "SELECT n, n FROM generate_series(1, 1000000000) n",
    "a long value": "SELECT repeat('x', 200000000)",
    "long values": "SELECT repeat('x', 50000000) FROM generate_series(1, 100)",
    "padding": "SELECT lpad('x', 200000000)",
    "a wide format": "SELECT format('%200000000s', 'x')",
    "an endless recursion": "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT count(*) FROM r",
    "a growing recursion": "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r, generate_series(1, 9)) TABLE r",
    "doubling": "WITH RECURSIVE r (s) AS (SELECT 'x' UNION ALL SELECT s || s FROM r) SELECT s FROM r",
    "a regular expression": "SELECT repeat('a', 30000) ~ '(a*)*(a*)*(a|b)*c'",
    "back references": "SELECT repeat('ab', 5000) ~ '^(.*)(.*)(.*)\\1\\2\\3x$'",
    "a sort": "SELECT n FROM generate_series(1, 1000000000) n ORDER BY md5(n::text)",
    "an array": "SELECT array_agg(n) FROM generate_series(1, 1000000000) n",
    "a filled array": "SELECT array_fill(1, ARRAY[5000, 5000])",
    "JSON": "SELECT jsonb_agg(n) FROM generate_series(1, 1000000000) n",
    "a joined text": "SELECT string_agg(md5(n::text), ',') FROM generate_series(1, 1000000000) n",
    "a large number": "SELECT 9.9::numeric ^ 30000 * 9.9::numeric ^ 30000 FROM generate_series(1, 1000000)",
    "text search": "SELECT to_tsvector(repeat('word ', 200000)) FROM generate_series(1, 1000)",
    "parentheses": f"SELECT {'(' * 20000}1{')' * 20000}",
    "a long sum": f"SELECT 1{'+1' * 30000}",
    "nested JSON": f"SELECT '{'[' * 60000}'::jsonb",
    "nested queries": f"{'SELECT * FROM (' * 3000}SELECT 1{') q' * 3000}",
    "a long list": f"SELECT 1 IN ({'1,' * 30000}1)",
}  # fmt: skip


@pytest.fixture(scope="module")
async def gateway(server: Server, database_name: str) -> AsyncGenerator[Gateway]:
    """Over a single connection of a superuser."""
    async with Gateway.open([server.configure(database_name, pool_size=1)]) as gateway:
        yield gateway


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
async def test_a_bomb_is_bounded_and_the_next_query_is_answered(gateway: Gateway, bomb: str):
    async with asyncio.timeout(30), within_memory(MOST_MEMORY):
        assert await outcome(gateway, bomb) in BOUNDED
        assert (await gateway.query(None, "SELECT 1", timeout=10)).rows == [[1]]


async def outcome(gateway: Gateway, bomb: str) -> str:
    try:
        result = await gateway.query(None, bomb, timeout=DEADLINE)
    except DragomanError as error:
        return error.code
    return "answered" if len(result.rows_json) <= MOST_BYTES else "too many bytes"


async def test_no_bomb_goes_on_in_the_server(gateway: Gateway, admin: "asyncpg.Connection", database_name: str):
    for bomb in list(BOMBS.values())[:3]:
        await outcome(gateway, bomb)
    async with asyncio.timeout(30):
        while await admin.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND state <> 'idle' AND pid <> pg_backend_pid()",
            database_name,
        ):
            await asyncio.sleep(0.01)


SPILLING = "SELECT count(*) FROM (SELECT md5(n::text) FROM generate_series(1, 200000) n ORDER BY 1 OFFSET 0) q"


async def test_spilling_is_bounded_where_the_role_may_set_it(server: Server, database_name: str):
    executor = PostgresExecutor(server.configure(database_name, options={"work_mem": "1MB", "temp_file_limit": "2MB"}))
    assert await value_of(executor, "SHOW work_mem") == "1MB"
    error = await failure_of(executor, SPILLING)
    assert error.code == "RESULT_TOO_LARGE"
    assert await value_of(executor, "SELECT 1") == 1
    await executor.aclose()


async def test_the_role_s_own_bound_of_spilling_stays(server: Server, database_name: str):
    role = f"bounded_{database_name}"
    await server.run(f"CREATE ROLE {role} LOGIN PASSWORD 'x'; ALTER ROLE {role} SET temp_file_limit = '3MB'")
    executor = PostgresExecutor(server.configure(database_name, user=role, password=Secret("x")))
    assert await value_of(executor, "SHOW temp_file_limit") == "3MB"
    await executor.aclose()
    await server.run(f"DROP ROLE {role}")


async def test_a_role_that_may_not_bound_spilling_is_served_all_the_same(server: Server, database_name: str):
    role = f"plain_{database_name}"
    await server.run(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    executor = PostgresExecutor(server.configure(database_name, user=role, password=Secret("x"), pool_size=2))
    assert await asyncio.gather(value_of(executor, "SELECT 1"), value_of(executor, "SELECT 2")) == [1, 2]
    assert await value_of(executor, "SHOW temp_file_limit") == "-1"
    await executor.aclose()
    await server.run(f"DROP ROLE {role}")


@pytest.mark.parametrize("value", ["", "0", "-1", "64", "1 GB", "1GB'; RESET ALL; --"])
def test_a_bound_that_is_no_size_is_refused(value: str):
    for option in ("work_mem", "temp_file_limit"):
        given: dict[str, Any] = {option: value}
        with pytest.raises(ConfigurationError, match=option):
            Options(**given)
