"""Whatever a server can say something in is bounded: errors, notices, names, plans, values of every width."""

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Literal

import asyncpg
import pytest
from dragoman import DragomanError, ExplainOptions, Gateway, ResultTooLarge
from dragoman.testing.asking import value_of
from dragoman.testing.memory import within_memory
from dragoman_postgres.driver import Frames
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.failures import MOST_WORDS, translate_errors
from dragoman_postgres.testing import Server

BOUNDED = ("QUERY_ERROR", "RESULT_TOO_LARGE", "QUERY_TIMEOUT", "INVALID_SQL", "COLUMN_NOT_FOUND")
MOST_BYTES = 20_000
MOST_MEMORY = 64 * 1024 * 1024
"""Of our process beyond what it had, whatever is said."""
TALKATIVE = """
CREATE FUNCTION fail(message text, detail text, hint text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN RAISE EXCEPTION USING message = message, detail = detail, hint = hint; END $$;
CREATE FUNCTION warn(what text, times integer) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN FOR n IN 1..times LOOP RAISE NOTICE '%', what; END LOOP; RETURN 1; END $$;
"""
LONG = "repeat('x', 100000000)"
NAME = "n" * 59
CHANNELS = {
    "an error's message": f"SELECT {LONG}::integer",
    "an error's message, of JSON": "SELECT repeat('[', 20000000)::jsonb",
    "an error's message, raised": f"SELECT fail({LONG}, 'd', 'h')",
    "an error's detail": f"SELECT fail('m', {LONG}, 'h')",
    "an error's hint": f"SELECT fail('m', 'd', {LONG})",
    "an error of many lines": "SELECT fail(repeat(E'line\\n', 2000000), 'd', 'h')",
    "an error that looks like another": "SELECT fail(repeat('column x of relation y ', 2000000), 'd', 'h')",
    "a long notice": f"SELECT warn({LONG}, 1)",
    "many notices": "SELECT warn(repeat('x', 1000), 100000)",
    "many names": f"SELECT {', '.join(f'{n} AS {NAME}{n:04}' for n in range(700))}",
    "a name that is cut": f'SELECT 1 AS "{"n" * 60_000}"',
    "a long value": f"SELECT {LONG}",
    "a long binary": f"SELECT convert_to({LONG}, 'UTF8')",
    "long values in one row": f"SELECT {', '.join([LONG] * 5)}",
    "a row of values that are each short enough": f"SELECT {', '.join(['''repeat('x', 79000)'''] * 1000)}",
    "rows of values that are each short enough": "SELECT repeat('x', 79000) FROM generate_series(1, 100000)",
    "a long value after short ones": f"SELECT CASE WHEN n < 50 THEN 'x' ELSE {LONG} END FROM generate_series(1, 99) n",
    "rows of fixed width": "SELECT n, n, n FROM generate_series(1, 100000000) n",
    "rows of texts of fixed width": f"SELECT {', '.join(['gen_random_uuid()'] * 200)} FROM generate_series(1, 1000000)",
    "rows of names": f"SELECT {', '.join(['repeat(chr(65), 63)::name'] * 200)} FROM generate_series(1, 1000000)",
    "rows without columns": "SELECT FROM generate_series(1, 100000000)",
    "rows of nothing": f"SELECT {', '.join(['NULL'] * 1000)} FROM generate_series(1, 1000000)",
    "an array": "SELECT array_agg(n) FROM generate_series(1, 20000000) n",
    "an array of arrays": "SELECT array_fill(7, ARRAY[10, 10, 10, 10, 10, 100])",
    "deep JSON": "SELECT (repeat('[', 3000) || repeat(']', 3000))::jsonb",
    "deep rows": f"WITH {', '.join(f'w{n} AS (SELECT ROW(x, x) AS x FROM w{n - 1})' for n in range(1, 12))} TABLE w11"
    .replace("WITH ", "WITH w0 AS (SELECT 1 AS x), ", 1),
    "anonymous rows": f"SELECT ROW({LONG}, {LONG})",
}  # fmt: skip
ECHO = f"SELECT {', '.join(['$1::text'] * 1000)}"


@pytest.fixture(scope="module")
async def gateway(server: Server, database_name: str) -> AsyncGenerator[Gateway]:
    """Over a single connection of a superuser."""
    await server.run(TALKATIVE, database_name)
    database = server.configure(database_name, pool_size=1, allow_functions=frozenset({"fail", "warn"}))
    async with Gateway.open([database]) as gateway:
        for _ in range(3):
            await gateway.query(None, "SELECT 1")
        yield gateway


async def said(gateway: Gateway, sql: str, *parameters: object) -> int:
    """Return how many bytes an answer has, or an error."""
    try:
        result = await gateway.query(None, sql, parameters, max_bytes=MOST_BYTES, timeout=3)
    except DragomanError as error:
        return len(str(error.as_dict())) if error.code in BOUNDED else MOST_MEMORY
    return len(result.rows_json) + sum(len(column.name) + len(column.type) for column in result.columns)


@pytest.mark.parametrize("sql", CHANNELS.values(), ids=CHANNELS)
async def test_nothing_that_is_said_is_unbounded_and_the_next_query_is_answered(gateway: Gateway, sql: str):
    async with asyncio.timeout(60), within_memory(MOST_MEMORY):
        assert await said(gateway, sql) <= 2 * MOST_BYTES + 16_384
        assert (await gateway.query(None, "SELECT 1", timeout=20)).rows == [[1]]


# What is long alone, or many times; each becomes a part of a random statement.
PARTS = (
    """
repeat('x', {}); repeat('é', {})::bytea; repeat('x', {})::name; repeat('[', {})::json; repeat('9', {})::numeric
warn(repeat('x', {}), 3); warn('x', {} / 1000); fail(repeat('m', {}), 'd', 'h'); fail('m', 'd', repeat('h', {}))
array_fill(7, ARRAY[{}]); ROW(repeat('x', {}), 1); jsonb_build_object(repeat('k', {}), 1); NULL::text[]; n; {}
string_to_array(repeat('a,', {}), ','); xmlelement(name x, repeat('x', {})); repeat('1', {})::varbit
""".strip()
    .replace("\n", ";")
    .split(";")
)
LENGTHS = [1, 70, 9_000, 300_000, 20_000_000]
SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(12, 400))]


def _made(seed: int) -> str:
    made = random.Random(seed)
    columns = [
        made.choice(PARTS).format(made.choice(LENGTHS)) + f' AS "{"n" * made.choice([1, 60])}{n}"'
        for n in range(made.choice([1, 1, 3, 40]))
    ]
    rows = made.choice([1, 1, 20, 5_000, 10_000_000])
    ordered = made.choice(["", " ORDER BY n % 7", " WHERE n <> 3"]) if rows < 10_000 else ""
    return f"SELECT {', '.join(columns)} FROM generate_series(1, {rows}) AS n{ordered}"


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_is_made_of_long_parts_is_bounded(gateway: Gateway, seed: int):
    async with asyncio.timeout(60), within_memory(MOST_MEMORY):
        assert await said(gateway, _made(seed)) <= 2 * MOST_BYTES + 16_384
        assert (await gateway.query(None, "SELECT 1", timeout=20)).rows == [[1]]


async def test_parameters_that_come_back_many_times_are_bounded(gateway: Gateway):
    async with asyncio.timeout(60), within_memory(MOST_MEMORY):
        assert await said(gateway, ECHO, "x" * 60_000) <= MOST_BYTES
        assert (await gateway.query(None, "SELECT 1", timeout=20)).rows == [[1]]


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize("verbose", [False, True])
async def test_a_plan_of_a_huge_constant_is_bounded(gateway: Gateway, format: Literal["text", "json"], verbose: bool):
    options = ExplainOptions(format=format, verbose=verbose)
    sql = f"SELECT * FROM pg_class WHERE relname = {LONG}"
    async with asyncio.timeout(60), within_memory(MOST_MEMORY):
        try:
            told = str((await gateway.explain(None, sql, options=options)).plan)
        except ResultTooLarge as error:
            told = error.message
        assert len(told) < 100_000
        assert (await gateway.query(None, "SELECT 1", timeout=20)).rows == [[1]]


async def test_texts_of_an_error_are_cut_and_its_code_is_kept(gateway: Gateway):
    with pytest.raises(DragomanError) as caught:
        await gateway.query(None, "SELECT fail(repeat('m', 9000), repeat('d', 9000), repeat('h', 9000))")
    assert caught.value.code == "QUERY_ERROR"
    assert len(str(caught.value.as_dict())) < 3 * MOST_WORDS + 1000


async def test_a_row_that_is_too_large_cuts_the_answer_where_it_stands(gateway: Gateway):
    sql = "SELECT CASE WHEN n < 50 THEN 'x' ELSE repeat('x', 5000000) END FROM generate_series(1, 99) n"
    result = await gateway.query(None, sql, max_bytes=MOST_BYTES)
    assert result.row_count == 49
    assert result.truncated is not None
    assert result.truncated.reason == "bytes"


async def test_a_large_answer_that_may_be_large_is_whole(server: Server, database_name: str):
    async with Gateway.open([server.configure(database_name, pool_size=1)]) as gateway:
        result = await gateway.query(
            None, "SELECT repeat('x', 1000) FROM generate_series(1, 9000)", limit=9000, max_bytes=15_000_000
        )
        assert (result.row_count, result.truncated) == (9000, None)


async def test_an_error_is_bounded_where_an_answer_may_be_large(server: Server, database_name: str):
    """The driver needs a time for an error that grows with the square of its length."""
    async with (
        asyncio.timeout(60),
        within_memory(MOST_MEMORY),
        Gateway.open([server.configure(database_name)]) as gateway,
    ):
        with pytest.raises(DragomanError, match="not read"):
            await gateway.query(None, f"SELECT {LONG}::integer", max_bytes=16_000_000)


def _message(kind: bytes, length: int) -> bytes:
    return kind + (length + 4).to_bytes(4, "big") + bytes(length)


@pytest.mark.parametrize("unseen", [0, 1, 24, 30, 60, 500])
@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 1000])
def test_messages_are_told_apart_however_they_arrive(step: int, unseen: int):
    sent = _message(b"D", 20) + _message(b"C", 0) + _message(b"E", 37) + _message(b"N", 11) + _message(b"D", 500)
    frames = Frames(unseen)
    assert max(frames.tell(sent[n : n + step]) for n in range(0, len(sent), step)) == 41


def test_nothing_is_looked_at_before_much_has_arrived():
    frames = Frames(100)
    assert frames.tell(_message(b"E", 50)) == 0
    assert frames.tell(_message(b"D", 40)) == 0
    assert frames.tell(b"D") == 54
    assert frames.tell(_message(b"E", 60)[1:]) == 0  # that is the row which had begun


async def test_error_texts_are_read_in_a_time_that_does_not_grow_with_them(executor: PostgresExecutor):
    for text in ("column " * 100_000, "(" * 1_000_000, "portal " * 100_000, 'relation "' * 100_000):
        told = {"S": "ERROR", "C": "42703", "M": text, "W": text, "D": text, "H": text}
        with pytest.raises(DragomanError), translate_errors("shop"):
            raise asyncpg.PostgresError.new(told)
    assert await value_of(executor, "SELECT 1") == 1
