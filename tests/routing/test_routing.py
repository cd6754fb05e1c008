"""Each database is served by its own dialect alone, and by every policy."""

import asyncio
import importlib

import pytest
from dragoman import Database, DialectError, Gateway, UnsafeSql


async def test_two_dialects_are_each_asked_only_for_their_own(dialect, shop: Database):
    modules = {name: dialect(name) for name in ("alpha", "beta")}
    databases = [shop, *(Database(name=f"my_{name}", dialect=name) for name in modules)]
    async with Gateway.open(databases) as gateway:
        answers = await asyncio.gather(*(gateway.query(database.name, "SELECT 1") for database in databases))
        assert [answer.rows for answer in answers] == [
            [[1]],
            [["alpha", "my_alpha", "SELECT 1"]],
            [["beta", "my_beta", "SELECT 1"]],
        ]
        for name, module in modules.items():
            asked = importlib.import_module(module).asked
            assert asked == [name, name, name, (f"my_{name}", "SELECT 1")]
            status = await gateway.database(f"my_{name}").status(5)
            assert status.version == f"{name} 1"
            tables = (await gateway.database(f"my_{name}").catalog.snapshot()).tables
            assert [table.relation.name for table in tables] == [f"{name}_things"]


async def test_two_databases_of_one_dialect_are_two(dialect):
    dialect("alpha")
    async with Gateway.open([Database(name=name, dialect="alpha") for name in ("one", "two")]) as gateway:
        assert (await gateway.query("one", "SELECT 1")).rows[0][1] == "one"
        assert (await gateway.query("two", "SELECT 1")).rows[0][1] == "two"


POLICY = """
import dataclasses
from contextlib import asynccontextmanager
from dragoman import *

events = []

class Audited(WrappedExecutor):
    def __init__(self, inner, database, who):
        super().__init__(inner)
        self.database, self.who = database, who

    @asynccontextmanager
    async def open(self, request):
        events.append((self.who, "open", self.database.name, request.statement))
        async with self.inner.open(request) as stream:
            yield stream
        events.append((self.who, "left", self.database.name))

class Hiding(WrappedInspector):
    async def tables(self, scope):
        seen = await self.inner.tables(scope)
        return dataclasses.replace(seen, tables=tuple(t for t in seen.tables if not t.relation.name.startswith("beta")))

class NoEmail(Validator):
    async def check(self, statement, call):
        touched = (await call.resolve()).columns
        if any(column == "email" for _, column in touched):
            raise UnsafeSql(f"email is not for {call.principal.name}.")

class Policy(PolicyPlugin):
    def __init__(self, who):
        self.who = who

    def wrap_executor(self, executor, database, dialect):
        return Audited(executor, database, self.who)

    def wrap_inspector(self, inspector, database, dialect):
        return Hiding(inspector)

    def further_validators(self, database, executor, inspector):
        return [NoEmail()]

outer, inner = Policy("first"), Policy("second")
"""


async def test_a_policy_sees_every_database(dialect, site, shop: Database):
    dialect("alpha")
    dialect("beta")
    module = site("dragoman-audit", POLICY, "policies", {"audit": "outer"})
    databases = [shop, Database(name="a", dialect="alpha"), Database(name="b", dialect="beta")]
    async with Gateway.open(databases) as gateway:
        for name in ("shop", "a", "b"):
            await gateway.query(name, "SELECT 1")
        events = importlib.import_module(module).events
        assert [event for event in events if event[1] == "open"] == [
            ("first", "open", name, "SELECT 1") for name in ("shop", "a", "b")
        ]
        assert len(events) == 6
        with pytest.raises(UnsafeSql, match="email is not for local"):
            await gateway.query("shop", "SELECT * FROM people")
        assert (await gateway.query("shop", "SELECT id FROM people")).rows == [[1]]
        assert (await gateway.database("b").catalog.snapshot()).tables == ()
        assert len((await gateway.database("a").catalog.snapshot()).tables) == 1


async def test_what_a_policy_does_not_change_still_works(site, shop: Database):
    site("dragoman-audit", POLICY, "policies", {"audit": "outer"})
    async with Gateway.open([shop]) as gateway:
        assert "SCAN people" in (await gateway.explain("shop", "SELECT id FROM people")).plan
        assert (await gateway.query("shop", "SELECT `id` FROM people", from_dialect="mysql")).rows == [[1]]


async def test_policies_wrap_one_another(site, shop: Database):
    module = site("dragoman-audit", POLICY, "policies", {"audit": "outer", "more": "inner"})
    async with Gateway.open([shop]) as gateway:
        await gateway.query("shop", "SELECT 1")
    events = [(who, what) for who, what, *_ in importlib.import_module(module).events]
    assert sorted(events[:2]) == [("first", "open"), ("second", "open")]
    assert [who for who, _ in events[2:]] == [who for who, _ in reversed(events[:2])]


BROKEN = {
    "it does not import": ("1 / 0", "ZeroDivisionError"),
    "a class": (f"{POLICY}\npolicy = Policy", "names a class"),
    "another type": ("policy = 3", "names a int, not a PolicyPlugin"),
    "a newer contract": (f"{POLICY}\nPolicy.contract = 99\npolicy = outer", "contract version 99"),
    "a hook nobody has": (
        f"{POLICY}\nclass Odd(Policy):\n    @hookimpl\n    def audit(self): ...\npolicy = Odd('x')",
        "'audit' with @hookimpl, which is not a hook",
    ),
    "a dialect's plugin": (
        "from dragoman import *\nclass P(DialectPlugin):\n    def executor(self, database): ...\n"
        "    def inspector(self, database, executor): ...\npolicy = P()",
        "names a P, not a PolicyPlugin",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_policy_that_does_not_load_stops_the_start(case: str, site, shop: Database):
    source, what = BROKEN[case]
    site("dragoman-audit", source, "policies", {"audit": "policy"})
    with pytest.raises(DialectError) as raised:
        async with Gateway.open([shop]):
            pass
    assert "dragoman-audit 1.0 is broken" in raised.value.message
    assert what in raised.value.message


@pytest.mark.parametrize(
    ("method", "body", "what"),
    [
        ("wrap_executor(self, executor, database, dialect)", "pass", "returned NoneType, not an Executor"),
        ("wrap_inspector(self, inspector, database, dialect)", "1 / 0", "raised ZeroDivisionError"),
        ("further_validators(self, database, executor, inspector)", "return ['x']", "gave a str, not a Validator"),
    ],
)
async def test_a_policy_that_misbehaves_keeps_the_database_closed(method, body, what, site, shop: Database):
    source = f"from dragoman import *\nclass Odd(PolicyPlugin):\n    def {method}: {body}\npolicy = Odd()"
    site("dragoman-audit", source, "policies", {"audit": "policy"})
    async with Gateway.open([shop]) as gateway:
        with pytest.raises(DialectError) as raised:
            await gateway.query("shop", "SELECT 1")
    assert what in raised.value.message
    assert f"The hook {method.partition('(')[0]} of 'audit' of dragoman-audit 1.0 " in raised.value.message
    assert "Upgrade dragoman-audit or report it" in raised.value.suggestion
