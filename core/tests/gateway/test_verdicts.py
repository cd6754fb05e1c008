"""Verdicts are remembered by everything they depend on, and by nothing more."""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from dragoman import (
    Call,
    Database,
    Gateway,
    Principal,
    QueryTimeout,
    Relation,
    Resolution,
    Statement,
    UnsafeSql,
    Validator,
)
from dragoman.gateway import judge

Check = Callable[[Statement, Call], Any]
ValidatorT = TypeVar("ValidatorT", bound=Validator)


class Noting(Validator):
    """Notes what it is asked, `looking_at` the tool or the principal, and what it sees when it resolves."""

    def __init__(self, *looking_at: str, resolving: bool = False) -> None:
        self.looking_at = looking_at
        self.asked: list[tuple[str, ...]] = []
        self.seen: list[Resolution] = []
        self.resolving = resolving
        self.refused: set[tuple[Relation, str]] = set()

    async def check(self, statement: Statement, call: Call) -> None:
        self.asked.append((statement.text, *(str(getattr(call, name)) for name in self.looking_at)))
        if self.resolving:
            resolution = await call.resolve()
            self.seen.append(resolution)
            if self.refused & set(resolution.columns):
                raise UnsafeSql("Not this column.")


class Personal(Noting):
    depends_on_principal = True


def judged_by(gateway: Gateway, validator: ValidatorT) -> ValidatorT:
    """Have the gateway's only database judge with one validator more."""
    opened = gateway.database()
    opened.judge = judge.Judge(
        opened.dialect, opened.config, opened.catalog, [validator], opened.source, opened._offload
    )
    return validator


async def test_the_same_text_is_judged_once(gateway: Gateway):
    noting = judged_by(gateway, Noting())
    for _ in range(3):
        await gateway.query("shop", "SELECT 1 AS one", principal=Principal("ada"))
    await gateway.query("shop", "SELECT 1 AS one", principal=Principal("grace"))
    await gateway.query("shop", "SELECT 1 AS one", tool="report")
    await gateway.query("shop", "SELECT 1 AS  one")
    assert noting.asked == [("SELECT 1 AS one",), ("SELECT 1 AS  one",)]


ASKING = [("execute_query", "ada"), ("execute_query", "grace"), ("report", "ada"), ("report", "grace")]


@pytest.mark.parametrize(
    ("looking_at", "times"), [((), 1), (("tool",), 2), (("principal",), 2), (("tool", "principal"), 4)]
)
async def test_a_verdict_holds_for_whom_and_what_it_did_not_look_at(
    gateway: Gateway, looking_at: tuple[str, ...], times: int
):
    noting = judged_by(gateway, Noting(*looking_at))
    for _ in range(2):
        for tool, name in ASKING:
            await gateway.query("shop", "SELECT 1 AS one", tool=tool, principal=Principal(name))
    assert len(noting.asked) == times
    assert len(set(noting.asked)) == times


async def test_a_validator_that_knows_who_asks_by_other_means_is_asked_for_each(gateway: Gateway):
    noting = judged_by(gateway, Personal())
    for name in ("ada", "grace", "ada"):
        await gateway.query("shop", "SELECT 1 AS one", principal=Principal(name))
    assert len(noting.asked) == 2


class Choosy(Validator):
    """Looks at who asks only for some statements, and refuses one of them."""

    async def check(self, statement: Statement, call: Call) -> None:
        if "secret" in statement.text and call.principal.name != "ada":
            raise UnsafeSql("Not you.")


async def test_what_is_allowed_to_one_is_not_to_another_whatever_was_judged_before(gateway: Gateway):
    judged_by(gateway, Choosy())
    for _ in range(2):
        for name in ("ada", "grace"):
            await gateway.query("shop", "SELECT 1 AS one", principal=Principal(name))
        await gateway.query("shop", "SELECT 1 AS secret", principal=Principal("ada"))
        with pytest.raises(UnsafeSql):
            await gateway.query("shop", "SELECT 1 AS secret", principal=Principal("grace"))


class Silent(Validator):
    """Asks somebody who does not answer, in one of its methods, at some of its calls."""

    def __init__(self, method: str, answered: int) -> None:
        self.method = method
        self.answered = answered

    async def state(self) -> object:
        return await self.ask("state")

    async def check(self, statement: Statement, call: Call) -> None:
        await self.ask("check")

    async def ask(self, method: str) -> None:
        self.answered -= method == self.method
        if self.answered < 0:
            await asyncio.Event().wait()


@pytest.mark.parametrize(("method", "answered"), [("state", 0), ("state", 1), ("check", 0)])
async def test_a_validator_that_waits_for_ever_ends_at_the_deadline(shop: Database, method: str, answered: int):
    """`state` is asked before a statement is judged and again before a verdict is remembered to hold."""
    async with Gateway.open([replace(shop, timeout=3)]) as gateway, asyncio.timeout(60):
        silent = judged_by(gateway, Silent(method, answered))
        for _ in range(answered):
            await gateway.query("shop", "SELECT 1 AS one")
        with pytest.raises(QueryTimeout):
            await gateway.query("shop", "SELECT 1 AS one")
        silent.answered = 10
        assert (await gateway.query("shop", "SELECT 1 AS one")).rows == [[1]]


async def test_what_one_database_allows_is_not_allowed_in_another(shop: Database):
    opened = replace(shop, name="opened", allow_functions=frozenset({"load_extension"}))
    text = "SELECT load_extension('x')"
    async with Gateway.open([shop, opened]) as gateway:
        for _ in range(2):
            assert await gateway.database("opened").judge.judge(text, "execute_query", Principal())
            with pytest.raises(UnsafeSql):
                await gateway.database("shop").judge.judge(text, "execute_query", Principal())


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
        assert [text for (text,) in noting.asked] == ["SELECT         1", "  SELECT\n1"]
