"""Sessions of 2025-era HTTP clients: a name for each client, so that its cancellations end only its own calls.

In that era a client cancels with a notification in a request of its own. The server keeps nothing between requests, and
every client counts its requests from 0, so an id alone does not identify a call. A client that sends `initialize`
therefore gets a name that nobody can guess, and sends it with everything that follows. A cancellation reaches calls of
the same principal, the same session and the same id in this process, and nothing else. Without a session it reaches
nothing; closing the request ends the call in any case.

A name carries a checksum, so that every server knows the names that any server gave: sessions outlive the server. A
name that no server gave, or that has ended here, is answered with 404, as the specification says, and its client starts
again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import secrets
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
import msgspec
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.mcp.http_frames import replaying
from dragoman.mcp.identity import PRINCIPAL
from dragoman.mcp.refusals import Refused
from dragoman.model import Principal

HEADER = "mcp-session-id"
ENDED = 10_000
"""The number of ended sessions that are remembered. The oldest are dropped first."""

REQUEST_CANCELLED = -32800
_Identity = tuple[str, str, str]
_EARLY = 256
_EARLY_SECONDS = 10.0


class _Peek(msgspec.Struct):
    method: str = ""
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw()


class _Cancelled(msgspec.Struct):
    requestId: int | str


_PEEK = msgspec.json.Decoder(_Peek)
_CANCELLED = msgspec.json.Decoder(_Cancelled)
# Errors of decoding: not JSON or another shape, bytes that are not text, nesting beyond Python's stack.
_NO_MESSAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class _Key:
    """The key of a call. `"7"` and `7` are the same id, as everywhere in the SDK."""

    principal: _Identity
    session: str
    request: str


@dataclass(slots=True)
class _Running:
    scopes: dict[_Key, list[anyio.CancelScope]] = field(default_factory=dict[_Key, list[anyio.CancelScope]])
    early: dict[_Key, float] = field(default_factory=dict[_Key, float])

    @contextmanager
    def enter(self, key: _Key) -> Generator[anyio.CancelScope]:
        with anyio.CancelScope() as scope:
            self.scopes.setdefault(key, []).append(scope)
            if _now() < self.early.pop(key, -math.inf) + _EARLY_SECONDS:
                scope.cancel()
            try:
                yield scope
            finally:
                self.scopes[key].remove(scope)
                if not self.scopes[key]:
                    del self.scopes[key]

    def cancel(self, key: _Key) -> None:
        if key not in self.scopes:
            # It may overtake its call, since they come over different connections.
            self.early[key] = _now()
            if len(self.early) > _EARLY:
                del self.early[next(iter(self.early))]
        for scope in self.scopes.get(key, ()):
            scope.cancel()

    def end(self, principal: _Identity, session: str) -> None:
        for key, scopes in self.scopes.items():
            if (key.principal, key.session) == (principal, session):
                for scope in scopes:
                    scope.cancel()


class Sessions:
    """Names sessions and ends the calls that their clients cancel.

    It runs inside the middleware, since it needs whole bodies.
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path
        self._running = _Running()
        self._ended: OrderedDict[tuple[_Identity, str], None] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
        elif scope["method"] == "DELETE":
            await self._delete(scope)(scope, receive, send)
        elif _is_legacy(scope):
            await self._post(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _delete(self, scope: Scope) -> Response:
        session = self._session(scope)
        if session is None or not _is_legacy(scope):
            return Response("Method Not Allowed", 405, {"Allow": "POST"})
        self._running.end(_principal(scope), session)
        self._ended[_principal(scope), session] = None
        if len(self._ended) > ENDED:
            self._ended.popitem(last=False)
        return Response(status_code=204)

    def _session(self, scope: Scope) -> str | None:
        """Return the session's name, or None for a request without one. Raises `Refused` for an unknown one."""
        name = Headers(scope=scope).get(HEADER)
        if name is not None and (not _is_given(name) or (_principal(scope), name) in self._ended):
            raise Refused(404, "session_not_found", "There is no such session; send initialize without its name.")
        return name

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        receive = replaying(first, receive)
        message = _peek(first.get("body", b""))
        if message.method == "initialize":
            await self._app(scope, receive, _naming(send))
        elif (session := self._session(scope)) is None or not message.method:
            await self._app(scope, receive, send)
        elif message.id is not None:
            key = _Key(_principal(scope), session, str(message.id))
            await self._run(key, message.id, scope, receive, send)
        else:
            if message.method == "notifications/cancelled" and (request := _request_of(message)) is not None:
                self._running.cancel(_Key(_principal(scope), session, request))
            await self._app(scope, receive, send)

    async def _run(self, key: _Key, request: int | str, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        with self._running.enter(key) as call:
            await self._app(scope, receive, answer.send)
        if call.cancelled_caught:
            await answer.end(request)


class _Answer:
    """An answer that may have to end before it is complete."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._streams: bool | None = None
        self._complete = False

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self._streams = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
        await self._send(message)
        self._complete = message["type"] == "http.response.body" and not message.get("more_body", False)

    async def end(self, request: int | str) -> None:
        """Answer that the request was cancelled: clients of this era wait for an answer before they drop a request."""
        if self._complete:
            return
        error = {"code": REQUEST_CANCELLED, "message": "Request cancelled"}
        body = json.dumps({"jsonrpc": "2.0", "id": request, "error": error}, separators=(",", ":")).encode()
        if self._streams is None:
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        elif self._streams:
            body = b"event: message\r\ndata: " + body + b"\r\n\r\n"
        else:
            return  # A body with a length is on its way, and cannot be replaced.
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def _naming(send: Send) -> Send:
    async def naming(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            MutableHeaders(scope=message)[HEADER] = _new_name()
        await send(message)

    return naming


def _is_legacy(scope: Scope) -> bool:
    version = Headers(scope=scope).get("mcp-protocol-version")
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


def _new_name() -> str:
    """Return a name of 144 random bits and their checksum."""
    random = secrets.token_urlsafe(18)
    return random + _checksum(random)


def _is_given(name: str) -> bool:
    return len(name) == 32 and _checksum(name[:24]) == name[24:]


def _checksum(random: str) -> str:
    return hashlib.sha256(f"dragoman session {random}".encode()).hexdigest()[:8]


def _principal(scope: Scope) -> _Identity:
    principal: Principal = scope[PRINCIPAL]
    return principal.identity


def _peek(body: bytes) -> _Peek:
    try:
        return _PEEK.decode(body)
    except _NO_MESSAGE:
        return _Peek()


def _request_of(message: _Peek) -> str | None:
    try:
        return str(_CANCELLED.decode(message.params).requestId)
    except _NO_MESSAGE:
        return None


def _now() -> float:
    return asyncio.get_running_loop().time()
