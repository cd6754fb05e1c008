"""Notifies clients of changes: on the streams of 2026-07-28, and with notifications over stdio before it.

Over HTTP nothing is kept between the requests of a 2025 client, so there it is not notified, and no notification is
promised.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
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

from dragoman.errors import DragomanError
from dragoman.mcp.refusals import Refused
from dragoman.model import LOCAL
from dragoman.tools.surfaces import Change, uris

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from dragoman.kept import Owner
    from dragoman.model import Principal
    from dragoman.tools.surfaces import Backlog, Surfaces

LOGGER = logging.getLogger("dragoman.mcp")
MAX_ADDRESSES = 100
"""The number of resources that one client may listen to. Of more, the first ones count."""

MAX_STREAMS = 1024
MAX_WAITING = 1024
"""The number of changes that wait for one client. Beyond it, its stream ends."""
CHECK = 2.0
"""Seconds between two checks whether a client may still listen. It is also checked before every notification."""

_LISTS: Mapping[str, Callable[[], ServerEvent]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}
Context = ServerRequestContext[Any, Any]
Again = Callable[[Context], Awaitable["Principal"]]
"""Returns the sender of a request, by the present configuration. Raises `Refused`."""


class _Stream:
    """One client that listens, as long as it may: the bus of its own handler.

    It ends when the client would no longer be admitted, when a database it saw no longer exists for it, or when it may
    no longer read one of its `addresses`, which are kept under those of their schemas: one check and one change concern
    all addresses of a schema. `again`: returns the client, by the present configuration. Raises `Refused`.
    """

    def __init__(
        self,
        surfaces: Surfaces,
        principal: Principal,
        addresses: Mapping[str, Collection[str]],
        again: Callable[[], Awaitable[Principal]],
    ) -> None:
        self._surfaces = surfaces
        self._owner: Owner = principal.identity
        self._addresses = addresses
        self._seen = surfaces.databases(principal)
        self._again = again
        self._noted = asyncio.Queue[Change](MAX_WAITING)
        self.handler = ListenHandler(self)

    async def publish(self, event: ServerEvent) -> None:
        raise NotImplementedError("changes go to `Changes`")

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Notify `listener` of changes until the returned function is called."""
        stack = ExitStack()
        stack.enter_context(self._surfaces.changes.listening(self._note, self._owner))
        stack.callback(asyncio.create_task(self._tell(listener)).cancel)
        return stack.close

    def _note(self, change: Change) -> None:
        if change.kind == "resource" and change.uri not in self._addresses:
            return
        try:
            self._noted.put_nowait(change)
        except asyncio.QueueFull:
            self.handler.close()

    async def _tell(self, listener: Callable[[ServerEvent], None]) -> None:
        try:
            while True:
                changes = await self._next()
                if not await self._may_listen():
                    LOGGER.info("a stream of changes ends: its client may not listen any more")
                    return
                for event in self._events(changes):
                    listener(event)
        finally:
            self.handler.close()

    async def _next(self) -> Collection[Change]:
        """Return the next changes, each once; none when it is time to check."""
        try:
            async with asyncio.timeout(CHECK):
                changes = {await self._noted.get(): None}
        except TimeoutError:
            return ()
        while not self._noted.empty():
            changes[self._noted.get_nowait()] = None
        return changes

    def _events(self, changes: Collection[Change]) -> Iterator[ServerEvent]:
        for change in changes:
            if change.kind == "resource":
                yield from (ResourceUpdated(uri=uri) for uri in self._addresses[change.uri])
            else:
                yield _LISTS[change.kind]()

    async def _may_listen(self) -> bool:
        try:
            principal = await self._again()
            return (
                principal.identity == self._owner
                and self._seen <= self._surfaces.databases(principal)
                and all(self._surfaces.may_read(uri, principal) for uri in self._addresses)
            )
        except (Refused, DragomanError):
            return False


class Subscriptions:
    """The clients that listen, and what they listen to. `who`: returns the sender of a request.

    `again`: returns it by the present configuration; None: it never changes.
    """

    def __init__(self, surfaces: Surfaces, who: Callable[[Context], Principal], again: Again | None = None) -> None:
        self._surfaces = surfaces
        self._who = who
        self._again = again
        self._streams: set[ListenHandler] = set()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer `subscriptions/listen`. Nothing that the caller may not read is promised."""
        asked = params.notifications.resource_subscriptions or []
        principal = self._who(context)
        first = islice(dict.fromkeys(asked), MAX_ADDRESSES)
        may = [uri for uri in first if self._surfaces.may_read(uri, principal)]
        promised = params.notifications.model_copy(update={"resource_subscriptions": may or None})
        if len(self._streams) >= MAX_STREAMS:
            raise MCPError(types.INTERNAL_ERROR, "Subscription limit reached")
        addresses = _group(may)
        handler = _Stream(self._surfaces, principal, addresses, lambda: self._ask(context)).handler
        self._streams.add(handler)
        try:
            with self._surfaces.changes.watching(addresses):
                return await handler(context, params.model_copy(update={"notifications": promised}))
        finally:
            self._streams.discard(handler)

    async def _ask(self, context: Context) -> Principal:
        """Return the sender of a request, by the present configuration."""
        return self._who(context) if self._again is None else await self._again(context)

    def close(self) -> None:
        """End every stream, and notify its client."""
        for handler in tuple(self._streams):
            handler.close()

    def serve_connection(self, server: Server[Any], backlog: Backlog | None = None) -> None:
        """Notify the client of a server with a single connection before 2026-07-28, too.

        `backlog`: records the changes of this connection, some of which may have happened already.
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
        self._principal = LOCAL
        self._listening = ExitStack()

    async def begin(self, context: Context, _: types.NotificationParams) -> None:
        """Notify this connection from now on."""
        if self._session is not None:
            return
        self._session, self._principal = context.session, self._who(context)
        if self._backlog is not None:
            self._backlog.deliver_to(self._note)
        else:
            # As long as the process, since a connection over stdio ends with it.
            self._listening.enter_context(self._surfaces.changes.listening(self._note, self._principal.identity))

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
        for each in self._parts(change):
            task = asyncio.create_task(self._send(each))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    def _parts(self, change: Change) -> Collection[Change]:
        """Return what the client hears of a change: one change for each address of its own."""
        if change.kind != "resource":
            return (change,)
        if not self._surfaces.may_read(change.uri, self._principal):
            return ()
        return [replace(change, uri=uri) for uri in self._addresses if uris.whole(uri) == change.uri]

    async def _send(self, change: Change) -> None:
        session = self._session
        assert session is not None  # nothing is recorded before
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


def _group(addresses: Collection[str]) -> Mapping[str, list[str]]:
    """Return addresses by those of their schemas."""
    found = defaultdict[str, list[str]](list)
    for uri in addresses:
        found[uris.whole(uri)].append(uri)
    return found
