"""Queries that could take everything are bounded in time and answer, and the next one is answered."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from dragoman import DragomanError, Gateway

DEADLINE = 0.3
MOST_BYTES = 100_000
BOUNDED = ("answered", "QUERY_TIMEOUT", "RESULT_TOO_LARGE", "QUERY_ERROR", "UNSAFE_SQL", "INVALID_SQL")
FOREVER = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"

BOMBS = {
    "a cross join": "SELECT count(*) FROM t a, t b, t c, t d, t e, t f",
    "an endless recursion": f"{FOREVER} SELECT count(*) FROM n",
    "many rows": f"{FOREVER} SELECT i, i FROM n",
    "a distinct recursion": "WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "doubling": "WITH RECURSIVE r (s) AS (SELECT 'x' UNION ALL SELECT s || s FROM r) SELECT length(s) FROM r",
    "padding": "SELECT printf('%.*c', 900000000, 'x')",
    "a wide format": "SELECT format('%900000000d', 1)",
    "zeros": "SELECT zeroblob(900000000)",
    "hexadecimal zeros": "SELECT hex(zeroblob(900000))",
    "random bytes": f"{FOREVER} SELECT randomblob(900000) FROM n",
    "a loop of the C library": "SELECT instr(hex(zeroblob(450000)), hex(zeroblob(225000)) || 'x')",
    "a replacement": "SELECT length(replace(hex(zeroblob(450000)), '0', 'yz'))",
    "a pattern": f"SELECT hex(zeroblob(2000)) LIKE '{'%0' * 2000}%1'",
    "a GLOB pattern": f"SELECT hex(zeroblob(2000)) GLOB '{'*0' * 2000}*1'",
    "a sort": f"{FOREVER} SELECT i FROM n ORDER BY random()",
    "a joined text": f"{FOREVER} SELECT group_concat(i) FROM n",
    "JSON": f"{FOREVER} SELECT json_group_array(i) FROM n",
    "nested JSON": f"SELECT json_extract('{'[' * 30000}{']' * 30000}', '$[0]')",
    "parentheses": f"SELECT {'(' * 20000}1{')' * 20000}",
    "a long sum": f"SELECT 1{'+1' * 30000}",
    "nested queries": f"{'SELECT * FROM (' * 2000}SELECT 1{')' * 2000}",
    "a long list": f"SELECT 1 IN ({'1,' * 30000}1)",
    "many windows": f"SELECT {', '.join(f'sum(id) OVER (ORDER BY id + {n})' for n in range(1000))} FROM t",
    "windows": f"{FOREVER} SELECT sum(i) OVER (ORDER BY -i) FROM n",
}


@pytest.fixture(scope="module")
async def gateway(shared) -> AsyncGenerator[Gateway]:
    """Over a single worker, of a table of a hundred rows."""
    rows = ", ".join(f"({number})" for number in range(100))
    database = shared.make(f"CREATE TABLE t (id INTEGER); INSERT INTO t VALUES {rows}", pool_size=1)
    async with Gateway.open([database]) as gateway:
        yield gateway


async def outcome(gateway: Gateway, bomb: str) -> str:
    try:
        result = await gateway.query(None, bomb, timeout=DEADLINE)
    except DragomanError as error:
        return error.code
    return "answered" if len(result.rows_json) <= MOST_BYTES else "too many bytes"


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
async def test_a_bomb_is_bounded_and_the_next_query_is_answered(gateway: Gateway, bomb: str):
    async with asyncio.timeout(30):
        assert await outcome(gateway, bomb) in BOUNDED
        assert (await gateway.query(None, "SELECT count(*) FROM t", timeout=10)).rows == [[100]]


async def test_bombs_of_many_callers_leave_the_gateway_answering(gateway: Gateway):
    async with asyncio.timeout(60):
        outcomes = await asyncio.gather(*(outcome(gateway, bomb) for bomb in list(BOMBS.values())[:12]))
        assert set(outcomes) <= {*BOUNDED, "BUSY"}
        assert (await gateway.query(None, "SELECT count(*) FROM t", timeout=10)).rows == [[100]]
