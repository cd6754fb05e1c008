"""Other people's clients against the real server: each lists the tools and calls them."""

import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

STANDARD = {
    "list_databases",
    "list_schemas",
    "list_tables",
    "describe_table",
    "get_sample_rows",
    "search_catalog",
    "get_foreign_keys",
    "find_join_path",
    "execute_query",
    "explain_query",
}

# A call of every tool, and a key its answer must have.
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("list_databases", {}, "databases"),
    ("list_schemas", {}, "schemas"),
    ("list_tables", {}, "tables"),
    ("describe_table", {"table_name": "orders"}, "tables"),
    ("get_sample_rows", {"table_name": "orders", "limit": 2}, "rows"),
    ("search_catalog", {"query": "customer"}, "results"),
    ("get_foreign_keys", {"table_name": "orders"}, "outgoing"),
    ("find_join_path", {"from_table": "orders", "to_table": "customers"}, "paths"),
    ("execute_query", {"sql": "SELECT count(*) AS n FROM orders"}, "rows"),
    ("explain_query", {"sql": "SELECT * FROM orders WHERE id = 1"}, "plan"),
]

REFUSED = {"sql": "DELETE FROM orders"}

pytestmark = [pytest.mark.full, pytest.mark.timeout(180)]


def sdk(target: Any, mode: str) -> AbstractAsyncContextManager[Any]:
    from mcp import Client, StdioServerParameters

    if isinstance(target, list):
        target = StdioServerParameters(command=target[0], args=target[1:])
    return Client(target, mode=mode)


def fastmcp(target: Any, mode: str) -> AbstractAsyncContextManager[Any]:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    return Client(StdioTransport(target[0], target[1:], keep_alive=False) if isinstance(target, list) else target)


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, way: str) -> Any:
    """Where a Python client finds the server: a command or a URL. Naming `way` here lets pytest see its parameters."""
    return request.getfixturevalue("serve" if request.param == "stdio" else "url")


@pytest.fixture(params=[(sdk, "auto"), (sdk, "legacy"), (fastmcp, "")], ids=["sdk-auto", "sdk-legacy", "fastmcp"])
async def client(request: pytest.FixtureRequest, target: Any) -> AsyncIterator[Any]:
    connect, mode = request.param
    async with connect(target, mode) as client:
        yield client


async def test_a_python_client_lists_and_calls_every_tool(client: Any) -> None:
    listed = await client.list_tools()
    assert {tool.name for tool in getattr(listed, "tools", listed)} == STANDARD
    for tool, arguments, key in CALLS:
        result = await client.call_tool(tool, arguments)
        assert key in result.structured_content, tool
        assert json.loads(result.content[0].text) == result.structured_content


async def test_a_python_client_is_told_why_a_write_is_refused(client: Any) -> None:
    try:
        text = (await client.call_tool("execute_query", REFUSED)).content[0].text
    except Exception as error:  # fastmcp raises what the tool answered
        text = str(error)
    assert "WRITE_OPERATION_DENIED" in text


_PATIENT = ("--connect-timeout", "50000")
"""Milliseconds. The Inspector gives a server 15 seconds to start, which a busy machine may need."""


class Inspector:
    """The Inspector's command line, pointed at one server in one era of the protocol."""

    def __init__(self, command: list[str], environment: dict[str, str], target: list[str]) -> None:
        self._command = command
        self._environment = environment
        self._target = target

    def __call__(self, method: str, *options: str, exit_code: int = 0) -> str:
        command = [*self._command, *self._target, "--method", method, *options, "--format", "json", "-q", *_PATIENT]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == exit_code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def call(self, tool: str, arguments: dict[str, Any], exit_code: int = 0) -> str:
        options = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return self("tools/call", *options, exit_code=exit_code)


@pytest.fixture(params=["legacy", "modern"])
def inspector(request: pytest.FixtureRequest, target: Any, node: str, packages: Path, tmp_path: Path) -> Inspector:
    launcher = packages / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    where = target if isinstance(target, list) else [target, "--transport", "http"]
    environment = os.environ | {"MCP_CATALOG_PATH": str(tmp_path / "catalog.json")}
    return Inspector([node, str(launcher), "--cli"], environment, [*where, "--protocol-era", request.param])


def test_the_inspector_lists_and_calls_the_tools(inspector: Inspector) -> None:
    listed = json.loads(inspector("tools/list"))["result"]
    assert {tool["name"] for tool in listed["tools"]} == STANDARD
    for tool, arguments, key in (CALLS[0], CALLS[8]):
        assert key in json.loads(inspector.call(tool, arguments))["result"]["structuredContent"]
    assert "WRITE_OPERATION_DENIED" in inspector.call("execute_query", REFUSED, exit_code=5)
