"""Verdicts are remembered by everything they depend on, and by nothing more."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from dragoman import (
    Call,
    Database,
    Gateway,
    Principal,
    Relation,
    Resolution,
    Statement,
    UnsafeSql,
    Validator,
)
from dragoman.gateway import judge

Check = Callable[[Statement, Call], Any]


class Noting(Validator):
    """Notes what it is asked, and what it sees when it resolves."""

    def __init__(self, *, resolving: bool = False) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.seen: list[Resolution] = []
        self.resolving = resolving
        self.refused: set[tuple[Relation, str]] = set()

    async def check(self, statement: Statement, call: Call) -> None:
        self.asked.append((statement.text, call.tool, call.principal.name))
        if self.resolving:
            resolution = await call.resolve()
            self.seen.append(resolution)
            if self.refused & set(resolution.columns):
                raise UnsafeSql("Not this column.")


class Personal(Noting):
    depends_on_principal = True


def judged_by(gateway: Gateway, validator: Noting) -> Noting:
    """Have the gateway's only database judge with one validator more."""
    opened = gateway.database()
    opened.judge = judge.Judge(opened.dialect, opened.config, opened.catalog, [validator], opened.source)
    return validator


async def test_the_same_text_is_judged_once(gateway: Gateway):
    noting = judged_by(gateway, Noting())
    for _ in range(3):
        await gateway.query("shop", "SELECT 1 AS one", principal=Principal("ada"))
    await gateway.query("shop", "SELECT 1 AS one", principal=Principal("grace"))
    assert noting.asked == [("SELECT 1 AS one", "execute_query", "ada")]


async def test_another_text_or_tool_is_judged_again(gateway: Gateway):
    noting = judged_by(gateway, Noting())
    await gateway.query("shop", "SELECT 1 AS one")
    await gateway.query("shop", "SELECT 1 AS  one")
    await gateway.query("shop", "SELECT 1 AS one", tool="report")
    assert [tool for _, tool, _ in noting.asked] == ["execute_query", "execute_query", "report"]


async def test_a_validator_that_looks_at_who_asks_is_asked_for_each(gateway: Gateway):
    noting = judged_by(gateway, Personal())
    for name in ("ada", "grace", "ada"):
        await gateway.query("shop", "SELECT 1 AS one", principal=Principal(name))
    assert [who for _, _, who in noting.asked] == ["ada", "grace"]


class Changing(Noting):
    now = 1

    async def state(self) -> object:
        return self.now


async def test_a_verdict_ends_with_the_state_it_was_made_in(gateway: Gateway):
    noting = Changing()
    judged_by(gateway, noting)
    for now in (1, 1, 2, 2):
        noting.now = now
        await gateway.query("shop", "SELECT 1 AS one")
    assert len(noting.asked) == 2


async def test_a_refusal_is_not_remembered(gateway: Gateway):
    noting = judged_by(gateway, Noting(resolving=True))
    noting.refused = {(Relation("customers", "main"), "email")}
    for _ in range(2):
        with pytest.raises(UnsafeSql):
            await gateway.query("shop", "SELECT * FROM customers")
    assert len(noting.asked) == 2


async def test_verdicts_are_bounded_and_long_statements_not_kept(gateway: Gateway, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(judge, "REMEMBERED", 3)
    noting = judged_by(gateway, Noting())
    texts = [f"SELECT {number} AS n" for number in range(4)]
    for text in texts:
        await gateway.query("shop", text)
    await gateway.query("shop", texts[3])
    assert len(noting.asked) == 4
    await gateway.query("shop", texts[0])
    assert len(noting.asked) == 5
    long = f"SELECT '{'x' * judge.LONGEST}' AS long"
    for _ in range(2):
        await gateway.query("shop", long)
    assert len(noting.asked) == 7


async def test_what_a_statement_touches_is_resolved_against_the_catalog(gateway: Gateway):
    noting = judged_by(gateway, Noting(resolving=True))
    await gateway.query("shop", "SELECT c.NAME, p.* FROM Customers c JOIN main.paid p ON p.customer_id = c.id")
    (seen,) = noting.seen
    customers, paid = Relation("customers", "main"), Relation("paid", "main")
    assert seen.relations == (customers, paid)
    assert set(seen.columns) == {
        *((customers, name) for name in ("id", "name")),
        *((paid, name) for name in ("id", "customer_id", "total", "status")),
    }


async def test_a_verdict_that_asked_the_catalog_ends_with_what_it_saw(shop: Database):
    async with Gateway.open([replace(shop, catalog_ttl=0.0)]) as gateway:
        noting = judged_by(gateway, Noting(resolving=True))
        noting.refused = {(Relation("customers", "main"), "phone")}
        for _ in range(2):
            await gateway.query("shop", "SELECT * FROM customers")
        assert len(noting.asked) == 1
        with sqlite3.connect(shop.folder / "shop.db") as connection:
            connection.execute("ALTER TABLE customers ADD COLUMN phone TEXT")
        connection.close()
        with pytest.raises(UnsafeSql):
            await gateway.query("shop", "SELECT * FROM customers")


async def test_what_is_judged_is_what_is_sent(install):
    install("dragoman-odd", "plugin = PretendPlugin()", dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        noting = judged_by(gateway, Noting())
        for sql in ("SELECT /* a */ 1 ; -- end", "  SELECT\n1\n;  "):
            result = await gateway.query("x", sql)
            assert noting.asked[-1][0] == result.rows[0][1]
        assert [text for text, _, _ in noting.asked] == ["SELECT         1", "  SELECT\n1"]
