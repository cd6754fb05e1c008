"""The entrance of the HTTP server: an ASGI middleware that every request passes, whatever its path.

It checks, in this order: framing, Host, Origin, preflight, path, method, caller, size. Then it reads the body, bounded
in bytes and seconds. The inner application gets only admitted requests, with their whole body in one message, and a
`Principal` in the scope. Every refusal is one log line with the peer's address.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.mcp.connections import STATE, Limits
from dragoman.mcp.identity import PRINCIPAL, UNCHECKED, Authenticate
from dragoman.mcp.origins import Origins, allowing, preflight
from dragoman.mcp.refusals import RefusalLog, Refused
from dragoman.mcp.values import MOST_VALUES, has_too_many_values
from dragoman.turns import Turns

MAX_BODY = 1024 * 1024
"""The most bytes of one request."""

MAX_BODIES = 64 * MAX_BODY
"""The most bytes of all requests whose bodies are being read. A quarter of them may be one caller's."""

MAX_HEAD = 64 * 1024
"""The most bytes of one request's headers."""

BEGINNINGS = 8
"""The requests that begin in one turn of the event loop. The last place is not for a caller who has others."""

LARGE = 64 * 1024
"""The bytes of a body above which it takes milliseconds to parse it."""

_AROUND = len(b": \r\n")

# Sent twice, these would mean one thing here and another to a proxy before us.
_ONCE = frozenset(
    b"host origin authorization content-length transfer-encoding content-type "
    b"mcp-session-id mcp-protocol-version mcp-method mcp-name x-forwarded-user x-forwarded-groups".split()
)
_Once = Mapping[bytes, bytes]
"""The headers of one request that may be sent only once, by name."""
_LAST: Mapping[str, str] = {"Connection": "close"}
_LATER: Mapping[str, str] = {**_LAST, "Retry-After": "5"}
_SOON: Mapping[str, str] = {"Retry-After": "1"}


class Peer(Protocol):
    """What the middleware needs from a connection; see `connections.Connection`."""

    def serving(self) -> AbstractContextManager[None]:
        """Serve one request."""
        ...

    def let_in(self, caller: Hashable) -> bool:
        """Record that a caller sent a whole request, and return whether it may be served."""
        ...

    def discard_body(self) -> None:
        """Record that the rest of a body is not read, and nothing that follows it."""


class _Anywhere:
    """Replaces the connection if the server is not ours, as in tests of only the application."""

    def serving(self) -> AbstractContextManager[None]:
        return nullcontext()

    def let_in(self, caller: Hashable) -> bool:
        return True

    def discard_body(self) -> None:
        pass


class _Arriving:
    """The bytes of bodies that are being read, of all callers and of each: a body may take its time to arrive."""

    def __init__(self) -> None:
        self._bytes = 0
        self._own = Counter[Hashable]()

    def add(self, caller: Hashable, size: int) -> None:
        """Count bytes of a caller. Raises `Refused` if there are too many of them, or too many of all callers."""
        self._bytes += size
        self._own[caller] += size
        if self._own[caller] > MAX_BODIES // 4:
            raise Refused(429, "too_many_bodies", "You send too many requests at once. Try again.", _SOON)
        if self._bytes > MAX_BODIES:
            raise Refused(503, "busy", "Too many requests at once. Try again.", _SOON)

    def remove(self, caller: Hashable, size: int) -> None:
        """Count bytes of a caller no more: their request was read or refused."""
        self._bytes -= size
        self._own[caller] -= size
        if not self._own[caller]:
            del self._own[caller]


class AccessMiddleware:
    """Refuses what must not be admitted, and passes the rest to `app`.

    `closed` and `open`: the existing paths, with their methods. Closed ones admit only known callers.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        closed: Mapping[str, Collection[str]],
        open: Mapping[str, Collection[str]],
        origins: Origins,
        authenticate: Authenticate,
        limits: Limits,
        log: RefusalLog,
    ) -> None:
        self._app = app
        self._closed = closed
        self._methods = {**open, **closed}
        self._origins = origins
        self._authenticate = authenticate
        self._limits = limits
        self._log = log
        self._arriving = _Arriving()
        self._large = asyncio.Lock()
        self._beginnings = Turns(BEGINNINGS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        peer: Peer = scope.get("state", {}).get(STATE) or _Anywhere()
        with peer.serving():
            await self._serve(scope, receive, send, peer)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, peer: Peer) -> None:
        try:
            headers = _check_framing(scope)
            self._origins.check_host(scope, headers[b"host"])
            origin = self._origins.check_origin(headers.get(b"origin"))
        except Refused as refused:
            await self._refuse(refused, scope, receive, send, peer)
            return
        if origin is not None:
            send = allowing(origin, send)
        try:
            methods = self._methods_of(scope)
            if origin is not None and _is_preflight(scope):
                if _announces_body(headers):
                    raise _too_large(0)
                await preflight(Headers(scope=scope), methods)(scope, receive, send)
                return
            _check_method(scope, methods)
            await self._admit(scope, headers)
            whole = await self._with_body(scope, receive, headers)
        except Refused as refused:
            await self._refuse(refused, scope, receive, send, peer)
            return
        if whole is None:
            return
        try:
            if PRINCIPAL in scope and not peer.let_in(scope[PRINCIPAL].identity):
                raise Refused(429, "too_many_connections", "You have too many connections. End some.", _LATER)
            await self._begin(scope)
            await self._app(scope, whole, send)
        except Refused as refused:
            await self._refuse(refused, scope, None, send, peer)

    async def _begin(self, scope: Scope) -> None:
        """Wait until it is this caller's turn to begin a request. A few begin in each turn of the event loop.

        A call takes several turns. If all requests of one caller began in one, each turn would be as long as all of
        them together, for the calls of others too.
        """
        caller = scope[PRINCIPAL].identity if PRINCIPAL in scope else _address(scope)
        await self._beginnings.wait(caller)
        asyncio.get_running_loop().call_soon(self._beginnings.give_back, caller)

    async def _refuse(self, refused: Refused, scope: Scope, receive: Receive | None, send: Send, peer: Peer) -> None:
        """Answer with a refusal. `receive`: None if the body was read.

        A proxy may not send the rest of a body that was refused, and send another caller's request next. So an answer
        that leaves before the body has arrived is the connection's last one.
        """
        last = receive is not None and not await _has_arrived(dict(scope["headers"]), receive)
        if last:
            peer.discard_body()
        # Every client of the 2025 era requests a stream with GET, so that is not worth a line.
        if refused.status != 405:
            fields = {"status": refused.status, "method": scope["method"][:20], "path": scope["path"][:100]}
            self._log.note(_address(scope), refused.code, **fields)
        await refused.response(_LAST if last else {})(scope, receive or _nothing, send)

    def _methods_of(self, scope: Scope) -> Collection[str]:
        if len(scope["path"]) > 1:
            scope["path"] = scope["path"].rstrip("/")
        methods = self._methods.get(scope["path"])
        if methods is None:
            raise Refused(404, "not_found", f"There is nothing here; see {', '.join(self._methods)}.")
        return methods

    async def _admit(self, scope: Scope, headers: _Once) -> None:
        """Put the caller into the scope. Open paths need no caller, but a wrong token is recorded."""
        try:
            scope[PRINCIPAL] = await self._authenticate(scope)
        except Refused as refused:
            if scope["path"] in self._closed:
                raise
            if refused.status == 503:
                scope[UNCHECKED] = refused
            if b"authorization" in headers:
                self._log.note(str((scope.get("client") or ("unknown",))[0]), refused.code, path=scope["path"])

    async def _with_body(self, scope: Scope, receive: Receive, headers: _Once) -> Receive | None:
        """Read the body.

        Return a `receive` that returns it whole, and then what comes after it; None: the client left.
        """
        if not _announces_body(headers):
            return receive
        if scope["path"] not in self._closed:
            raise _too_large(0)
        declared = headers.get(b"content-length", b"0").rstrip(b" \t")  # httptools leaves it there
        if not declared.isdigit() or int(declared) > MAX_BODY:
            raise _too_large(MAX_BODY)
        try:
            async with asyncio.timeout(self._limits.body):
                message = await self._body(receive, scope[PRINCIPAL].identity)
        except TimeoutError:
            reason = f"The body did not arrive within {self._limits.body:g} seconds."
            raise Refused(408, "request_timeout", reason, _LAST) from None
        if message["type"] != "http.request":
            return None
        await self._check_values(message["body"])
        return _handing(message, receive)

    async def _check_values(self, body: bytes) -> None:
        """Refuse a body that takes too long to parse. Large ones go on one by one, a turn of the event loop each."""
        if len(body) > LARGE:
            async with self._large:
                await asyncio.sleep(0)
        if has_too_many_values(body):
            raise Refused(413, "too_large", f"The body may have {MOST_VALUES} JSON values at most.")

    async def _body(self, receive: Receive, caller: Hashable) -> Message:
        body = bytearray()
        try:
            while (message := await receive())["type"] == "http.request":
                chunk = message.get("body", b"")
                body += chunk
                self._arriving.add(caller, len(chunk))
                if len(body) > MAX_BODY:
                    raise _too_large(MAX_BODY)
                if not message.get("more_body", False):
                    return {"type": "http.request", "body": bytes(body), "more_body": False}
            return message
        finally:
            self._arriving.remove(caller, len(body))


async def _has_arrived(headers: _Once, receive: Receive) -> bool:
    """Return whether the whole body is there. It is not kept, and nobody waits for it or is told to send it."""
    if not _announces_body(headers):
        return True
    with suppress(TimeoutError):
        async with asyncio.timeout(0):
            while b"expect" not in headers and (message := await receive())["type"] == "http.request":
                if not message.get("more_body", False):
                    return True
    return False


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def _handing(first: Message, receive: Receive) -> Receive:
    rest: list[Message] = [first]

    async def handing() -> Message:
        return rest.pop() if rest else await receive()

    return handing


def _too_large(most: int) -> Refused:
    return Refused(413, "too_large", f"The body may have {most} bytes at most.")


def _check_framing(scope: Scope) -> _Once:
    """Return the headers that may be sent once. Refuses what a proxy before us may have read as another request."""
    if scope["http_version"] not in ("1.0", "1.1"):
        raise Refused(400, "unknown_protocol", "This server speaks HTTP/1.1.", _LAST)
    headers: dict[bytes, bytes] = {}
    size, repeated, upgrades = 0, False, False
    for name, value in scope["headers"]:
        size += len(name) + len(value) + _AROUND
        upgrades = upgrades or name == b"upgrade"
        if name in _ONCE:
            repeated = repeated or name in headers
            headers[name] = value
    if size > MAX_HEAD:
        raise Refused(431, "too_large", f"The headers may have {MAX_HEAD} bytes at most.", _LAST)
    if b"host" not in headers:
        raise Refused(400, "ambiguous_request", "A request needs a Host header.", _LAST)
    coding = headers.get(b"transfer-encoding")
    # HTTP/1.0 knows no codings, so a proxy before us may have read another body.
    fits = coding is None or (coding.lower() == b"chunked" and b"content-length" not in headers)
    if repeated or not fits or (coding is not None and scope["http_version"] == "1.0"):
        reason = "A header that may be sent once was sent twice, or two disagree."
        raise Refused(400, "ambiguous_request", reason, _LAST)
    if upgrades and _announces_body(headers):
        # httptools takes what follows such a head for another protocol: the body would be the next request.
        reason = "This server speaks HTTP/1.1 alone: send a request with a body without the header Upgrade."
        raise Refused(400, "ambiguous_request", reason, _LAST)
    return headers


def _check_method(scope: Scope, methods: Collection[str]) -> None:
    if scope["method"] not in methods:
        raise Refused(405, "method_not_allowed", "The method is not allowed here.", {"Allow": ", ".join(methods)})


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and "access-control-request-method" in Headers(scope=scope)


def _address(scope: Scope) -> str:
    """Return the address of who is connected."""
    return str((scope.get("client") or ("unknown",))[0])


def _announces_body(headers: _Once) -> bool:
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
