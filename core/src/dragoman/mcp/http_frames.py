"""Refuses HTTP requests with an invalid id, since the SDK takes them for notifications and never answers."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.mcp.frames import find_nameless


class NamelessRequests:
    """Wraps the SDK's application, inside the middleware: bodies arrive whole, in one message."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        message = await receive()
        fault = find_nameless(message.get("body", b""))
        if fault is None:
            await self._app(scope, replaying(message, receive), send)
        else:
            await Response(fault.answer(), 400, media_type="application/json")(scope, receive, send)


def replaying(first: Message, receive: Receive) -> Receive:
    """Return a `receive` that returns `first` again, once, and then goes on."""
    rest = [first]

    async def replay() -> Message:
        return rest.pop() if rest else await receive()

    return replay
