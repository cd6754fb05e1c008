"""The kit for policies tells those that leak, each by an attack that shows it; the scaffold's passes it."""

import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from dragoman import Claims, Database, Gateway, Principal
from dragoman.cli.new_dialect import fill, write_values
from dragoman.config import Configuration
from dragoman.plugins import Plugins
from dragoman.testing import PolicyConformance
from dragoman.testing.policies import Twins
from dragoman.tools import Toolbox

from .conftest import write_policy

HIDDEN = (
    "INSERT INTO customer VALUES (7, 'b', 'hidden', 'hidden@x', '777'), (8, 'c', 'zed', '{', '888')",
    "INSERT INTO orders VALUES (7, 'b', 7, 700, 'hidden'), (8, 'c', 1, -9, '{')",
    "UPDATE customer SET ssn = 'hidden' || (9 - id), email = substr(email, 1, 1) || 'hidden'",
)
SCAFFOLD = fill("policy.py.tmpl", set(), write_values("tenants", "mit"))
BEN = Principal("ben", subject="ben", claims=Claims({"tenant": "b"}))
OWN = """
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from dragoman import *

class {base}Policy(PolicyPlugin):
    def {method}:
        {body}
"""
REWRITING = f"""{
    OWN.format(
        base="Rewriting", method="wrap_executor(self, executor, database, dialect)", body="return Rewriting(executor)"
    )
}
class Rewriting(WrappedExecutor):
    def open(self, request):
        part = "FROM (SELECT id, tenant, name FROM customer WHERE tenant = 'a') AS customer"
        return self.inner.open(replace(request, statement=re.sub("FROM customer", part, request.statement)))

plugin = RewritingPolicy()
"""
WORDS = f"""{
    OWN.format(
        base="Words",
        method="further_validators(self, database, executor, inspector)",
        body="return [Words()]",
    )
}
class Words(Validator):
    async def check(self, statement, call):
        if re.search("customer|orders", statement.text.partition("FROM")[2]):
            raise UnsafeSql("no")

plugin = WordsPolicy()
"""
LEAKING = {
    "a filter on one of two tables": (
        SCAFFOLD.replace("if tenant is None", 'if tenant is None or table.relation.name == "orders"'),
        {"kept", "samples", "errors"},
    ),
    "a view left as it is": (
        SCAFFOLD.replace("            return None\n", "            return Restriction()\n"),
        {"plain"},
    ),
    "a mask that shows too much": (SCAFFOLD.replace('"partial"', '"substr(email, 1, 2)"'), {"aliases"}),
    "a column that nobody thought of": (SCAFFOLD.replace('"ssn"', '"ssnr"'), {"order", "aggregates"}),
    "a value that is the first caller's": (
        SCAFFOLD.replace("$claim.tenant", "'{self.tenant}'")
        .replace("    column: str\n", '    column: str\n    tenant: str = field(default="", compare=False)\n')
        .replace("import dataclass", "import dataclass, field")
        .replace("OneTenant(self.given.column)", 'OneTenant(self.given.column, principal.claims.get("tenant", ""))'),
        {"plain"},
    ),
    "a statement that is rewritten by a pattern": (REWRITING, {"joins", "shadowing"}),
    "words that are looked for": (WORDS, {"plain", "catalog"}),
}


MIA = Principal("mia", subject="m", groups=frozenset({"auditors"}))
BY_NAME = SCAFFOLD.replace(
    "def restrictor(self, database: Database, principal: Principal) -> Restrictor | None:\n",
    """\
def restrictor(self, database: Database, principal: Principal) -> Restrictor | None:
        if {exempt}:
            return None
""",
)
CONFUSING = {
    "a name that grants": (BY_NAME.replace("{exempt}", 'principal.name == "mia"'), "resembles_others"),
    "a part of a group's name": (
        BY_NAME.replace("{exempt}", 'any("auditors" in group for group in principal.groups)'),
        "resembles_others",
    ),
    "a caller that is kept": (
        SCAFFOLD.replace("$claim.tenant", "$value.tenant").replace(
            "    def restrictor(self, database: Database, principal: Principal) -> Restrictor | None:\n",
            """\
    def values(self, database, principal):
        return {"tenant": self.principal.claims.get("tenant")}

    def restrictor(self, database: Database, principal: Principal) -> Restrictor | None:
        self.principal = principal
""",
        ),
        "callers_at_once",
    ),
}


class OfAnyPolicy(PolicyConformance):
    """The kit, to call a case of it."""

    policy = "tenants"
    hidden = HIDDEN
    neighbour = BEN
    exempt = MIA


CASES = {
    "resembles_others": OfAnyPolicy().test_who_only_resembles_others_sees_no_more,
    "callers_at_once": OfAnyPolicy().test_callers_at_once_see_each_their_own,
}


@pytest.fixture
def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`twins(source, stack)`: the kit's two databases, behind gateways with a policy of this source."""

    async def opened(source: str, stack: AsyncExitStack) -> Twins:
        monkeypatch.syspath_prepend(write_policy(tmp_path / "site", "tenants", source))
        databases = [_build(tmp_path / name, more) for name, more in (("one", ()), ("other", HIDDEN))]
        open_gateway = Gateway(_configured(databases[0]), Plugins.without_policies())
        tables = (await (await stack.enter_async_context(open_gateway.run())).database().catalog.snapshot()).tables
        gateways = [await stack.enter_async_context(Gateway.open(_configured(each))) for each in databases]
        return Twins([Toolbox(each, profile="full") for each in gateways], tables)

    yield opened
    sys.modules.pop("policy_tenants", None)


def _build(folder: Path, more: tuple[str, ...]) -> Database:
    folder.mkdir()
    return PolicyConformance.build(folder, (*PolicyConformance.sample, *more))


def _configured(database: Database) -> Configuration:
    return Configuration(databases={database.name: database})


async def leaks(twins: Twins, family: str) -> list[str]:
    """What the attacks of a family tell, the neighbour having asked first."""
    found = PolicyConformance.attacks(twins, family)
    await twins.ask(found[0], BEN)
    return [leak for attack in found if (leak := await twins.leak(attack, PolicyConformance.caller))]


@pytest.mark.full
@pytest.mark.parametrize("what", LEAKING)
async def test_a_policy_that_leaks_is_told_by_an_attack(what: str, twins):
    source, families = LEAKING[what]
    async with AsyncExitStack() as stack:
        opened = await twins(source, stack)
        for family in sorted(families):
            assert await leaks(opened, family), family


@pytest.mark.full
@pytest.mark.parametrize("what", CONFUSING)
async def test_a_policy_that_confuses_callers_is_told_by_a_case(what: str, twins):
    source, case = CONFUSING[what]
    assert source != SCAFFOLD
    async with AsyncExitStack() as stack:
        opened = await twins(source, stack)
        with pytest.raises(AssertionError, match=r"reveal hidden data to|at the same time are answered otherwise"):
            await CASES[case](opened)


async def test_the_scaffold_s_policy_tells_nothing(twins):
    async with AsyncExitStack() as stack:
        opened = await twins(SCAFFOLD, stack)
        for case in CASES.values():
            await case(opened)
        for family in ("plain", "shadowing", "errors", "samples", "kept"):
            assert await leaks(opened, family) == []


@pytest.mark.full
async def test_every_attack_but_a_few_is_a_query_of_its_engine(twins):
    """What no engine takes attacks nothing. Without a policy most of them are answered."""
    async with AsyncExitStack() as stack:
        opened = await twins("from dragoman import PolicyPlugin\nplugin = PolicyPlugin()\n", stack)
        every = [each for each in PolicyConformance.attacks(opened) if each.tool == "execute_query"]
        answers = [(await opened.ask(each, BEN))[0] for each in every]
        answered = sum("error" not in answer for answer in answers)
        assert answered > 0.8 * len(every)
