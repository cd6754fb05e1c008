"""The adapter between the MCP SDK and the toolbox: two handlers, and no exception passes them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.caching import CacheHint
from mcp.shared.exceptions import MCPError

from dragoman.errors import DragomanError, InternalError, QueryCancelled
from dragoman.mcp.identity import PRINCIPAL
from dragoman.model import Principal

if TYPE_CHECKING:
    from dragoman.tools import Answer, Tool, Toolbox

LOGGER = logging.getLogger("dragoman.mcp")

# What the tools are depends on the configuration, which never changes while a server runs.
_CACHE = CacheHint(ttl_ms=60_000, scope="private")
_ANNOTATIONS = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)

Context = ServerRequestContext[Any, Any]


class Calls:
    """The calls that are running, so that a server that is told to stop can end them and still answer them."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self.stopped = False

    @contextmanager
    def entered(self) -> Generator[None]:
        """Run a call; leaves the block early when the server stops."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)

    def stop(self) -> None:
        """End every call that runs; from now on none is begun."""
        self.stopped = True
        for scope in self._scopes:
            scope.cancel()


def build(toolbox: Toolbox, calls: Calls | None = None) -> Server[Any]:
    """Return the MCP server of a toolbox, for both protocol eras; the transports run it."""
    running = calls or Calls()
    tools = {tool.name: tool for tool in toolbox.tools}
    listed = types.ListToolsResult(tools=[_described(tool) for tool in toolbox.tools])

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return listed

    async def call_tool(context: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        if call.name not in tools:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {call.name[:100]}")
        if not running.stopped:
            with running.entered():
                return await _call(toolbox, context, call)
        return _failure(call.name, QueryCancelled("The server is stopping.", suggestion="Connect again and retry."))

    server: Server[Any] = Server(
        "dragoman",
        version=importlib.metadata.version("dragoman"),
        instructions=toolbox.instructions,
        cache_hints={"tools/list": _CACHE, "server/discover": _CACHE},
        # Without it every call over HTTP lists all tools again, to look for headers that mirror arguments.
        get_tool_input_schema=lambda name: tools[name].input_schema if name in tools else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    if importlib.util.find_spec("opentelemetry.sdk") is None:
        # Nobody can receive the spans, and making them is a quarter of a small call.
        server.middleware.clear()
    return server


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=_ANNOTATIONS,
    )


async def _call(toolbox: Toolbox, context: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
    try:
        answer = await toolbox.call(
            call.name, call.arguments or {}, progress=context.session.report_progress, principal=_principal(context)
        )
        return _result(answer)
    except Exception:
        # On 2025 connections the SDK would send the exception's own text to the client.
        LOGGER.exception("the toolbox failed on %s", call.name)
        error = InternalError("The gateway failed on this call.", suggestion="Try again; the server's log has details.")
        return _failure(call.name, error)


def _failure(tool: str, error: DragomanError) -> types.CallToolResult:
    text = json.dumps({"error": error.as_dict(), "tool_name": tool}, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _result(answer: Answer) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=answer.text)] if answer.text else [],
        structured_content=None if answer.is_error else answer.structured,
        is_error=answer.is_error,
        _meta=answer.meta or None,
    )


def _principal(context: Context) -> Principal:
    if context.request is None:
        return Principal()
    principal: Principal = context.request.scope[PRINCIPAL]
    return principal
