"""Whatever a worker can say something in is bounded: names, errors, plans, values of every width."""

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Literal

import pytest
from dragoman import DragomanError, ExplainOptions, Gateway
from dragoman.testing.memory import within_memory
from dragoman.workers.frames import HEADER, Done, Rows, Run, most_bytes, pack
from dragoman.workers.process import TooLong, Worker
from dragoman_sqlite.frames import Setup

MOST_BYTES = 20_000
MOST_MEMORY = 64 * 1024 * 1024
"""Of our process beyond what it had, whatever is said."""
FOREVER = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
LONG = "hex(zeroblob(400000))"
NAME = "n" * 30_000
MANY = ", ".join(f"a a{n}" for n in range(60))
VIEW = "v" * 50_000
SCRIPT = f"""
CREATE TABLE t (id INTEGER);
INSERT INTO t VALUES (1), (2);
CREATE TABLE wide ({", ".join(f'"{"c" * 400}{n}" INTEGER' for n in range(1000))});
CREATE TABLE typed ({", ".join(f'c{n} "{"T" * 1000}"' for n in range(1000))});
CREATE VIEW "{VIEW}" AS SELECT nowhere FROM t;
CREATE VIEW broken AS SELECT "{NAME}" FROM t;
"""
CHANNELS = {
    "names that come many times": f'WITH a AS (SELECT 1 AS "{NAME}") SELECT * FROM {MANY}',
    "an expression as a name": f"SELECT '{NAME}' || '{NAME}'",
    "names of a table": "SELECT * FROM wide",
    "types of a table": "SELECT * FROM typed",
    "an error that quotes a name": f'SELECT "{NAME}" FROM t',
    "an error of a view": "SELECT * FROM broken",
    "a long value": f"SELECT {LONG}",
    "long values in one row": f"SELECT {', '.join([LONG] * 100)}",
    "long binaries in one row": f"SELECT {', '.join(['zeroblob(900000)'] * 100)}",
    "rows of long values": f"{FOREVER} SELECT {LONG} FROM n",
    "a row of values that are each short enough": f"SELECT {', '.join(['hex(zeroblob(9000))'] * 1900)}",
    "a long value after short ones": f"{FOREVER} SELECT CASE WHEN i < 9 THEN 'x' ELSE {LONG} END FROM n",
    "rows of numbers": f"{FOREVER} SELECT i, i FROM n",
    "rows of nothing": f"{FOREVER} SELECT {', '.join(['NULL'] * 1900)} FROM n",
    "values that grow in JSON": f"{FOREVER} SELECT CAST(zeroblob(19000) AS TEXT) FROM n",
    "deep JSON": f"SELECT json('{'[' * 900}{']' * 900}')",
    "texts that are not valid": f"{FOREVER} SELECT CAST(x'ff' || zeroblob(300000) AS TEXT) FROM n",
    "a parameter that comes back": f"SELECT {', '.join(['?1'] * 1000)}",
}  # fmt: skip


@pytest.fixture(scope="module")
async def gateway(shared) -> AsyncGenerator[Gateway]:
    """Over a single worker."""
    async with Gateway.open([shared.make(SCRIPT, pool_size=1)]) as gateway:
        await gateway.query(None, "SELECT 1")
        yield gateway


async def said(gateway: Gateway, sql: str) -> int:
    """Return how many bytes an answer has, or an error."""
    parameters = ["x" * 60_000] if "?1" in sql else []
    try:
        result = await gateway.query(None, sql, parameters, max_bytes=MOST_BYTES, timeout=2)
    except DragomanError as error:
        return len(str(error.as_dict())) if error.code not in ("DIALECT_ERROR", "INTERNAL_ERROR") else MOST_MEMORY
    return len(result.rows_json) + sum(len(column.name) + len(column.type) for column in result.columns)


@pytest.mark.parametrize("sql", CHANNELS.values(), ids=CHANNELS)
async def test_nothing_that_is_said_is_unbounded_and_the_next_query_is_answered(gateway: Gateway, sql: str):
    async with asyncio.timeout(60), within_memory(MOST_MEMORY):
        assert await said(gateway, sql) <= 2 * MOST_BYTES
        assert (await gateway.query(None, "SELECT count(*) FROM t", timeout=20)).rows == [[2]]


PARTS = ["hex(zeroblob({}))", "zeroblob({})", "CAST(zeroblob({}) AS TEXT)", "printf('%0{}d', 1)", "i", "NULL", "x{}"]
SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(12, 400))]


def _made(seed: int) -> str:
    made = random.Random(seed)
    columns = [
        made.choice(PARTS).format(made.choice([1, 70, 9_000, 300_000])) + f' AS "{"n" * made.choice([1, 3_000])}{n}"'
        for n in range(made.choice([1, 1, 3, 15]))
    ]
    return f"{FOREVER} SELECT {', '.join(columns)} FROM n LIMIT {made.choice([1, 20, 5_000, 10_000_000])}"


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_is_made_of_long_parts_is_bounded(gateway: Gateway, seed: int):
    async with asyncio.timeout(60), within_memory(MOST_MEMORY):
        assert await said(gateway, _made(seed)) <= 2 * MOST_BYTES
        assert (await gateway.query(None, "SELECT count(*) FROM t", timeout=20)).rows == [[2]]


@pytest.mark.parametrize("format", ["text", "json"])
async def test_a_plan_is_bounded(gateway: Gateway, format: Literal["text", "json"]):
    options = ExplainOptions(format=format, verbose=True)
    sql = f"SELECT {', '.join(f'(SELECT {n} FROM t WHERE id = {n})' for n in range(1500))}"
    async with asyncio.timeout(60), within_memory(MOST_MEMORY):
        try:
            told = str((await gateway.explain(None, sql, options=options)).plan)
        except DragomanError as error:
            told = error.code
        assert len(told) < 2_000_000
        assert (await gateway.query(None, "SELECT count(*) FROM t", timeout=20)).rows == [[2]]


async def test_a_row_that_is_too_large_cuts_the_answer_where_it_stands(gateway: Gateway):
    sql = f"{FOREVER} SELECT CASE WHEN i < 9 THEN 'x' ELSE {LONG} END FROM n"
    result = await gateway.query(None, sql, max_bytes=MOST_BYTES)
    assert result.row_count == 8
    assert result.truncated is not None
    assert result.truncated.reason == "bytes"


async def test_what_a_worker_says_is_not_read_beyond_its_bound(shared):
    """Even of one that does not keep to it."""
    worker = await Worker.start(
        "dragoman_sqlite.worker", Setup(path="nothing", functions=[], memory=1 << 28, length=1000)
    )
    order = Run("SELECT 1", [], 10, MOST_BYTES, 5.0)
    worker.send(order)
    longest = most_bytes(order)
    worker._output = asyncio.StreamReader()
    worker._output.feed_data((longest + 1).to_bytes(HEADER, "big"))
    with pytest.raises(TooLong):
        await worker.next()
    await worker.kill()
    assert not worker.alive


def test_what_workers_say_usually_is_within_the_bound():
    order = Run("SELECT 1", [], 10, 100, 5.0)
    assert len(pack(Rows(b"x" * 1000, 1, ()))) + len(pack(Done())) < most_bytes(order)
