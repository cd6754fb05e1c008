"""What is hidden is not told by what others left: saved queries, lists of tools, keys that point to a table."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.model import Principal
from dragoman.tools import Toolbox

ANN = Principal("ann", subject="ann")
SCRIPT = """
CREATE TABLE zyx (id INTEGER PRIMARY KEY);
CREATE TABLE shown (id INTEGER PRIMARY KEY, name TEXT, zyx_pin TEXT);
CREATE TABLE part (id INTEGER PRIMARY KEY, owner TEXT, zyx_pin TEXT);
CREATE TABLE colours (id INTEGER PRIMARY KEY, colour TEXT);
INSERT INTO colours VALUES (1, 'red'), (2, 'green'), (3, 'blue');
"""
HIDDEN_KEY = "CREATE TABLE zyx_key (id INTEGER PRIMARY KEY, colour_id INTEGER REFERENCES colours (id));"
CONFIGURATION = """
[server]
queries_dir = "queries"
tools = "full"
[databases.shop]
url = "sqlite:///shop.db"
[roles.r]
principals = ["ann", "local"]
[[roles.r.grants]]
database = "shop"
tables = ["main.shown", "main.colours"]
deny_columns = ["*.zyx_pin"]
[[roles.r.grants]]
database = "shop"
tables = ["main.part"]
columns = ["id"]
filter = "owner = $user"
"""
SAVED = {
    "good": "SELECT id, name FROM shown",
    "part": "SELECT id FROM part",
    "zyx_table": "SELECT id FROM zyx",
    "zyx_column": "SELECT zyx_pin FROM shown",
    "zyx_alias": "SELECT s.zyx_pin AS pin FROM shown s",
    "zyx_condition": "SELECT id FROM shown WHERE zyx_pin > 'a'",
    "zyx_order": "SELECT id FROM part ORDER BY zyx_pin",
    "zyx_owner": "SELECT owner FROM part",
    "zyx_inner": "WITH x AS (SELECT * FROM part) SELECT x.owner FROM x",
}


def _make(folder: Path, script: str) -> Path:
    connection = sqlite3.connect(folder / "shop.db")
    connection.executescript(script)
    connection.close()
    (folder / "queries").mkdir(exist_ok=True)
    for name, sql in SAVED.items():
        (folder / "queries" / f"{name}.sql").write_text(f"-- description: {name}\n-- expose: tool\n{sql}\n")
    (folder / "dragoman.toml").write_text(CONFIGURATION)
    return folder / "dragoman.toml"


@pytest.fixture
async def toolbox(tmp_path: Path) -> AsyncIterator[Toolbox]:
    configuration = load(_make(tmp_path, SCRIPT), environ={}, folder=tmp_path)
    async with Gateway.open(configuration) as gateway:
        yield Toolbox(gateway, profile="full")


async def _answer(toolbox: Toolbox, tool: str, **arguments: Any) -> str:
    return (await toolbox.call(tool, arguments, principal=ANN)).text


async def test_a_saved_query_that_reads_a_hidden_table_or_column_is_told_of_nowhere(toolbox: Toolbox) -> None:
    hidden = await toolbox.hidden_tools(ANN)
    assert hidden == {name for name in SAVED if name.startswith("zyx")}
    listed = await _answer(toolbox, "list_queries")
    assert {"good", "part"} == {each["name"] for each in json.loads(listed)["queries"]}
    for name in sorted(hidden):
        told = await _answer(toolbox, "run_query", name=name)
        assert told == (await _answer(toolbox, "run_query", name="zzz_none")).replace("zzz_none", name)
        assert "zyx" not in (await _answer(toolbox, "read_resource", uri=f"queries://{name}")).replace(name, "")
    assert "zyx" not in await _answer(toolbox, "read_resource")


DOWN = """
[databases.down]
url = "postgresql://x:y@127.0.0.1:1/x"
[[roles.r.grants]]
database = "down"
tables = ["sales.shown"]
[audit]
path = "audit.jsonl"
"""


async def test_a_saved_query_is_not_there_while_its_database_does_not_answer(tmp_path: Path) -> None:
    pytest.importorskip("dragoman_postgres")
    path = _make(tmp_path, SCRIPT)
    for name, sql in (("zyx_down", "SELECT id FROM sales.zyx"), ("down_good", "SELECT id FROM sales.shown")):
        (tmp_path / "queries" / f"{name}.sql").write_text(f"-- database: down\n-- expose: tool\n{sql}\n")
    path.write_text(CONFIGURATION + DOWN)
    async with Gateway.open(load(path, environ={}, folder=tmp_path)) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        assert {"zyx_down", "down_good"} <= await toolbox.hidden_tools(ANN)
        unknown = await _answer(toolbox, "run_query", name="zzz_none")
        assert "What reads down is found when that answers again." in unknown
        for name in ("zyx_down", "down_good"):
            assert not await toolbox.knows(name, ANN)
            assert await _answer(toolbox, "run_query", name=name) == unknown.replace("zzz_none", name)


@pytest.mark.parametrize("hot", ["on", "off"])
def test_a_call_of_a_tool_whose_database_does_not_answer_is_recorded(tmp_path: Path, hot: str) -> None:
    pytest.importorskip("dragoman_postgres")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "down_good.sql").write_text(
        "-- database: down\n-- expose: tool\nSELECT id FROM sales.shown\n"
    )
    calls = [{"method": "tools/call", "params": {"name": name, "arguments": {}}} for name in ("down_good", "zzz_none")]
    answers = _ask_over_stdio(tmp_path, CONFIGURATION + DOWN, calls, DRAGOMAN_HOT_PATH=hot)
    assert [answer["error"]["code"] for answer in answers] == [-32602, -32602]
    records = [json.loads(line) for file in tmp_path.glob("audit-*.jsonl") for line in file.read_text().splitlines()]
    assert [record["tool"] for record in records if "tool" in record] == ["down_good", "unknown"]


def _ask_over_stdio(folder: Path, configuration: str, requests: list[dict[str, Any]], **environ: str) -> list[Any]:
    """The answers of a server over stdio, started in a new folder, to requests that it answers one by one."""
    path = _make(folder, SCRIPT)
    path.write_text(configuration)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    requests = [{"method": "initialize", "params": client}, *requests]
    command = [sys.executable, "-m", "dragoman", "serve", "--config", str(path)]
    answers: list[Any] = []
    environment = {**os.environ, **environ}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=environment
    ) as served:
        assert served.stdin is not None
        assert served.stdout is not None
        for number, request in enumerate(requests):
            served.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **request}).encode() + b"\n")
            served.stdin.flush()
            answers.append(json.loads(served.stdout.readline()))
        served.stdin.close()
    return answers[1:]


@pytest.mark.parametrize("hot", ["on", "off"])
def test_a_tool_that_is_hidden_or_not_granted_is_unknown_like_an_invented_one_and_recorded(tmp_path: Path, hot: str):
    configuration = CONFIGURATION.replace('principals = ["ann", "local"]', 'principals = ["local"]\ntools = ["saved"]')
    hidden = [name for name in SAVED if name.startswith("zyx")]
    names = [*hidden, "execute_query", "list_databases", "zzz_none", "zzz\x00none"]
    calls = [{"method": "tools/call", "params": {"name": name, "arguments": {}}} for name in [*names, "good"]]
    audited = f'{configuration}[audit]\npath = "audit.jsonl"\n'
    *unknown, answered = _ask_over_stdio(tmp_path, audited, calls, DRAGOMAN_HOT_PATH=hot)
    told = [answer["error"] for answer in unknown]
    assert told == [{"code": -32602, "message": f"Unknown tool: {name}"} for name in names]
    assert answered["result"]["isError"] is False
    (file,) = tmp_path.glob("audit-*.jsonl")
    records = [record for record in map(json.loads, file.read_text().splitlines()) if "tool" in record]
    assert [record["tool"] for record in records] == [*names[:-2], "unknown", "unknown", "good"]
    assert {(record["verdict"], record["outcome"]) for record in records[:-1]} == {("refused", "PERMISSION_DENIED")}


async def test_the_first_list_of_tools_over_stdio_tells_of_no_hidden_query(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dragoman", "serve", "--config", str(_make(tmp_path, SCRIPT))]
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    frames = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as served:
        assert served.stdin is not None
        assert served.stdout is not None
        served.stdin.write("".join(json.dumps(frame) + "\n" for frame in frames).encode())
        served.stdin.flush()
        answers = [json.loads(served.stdout.readline()) for _ in range(2)]
        served.stdin.close()
    names = {tool["name"] for tool in answers[1]["result"]["tools"]}
    assert {"good", "part"} <= names
    assert not {name for name in names if "zyx" in name}


async def test_a_key_of_a_hidden_table_does_not_make_a_list_of_kinds(tmp_path: Path) -> None:
    told: list[list[str]] = []
    for number, script in enumerate((SCRIPT, SCRIPT + HIDDEN_KEY)):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with Gateway.open(load(_make(folder, script), environ={}, folder=folder)) as gateway:
            toolbox = Toolbox(gateway, profile="full")
            told.append(
                [
                    await _answer(toolbox, "describe_table", table_name="colours", detail=detail)
                    for detail in ("compact", "full")
                ]
                + [await _answer(toolbox, "search_catalog", query="green", kinds=["value"])]
                + [await _answer(toolbox, "execute_query", sql="SELECT id FROM colours WHERE colour = 'pink'")]
                + [await _answer(toolbox, "read_schema", format=form) for form in ("sql", "json")]
            )
    assert told[0] == told[1]
