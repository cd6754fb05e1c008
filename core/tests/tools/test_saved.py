"""The toolset `saved` over a real SQLite file: queries run by name, as tools of their own, and saved by agents."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from dragoman import Gateway, Principal
from dragoman.config import Audit, Configuration, ModelSettings, Server
from dragoman.tools import Toolbox
from dragoman.tools.registry import choose

SPENT = """\
-- description: What each user spent
-- database: shop
-- param: least number = 0 "Smallest sum"
-- param: email text = null
-- expose: tool
SELECT u.email, sum(o.total) AS spent FROM users u JOIN orders o ON o.user_id = u.id
WHERE :email IS NULL OR u.email = :email GROUP BY u.email HAVING sum(o.total) >= :least ORDER BY 1
"""
ADA = [["ada@example.com", 19.5]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "spent.sql").write_text(SPENT)
    (folder / "leads.sql").write_text("-- database: crm\nSELECT count(*) FROM leads")
    (folder / "wrong.sql").write_text("-- database: shop\nDELETE FROM users")
    return folder


@pytest.fixture
async def saved(database, scripts, folder) -> AsyncIterator[Toolbox]:
    databases = {name: database(name, script) for name, script in scripts.items()}
    server = Server(queries_dir=folder, save_queries=True)
    async with Gateway.open(Configuration(databases=databases, server=server)) as gateway:
        yield Toolbox(gateway, profile="full")


async def test_saved_queries_are_listed_with_their_parameters(saved, ask):
    listed = {each["name"]: each for each in (await ask(saved, "list_queries"))["queries"]}
    assert set(listed) == {"spent", "leads", "wrong"}
    assert listed["spent"]["params"] == [
        {"name": "least", "type": "number", "required": False, "description": "Smallest sum", "default": 0},
        {"name": "email", "type": "text", "required": False, "default": None},
    ]


async def test_a_saved_query_runs_with_its_defaults_and_with_values(saved, ask):
    everybody = await ask(saved, "run_query", name="spent")
    assert everybody["rows"] == [*ADA, ["grace@example.com", 250]]
    assert (await ask(saved, "run_query", name="spent", params={"email": "ada@example.com"}))["rows"] == ADA
    assert (await ask(saved, "run_query", name="leads"))["rows"] == [[1]]


async def test_an_exposed_query_is_a_tool_with_typed_arguments(saved, ask, fail):
    tool = next(tool for tool in saved.tools if tool.name == "spent")
    assert tool.description == "What each user spent"
    assert tool.input_schema["properties"]["least"] == {"type": "number", "description": "Smallest sum", "default": 0}
    assert "leads" not in {tool.name for tool in saved.tools}
    assert (await ask(saved, "spent", least=100))["rows"] == [["grace@example.com", 250]]
    assert (await fail(saved, "spent", {"least": "many"}))["code"] == "PARAMETER_ERROR"


def test_no_exposed_query_takes_the_place_of_our_own_tool(tmp_path, caplog):
    """Neither where it is offered nor on a server that does not offer it."""
    few = Server(queries_dir=tmp_path)
    everything = replace(few, save_queries=True, state_dir=tmp_path / "state")
    model = ModelSettings(name="openai:m", examples_dir=tmp_path)
    servers = [Configuration(databases={}, server=few), Configuration(databases={}, server=everything, model=model)]
    ours = {spec.name for spec in choose(("full", "admin"), servers[1])} | {"ask", "rate_answer"}
    for name in (*ours, "own"):
        (tmp_path / f"{name}.sql").write_text("-- database: shop\n-- expose: tool\nSELECT 1 AS one")
    for configuration in servers:
        caplog.clear()
        made = [spec.name for spec in choose(("full", "admin"), configuration) if spec.handler == "run_tool"]
        assert made == ["own"]
        assert {name for name in ours if f"the saved query {name} is not a tool" in caplog.text} == ours


@pytest.mark.parametrize("least", [100, "100", "100.0", "1e2"])
async def test_a_number_may_be_sent_as_text(saved, ask, least):
    """SQLite orders every text after every number."""
    assert (await ask(saved, "run_query", name="spent", params={"least": least}))["rows"] == [
        ["grace@example.com", 250]
    ]


async def test_a_number_of_any_length_may_be_sent_as_text(saved, ask):
    """SQLite refuses integers of more than 64 bits, and advises to send a text."""
    assert (await ask(saved, "run_query", name="spent", params={"least": "9" * 25}))["rows"] == []


async def test_a_saved_write_is_refused_like_any_other(saved, fail):
    assert (await fail(saved, "run_query", {"name": "wrong"}))["code"] == "WRITE_OPERATION_DENIED"


async def test_an_unknown_query_names_the_nearest(saved, fail):
    assert (await fail(saved, "run_query", {"name": "spend"}))["suggestion"] == "Did you mean spent?"


async def test_an_agent_saves_a_query_that_then_runs(saved, ask, fail, folder):
    sql = "-- param: id integer\nSELECT email FROM users WHERE id = :id"
    assert await ask(saved, "save_query", name="who", sql=sql, database="shop") == {"saved": "who"}
    assert (await ask(saved, "run_query", name="who", params={"id": 2}))["rows"] == [["grace@example.com"]]
    assert (await fail(saved, "save_query", {"name": "who", "sql": sql, "database": "shop"}))[
        "code"
    ] == "PARAMETER_ERROR"


@pytest.mark.parametrize(
    ("name", "sql", "code"),
    [
        ("x", "DROP TABLE users", "WRITE_OPERATION_DENIED"),
        ("x", "SELECT missing FROM users", "COLUMN_NOT_FOUND"),
        ("x", "SELECT :undeclared", "INVALID_SQL"),
        ("../x", "SELECT 1", "PARAMETER_ERROR"),
        ("x/../../y", "-- name: fine\nSELECT 1", "PARAMETER_ERROR"),
        ("x", "", "PARAMETER_ERROR"),
    ],
)
async def test_what_does_not_work_is_not_saved(saved, fail, folder, name, sql, code):
    before = sorted(folder.parent.rglob("*.sql"))
    assert (await fail(saved, "save_query", {"name": name, "sql": sql, "database": "shop"}))["code"] == code
    assert sorted(folder.parent.rglob("*.sql")) == before


async def test_history_is_the_callers_own(saved, ask):
    ada, eve = Principal("user", issuer="x", subject="ada"), Principal("user", issuer="x", subject="eve")
    await saved.call("execute_query", {"database": "shop", "sql": "SELECT 1"}, principal=ada)
    await saved.call("execute_query", {"database": "shop", "sql": "SELECT nothing"}, principal=ada)
    own = await saved.call("list_queries", {"kind": "history"}, principal=ada)
    foreign = await saved.call("list_queries", {"kind": "history"}, principal=eve)
    assert own.structured == {"queries": [{"database": "shop", "sql": "SELECT 1", "row_count": 1}]}
    assert foreign.structured == {"queries": []}


async def test_the_record_of_a_saved_query_names_the_database_it_ran_on(database, scripts, folder, tmp_path):
    databases = {name: database(name, script) for name, script in scripts.items()}
    server, audit = Server(queries_dir=folder), Audit(path=tmp_path / "calls.jsonl")
    async with Gateway.open(Configuration(databases=databases, server=server, audit=audit)) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        for name, arguments in (("run_query", {"name": "leads"}), ("spent", {}), ("list_queries", {})):
            await toolbox.call(name, arguments)
    (written,) = tmp_path.glob("calls-*.jsonl")
    records = [json.loads(line) for line in written.read_text().splitlines()]
    named = {each.get("tool"): each.get("database") for each in records}
    assert (named["run_query"], named["spent"], named["list_queries"]) == ("crm", "shop", None)


async def test_a_query_whose_answer_is_kept_is_in_the_history_too(saved, monkeypatch):
    monkeypatch.setattr("dragoman.kept.store.SOON", 60)  # a busy machine needs more for one row
    await saved.call("execute_query", {"database": "shop", "sql": "SELECT 7", "keep": "seven"})
    answer = await saved.call("list_queries", {"kind": "history"})
    assert answer.structured == {"queries": [{"database": "shop", "sql": "SELECT 7", "row_count": 1}]}


async def test_the_log_names_a_file_that_is_no_query(database, scripts, folder, caplog):
    (folder / "odd.sql").write_text("-- database: shop\n-- param: since timestamp = 2026-01-01 00:00:00\nSELECT :since")
    databases = {name: database(name, script) for name, script in scripts.items()}
    configuration = Configuration(databases=databases, server=Server(queries_dir=folder))
    async with Gateway.open(configuration) as gateway:
        Toolbox(gateway, profile="full")
    (told,) = [each.getMessage() for each in caplog.records if "saved query" in each.getMessage()]
    assert told.startswith("the saved query odd.sql:2 is left out: this is not a parameter")


async def test_without_a_folder_the_toolset_is_not_listed(database, scripts, open_toolbox):
    async with open_toolbox(database("shop", scripts["shop"]), profile="full") as toolbox:
        assert not {"list_queries", "run_query", "save_query"} & {tool.name for tool in toolbox.tools}
