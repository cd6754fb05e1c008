"""The SDK's own floor over one Postgres: the thinnest low-level server, with both halves of a result.

`sdk_server.py URL` serves stdio, `sdk_server.py URL PORT` serves HTTP on loopback, stateless.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

SCHEMA = {"type": "object", "properties": {"sql": {"type": "string"}, "limit": {"type": "integer"}}}
TOOL = types.Tool(name="execute_query", description="Run a query.", input_schema=SCHEMA)


@asynccontextmanager
async def pool(url: str) -> AsyncIterator[asyncpg.Pool]:
    async with asyncpg.create_pool(url, min_size=0, max_size=8) as opened:
        yield opened


def build(url: str) -> Server[Any]:
    async def list_tools(_: object, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[TOOL])

    async def call_tool(context: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        async with context.lifespan_context.acquire() as connection:
            rows = await connection.fetch((call.arguments or {})["sql"])
        names = list(rows[0].keys()) if rows else []
        values = [[_plain(value) for value in row.values()] for row in rows]
        answer = {"columns": names, "rows": values, "row_count": len(values)}
        text = json.dumps(answer, separators=(",", ":"))
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=answer)

    return Server(
        "floor",
        version="1",
        lifespan=lambda _: pool(url),
        get_tool_input_schema=lambda _: SCHEMA,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


async def serve_stdio(url: str) -> None:
    server = build(url)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_http(url: str, port: int) -> None:
    import uvicorn

    allowed = TransportSecuritySettings(allowed_hosts=["127.0.0.1:*"])
    app = build(url).streamable_http_app(stateless_http=True, json_response=False, transport_security=allowed)
    # asyncio sets no TCP_NODELAY on a listener it did not make itself, so uvicorn makes it.
    config = uvicorn.Config(app, port=port, log_level="warning", access_log=False, loop="asyncio", http="h11")
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(serve_stdio(given[0]) if len(given) == 1 else serve_http(given[0], int(given[1])))
