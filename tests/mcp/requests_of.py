"""Calls of tools as HTTP requests, in both eras, and how their answers are read."""

import json
from typing import Any

import httpx2
import pytest

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def legacy(tool: str, **arguments: Any) -> dict[str, Any]:
    return {
        "headers": HEADERS | {"mcp-protocol-version": "2025-11-25"},
        "json": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
    }


def modern(tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, "_meta": MODERN}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool}
    return {
        "headers": HEADERS | headers,
        "json": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
    }


ERAS = pytest.mark.parametrize("request_of", [legacy, modern])


def answer(response: httpx2.Response) -> dict[str, Any]:
    """Read an answer, which may be plain JSON or the last event of a stream."""
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    return json.loads([line for line in response.text.splitlines() if line.startswith("data: ")][-1][6:])
