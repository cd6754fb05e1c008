"""Files of saved queries that change while a server runs: clients of both eras are told, and see the tools of now."""

import asyncio
import sqlite3
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ToolsListChanged

PATIENCE = 60
TOOL = "-- database: shop\n-- expose: tool\nSELECT {} AS n FROM orders\n"


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    connection.close()
    queries = tmp_path / "queries"
    queries.mkdir()
    (queries / "first.sql").write_text(TOOL.format("count(*)"))
    (tmp_path / "dragoman.toml").write_text(
        '[server]\ntools = ["minimal", "saved"]\nqueries_dir = "queries"\n[databases.shop]\nurl = "sqlite:///shop.db"\n'
    )
    return queries


@pytest.fixture
def server(queries: Path) -> StdioServerParameters:
    command = ["-m", "dragoman", "serve", "--config", str(queries.parent / "dragoman.toml"), "--transport", "stdio"]
    return StdioServerParameters(command=sys.executable, args=command)


async def own_tools(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools} & {"first", "second"}


async def change(client: Client, queries: Path, told: asyncio.Event) -> None:
    """A new file is a new tool that runs; a file that is gone is none."""
    await client.list_resources()  # which the whole server answers, not the part of it that is there first
    assert await own_tools(client) == {"first"}
    (queries / "second.sql").write_text(TOOL.format("max(id)"))
    await asyncio.wait_for(told.wait(), PATIENCE)
    assert await own_tools(client) == {"first", "second"}
    assert (await client.call_tool("second", {})).structured_content["rows"] == [[None]]
    told.clear()
    (queries / "first.sql").unlink()
    await asyncio.wait_for(told.wait(), PATIENCE)
    assert await own_tools(client) == {"second"}


async def test_a_client_of_2025_is_told(server: StdioServerParameters, queries: Path) -> None:
    told = asyncio.Event()

    async def note(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with Client(server, mode="legacy", message_handler=note) as client:
        await change(client, queries, told)


async def test_a_client_of_2026_is_told_on_its_stream(server: StdioServerParameters, queries: Path) -> None:
    told = asyncio.Event()

    async def listen(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as events:
            told.set()
            async for event in events:
                if isinstance(event, ToolsListChanged):
                    told.set()

    async with Client(server, mode="auto") as client:
        listening = asyncio.create_task(listen(client))
        await asyncio.wait_for(told.wait(), PATIENCE)
        told.clear()
        await change(client, queries, told)
        listening.cancel()
