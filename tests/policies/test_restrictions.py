"""A policy that leaves a principal a part of relations: the gateway holds callers to it as to what roles grant."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import duckdb
import pytest
from dragoman import Claims, Database, Gateway, Principal
from dragoman.config import load
from dragoman.errors import ColumnNotFound, DialectError, DragomanError, PermissionDenied, TableNotFound
from dragoman.tools import Toolbox

from .conftest import write_policy

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, email TEXT, ssn TEXT);
CREATE TABLE payment (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, amount INTEGER);
CREATE TABLE country (code TEXT PRIMARY KEY, name TEXT);
CREATE VIEW contact AS SELECT id, email FROM customer;
CREATE VIEW place AS SELECT name FROM country;
INSERT INTO customer VALUES (1, 'a', 'ada@x', '1'), (2, 'b', 'bob@x', '2'), (3, 'a', 'cem@x', '3');
INSERT INTO payment VALUES (1, 'a', 10), (2, 'b', 20);
INSERT INTO country VALUES ('de', 'Germany');
"""
HEAD = """
from dataclasses import dataclass
from dragoman import PolicyPlugin, Restriction, Restrictor
"""
TENANTS = f"""{HEAD}
@dataclass(frozen=True)
class OneTenant(Restrictor):
    def restrict(self, table, dialect):
        columns = {{column.name for column in table.columns}}
        if "tenant" not in columns:
            return None
        masks = {{"email": "partial"}} if "email" in columns else {{}}
        return Restriction(filter="tenant = $claim.tenant", masks=masks, hidden_columns=columns & {{"ssn"}})

class Tenants(PolicyPlugin):
    def restrictor(self, database, principal):
        return None if "admins" in principal.groups else OneTenant()

plugin = Tenants()
"""
ONLY = """{head}
@dataclass(frozen=True)
class Only(Restrictor):
    def restrict(self, table, dialect):
        return {restriction} if table.relation.name == "{table}" else None

class Policy(PolicyPlugin):
    def restrictor(self, database, principal):
        return Only()

    def values(self, database, principal):
        return {values}

plugin = Policy()
"""
ANN = Principal("ann", subject="ann", claims=Claims({"tenant": "a"}))
BEN = Principal("ben", subject="ben", claims=Claims({"tenant": "b"}))
ROOT = Principal("root", subject="root", groups=frozenset({"admins"}))


def only(table: str, restriction: str, values: str = "{}") -> str:
    """A policy that restricts one relation."""
    return ONLY.format(head=HEAD, table=table, restriction=restriction, values=values)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a policy of this source for this test, once for each name."""
    names: list[str] = []

    def install(source: str, name: str = "tenants") -> None:
        site = write_policy(tmp_path / name, name, source)
        monkeypatch.syspath_prepend(site)
        names.append(f"policy_{name}")

    yield install
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def shop(tmp_path: Path) -> Callable[..., Any]:
    """`shop(roles)`: the configuration of the shop's database, with further TOML."""

    def configured(further: str = "", url: str = "sqlite:///shop.db") -> Any:
        connection = apsw.Connection(str(tmp_path / "shop.db"))
        connection.execute(SHOP)
        connection.close()
        (tmp_path / "dragoman.toml").write_text(f'[databases.shop]\nurl = "{url}"\n{further}')
        return load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)

    return configured


async def rows(gateway: Gateway, sql: str, principal: Principal) -> list[list[Any]]:
    return (await gateway.query("shop", sql, principal=principal)).rows


async def test_each_principal_reads_its_own_rows(installed, shop):
    installed(TENANTS)
    async with Gateway.open(shop()) as gateway:
        assert await rows(gateway, "SELECT * FROM customer ORDER BY id", ANN) == [
            [1, "a", "a***"],
            [3, "a", "c***"],
        ]
        assert await rows(gateway, "SELECT id FROM customer ORDER BY id", BEN) == [[2]]
        assert await rows(gateway, "SELECT ssn FROM customer ORDER BY id", ROOT) == [["1"], ["2"], ["3"]]
        assert await rows(gateway, "SELECT name FROM place", ANN) == [["Germany"]]


async def test_a_view_of_what_is_restricted_is_not_there(installed, shop):
    installed(TENANTS)
    async with Gateway.open(shop()) as gateway:
        with pytest.raises(TableNotFound):
            await rows(gateway, "SELECT email FROM contact", ANN)
        assert await rows(gateway, "SELECT count(*) FROM contact", ROOT) == [[3]]
        tables = json.loads((await Toolbox(gateway).call("list_tables", {}, principal=ANN)).text)
        assert tables["views"] == {"main": ["place"]}


async def test_a_saved_query_of_what_a_policy_hides_is_not_told(installed, shop, tmp_path):
    installed(only("payment", "Restriction(hidden=True)"))
    (tmp_path / "paid.sql").write_text("SELECT amount FROM payment")
    (tmp_path / "places.sql").write_text("SELECT name FROM place")
    async with Gateway.open(shop('[server]\nqueries_dir = "."')) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        listed = json.loads((await toolbox.call("list_queries", {}, principal=ANN)).text)
        assert [each["name"] for each in listed["queries"]] == ["places"]
        refused = json.loads((await toolbox.call("run_query", {"name": "paid"}, principal=ANN)).text)
        assert "payment" not in json.dumps(refused)


async def test_a_policy_may_leave_a_view_as_it_is(installed, shop):
    # Of the table behind it nothing else is there.
    restriction = "Restriction() if table.relation.name == 'contact' else Restriction(hidden=True)"
    source = only("customer", "Restriction(hidden=True)").replace("if table", "if table.type == 'table' and table")
    installed(source.replace("else None", f"else ({restriction} if table.type == 'view' else None)"))
    async with Gateway.open(shop()) as gateway:
        assert await rows(gateway, "SELECT id FROM contact ORDER BY id", ANN) == [[1], [2], [3]]
        with pytest.raises(TableNotFound):
            await rows(gateway, "SELECT id FROM customer", ANN)


async def test_a_caller_without_the_claim_is_refused(installed, shop):
    installed(TENANTS)
    async with Gateway.open(shop()) as gateway:
        with pytest.raises(PermissionDenied, match="tenant"):
            await rows(gateway, "SELECT id FROM customer", Principal("eve"))
        assert await rows(gateway, "SELECT code FROM country", Principal("eve")) == [["de"]]


async def test_values_of_a_policy_are_bound_for_each_caller(installed, shop):
    values = '{"tenant": principal.subject[0]}'
    installed(only("payment", 'Restriction(filter="tenant = $value.tenant")', values))
    async with Gateway.open(shop()) as gateway:
        for principal, amounts in ((ANN, [[10]]), (BEN, [[20]]), (ANN, [[10]])):
            assert await rows(gateway, "SELECT amount FROM payment", principal) == amounts
        assert await rows(gateway, "SELECT amount FROM payment", Principal("x", subject="' OR 1=1 --")) == []


async def test_of_several_policies_all_count(installed, shop):
    installed(TENANTS)
    installed(only("customer", 'Restriction(filter="id > 1", masks={"email": "null"})'), "second")
    async with Gateway.open(shop()) as gateway:
        assert await rows(gateway, "SELECT id, email FROM customer", ANN) == [[3, None]]
        assert await rows(gateway, "SELECT id, email FROM customer ORDER BY id", ROOT) == [[2, None], [3, None]]


ROLES = """
[roles.all]
principals = ["*"]
[[roles.all.grants]]
database = "shop"
tables = ["main.customer", "main.contact"]
columns = ["id", "email", "ssn"]
"""


async def test_a_policy_takes_from_what_roles_grant(installed, shop):
    installed(TENANTS)
    async with Gateway.open(shop(ROLES)) as gateway:
        assert await rows(gateway, "SELECT * FROM customer ORDER BY id", ANN) == [[1, "a***"], [3, "c***"]]
        assert await rows(gateway, "SELECT ssn FROM customer ORDER BY id", ROOT) == [["1"], ["2"], ["3"]]
        for relation in ("payment", "country", "contact"):  # contact is granted by its name, and the policy hides it
            with pytest.raises(TableNotFound):
                await rows(gateway, f"SELECT * FROM {relation}", ANN)
        assert await rows(gateway, "SELECT id FROM contact ORDER BY id", ROOT) == [[1], [2], [3]]


WRONG = {
    "a column that is not there": ('masks={"emial": "null"}', "emial"),
    "no expression": ('filter="tenant = 1; DROP TABLE customer"', "DROP TABLE"),
    "an unknown value": ('filter="tenant = $tenant"', "stands for no value"),
    "no restriction": ("filter=1 / 0", "ZeroDivisionError"),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_restriction_that_cannot_be_names_the_policy_and_opens_nothing(what: str, installed, shop):
    written, told = WRONG[what]
    installed(only("customer", f"Restriction({written})"))
    async with Gateway.open(shop()) as gateway:
        with pytest.raises(DialectError, match=r"dragoman-tenants 1\.0") as raised:
            await rows(gateway, "SELECT id FROM customer", ANN)
        assert told in f"{raised.value.message} {raised.value.suggestion}"


VALUES = {
    "None": "None",
    "bool": "False",
    "int": "0",
    "str": "'ssn'",
    "subclass of str": "type('Text', (str,), {})('ssn')",
    "bytes": "b'ssn'",
    "list": "['ssn']",
    "generator": "(name for name in ['ssn'])",
    "set of int": "{1}",
    "mapping to None": "{'ssn': None}",
    "mapping to bool": "{'ssn': False}",
    "mapping from None": "{None: 'null'}",
    "coroutine": "type('Later', (), {'__await__': None})()",
}
DECLARED = {"filter": {"None", "str"}, "masks": set(), "hidden_columns": set(), "hidden": {"bool"}}
MISTYPED = [(field, kind) for field, declared in DECLARED.items() for kind in VALUES if kind not in declared]


@pytest.mark.parametrize(("field", "kind"), MISTYPED)
async def test_a_restriction_of_other_types_than_declared_opens_nothing(field: str, kind: str, installed, shop):
    installed(only("customer", f"Restriction({field}={VALUES[kind]})"))
    async with Gateway.open(shop()) as gateway:
        for _ in range(2):  # some values can be read only once
            with pytest.raises(DialectError, match=rf"Restriction\.{field}"):
                await rows(gateway, "SELECT ssn FROM customer WHERE id = 1", ANN)


ANSWERS = """
from dragoman import PolicyPlugin, Validator

class Answers(Validator):
    async def check(self, statement, call):
        return {answer}

class Policy(PolicyPlugin):
    def further_validators(self, database, executor, inspector):
        return [Answers()]

plugin = Policy()
"""


@pytest.mark.parametrize("answer", ["False", "True", "'no'", "0", "ValueError('no')", "[]"])
async def test_a_validator_that_returns_its_verdict_allows_nothing(answer: str, installed, shop):
    installed(ANSWERS.format(answer=answer))
    async with Gateway.open(shop()) as gateway:
        with pytest.raises(DialectError, match=r"Answers\.check of .*dragoman-tenants 1\.0 returned .*, not None"):
            await rows(gateway, "SELECT id FROM customer", ANN)


CHANGES_ITS_MIND = """type("Changing", (dict,), {
    "items": lambda self: iter([]),
    "get": lambda self, key, default=None: default,
    "__iter__": lambda self, asked=[]: iter([] if asked else asked.append(1) or ["ssn"]),
})({"ssn": "null"})"""


async def test_a_restriction_is_read_once(installed, shop):
    installed(only("customer", f"Restriction(masks={CHANGES_ITS_MIND})"))
    async with Gateway.open(shop()) as gateway:
        for _ in range(2):
            assert await rows(gateway, "SELECT ssn FROM customer WHERE id = 1", ANN) == [[None]]


async def test_a_filter_that_does_not_compile_tells_callers_nothing_of_itself(installed, shop, caplog):
    installed(only("customer", 'Restriction(filter="no_such_column = 1")'))
    async with Gateway.open(shop()) as gateway:
        with pytest.raises(PermissionDenied, match="do not match customer") as raised:
            await rows(gateway, "SELECT id FROM customer", ANN)
    assert "no_such_column" not in str(raised.value)
    assert "no_such_column" in caplog.text


@pytest.mark.parametrize(
    ("written", "outcome"), [('filter="id = 1"', PermissionDenied), ('hidden_columns={"ssn"}', ColumnNotFound)]
)
async def test_a_dialect_that_cannot_filter_keeps_its_database_closed_and_hides_columns(
    written: str, outcome: type[DragomanError], installed, tmp_path: Path
):
    with duckdb.connect(str(tmp_path / "lake.duckdb")) as connection:
        connection.execute("CREATE TABLE customer (id INTEGER, ssn TEXT); INSERT INTO customer VALUES (1, '1')")
    lake = Database(name="lake", dialect="duckdb", database=str(tmp_path / "lake.duckdb"))
    installed(only("customer", f"Restriction({written})"))
    async with Gateway.open([lake]) as gateway:
        with pytest.raises(outcome):
            await gateway.query("lake", "SELECT ssn FROM customer", principal=ANN)


async def test_a_value_that_a_policy_does_not_give_is_its_fault(installed, shop):
    installed(only("payment", 'Restriction(filter="tenant = $value.tenant")'))
    async with Gateway.open(shop()) as gateway:
        with pytest.raises(DialectError, match="gave no 'tenant'"):
            await rows(gateway, "SELECT amount FROM payment", ANN)


async def test_equal_callers_share_what_is_made_for_them(installed, shop):
    installed(TENANTS)
    async with Gateway.open(shop()) as gateway:
        assert gateway.for_principal(ANN) is gateway.for_principal(BEN)
        assert gateway.for_principal(ROOT) is gateway
