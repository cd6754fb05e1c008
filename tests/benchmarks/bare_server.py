"""The thinnest server the SDK allows, to compare with: one tool, a constant answer, over the SDK's own stdio."""

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

ANSWER = {"columns": ["id", "note"], "types": ["INTEGER", "TEXT"], "rows": [[77, "note 77"]], "row_count": 1}
TEXT = '{"columns":["id","note"],"types":["INTEGER","TEXT"],"rows":[[77,"note 77"]],"row_count":1}'


async def list_tools(_: object, __: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="execute_query", input_schema={"type": "object"})])


async def call_tool(_: object, __: object) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=TEXT)], structured_content=ANSWER)


async def main() -> None:
    server = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
