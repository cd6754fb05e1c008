"""`export_result` answers a link, and a real client follows it: over both transports, in both eras of the protocol."""

import asyncio
import base64
import io
import json
import re
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx2
import mcp_types as types
import pyarrow.parquet as pq
import pytest
from contents import text_in
from mcp import Client, MCPError, StdioServerParameters

ROWS = [[1, "12.50"], [2, "0.10"], [3, None]]
CONFIGURATION = """
[server]
tools = "full"
[databases.shop]
url = "sqlite:///shop.db"
"""
PATIENCE = 60

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total TEXT)")
    connection.executemany("INSERT INTO orders VALUES (?, ?)", ROWS)
    connection.commit()
    connection.close()
    (tmp_path / "dragoman.toml").write_text(CONFIGURATION)
    return [sys.executable, "-m", "dragoman", "serve", "--config", str(tmp_path / "dragoman.toml")]


@asynccontextmanager
async def served(command: list[str]) -> AsyncIterator[str]:
    """The address of an HTTP server."""
    process = await asyncio.create_subprocess_exec(
        *command, "--transport", "http", "--port", "0", stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            while not (found := re.search(rb"serving on (http://\S+?/mcp)", await process.stderr.readline())):
                pass
        yield found[1].decode()
    finally:
        process.terminate()
        await process.communicate()


@pytest.fixture(params=["stdio", "http"])
async def target(request: pytest.FixtureRequest, command: list[str]) -> AsyncIterator[Any]:
    if request.param == "stdio":
        yield StdioServerParameters(command=command[0], args=[*command[1:], "--transport", "stdio"])
        return
    async with served(command) as url:
        yield url


@pytest.fixture(params=["auto", "legacy"])
async def client(request: pytest.FixtureRequest, target: Any) -> AsyncIterator[Client]:
    async with Client(target, mode=request.param) as client:
        yield client


async def export(
    client: Client, form: str, sql: str = "SELECT id, total FROM orders ORDER BY id"
) -> types.ResourceLink:
    await client.call_tool("execute_query", {"sql": sql, "keep": "orders"})
    answer = await client.call_tool("export_result", {"result": "orders", "format": form})
    text, link = answer.content
    assert answer.structured_content is not None
    assert json.loads(text_in(text)) == answer.structured_content
    assert isinstance(link, types.ResourceLink)
    assert (link.name, link.size) == (f"orders.{form}", answer.structured_content["bytes"])
    return link


async def test_a_link_to_text_is_read(client: Client) -> None:
    link = await export(client, "csv")
    (content,) = (await client.read_resource(str(link.uri))).contents
    assert isinstance(content, types.TextResourceContents)
    assert content.text == "id,total\r\n1,12.50\r\n2,0.10\r\n3,\r\n"
    assert content.mime_type == link.mime_type == "text/csv; charset=utf-8"
    assert str(link.uri) in [str(each.uri) for each in (await client.list_resources()).resources]


async def test_a_link_to_bytes_is_read(client: Client) -> None:
    link = await export(client, "parquet")
    (content,) = (await client.read_resource(str(link.uri))).contents
    assert isinstance(content, types.BlobResourceContents)
    table = pq.read_table(io.BytesIO(base64.b64decode(content.blob)))
    assert [list(row.values()) for row in table.to_pylist()] == ROWS


async def test_a_link_to_a_large_file_is_fetched_from_where_it_says(client: Client) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
    link = await export(client, "csv", f"{numbers} SELECT i, hex(zeroblob(40)) FROM n")
    address = urlsplit(str(link.uri))
    if address.scheme == "file":
        content = Path(url2pathname(address.path)).read_bytes()
    else:
        async with httpx2.AsyncClient() as fetching:
            content = (await fetching.get(str(link.uri))).content
    assert len(content) == link.size
    assert len(content) > 4 * 1024 * 1024
    with pytest.raises(MCPError) as caught:
        await client.read_resource("dragoman://results/orders/csv")
    assert caught.value.error.data["code"] == "RESULT_TOO_LARGE"


async def test_a_link_ends_with_its_result(client: Client) -> None:
    link = await export(client, "csv")
    await client.call_tool("drop_result", {"result": "orders"})
    for uri in (str(link.uri), "dragoman://results/orders/table", "dragoman://results/../shop.db"):
        with pytest.raises(MCPError):
            await client.read_resource(uri)


@pytest.mark.parametrize(("version", "links"), [("2024-11-05", 0), ("2025-03-26", 0), ("2025-06-18", 1)])
async def test_versions_that_have_no_links_are_told_none(command: list[str], version: str, links: int) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, "--transport", "stdio", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def send(method: str, number: int | None, params: dict[str, Any]) -> None:
        numbered = {} if number is None else {"id": number}
        stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **numbered, "params": params}).encode() + b"\n")

    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    await send("initialize", 1, hello)
    await send("notifications/initialized", None, {})
    await send("tools/call", 2, {"name": "export_result", "arguments": {"sql": "SELECT 1 AS one"}})
    async with asyncio.timeout(PATIENCE):
        while (answer := json.loads(await stdout.readline())).get("id") != 2:
            pass
    stdin.close()
    await process.wait()
    assert [each["type"] for each in answer["result"]["content"]] == ["text", *["resource_link"] * links]
