"""A new configuration while calls run: unchanged databases stay open, no call is lost, a wrong one changes nothing."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from dragoman import ConfigurationError, Database, DialectError, Gateway, UnknownDatabase
from dragoman.audit import records
from dragoman.config import Audit, Configuration, Server


def of(*databases: Database, **more: object) -> Configuration:
    return Configuration(databases={database.name: database for database in databases}, **more)


async def test_what_is_unchanged_stays_open_and_the_rest_is_opened_anew(shop: Database, warehouse: Database):
    async with Gateway.open(of(shop, warehouse)) as gateway:
        kept, changed = gateway.database("shop"), gateway.database("warehouse")
        other = replace(warehouse, max_rows=7, default_rows=7)
        assert await gateway.reload(of(shop, other)) == ("warehouse",)
        assert gateway.database("shop") is kept
        assert gateway.database("warehouse") is not changed
        assert gateway.database("warehouse").config.max_rows == 7


async def test_a_database_comes_and_goes(shop: Database, warehouse: Database):
    async with Gateway.open(of(shop)) as gateway:
        assert await gateway.reload(of(shop, warehouse)) == ("warehouse",)
        assert (await gateway.query("warehouse", "SELECT pieces FROM stock")).rows == [[7]]
        assert gateway.default is None
        assert await gateway.reload(of(shop)) == ("warehouse",)
        with pytest.raises(UnknownDatabase):
            await gateway.query("warehouse", "SELECT 1")
        assert gateway.default == "shop"


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"dialect": "nonsense"}, DialectError, "nonsense"),
        ({"options": {"nonsense": 1}}, ConfigurationError, "nonsense"),
    ],
)
async def test_a_wrong_configuration_changes_nothing(shop: Database, warehouse: Database, wrong, error, words):
    async with Gateway.open(of(shop)) as gateway:
        before, opened, version = gateway.configuration, gateway.database("shop"), gateway.version
        with pytest.raises(error, match=words):
            await gateway.reload(of(warehouse, replace(shop, **wrong)))
        assert (gateway.configuration, gateway.version) == (before, version)
        assert gateway.database("shop") is opened
        assert (await gateway.query("shop", "SELECT 1 AS one")).rows == [[1]]


async def test_what_takes_a_restart_is_refused_by_name(shop: Database):
    async with Gateway.open(of(shop)) as gateway:
        with pytest.raises(ConfigurationError, match=r"server\.port, audit\.required cannot change"):
            await gateway.reload(of(shop, server=Server(port=1), audit=Audit(required=False)))


async def test_a_query_that_runs_ends_before_its_database_is_closed(shop: Database, running, idle):
    counted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000)"
    slow = f"{counted} SELECT count(*) FROM n, (SELECT id FROM orders LIMIT 1)"
    async with Gateway.open(of(shop)) as gateway:
        task = asyncio.create_task(gateway.query("shop", slow))
        await running(shop)
        assert await gateway.reload(of(replace(shop, description="new"))) == ("shop",)
        assert (await gateway.query("shop", "SELECT 1 AS one")).rows == [[1]]
        assert (await task).rows == [[3000000]]


async def reload_under_load(shop: Database, warehouse: Database, times: int) -> None:
    stopped = False
    answered = 0

    async def ask(gateway: Gateway, database: str, sql: str, rows: list[list[object]]) -> None:
        nonlocal answered
        while not stopped:
            assert (await gateway.query(database, sql)).rows == rows
            answered += 1

    async with Gateway.open(of(shop, warehouse)) as gateway:
        kept = gateway.database("shop")
        asked = [("shop", "SELECT count(*) FROM customers", [[2]]), ("warehouse", "SELECT pieces FROM stock", [[7]])]
        tasks = [asyncio.create_task(ask(gateway, *each)) for each in asked * 2]
        for number in range(times):
            await gateway.reload(of(shop, replace(warehouse, description=f"version {number}")))
            before = answered
            while answered < before + 2 and not any(task.done() for task in tasks):
                await asyncio.sleep(0)
        stopped = True
        await asyncio.gather(*tasks)
        assert gateway.database("shop") is kept
        assert gateway.version == times + 1
    assert answered >= 2 * times


async def test_no_call_is_lost_over_many_reloads_under_load(shop: Database, warehouse: Database):
    await reload_under_load(shop, warehouse, 10)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
async def test_no_call_is_lost_over_a_thousand_reloads_under_load(shop: Database, warehouse: Database):
    await reload_under_load(shop, warehouse, 1000)


async def test_a_reload_is_in_the_audit(shop: Database, warehouse: Database, tmp_path: Path):
    audit = Audit(path=tmp_path / "audit.jsonl")
    async with Gateway.open(of(shop, audit=audit)) as gateway:
        await gateway.reload(of(shop, warehouse, audit=audit))
    assert [each.detail for each in records(tmp_path / "audit.jsonl") if each.event == "reload"] == [
        "version 2: warehouse changed"
    ]
