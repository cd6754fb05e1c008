"""A new configuration while calls run: unchanged databases stay open, no call is lost, a wrong one changes nothing."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dragoman import (
    ConfigurationError,
    Database,
    DialectError,
    Gateway,
    QuotaExceeded,
    TableNotFound,
    UnknownDatabase,
)
from dragoman.audit import records, verify_files
from dragoman.config import Audit, Configuration, Server
from dragoman.config.roles import Grant, Role
from dragoman.gateway.reloading import changed_keys
from dragoman.model import KnowledgeSettings, Secret


def of(*databases: Database, **more: Any) -> Configuration:
    return Configuration(databases={database.name: database for database in databases}, **more)


async def test_what_is_unchanged_stays_open_and_the_rest_is_opened_anew(shop: Database, warehouse: Database):
    async with Gateway.open(of(shop, warehouse)) as gateway:
        kept, changed = gateway.database("shop"), gateway.database("warehouse")
        other = replace(warehouse, max_rows=7, default_rows=7)
        assert await gateway.reload(of(shop, other)) == ("warehouse",)
        assert gateway.database("shop") is kept
        assert gateway.database("warehouse") is not changed
        assert gateway.database("warehouse").config.max_rows == 7


async def test_knowledge_files_that_have_changed_are_read_again(shop: Database, warehouse: Database, tmp_path: Path):
    written = tmp_path / "shop.md"
    written.write_text("Orders of a former year.")
    shop = replace(shop, knowledge=KnowledgeSettings(files=(written,)))
    async with Gateway.open(of(shop, warehouse)) as gateway:
        assert await gateway.reload(of(shop, warehouse)) == ()
        written.write_text("Orders.")
        assert await gateway.reload(of(shop, warehouse)) == ("shop",)
        assert gateway.database("shop").written.about == "Orders."
        opened = gateway.database("shop")
        for break_file in (lambda: written.write_bytes(b"\xff"), written.unlink):
            break_file()
            with pytest.raises(ConfigurationError, match=r"shop\.md:\d"):
                await gateway.reload(of(shop, warehouse))
            assert gateway.database("shop") is opened


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
        with pytest.raises(ConfigurationError, match=r"server\.host, server\.port cannot change"):
            await gateway.reload(of(shop, server=Server(host="::1", port=1)))


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

    async def ask(gateway: Gateway, database: str, sql: str, rows: list[list[int]]) -> None:
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
    await reload_under_load(shop, warehouse, 20)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
async def test_no_call_is_lost_over_a_thousand_reloads_under_load(shop: Database, warehouse: Database):
    await reload_under_load(shop, warehouse, 1000)


async def test_a_reload_is_in_the_audit(shop: Database, warehouse: Database, tmp_path: Path):
    audit = Audit(path=tmp_path / "audit.jsonl")
    async with Gateway.open(of(shop, audit=audit)) as gateway:
        await gateway.reload(of(shop, warehouse, audit=audit))
    assert [each.detail for each in records(tmp_path / "audit.jsonl") if each.event == "reload"] == [
        "version 2: databases.warehouse changed"
    ]


def test_what_a_reload_changes_is_told_by_keys_without_values(shop: Database, warehouse: Database):
    before = of(shop, roles=grant("main.orders"), server=Server(token=Secret("old")))
    cases = [
        (of(shop, warehouse, roles=before.roles, server=before.server), ("databases.warehouse",)),
        (of(shop, roles=grant("main.customers"), server=before.server), ("roles.all",)),
        (of(shop, server=before.server), ("roles.all",)),
        (of(shop, roles=before.roles, server=Server(token=Secret("new"))), ("server.token",)),
        (of(shop, roles=before.roles, server=before.server, audit=Audit(text="off")), ("audit",)),
        (of(shop, roles=grant("main.orders"), server=before.server), ()),
    ]
    for after, keys in cases:
        assert changed_keys(before, after) == keys


def grant(table: str) -> dict[str, Role]:
    granted = Grant(database="shop", tables=(table,), key="roles.all.grants.0")
    return {"all": Role(name="all", groups=frozenset({"*"}), grants=(granted,))}


async def test_roles_come_and_change(shop: Database):
    async with Gateway.open(of(shop)) as gateway:
        opened = gateway.database("shop")
        await gateway.reload(of(shop, roles=grant("main.orders")))
        with pytest.raises(TableNotFound):
            await gateway.query("shop", "SELECT count(*) FROM customers")
        await gateway.reload(of(shop, roles=grant("main.customers")))
        assert (await gateway.query("shop", "SELECT count(*) FROM customers")).rows == [[2]]
        with pytest.raises(TableNotFound):
            await gateway.query("shop", "SELECT count(*) FROM orders")
        assert gateway.database("shop") is opened


async def test_the_last_role_goes_by_a_restart_alone(shop: Database):
    async with Gateway.open(of(shop, roles=grant("main.customers"))) as gateway:
        with pytest.raises(ConfigurationError, match="no roles any more"):
            await gateway.reload(of(shop))
        with pytest.raises(TableNotFound):
            await gateway.query("shop", "SELECT count(*) FROM orders")


async def test_a_role_that_does_not_fit_changes_nothing(shop: Database, warehouse: Database):
    async with Gateway.open(of(shop)) as gateway:
        with pytest.raises(ConfigurationError, match=r"main\.nothing names no table of shop"):
            await gateway.reload(of(shop, warehouse, roles=grant("main.nothing")))
        assert (gateway.version, gateway.names, gateway.has_roles) == (1, ("shop",), False)
        assert (await gateway.query("shop", "SELECT count(*) FROM orders")).rows == [[2000]]


async def test_use_is_counted_on_over_a_reload(shop: Database):
    def limited(calls: int) -> dict[str, Role]:
        return {"all": replace(grant("main.*")["all"], calls_per_minute=calls)}

    async with Gateway.open(of(shop, roles=limited(2))) as gateway:
        await gateway.query("shop", "SELECT 1")
        await gateway.reload(of(shop, roles=limited(1)))
        with pytest.raises(QuotaExceeded):
            await gateway.query("shop", "SELECT 1")


async def test_the_audit_changes_and_no_record_is_lost(shop: Database, tmp_path: Path):
    paths = [tmp_path / name / "audit.jsonl" for name in ("one", "two")]
    answered = 0

    async def ask(gateway: Gateway) -> None:
        nonlocal answered
        for _ in range(30):
            await gateway.query("shop", "SELECT 1 AS one")
            answered += 1

    async with Gateway.open(of(shop, audit=Audit(path=paths[0]))) as gateway:
        tasks = [asyncio.create_task(ask(gateway)) for _ in range(3)]
        for number in range(1, 6):
            before = answered
            while answered < before + 5:
                await asyncio.sleep(0)
            await gateway.reload(of(shop, audit=Audit(path=paths[number % 2])))
        await asyncio.gather(*tasks)
    assert [verify_files(path).faults for path in paths] == [[], []]
    written = [sum(record.event == "call" for record in records(path)) for path in paths]
    assert sum(written) == answered == 90
    assert all(written)
