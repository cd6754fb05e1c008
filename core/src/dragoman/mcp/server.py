"""The adapter between the MCP SDK and the toolbox: two handlers, and no exception passes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.caching import CacheHint
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_client_request
from pydantic import ValidationError

from dragoman._version import VERSION
from dragoman.mcp.calls import Calls
from dragoman.mcp.gate import origin_of, trace_of
from dragoman.mcp.handshake import CACHE_MS, CACHE_SCOPE, NAME, Handshake
from dragoman.mcp.identity import PRINCIPAL
from dragoman.model import LOCAL, Principal

if TYPE_CHECKING:
    from dragoman.telemetry import Origin
    from dragoman.tools import Answer, Toolbox

_CACHE = CacheHint(ttl_ms=CACHE_MS, scope=CACHE_SCOPE)

Context = ServerRequestContext[Any, Any]


def build(toolbox: Toolbox, calls: Calls | None = None, local: Principal = LOCAL) -> Server[Any]:
    """Return the MCP server of a toolbox, for both protocol eras; the transports run it.

    `local`: who calls where there is no HTTP request that says it.
    """
    running = calls or Calls(toolbox)
    tools = {tool.name: tool for tool in toolbox.tools}
    said = handshake(toolbox)
    listed = types.ListToolsResult.model_validate({"tools": said.tools}, by_name=False)

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return listed

    async def call_tool(context: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        if call.name not in tools:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {call.name[:100]}")
        progress, principal = context.session.report_progress, _principal(context, local)
        return _result(
            await running.call(
                call.name, call.arguments or {}, progress=progress, principal=principal, origin=_origin(context)
            )
        )

    server: Server[Any] = Server(
        NAME,
        version=said.identity["version"],
        instructions=said.instructions,
        cache_hints={"tools/list": _CACHE, "server/discover": _CACHE},
        # Without it every call over HTTP lists all tools again, to look for headers that mirror arguments.
        get_tool_input_schema=lambda name: tools[name].input_schema if name in tools else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # Its spans would be a quarter of a small call, and the gateway makes its own, which tell of the database too.
    server.middleware.clear()
    return server


def handshake(toolbox: Toolbox) -> Handshake:
    """Return what the server of a toolbox says of itself."""
    return Handshake(toolbox.tools, toolbox.instructions, VERSION)


def accepts(version: str, params: dict[str, Any]) -> bool:
    """Tell whether the SDK accepts these params of `tools/call` at a version of the protocol."""
    try:
        validate_client_request("tools/call", version, params)
        types.CallToolRequestParams.model_validate(params, by_name=False)
    except (ValidationError, ValueError, KeyError):
        return False
    return True


def _result(answer: Answer) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=answer.text)] if answer.text else [],
        structured_content=None if answer.is_error else answer.structured,
        is_error=answer.is_error,
        _meta=answer.meta or None,
    )


def _origin(context: Context) -> Origin:
    linked = None if context.request is None else context.request.headers.get("traceparent", "")
    return origin_of(trace_of(context.meta or {}), context.request_id, context.protocol_version, linked)


def _principal(context: Context, local: Principal) -> Principal:
    if context.request is None:
        return local
    principal: Principal = context.request.scope[PRINCIPAL]
    return principal
