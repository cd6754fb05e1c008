"""What is kept of a part of a table is read while its caller has that part, and no longer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from dragoman import Gateway, Principal
from dragoman.config import Configuration, Results
from dragoman.config.roles import Grant, Role
from dragoman.model import Claims
from dragoman.tools import Toolbox

SQL = "SELECT id, email FROM users"
FILTERS = ("id = $claim.tenant", "CAST(id AS TEXT) IN $groups")


def caller(tenant: int) -> Principal:
    """The same person, whose token says another tenant and other groups."""
    groups = frozenset({str(tenant)})
    return Principal("ada", issuer="https://id", subject="ada", groups=groups, claims=Claims({"tenant": tenant}))


async def ask(toolbox: Toolbox, principal: Principal, tool: str = "execute_query", **arguments: Any) -> Any:
    return json.loads((await toolbox.call(tool, arguments, principal=principal)).text)


def configured(database, scripts, tmp_path, grant: Grant) -> Configuration:
    results = Results(dir=tmp_path / "kept", reuse=300)
    roles = {"part": Role(name="part", principals=frozenset({"https://id#ada"}), grants=(grant,))}
    return Configuration(databases={"shop": database("shop", scripts["shop"])}, results=results, roles=roles)


def a_grant(**settings: Any) -> Grant:
    return Grant(database="shop", tables=("main.users",), key="roles.part.grants.0", **settings)


@pytest.mark.parametrize("condition", FILTERS)
async def test_no_answer_is_reused_for_who_has_other_rows_by_now(database, scripts, tmp_path, condition):
    configuration = configured(database, scripts, tmp_path, a_grant(filter=condition))
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        first = await ask(toolbox, caller(1), sql=SQL, keep="mine")
        assert [row[0] for row in first["rows"]] == [1]
        assert "notices" in await ask(toolbox, caller(1), sql=SQL)  # reused
        assert [row[0] for row in (await ask(toolbox, caller(2), sql=SQL))["rows"]] == [2]


@pytest.mark.parametrize("condition", FILTERS)
async def test_a_kept_part_is_not_read_by_who_has_other_rows_by_now(database, scripts, tmp_path, condition):
    configuration = configured(database, scripts, tmp_path, a_grant(filter=condition))
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await ask(toolbox, caller(1), sql=SQL, keep="mine")
        other = await ask(toolbox, caller(2), "get_result", result="mine")
        assert other["error"]["code"] == "RESULT_NOT_FOUND"
        assert (await ask(toolbox, caller(1), "get_result", result="mine"))["total_rows"] == 1


@pytest.mark.parametrize(
    "changed",
    [{"filter": "id = 2"}, {"masks": {"email": "null"}}, {"deny_columns": ("email",)}],
    ids=["a filter", "a mask", "a denied column"],
)
async def test_what_was_kept_is_not_read_after_roles_took_a_part_away(database, scripts, tmp_path, changed):
    configuration = configured(database, scripts, tmp_path, a_grant())
    stricter = replace(configuration.roles["part"], grants=(a_grant(**changed),))
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await ask(toolbox, caller(1), sql="SELECT * FROM users", keep="mine")
        await gateway.reload(configuration)
        assert "error" not in await ask(toolbox, caller(1), "get_result", result="mine")
        await gateway.reload(replace(configuration, roles={"part": stricter}))
        told = await ask(toolbox, caller(1), "get_result", result="mine")
        assert told["error"]["code"] == "RESULT_NOT_FOUND"


AFTERWARDS = [
    ({}, 1, 1),
    ({"filter": "id = 2"}, 1, "RESULT_NOT_FOUND"),
    ({"masks": {"email": "null"}}, 1, "RESULT_NOT_FOUND"),
    ({"deny_columns": ("email",)}, 1, "RESULT_NOT_FOUND"),
    ({}, 2, "RESULT_NOT_FOUND"),
]


@pytest.mark.parametrize(
    ("changed", "tenant", "told"),
    AFTERWARDS,
    ids=["nothing", "another filter", "a mask", "a denied column", "another tenant"],
)
async def test_a_restart_asks_the_policy_of_now(database, scripts, tmp_path, changed, tenant, told):
    """A result outlives its server; what its caller might read then does not."""
    grant = {"filter": FILTERS[0]}
    before = configured(database, scripts, tmp_path, a_grant(**grant))
    async with Gateway.open(before) as gateway:
        await gateway.kept.adopt()
        await ask(Toolbox(gateway, profile="full"), caller(1), sql=SQL, keep="mine")
    now = replace(before.roles["part"], grants=(a_grant(**{**grant, **changed}),))
    async with Gateway.open(replace(before, roles={"part": now})) as gateway:
        await gateway.kept.adopt()
        toolbox = Toolbox(gateway, profile="full")
        page = await ask(toolbox, caller(tenant), "get_result", result="mine")
        tables = await ask(toolbox, caller(tenant), "list_tables", database="results")
        exported = await ask(toolbox, caller(tenant), "export_result", result="mine")
    told_of_all = {page.get("error", {}).get("code", page.get("total_rows")), exported.get("error", {}).get("code", 1)}
    assert told_of_all == {told}
    assert len(tables.get("tables", ())) == (1 if told == 1 else 0)
