"""Telling clients what has changed: on the streams of 2026-07-28, and as notifications over stdio before it.

Over HTTP nothing is kept between the requests of a client of 2025, so there it is told nothing, and none is promised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.subscriptions import (
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from dragoman.tools.surfaces import Change

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from dragoman.kept import Owner
    from dragoman.model import Principal
    from dragoman.tools.surfaces import Backlog, Surfaces

LOGGER = logging.getLogger("dragoman.mcp")
MAX_ADDRESSES = 100
"""Resources that one client may listen to."""

Context = ServerRequestContext[Any, Any]
_listening: ContextVar[Owner | None] = ContextVar("listening", default=None)
"""Who begins to listen: the SDK hands no context to what it subscribes to."""


class _Bus:
    """The changes as the SDK's events."""

    def __init__(self, surfaces: Surfaces) -> None:
        self._surfaces = surfaces

    async def publish(self, event: ServerEvent) -> None:
        raise NotImplementedError("changes go to `Changes`")

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        stack = ExitStack()
        stack.enter_context(self._surfaces.changes.listening(lambda change: listener(_event(change)), _listening.get()))
        return stack.close


def _event(change: Change) -> ServerEvent:
    match change.kind:
        case "tools":
            return ToolsListChanged()
        case "prompts":
            return PromptsListChanged()
        case "resources":
            return ResourcesListChanged()
        case "resource":
            return ResourceUpdated(uri=change.uri)


class Subscriptions:
    """Who listens to what. `who`: tells who sends a request."""

    def __init__(self, surfaces: Surfaces, who: Callable[[Context], Principal]) -> None:
        self._surfaces = surfaces
        self._who = who
        self._streams = ListenHandler(_Bus(surfaces))

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer `subscriptions/listen`: what the caller may not read is not promised."""
        asked = params.notifications.resource_subscriptions or []
        principal = self._who(context)
        may = [uri for uri in dict.fromkeys(asked) if self._surfaces.may_read(uri, principal)][:MAX_ADDRESSES]
        promised = params.notifications.model_copy(update={"resource_subscriptions": may or None})
        _listening.set(principal.identity)
        with self._surfaces.changes.watching(may):
            return await self._streams(context, params.model_copy(update={"notifications": promised}))

    def close(self) -> None:
        """End every stream and say so."""
        self._streams.close()

    def serve_connection(self, server: Server[Any], backlog: Backlog | None = None) -> None:
        """Let a server that has one connection tell it what changes before 2026-07-28, too.

        `backlog`: it notes the changes of this connection, some of which may have come already.
        """
        connection = _Connection(self._surfaces, self._who, backlog)
        server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, connection.subscribe)
        server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, connection.unsubscribe)
        server.add_notification_handler("notifications/initialized", types.NotificationParams, connection.begin)


class _Connection:
    """The client of one connection before 2026-07-28, and the resources it listens to."""

    def __init__(self, surfaces: Surfaces, who: Callable[[Context], Principal], backlog: Backlog | None = None) -> None:
        self._surfaces = surfaces
        self._who = who
        self._backlog = backlog
        self._addresses: set[str] = set()
        self._sending: set[asyncio.Task[None]] = set()
        self._session: ServerSession | None = None
        self._listening = ExitStack()

    async def begin(self, context: Context, _: types.NotificationParams) -> None:
        """Tell this connection from now on."""
        if self._session is not None:
            return
        self._session = context.session
        if self._backlog is not None:
            self._backlog.deliver_to(self._note)
        else:
            # As long as the process: a connection over stdio ends with it.
            owner = self._who(context).identity
            self._listening.enter_context(self._surfaces.changes.listening(self._note, owner))

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Answer `resources/subscribe`."""
        uri = str(params.uri)
        if not self._surfaces.may_read(uri, self._who(context)):
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri[:2000]})
        if uri not in self._addresses and len(self._addresses) < MAX_ADDRESSES:
            self._addresses.add(uri)
            self._surfaces.changes.watch(uri)
        return types.EmptyResult()

    async def unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Answer `resources/unsubscribe`."""
        uri = str(params.uri)
        if uri in self._addresses:
            self._addresses.discard(uri)
            self._surfaces.changes.leave(uri)
        return types.EmptyResult()

    def _note(self, change: Change) -> None:
        if change.kind != "resource" or change.uri in self._addresses:
            task = asyncio.create_task(self._send(change))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, change: Change) -> None:
        session = self._session
        assert session is not None  # nothing is noted before
        sends: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "tools": session.send_tool_list_changed,
            "prompts": session.send_prompt_list_changed,
            "resources": session.send_resource_list_changed,
            "resource": lambda: session.send_resource_updated(change.uri),
        }
        try:
            await sends[change.kind]()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            LOGGER.debug("the client that listened for a change is gone")
