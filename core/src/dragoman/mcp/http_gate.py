"""The gate over HTTP: plain calls of tools are answered here, and the SDK's application answers any other request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from dragoman._version import VERSION
from dragoman.mcp import answers
from dragoman.mcp.connections import STATE
from dragoman.mcp.gate import Call, Gate, origin_of
from dragoman.mcp.handshake import HANDSHAKE_VERSIONS, MODERN_VERSION, NAME
from dragoman.mcp.identity import PRINCIPAL

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from dragoman.mcp.calls import Calls
    from dragoman.mcp.connections import Connection
    from dragoman.model import Principal
    from dragoman.telemetry import Origin
    from dragoman.tools.context import Progress

LOGGER = logging.getLogger("dragoman.mcp")

SILENCE = 15.0
"""Seconds until a silent call is kept alive by a stream with regular comments."""

_UNNAMED_VERSION = HANDSHAKE_VERSIONS[0]
"""Stands for the version of a client that sends none. All versions of the handshake answer calls alike."""
_JSON_TYPES = (b"application/json", b"application/json; charset=utf-8", b"application/json;charset=utf-8")
_WANTED = {"application/json", "text/event-stream"}
_REMEMBERED = 256
_STAMP = {"name": NAME, "version": VERSION}
_INTERNAL = -32603
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]


class HttpGate:
    """Stands between the access middleware, which admits requests, and the SDK's application.

    The middleware has checked Host, Origin, token and size, and read the body.
    """

    def __init__(self, app: ASGIApp, gate: Gate, calls: Calls, path: str) -> None:
        self._app = app
        self._gate = gate
        self._calls = calls
        self._path = path
        self._accepted: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        version = self._version(scope)
        if version is None:
            await self._app(scope, receive, send)
            return
        messages, body = await _body(receive)
        call = None if body is None else self._call(scope, version, body)
        if call is None or not self._calls.takes(call.name, scope[PRINCIPAL]):
            await self._app(scope, _replaying(messages, receive), send)
        else:
            linked = next((value for name, value in scope["headers"] if name == b"traceparent"), b"").decode("latin-1")
            origin = origin_of(call.trace, call.request, version, linked)
            await self._answer(call, origin, scope[PRINCIPAL], _Departure(scope, receive), _Reply(send))

    def _version(self, scope: Scope) -> str | None:
        """Return the version of the protocol, if the headers are those of a plain call; else None."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self._path:
            return None
        headers = dict[bytes, bytes](scope["headers"])
        if len(headers) != len(scope["headers"]) or not self._plain(headers):
            return None
        version = headers.get(b"mcp-protocol-version", _UNNAMED_VERSION.encode()).decode("latin-1")
        if version == MODERN_VERSION:
            return version if headers.get(b"mcp-method") == b"tools/call" else None
        return version if version in HANDSHAKE_VERSIONS else None

    def _plain(self, headers: dict[bytes, bytes]) -> bool:
        return (
            headers.get(b"content-type") in _JSON_TYPES
            and self._accepts(headers.get(b"accept", b""))
            and not any(name.startswith(b"mcp-param-") for name in headers)
        )

    def _accepts(self, header: bytes) -> bool:
        if header in self._accepted:
            return True
        named = {part.split(";")[0].strip().lower() for part in header.decode("latin-1").split(",")}
        if not named >= _WANTED:
            return False
        if len(self._accepted) < _REMEMBERED:
            self._accepted.add(header)
        return True

    def _call(self, scope: Scope, version: str, body: bytes) -> Call | None:
        call = self._gate.call(body, version)
        if call is None or version != MODERN_VERSION:
            return call
        named = next((value for name, value in scope["headers"] if name == b"mcp-name"), None)
        return call if named == call.name.encode() else None

    async def _answer(
        self, call: Call, origin: Origin, principal: Principal, departure: _Departure, reply: _Reply
    ) -> None:
        """Answer a call. If the client leaves meanwhile, it is cancelled, and an empty answer reaches nobody."""
        timer = asyncio.get_running_loop().call_later(SILENCE, reply.keep_alive)
        try:
            made = await self._calls.call(
                call.name, call.arguments, progress=_progress(call, reply), principal=principal, origin=origin
            )
            message = answers.message(call.request, made, _STAMP if origin.version == MODERN_VERSION else None)
        except asyncio.CancelledError:
            if not departure.explains():
                raise
            message = b""  # uvicorn expects an answer if the client has sent further requests
        except Exception:
            LOGGER.exception("a call of %s could not be answered", call.name)
            message = answers.error(call.request, _INTERNAL, "Internal server error")
        finally:
            departure.forget()
            timer.cancel()
            reply.settle()
        await reply.finish(message)


class _Departure:
    """Cancels the task that serves a request when its client leaves, until `forget` is called.

    If the connection is one of ours, it reports this. Otherwise a task waits for ASGI's message, which costs a tenth of
    a short call.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._happened = False
        self._connection: Connection | None = scope.get("state", {}).get(STATE)
        self._watch = None if self._connection is not None else asyncio.create_task(self._wait(receive))
        if self._connection is not None:
            self._connection.notify(self._cancel)

    async def _wait(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._cancel()

    def _cancel(self) -> None:
        self._happened = True
        self._task.cancel()

    def explains(self) -> bool:
        """Return whether the task was cancelled because of it, and by nothing else."""
        return self._happened and self._task.uncancel() == 0

    def forget(self) -> None:
        """Cancel nothing from now on."""
        if self._connection is not None:
            self._connection.notify(None)
        if self._watch is not None:
            self._watch.cancel()


class _Reply:
    """The response to one call: one JSON document, or a stream once there is something to send before the answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._streaming = False
        self._sending = asyncio.Lock()
        self._alive: asyncio.Task[None] | None = None

    async def event(self, data: bytes) -> None:
        """Send a message that is not the answer."""
        async with self._sending:
            await self._stream(b"event: message\r\ndata: " + data + b"\r\n\r\n", more=True)

    async def finish(self, data: bytes) -> None:
        """Send the answer."""
        async with self._sending:
            if self._streaming:
                await self._stream(b"event: message\r\ndata: " + data + b"\r\n\r\n", more=False)
                return
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._send({"type": "http.response.body", "body": data})

    async def _stream(self, data: bytes, *, more: bool) -> None:
        if not self._streaming:
            self._streaming = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    def keep_alive(self) -> None:
        """Send a comment now, and again whenever the call has been silent for long."""
        self._alive = asyncio.create_task(self._ping())

    async def _ping(self) -> None:
        while True:
            async with self._sending:
                await self._stream(b": ping\r\n\r\n", more=True)
            await asyncio.sleep(SILENCE)

    def settle(self) -> None:
        """Send no more comments."""
        if self._alive is not None:
            self._alive.cancel()


async def _body(receive: Receive) -> tuple[list[Message], bytes | None]:
    """Return the messages received, and the whole body in them; None if the client left meanwhile."""
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False):
        messages.append(await receive())
    if messages[-1]["type"] != "http.request":
        return messages, None
    return messages, b"".join(message.get("body", b"") for message in messages)


def _replaying(messages: list[Message], receive: Receive) -> Receive:
    """Return a `receive` that returns the received messages again, once, and then goes on."""
    left = messages[::-1]

    async def replay() -> MutableMapping[str, Any]:
        return left.pop() if left else await receive()

    return replay


def _progress(call: Call, reply: _Reply) -> Progress:
    async def report(done: float, total: float | None = None, words: str | None = None) -> None:
        if call.token is not None:
            await reply.event(answers.notification(call.token, done, total, words))

    return report
