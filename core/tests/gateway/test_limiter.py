"""How many statements a database runs at once, who waits, and that waiting for one does not keep from another."""

import asyncio
from dataclasses import replace

import pytest
from dragoman import Busy, Database, Gateway
from dragoman.config import Configuration
from dragoman.config.settings import Server


def configured(*databases: Database, max_concurrent: int) -> Configuration:
    return Configuration(
        databases={database.name: database for database in databases}, server=Server(max_concurrent=max_concurrent)
    )


@pytest.fixture
def narrow(shop: Database) -> Database:
    """The shop, which runs one statement at once."""
    return replace(shop, pool_size=1)


async def ended(*tasks: asyncio.Task) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_who_waits_for_one_database_keeps_nobody_from_another(narrow, warehouse, endless, running):
    async with Gateway.open(configured(narrow, warehouse, max_concurrent=2)) as gateway:
        first = asyncio.create_task(gateway.query("shop", endless))
        await running(narrow)
        second = asyncio.create_task(gateway.query("shop", "SELECT 1"))
        answers = await asyncio.gather(*(gateway.query("warehouse", "SELECT pieces FROM stock") for _ in range(3)))
        assert [answer.rows for answer in answers] == [[[7]]] * 3
        assert not second.done()
        await ended(first)
        assert (await second).rows == [[1]]


async def test_a_full_queue_refuses_at_once_and_says_whose_it_is(narrow, endless, running):
    async with Gateway.open(configured(narrow, max_concurrent=2)) as gateway:
        first = asyncio.create_task(gateway.query("shop", endless))
        await running(narrow)
        waiting = [asyncio.create_task(gateway.query("shop", "SELECT 1")) for _ in range(4)]
        for _ in range(10):
            await asyncio.sleep(0)
        with pytest.raises(Busy, match="shop runs statements, 1 at once, and 4 wait"):
            await gateway.query("shop", "SELECT 1")
        await ended(first)
        assert [answer.rows for answer in await asyncio.gather(*waiting)] == [[[1]]] * 4


async def test_who_waits_too_long_is_told_so(narrow, endless, running):
    async with Gateway.open([narrow]) as gateway:
        first = asyncio.create_task(gateway.query("shop", endless))
        await running(narrow)
        with pytest.raises(Busy, match="none ended"):
            await gateway.query("shop", "SELECT 1", timeout=0.1)
        await ended(first)
        assert (await gateway.query("shop", "SELECT 1")).rows == [[1]]


async def test_who_goes_away_while_waiting_leaves_no_place_taken(narrow, endless, running):
    async with Gateway.open(configured(narrow, max_concurrent=1)) as gateway:
        for _ in range(3):
            first = asyncio.create_task(gateway.query("shop", endless))
            await running(narrow)
            second = asyncio.create_task(gateway.query("shop", "SELECT 1"))
            for _ in range(10):
                await asyncio.sleep(0)
            await ended(second, first)
        assert (await gateway.query("shop", "SELECT 1")).rows == [[1]]


async def test_fifty_callers_of_a_narrow_database_are_all_answered(narrow):
    async with Gateway.open([narrow]) as gateway:
        answers = await asyncio.gather(*(gateway.query("shop", f"SELECT {number}") for number in range(50)))
        assert [answer.rows for answer in answers] == [[[number]] for number in range(50)]


async def test_parts_of_one_call_that_wait_side_by_side_leave_no_place_taken(narrow):
    async with asyncio.timeout(30), Gateway.open(configured(narrow, max_concurrent=3)) as gateway:
        for _ in range(4):
            async with gateway.call("several"):
                answers = await asyncio.gather(*(gateway.query("shop", f"SELECT {number}") for number in range(3)))
            assert [answer.rows for answer in answers] == [[[0]], [[1]], [[2]]]


async def test_the_catalog_is_read_while_statements_wait(narrow, endless, running):
    async with Gateway.open([narrow]) as gateway:
        first = asyncio.create_task(gateway.query("shop", endless))
        await running(narrow)
        assert (await gateway.database("shop").catalog.find("orders")).relation.name == "orders"
        await ended(first)
