"""Resources, prompts and completions over real SQLite files."""

import asyncio
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dragoman import Gateway
from dragoman.config import Configuration, Server
from dragoman.config.roles import Grant, Role
from dragoman.errors import ParameterError
from dragoman.model import LOCAL, Principal
from dragoman.tools import Toolbox
from dragoman.tools.surfaces import Change, Changes, UnknownPrompt, UnknownResource, complete
from dragoman.tools.surfaces.prompts import parse


async def _read(toolbox: Toolbox, uri: str, principal: Principal = LOCAL) -> str:
    text = (await toolbox.surfaces.read(uri, principal)).text
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("uri", ["schema://shop/main/nothing", "queries://none", "file:///etc/passwd"])
async def test_what_is_not_there_is_logged_as_the_callers_mistake(toolbox, caplog, uri):
    with caplog.at_level("INFO", "dragoman.calls"), pytest.raises(UnknownResource):
        await toolbox.surfaces.read(uri, LOCAL)
    assert [record.call["outcome"] for record in caplog.records if record.name == "dragoman.calls"] == [
        "PARAMETER_ERROR"
    ]


async def test_the_list_of_databases_counts_tables_and_views(toolbox):
    shop, crm = json.loads(await _read(toolbox, "databases://list"))["databases"]
    assert (shop["name"], shop["tables"], shop["views"]) == ("shop", 5, 1)
    assert (crm["description"], crm["schema"]) == ("Leads", "schema://crm")


async def test_a_database_is_read_as_annotated_sql_with_its_indexes(toolbox):
    text = await _read(toolbox, "schema://shop")
    assert "user_id integer NOT NULL REFERENCES users (id)" in text
    assert "CREATE INDEX orders_user ON orders (user_id);" in text


async def test_a_table_is_read_by_its_stored_name(toolbox):
    facts = json.loads(await _read(toolbox, "schema://shop/main/Order%20Details"))
    assert [column["name"] for column in facts["columns"]] == ['"order"', '"a.b"', '"quote""d"']
    assert facts["name"] == '"Order Details"'


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "schema://",
        "schema://nowhere",
        "schema://shop/main/nothing",
        "schema://shop/nowhere/users",
        "schema://shop/main/users/more",
        "dragoman://results/none",
        "queries://none",
        "stat://shop/settings",
        "file:///etc/passwd",
        "databases://list/x",
        "schema://" + "x" * 3000,
    ],
)
async def test_what_is_not_there_is_unknown(toolbox, uri):
    with pytest.raises(UnknownResource):
        await _read(toolbox, uri)


async def test_a_kept_result_is_listed_and_read_by_its_caller_alone(toolbox, ask):
    await ask(toolbox, "execute_query", database="shop", sql="SELECT id FROM users ORDER BY id", keep="people")
    uris = [each.uri for each in await toolbox.surfaces.resources(LOCAL)]
    assert "dragoman://results/people" in uris
    page = json.loads(await _read(toolbox, "dragoman://results/people"))
    assert (page["rows"], page["total_rows"]) == ([[1], [2]], 2)
    other = Principal(name="other", subject="other")
    assert "dragoman://results/people" not in [each.uri for each in await toolbox.surfaces.resources(other)]
    with pytest.raises(UnknownResource):
        await _read(toolbox, "dragoman://results/people", other)


@pytest.fixture
async def granted(database, scripts, tmp_path):
    """Two databases; `ada` may read the shop's orders, `bob` may only run queries, nobody else may anything."""
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "sizes.sql").write_text("-- description: Order sizes\n-- database: shop\nSELECT total FROM orders\n")
    (folder / "mails.sql").write_text("-- database: shop\nSELECT email FROM users\n")
    databases = {name: database(name, scripts[name]) for name in ("shop", "crm")}
    roles = {
        "ada": Role(
            name="ada", principals=frozenset({"ada"}), grants=(Grant(database="shop", tables=("main.orders",)),)
        ),
        "bob": Role(
            name="bob",
            principals=frozenset({"bob"}),
            tools=("execute_query",),
            grants=(Grant(database="crm", tables=("*",)),),
        ),
    }
    configuration = Configuration(databases=databases, roles=roles, server=Server(queries_dir=folder))
    async with Gateway.open(configuration) as gateway:
        yield Toolbox(gateway, profile="full")


ADA, BOB, EVE = (Principal(name=name, subject=name) for name in ("ada", "bob", "eve"))


async def test_what_is_listed_is_what_the_caller_may_read(granted):
    listed = [each.uri for each in await granted.surfaces.resources(ADA)]
    assert listed == ["databases://list", "schema://shop", "queries://sizes"]
    assert await granted.surfaces.resources(BOB) == granted.surfaces.templates(BOB) == []
    assert await granted.surfaces.resources(EVE) == []


async def test_a_part_of_a_database_is_all_there_is_to_read(granted):
    text = await _read(granted, "schema://shop", ADA)
    assert "CREATE TABLE orders" in text
    assert "CREATE TABLE users" not in text
    assert "SELECT total FROM orders" in await _read(granted, "queries://sizes", ADA)
    for uri in ("schema://crm", "schema://shop/main/users", "queries://mails"):
        with pytest.raises(UnknownResource):
            await _read(granted, uri, ADA)


async def test_a_saved_query_of_what_is_not_granted_is_no_query(granted):
    async def told(name: str) -> dict[str, Any]:
        answer = await granted.call("run_query", {"name": name}, principal=ADA)
        return json.loads(answer.text)["error"]

    granted.gateway.configuration.server.queries_dir.joinpath("mail.sql").write_text(
        "-- database: shop\n-- expose: tool\n-- description: all mails\nSELECT email FROM users\n"
    )
    granted.refresh()
    assert await granted.hidden_tools(ADA) == {"mail"}
    hidden, missing = await told("mail"), await told("mial")
    assert json.dumps(hidden).replace("mail", "mial") == json.dumps(missing)
    assert not (await granted.call("run_query", {"name": "sizes"}, principal=ADA)).is_error


@pytest.mark.parametrize("tables", [(), ("main.users",)], ids=["the database", "the table"])
async def test_a_result_of_what_is_no_longer_granted_is_unknown(granted, tables):
    arguments = {"database": "shop", "sql": "SELECT total FROM orders", "keep": "totals"}
    assert not (await granted.call("execute_query", arguments, principal=ADA)).is_error
    addresses = ("dragoman://results/totals", "dragoman://results/totals/csv")
    exported = await granted.call("export_result", {"result": "totals", "format": "csv"}, principal=ADA)
    assert not exported.is_error
    for uri in addresses:
        await _read(granted, uri, ADA)
    configuration = granted.gateway.configuration
    grants = (Grant(database="shop", tables=tables),) if tables else (Grant(database="crm", tables=("*",)),)
    ada = replace(configuration.roles["ada"], grants=grants)
    await granted.gateway.reload(replace(configuration, roles={**configuration.roles, "ada": ada}))
    for uri in addresses:
        with pytest.raises(UnknownResource):
            await _read(granted, uri, ADA)


async def test_roles_without_the_tool_do_not_read_what_it_tells(granted):
    for uri in ("databases://list", "schema://crm"):
        with pytest.raises(UnknownResource):
            await _read(granted, uri, BOB)


async def test_completions_tell_what_the_caller_may_know(granted):
    async def completed(principal: Principal, argument: str, value: str = "", uri: str | None = None, **given: str):
        return (await complete(granted.surfaces, principal, argument, value, given, uri)).values

    assert await completed(ADA, "database") == ("shop",)
    assert await completed(ADA, "table", "ord", database="shop", schema="main") == ("orders",)
    assert await completed(ADA, "table", "user", database="shop", schema="main") == ()
    assert await completed(ADA, "database", "cr") == ()
    assert await completed(ADA, "table", database="crm") == ()
    assert await completed(ADA, "name", "", "queries://{name}") == ("sizes",)
    assert await completed(BOB, "database", "", "schema://{database}") == ()


async def test_completions_put_first_what_begins_with_what_was_typed(toolbox):
    found = await complete(toolbox.surfaces, LOCAL, "table", "R", {"database": "shop"}, None)
    assert (found.values, found.total) == (("Order Details", "big_orders", "branches", "orders", "users"), 5)
    assert (await complete(toolbox.surfaces, LOCAL, "table", "ord", {"database": "shop"}, None)).values == (
        "Order Details",
        "orders",
        "big_orders",
    )
    assert (await complete(toolbox.surfaces, LOCAL, "schema", "", {"database": "shop"}, None)).values == ("main",)
    assert (await complete(toolbox.surfaces, LOCAL, "nonsense", "", {}, None)).values == ()


async def test_a_client_without_resources_reads_them_with_a_tool(database, scripts, open_toolbox, ask, fail):
    async with open_toolbox(database("shop", scripts["shop"]), profile="full") as toolbox:
        told = await ask(toolbox, "read_resource")
        assert {each["uri"] for each in told["resources"]} >= {"databases://list", "schema://shop"}
        assert "schema://{database}/{schema}/{table}" in {each["uri"] for each in told["templates"]}
        assert "CREATE TABLE" in (await ask(toolbox, "read_resource", uri="schema://shop"))["text"]
        error = await fail(toolbox, "read_resource", {"uri": "schema://nowhere"})
        assert error["code"] == "PARAMETER_ERROR"


# Prompts


async def test_the_shipped_prompts_have_descriptions_and_arguments(toolbox):
    prompts = {prompt.name: prompt for prompt in toolbox.surfaces.prompts()}
    assert set(prompts) == {"explore", "report", "find"}
    for prompt in prompts.values():
        assert prompt.description
        filled = prompt.fill({argument.name: f"<{argument.name}>" for argument in prompt.arguments})
        assert all(f"<{argument.name}>" in filled for argument in prompt.arguments)
        assert "{" not in filled


def test_a_prompt_is_filled_once_and_values_are_not_searched():
    prompt = parse("---\narguments: [a, b]\n---\n{a} and {b} and {c}", "x")
    assert prompt.fill({"a": "{b}", "b": "1"}) == "{b} and 1 and {c}"
    assert prompt.fill({}) == " and  and {c}"


def test_a_missing_or_unknown_argument_is_refused():
    prompt = parse("---\narguments:\n  - {name: a, required: true}\n---\n{a}", "x")
    for given in ({}, {"a": "  "}, {"a": "1", "b": "2"}):
        with pytest.raises(ParameterError):
            prompt.fill(given)


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: 1x\n---\ntext",
        "---\nnmae: x\n---\ntext",
        "---\n[1, 2]\n---\ntext",
        "---\na: [\n---\ntext",
        "---\narguments: {a: b}\n---\ntext",
        "---\narguments: [{nome: a}]\n---\ntext",
        "---\narguments: ['a b']\n---\ntext",
        "---\nname: x\n---\n",
        "",
    ],
)
def test_a_wrong_file_is_no_prompt(text):
    with pytest.raises(ValueError, match=r"\w+"):
        parse(text, "x")


async def test_prompts_of_a_folder_stand_beside_the_shipped_ones_and_wrong_ones_are_told(
    database, scripts, tmp_path: Path, caplog
):
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "find.md").write_text("Ours.")
    weekly = "---\ndescription: The week\ntags: [sales]\n---\nSum up the week."
    (folder / "weekly.md").write_text(weekly, encoding="utf-8-sig")
    (folder / "bad.md").write_text("---\nname: 1\n---\nx")
    configuration = Configuration(
        databases={"shop": database("shop", scripts["shop"])}, server=Server(prompts_dir=folder)
    )
    async with Gateway.open(configuration) as gateway:
        surfaces = Toolbox(gateway).surfaces
        prompts = {prompt.name: prompt for prompt in surfaces.prompts()}
        surfaces.prompts()
    assert (prompts["find"].text, prompts["weekly"].tags) == ("Ours.", ("own", "sales"))
    assert caplog.text.count("bad.md is left out") == 1
    with pytest.raises(UnknownPrompt):
        surfaces.prompt("nothing")


# Changes


@pytest.mark.parametrize(
    "address",
    ["databases://list", "dragoman://results/x", "queries://x", "stat://shop/size", "schema://nowhere", "x", ""],
)
async def test_who_leaves_an_address_takes_no_message_from_others(database, scripts, tmp_path, address):
    configuration = Configuration(
        databases={"shop": database("shop", scripts["shop"])}, server=Server(queries_dir=tmp_path)
    )
    async with Gateway.open(configuration) as gateway:
        changes = Changes(gateway, period=0.005)
        heard: asyncio.Queue[Change] = asyncio.Queue()
        with changes.listening(heard.put_nowait):
            with changes.watching([address]):
                pass
            (tmp_path / "new.sql").write_text("SELECT 1")
            assert await asyncio.wait_for(heard.get(), 10) == Change("resources")


async def test_a_changed_schema_is_told_to_those_who_watch_it_and_is_read_anew(
    database, scripts, tmp_path, open_toolbox
):
    async with open_toolbox(database("shop", scripts["shop"])) as toolbox:
        assert "late" not in await _read(toolbox, "schema://shop")
        changes = Changes(toolbox.gateway, period=0.005)
        heard: asyncio.Queue[Change] = asyncio.Queue()
        told = None
        tables = [f"schema://shop/main/late{number}" for number in range(100)]
        with changes.listening(heard.put_nowait), changes.watching(["schema://shop", *tables, "schema://nowhere"]):
            with sqlite3.connect(tmp_path / "shop.db") as connection:
                # The first look may come before or behind the first change.
                for number in range(100):
                    connection.execute(f"CREATE TABLE late{number} (id INTEGER)")
                    connection.commit()
                    try:
                        told = await asyncio.wait_for(heard.get(), 0.1)
                        break
                    except TimeoutError:
                        continue
            connection.close()
        assert told == Change("resource", "schema://shop")
        assert heard.empty(), "a schema is told once, however many of its tables are watched"
        assert "late0" in await _read(toolbox, "schema://shop")
