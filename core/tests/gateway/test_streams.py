"""Rows as they come: the same rows, the same limits, the same errors as a query's."""

import json
from typing import Any

import pytest
from dragoman import (
    Database,
    DialectError,
    Gateway,
    ParameterError,
    QueryError,
    QueryTimeout,
    ResultTooLarge,
    RowStream,
    TableNotFound,
)

ALL = "SELECT * FROM orders ORDER BY id"
WIDE = "SELECT printf('%.1000c', 'x') AS wide FROM orders a, orders b"


async def read(stream: RowStream) -> list[Any]:
    return [json.loads(row) async for batch in stream.batches for row in batch.rows]  # type: ignore[union-attr]


async def test_a_stream_has_the_rows_of_the_query(gateway: Gateway):
    result = await gateway.query("shop", ALL, limit=2000)
    async with gateway.stream("shop", ALL, limit=2000, max_bytes=10**6) as stream:
        assert [column.name for column in stream.columns] == ["id", "customer_id", "total", "status"]
        rows = await read(stream)
    assert rows == (await gateway.query("shop", ALL, limit=2000, max_bytes=10**6)).rows
    assert tuple(stream.columns) == result.columns
    assert stream.truncated is None


async def test_a_stream_is_cut_where_a_query_is(gateway: Gateway):
    async with gateway.stream("shop", ALL, limit=70) as stream:
        assert len(await read(stream)) == 70
        assert stream.truncated is not None
        assert (stream.truncated.reason, stream.truncated.limit) == ("rows", 70)
    async with gateway.stream("shop", ALL, limit=2000, max_bytes=100) as stream:
        assert len(json.dumps(await read(stream), separators=(",", ":"))) <= 100
        assert stream.truncated is not None
        assert stream.truncated.reason == "bytes"


async def test_what_was_lowered_is_said_before_the_first_row(gateway: Gateway):
    async with gateway.stream("shop", "SELECT 1 AS one", limit=10**9) as stream:
        assert stream.notices == ["limit was lowered to 10000. The server's administrator can raise `max_rows`."]


async def test_an_exhausted_stream_stays_so(gateway: Gateway):
    async with gateway.stream("shop", "SELECT 1 AS one") as stream:
        assert await read(stream) == [[1]]
        assert await read(stream) == []


async def test_leaving_a_stream_ends_its_work(gateway: Gateway, shop: Database, idle):
    async with gateway.stream("shop", WIDE, limit=10_000, max_bytes=10**9) as stream:
        batches = stream.batches
        first = await anext(batches)
        assert len(first.rows) > 0  # type: ignore[union-attr]
        assert not idle(shop)
    assert idle(shop)


async def test_leaving_a_stream_unread_ends_its_work(gateway: Gateway, shop: Database, idle):
    async with gateway.stream("shop", WIDE, limit=10_000, max_bytes=10**9):
        assert not idle(shop)
    assert idle(shop)


async def test_what_fails_before_the_first_row_fails_at_the_opening(gateway: Gateway):
    with pytest.raises(TableNotFound) as raised:
        async with gateway.stream("shop", "SELECT * FROM ordrs"):
            pass
    assert 'Did you mean "orders"?' in raised.value.suggestion
    with pytest.raises(ParameterError):
        async with gateway.stream("shop", "SELECT 1", limit=0):
            pass


async def test_what_fails_after_rows_fails_while_reading(gateway: Gateway):
    number = "CASE WHEN a.id < 1500 THEN a.id ELSE abs(-9223372036854775807 - (a.id > 0)) END"
    sql = f"SELECT {number} AS n, printf('%.1000c', 'x') AS wide FROM orders a"
    async with gateway.stream("shop", sql, limit=2000, max_bytes=10**9) as stream:
        first = await anext(stream.batches)
        assert json.loads(first.rows[0])[0] == 1  # type: ignore[union-attr]
        with pytest.raises(QueryError, match="overflow"):
            await read(stream)


async def test_a_first_row_that_is_too_large_is_an_error_of_the_reading(gateway: Gateway):
    async with gateway.stream("shop", "SELECT printf('%.90c', 'x') AS wide", max_bytes=50) as stream:
        with pytest.raises(ResultTooLarge):
            await read(stream)


async def test_the_deadline_holds_for_a_reader_that_dawdles(gateway: Gateway, shop: Database, idle):
    async with gateway.stream("shop", WIDE, limit=10_000, max_bytes=10**9, timeout=1.0) as stream:
        assert not idle(shop)
        while not idle(shop):
            await checkpoint()
        with pytest.raises(QueryTimeout):
            await read(stream)


async def checkpoint() -> None:
    import asyncio

    await asyncio.sleep(0)


async def test_an_error_of_the_reader_s_own_comes_out_as_it_is(gateway: Gateway, shop: Database, idle):
    async def fail(own: Exception) -> None:
        async with gateway.stream("shop", WIDE, limit=10_000, max_bytes=10**9) as stream:
            await anext(stream.batches)
            raise own

    for own in (TimeoutError("mine"), TableNotFound("mine"), ValueError("mine")):
        with pytest.raises(type(own), match=r"^mine$"):
            await fail(own)
        assert idle(shop)


async def test_a_driver_s_own_error_does_not_get_out(install):
    source = """
    class Odd(PretendPlugin):
        @hookimpl
        def executor(self, database):
            class Leaking(PretendExecutor):
                @asynccontextmanager
                async def open(self, request):
                    async def batches():
                        yield [["a", "b"]]
                        raise KeyError("driver")
                    yield RowStream([Column("a", "text"), Column("b", "text")], batches())
            return Leaking(database)
    plugin = Odd()
    """
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        async with gateway.stream("x", "SELECT 1") as stream:
            batches = stream.batches
            assert (await anext(batches)).rows == [b'["a","b"]']  # type: ignore[union-attr]
            with pytest.raises(
                DialectError, match=r"^Executor\.open of 'pretend' of dragoman-odd 1\.0 failed with KeyError in batches"
            ):
                await anext(batches)
        with pytest.raises(DialectError, match="KeyError") as raised:
            await gateway.query("x", "SELECT 1")
        assert "driver" not in str(raised.value)


@pytest.mark.parametrize("says_nothing", [0, 1, 2])
async def test_a_column_is_not_binary_if_a_batch_does_not_say_so(install, says_nothing: int):
    source = f"""
    class Odd(PretendPlugin):
        @hookimpl
        def executor(self, database):
            class Mixing(PretendExecutor):
                @asynccontextmanager
                async def open(self, request):
                    async def batches():
                        for number in range(3):
                            yield Encoded.of([b'["text"]']) if number == {says_nothing} else [[b"bytes"]]
                            yield Encoded.of([])
                    yield RowStream([Column("a", "blob")], batches())
            return Mixing(database)
    plugin = Odd()
    """
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        async with gateway.stream("x", "SELECT 1") as stream:
            assert await read(stream) == [["text"] if number == says_nothing else ["Ynl0ZXM="] for number in range(3)]
        assert stream.columns[0].kind.name == "any"
