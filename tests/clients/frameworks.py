"""A program for an environment with one framework for agents: `python frameworks.py FRAMEWORK TARGET`.

TARGET: the URL of a server, or its command as a JSON array. Prints the names of the tools that the framework found, and
what it tells an agent of a query and of a write, as JSON.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# (each framework is in an environment of its own, some with an older SDK)

import asyncio
import json
import sys
from typing import Any

QUERY = {"sql": "SELECT count(*) AS n FROM orders"}
WRITE = {"sql": "DELETE FROM orders"}
TOOL = "execute_query"
Target = str | list[str]


async def langchain(target: Target) -> tuple[list[str], list[str]]:
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.client import MultiServerMCPClient

    stdio = {"transport": "stdio", "command": target[0], "args": target[1:]}
    server = {"transport": "streamable_http", "url": target} if isinstance(target, str) else stdio
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"shop": server}).get_tools()}
    shown = [convert_to_openai_tool(tool)["function"]["name"] for tool in tools.values()]
    return shown, [(await tools[TOOL].ainvoke(each))[0]["text"] for each in (QUERY, WRITE)]


async def gemini(target: Target) -> tuple[list[str], list[str]]:
    from google.genai._mcp_utils import mcp_to_gemini_tool
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    client: Any = (
        streamablehttp_client(target)
        if isinstance(target, str)
        else stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    )
    async with client as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        declared = [mcp_to_gemini_tool(tool).function_declarations for tool in (await session.list_tools()).tools]
        answers: Any = [await session.call_tool(TOOL, each) for each in (QUERY, WRITE)]
    shown = [each for declarations in declared for each in declarations or []]
    told = [tool.name for tool in shown if _is_complete(tool.parameters.model_dump(mode="json", exclude_none=True))]
    return told, [each.content[0].text for each in answers]


def _is_complete(schema: Any) -> bool:
    """Return whether every array of Gemini's schema says of what, without which Gemini refuses all tools."""
    if isinstance(schema, list):
        return all(map(_is_complete, schema))
    if not isinstance(schema, dict):
        return True
    is_array = schema.get("type") == "ARRAY"
    return (not is_array or bool(schema.get("items"))) and all(map(_is_complete, schema.values()))


async def openai_agents(target: Target) -> tuple[list[str], list[str]]:
    from agents import Agent, RunContextWrapper
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil

    server: Any = (
        MCPServerStreamableHttp(params={"url": target})
        if isinstance(target, str)
        else MCPServerStdio(params={"command": target[0], "args": target[1:]}, client_session_timeout_seconds=60)
    )
    async with server:
        agent = Agent(name="shop", mcp_servers=[server])
        tools = await MCPUtil.get_all_function_tools([server], True, RunContextWrapper(None), agent)
        answers = [await server.call_tool(TOOL, each) for each in (QUERY, WRITE)]
    return [tool.name for tool in tools if tool.strict_json_schema], [each.content[0].text for each in answers]


async def llama_index(target: Target) -> tuple[list[str], list[str]]:
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    command, *arguments = [target] if isinstance(target, str) else target
    spec = McpToolSpec(client=BasicMCPClient(command, args=arguments, timeout=60))
    tools = {tool.metadata.name: tool for tool in await spec.to_tool_list_async()}
    shown = [tool.metadata.to_openai_tool()["function"]["name"] for tool in tools.values()]
    answers = [(await tools[TOOL].acall(**each)).raw_output for each in (QUERY, WRITE)]
    return shown, [each.content[0].text for each in answers]


async def mcp_use(target: Target) -> tuple[list[str], list[str]]:
    from mcp_use import MCPClient

    server = {"url": target} if isinstance(target, str) else {"command": target[0], "args": target[1:]}
    client = MCPClient.from_dict({"mcpServers": {"shop": server}})
    session = await client.create_session("shop")
    tools = await session.list_tools()
    answers = [await session.call_tool(TOOL, each) for each in (QUERY, WRITE)]
    await client.close_all_sessions()
    return [tool.name for tool in tools], [each.content[0].text for each in answers]


if __name__ == "__main__":
    framework, where = sys.argv[1:]
    shown, told = asyncio.run(globals()[framework](json.loads(where)))
    print(json.dumps({"tools": shown, "told": told}))
