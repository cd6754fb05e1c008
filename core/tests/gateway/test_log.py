"""Every call is one line in the log: who asked what of which database, and never what it was about."""

import asyncio
import json

import pytest
from dragoman import Busy, Database, DragomanError, Encoded, Gateway, InvalidSql, Principal, UnknownDatabase
from dragoman.config import Configuration, Server


async def test_a_query_is_one_line_with_every_fact(gateway: Gateway, lines):
    result = await gateway.query(
        "shop", "SELECT email FROM customers WHERE id = ?", [2], principal=Principal("agent-7"), tool="report"
    )
    (line,) = lines()
    assert line.pop("ms") > 0
    assert line == {
        "who": "agent-7",
        "tool": "report",
        "database": "shop",
        "hash": result.query_hash,
        "rows": 1,
        "bytes": len(result.rows_json),
        "outcome": "ok",
    }


async def test_a_call_with_parts_is_one_line(gateway: Gateway, lines):
    async with gateway.call("search_catalog"):
        await gateway.query("shop", "SELECT 1 AS one")
        await asyncio.gather(*(gateway.query("shop", "SELECT 2 AS two") for _ in range(3)))
    assert [(line["tool"], line["outcome"]) for line in lines()] == [("search_catalog", "ok")]


async def test_a_sample_and_a_plan_are_one_line_each(gateway: Gateway, lines):
    await gateway.sample("shop", "orders", limit=2)
    await gateway.explain("shop", "SELECT 1 AS one")
    assert [(line["tool"], line["rows"]) for line in lines()] == [("get_sample_rows", 2), ("explain_query", 0)]


async def test_a_stream_is_one_line_with_what_was_read_of_it(gateway: Gateway, lines):
    async with gateway.stream("shop", "SELECT id FROM orders", limit=5) as stream:
        await gateway.query("shop", "SELECT 1 AS one")
        rows: list[bytes] = []
        async for batch in stream.batches:
            assert isinstance(batch, Encoded)
            rows += batch.rows
    assert [(line["rows"], line["bytes"]) for line in lines()] == [(1, 5), (5, len(b"[" + b",".join(rows) + b"]"))]


FAILING = [
    ("SELECT secret@example.com FROM", "INVALID_SQL"),
    ("SELECT nix FROM customers WHERE email = 'secret@example.com'", "COLUMN_NOT_FOUND"),
    ("SELECT 1; SELECT 'secret@example.com'", "UNSAFE_SQL"),
    ("DELETE FROM customers WHERE email = 'secret@example.com'", "WRITE_OPERATION_DENIED"),
    ("SELECT abs(-9223372036854775807 - 1) -- secret@example.com", "QUERY_ERROR"),
]


@pytest.mark.parametrize(("sql", "code"), FAILING)
async def test_a_failure_is_a_line_with_its_code_and_nothing_of_the_statement(sql, code, gateway, lines, caplog):
    with pytest.raises(DragomanError):
        await gateway.query("shop", sql)
    (line,) = lines()
    assert line["outcome"] == code
    assert "secret" not in json.dumps(line) + caplog.text


async def test_an_answer_s_values_are_not_in_the_log(gateway: Gateway, lines, caplog):
    caplog.set_level("DEBUG")
    await gateway.query("shop", "SELECT * FROM customers WHERE email = ?", ["secret@example.com"])
    assert "secret" not in caplog.text
    assert "customers" not in caplog.text
    assert "secret" not in json.dumps(lines())


async def test_a_cancelled_call_is_a_line(gateway: Gateway, shop: Database, endless: str, running, lines):
    task = asyncio.create_task(gateway.query("shop", endless))
    await running(shop)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [line["outcome"] for line in lines()] == ["QUERY_CANCELLED"]


async def test_a_database_that_is_not_configured_is_not_named(gateway: Gateway, lines):
    with pytest.raises(UnknownDatabase):
        await gateway.query("password=hush", "SELECT 1")
    (line,) = lines()
    assert line["outcome"] == "UNKNOWN_DATABASE"
    assert "database" not in line


async def test_a_failure_within_a_call_that_is_caught_there_does_not_mark_the_call(gateway: Gateway, lines):
    async with gateway.call("search_catalog"):
        with pytest.raises(InvalidSql):
            await gateway.query("shop", "SELECT")
    assert [line["outcome"] for line in lines()] == ["ok"]


async def test_calls_beyond_the_queue_are_refused_and_the_others_answered(shop: Database, lines):
    configuration = Configuration(databases={"shop": shop}, server=Server(max_concurrent=2))
    async with Gateway.open(configuration) as gateway:
        answers = await asyncio.gather(
            *(gateway.query("shop", "SELECT count(*) FROM orders") for _ in range(6)), return_exceptions=True
        )
    refused = [answer for answer in answers if isinstance(answer, Busy)]
    assert len(refused) == 2
    assert "Try again" in refused[0].suggestion
    assert sorted(line["outcome"] for line in lines()) == ["BUSY", "BUSY", "ok", "ok", "ok", "ok"]


async def test_a_caller_that_leaves_the_queue_gives_its_place_back(shop: Database, endless: str, running):
    configuration = Configuration(databases={"shop": shop}, server=Server(max_concurrent=1))
    async with Gateway.open(configuration) as gateway:
        for _ in range(3):
            first = asyncio.create_task(gateway.query("shop", endless))
            await running(shop)
            second = asyncio.create_task(gateway.query("shop", "SELECT 1 AS one"))
            await asyncio.sleep(0)
            second.cancel()
            first.cancel()
            await asyncio.gather(first, second, return_exceptions=True)
        assert (await gateway.query("shop", "SELECT 1 AS one")).rows == [[1]]
