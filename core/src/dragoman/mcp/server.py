"""The adapter between the MCP SDK and the toolbox: two handlers, and no exception passes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_client_request
from pydantic import ValidationError

from dragoman._version import VERSION
from dragoman.mcp.calls import Calls
from dragoman.mcp.gate import origin_of, trace_of
from dragoman.mcp.handshake import BRIEF_MS, CACHE_MS, CACHE_SCOPE, NAME, Handshake, describe
from dragoman.mcp.identity import PRINCIPAL
from dragoman.mcp.subscriptions import Again, Subscriptions
from dragoman.mcp.surfaces import SurfaceHandlers, translate_errors
from dragoman.model import LOCAL, Principal

if TYPE_CHECKING:
    from dragoman.telemetry import Origin
    from dragoman.tools import Answer, Toolbox
    from dragoman.tools.spec import Tool
    from dragoman.tools.surfaces import Backlog

_CACHE = CacheHint(ttl_ms=CACHE_MS, scope=CACHE_SCOPE)
_BRIEF = CacheHint(ttl_ms=BRIEF_MS, scope=CACHE_SCOPE)
_LISTS: tuple[CacheableMethod, ...] = ("resources/list", "resources/templates/list", "resources/read", "prompts/list")

Context = ServerRequestContext[Any, Any]


def build(
    toolbox: Toolbox,
    calls: Calls | None = None,
    local: Principal | None = LOCAL,
    backlog: Backlog | None = None,
    again: Again | None = None,
) -> Server[Any]:
    """Return the MCP server of a toolbox, for both protocol eras. The transports run it.

    - `local`: the caller if no HTTP request names one; None in an HTTP server, whose callers differ.
    - `backlog`: as in `Subscriptions.serve_connection`.
    - `again`: as in `Subscriptions`.
    """
    running = calls or Calls(toolbox)
    said = handshake(toolbox, local)
    listing = _Listing(toolbox)

    async def list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        principal = _principal(context, local)
        whole, hidden = listing.result(principal), await toolbox.hidden_tools(principal)
        if not hidden:
            return whole
        return whole.model_copy(update={"tools": [tool for tool in whole.tools if tool.name not in hidden]})

    async def call_tool(context: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        progress, principal = context.session.report_progress, _principal(context, local)
        if not await toolbox.knows(call.name, principal):
            with translate_errors("tools/call"):
                await running.refuse(call.name, principal, _origin(context))
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {call.name[:100]}")
        return _result(
            await running.call(
                call.name, call.arguments or {}, progress=progress, principal=principal, origin=_origin(context)
            )
        )

    surfaces = SurfaceHandlers(toolbox.surfaces, lambda context: _principal(context, local))
    subscriptions = Subscriptions(toolbox.surfaces, lambda context: _principal(context, local), again)
    running.add_stream(subscriptions.close)
    server: Server[Any] = Server(
        NAME,
        version=said.identity["version"],
        instructions=said.instructions,
        cache_hints={"tools/list": _CACHE, "server/discover": _CACHE, **dict.fromkeys(_LISTS, _BRIEF)},
        # Otherwise every call over HTTP lists all tools again, to look for headers that mirror arguments.
        get_tool_input_schema=listing.schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=surfaces.list_resources,
        on_list_resource_templates=surfaces.list_templates,
        on_read_resource=surfaces.read_resource,
        on_list_prompts=surfaces.list_prompts,
        on_get_prompt=surfaces.get_prompt,
        on_completion=surfaces.complete,
        on_subscriptions_listen=subscriptions.listen,
    )
    # Its spans would take a quarter of a small call, and the gateway makes its own, which include the database.
    server.middleware.clear()
    if local is not None:
        subscriptions.serve_connection(server, backlog)
    return server


def options(server: Server[Any]) -> InitializationOptions:
    """Return the description of one connection's server before 2026-07-28."""
    return server.create_initialization_options(NotificationOptions(True, True, True))


class _Listing:
    """The tools of a toolbox as clients list them, built again when a reload has changed them."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._of: object = None
        self._tools: dict[str, Tool] = {}
        self._results: dict[int, tuple[Sequence[Tool], types.ListToolsResult]] = {}

    def schema(self, name: str) -> dict[str, Any] | None:
        """Return the schema of a tool's arguments; None if the tool does not exist."""
        self._refresh()
        tool = self._tools.get(name)
        return None if tool is None else tool.input_schema

    def result(self, principal: Principal) -> types.ListToolsResult:
        """Return the answer to `tools/list` for a principal."""
        self._refresh()
        shown = self._toolbox.show_to(principal).tools
        key = id(shown)
        if key not in self._results:
            told = {"tools": [describe(tool) for tool in shown]}
            # The tools are kept with the result, so that no other tools get the same identity.
            self._results[key] = shown, types.ListToolsResult.model_validate(told, by_name=False)
        return self._results[key][1]

    def _refresh(self) -> None:
        if self._of is not self._toolbox.tools:
            self._of = self._toolbox.tools
            self._tools = {tool.name: tool for tool in self._toolbox.tools}
            self._results.clear()


def handshake(toolbox: Toolbox, principal: Principal | None = None) -> Handshake:
    """Return the description of a toolbox's server, for one principal or for anybody."""
    if principal is None:
        return Handshake(toolbox.tools, toolbox.instructions, VERSION)
    seen = toolbox.show_to(principal)
    return Handshake(seen.tools, seen.instructions, VERSION)


def accepts(version: str, params: dict[str, Any]) -> bool:
    """Return whether the SDK accepts these params of `tools/call` at a version of the protocol."""
    try:
        validate_client_request("tools/call", version, params)
        types.CallToolRequestParams.model_validate(params, by_name=False)
    except (ValidationError, ValueError, KeyError):
        return False
    return True


def _result(answer: Answer) -> types.CallToolResult:
    links = [
        types.ResourceLink(uri=each.uri, name=each.name, mime_type=each.mime, size=each.size) for each in answer.links
    ]
    return types.CallToolResult(
        content=[*([types.TextContent(text=answer.text)] if answer.text else []), *links],
        structured_content=None if answer.is_error else answer.structured,
        is_error=answer.is_error,
        _meta=answer.meta or None,
    )


def _origin(context: Context) -> Origin:
    linked = None if context.request is None else context.request.headers.get("traceparent", "")
    return origin_of(trace_of(context.meta or {}), context.request_id, context.protocol_version, linked)


def _principal(context: Context, local: Principal | None) -> Principal:
    if context.request is None:
        return local or LOCAL
    principal: Principal = context.request.scope[PRINCIPAL]
    return principal
