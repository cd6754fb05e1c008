"""Lists that change while a client looks at them: results it keeps, files of prompts and queries. In both eras."""

import sqlite3
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from dragoman import Database, Gateway, Principal
from dragoman.config import Configuration, Results, Server
from dragoman.mcp.server import build
from dragoman.tools import Toolbox
from mcp import Client
from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged

EVE = Principal("user", issuer="https://id", subject="eve")
QUERY = "-- description: How many\n-- database: shop\nSELECT count(*) AS n FROM orders"
CONFIGURATION = """
[server]
tools = "full"
queries_dir = "queries"
prompts_dir = "prompts"
[results]
dir = "kept"
[databases.shop]
url = "sqlite:///shop.db"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript("CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1), (2);")
    connection.close()
    for name in ("queries", "prompts"):
        (tmp_path / name).mkdir()
    (tmp_path / "dragoman.toml").write_text(CONFIGURATION)
    return tmp_path


@pytest.fixture
async def toolbox(folder: Path) -> AsyncIterator[Toolbox]:
    shop = Database(name="shop", dialect="sqlite", database="shop.db", folder=folder)
    server = Server(queries_dir=folder / "queries", prompts_dir=folder / "prompts")
    configuration = Configuration(databases={"shop": shop}, server=server, results=Results(dir=folder / "kept"))
    async with Gateway.open(configuration) as gateway:
        yield Toolbox(gateway, profile="full")


async def keep(toolbox: Toolbox, principal: Principal) -> None:
    answer = await toolbox.call("execute_query", {"sql": "SELECT id FROM orders", "keep": "ids"}, principal=principal)
    assert not answer.is_error, answer.text


async def test_a_client_of_2026_hears_of_its_own_results_and_of_files(toolbox: Toolbox, folder: Path) -> None:
    heard: Counter[type] = Counter()
    async with (
        Client(build(toolbox)) as client,
        client.listen(resources_list_changed=True, prompts_list_changed=True) as events,
    ):
        with anyio.fail_after(60):
            await keep(toolbox, EVE)
            await client.call_tool("execute_query", {"sql": "SELECT id FROM orders", "keep": "own"})
            assert isinstance(await anext(events), ResourcesListChanged)
            await client.call_tool("drop_result", {"result": "own"})
            assert isinstance(await anext(events), ResourcesListChanged)
            (folder / "queries" / "count.sql").write_text(QUERY)
            (folder / "prompts" / "weekly.md").write_text("Sum up the week.")
            while len(heard) < 2:
                heard[type(await anext(events))] += 1
        listed = {str(each.uri) for each in (await client.list_resources()).resources}
        assert "queries://count" in listed
        assert "weekly" in {prompt.name for prompt in (await client.list_prompts()).prompts}
    assert heard == {ResourcesListChanged: 1, PromptsListChanged: 1}


async def test_a_client_of_2025_hears_the_same_over_stdio(run: Any, folder: Path) -> None:
    command = (sys.executable, "-m", "dragoman", "serve", "--config", str(folder / "dragoman.toml"))
    async with run(*command, "--transport", "stdio") as peer:
        await peer.handshake()
        seen: list[str] = []

        async def hear(method: str) -> None:
            while method not in seen:
                seen.append((await peer.receive()).get("method", ""))
            seen.clear()

        message = {"name": "execute_query", "arguments": {"sql": "SELECT id FROM orders", "keep": "own"}}
        await peer.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": message})
        await hear("notifications/resources/list_changed")
        # The first look at the files may come before or behind the first change.
        for number in range(100):
            (folder / "prompts" / f"weekly{number}.md").write_text("Sum up the week.")
            with anyio.move_on_after(4):
                await hear("notifications/prompts/list_changed")
                break
        listed = await peer.request(2, "resources/list")
        assert "dragoman://results/own" in {each["uri"] for each in listed["result"]["resources"]}
