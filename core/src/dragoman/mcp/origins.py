"""Checks Host and Origin headers, and answers browsers at allowed origins (CORS)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Scope, Send

from dragoman.config.urls import bracket_host
from dragoman.mcp.refusals import Refused

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\s:/@\[\]?#\\]+)(:(?P<port>\d{1,5}))?")
_ORIGIN = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://" + _HOST.pattern)

# Headers that clients of the protocol send. The protocol's own (`Mcp-...`) grow with the names of arguments.
_ALLOWED_HEADERS = {"accept", "authorization", "baggage", "content-type", "last-event-id", "traceparent", "tracestate"}
_EXPOSED = "Mcp-Session-Id, WWW-Authenticate, Retry-After"
_PREFLIGHT_AGE = "600"


class Origins:
    """The names of this server, and the pages that may call it."""

    def __init__(self, host: str, allowed_hosts: Iterable[str], allowed_origins: Iterable[str]) -> None:
        self._own = {*LOOPBACK, bracket_host(host).lower()} - {"0.0.0.0", "[::]"}
        self._hosts = self._own | {name.lower() for name in allowed_hosts}
        self._origins = {origin.lower().rstrip("/") for origin in allowed_origins}

    def check_host(self, scope: Scope, header: bytes) -> None:
        """Raise `Refused` unless the Host header names this server. Protects against DNS rebinding."""
        given = header.decode("latin-1").lower()
        host = _HOST.fullmatch(given)
        if host is None or not {given, host["name"], _address(scope, host["name"])} & self._hosts:
            reason = "The Host header is none of this server's; its administrator can add it to server.allowed_hosts."
            raise Refused(421, "unknown_host", reason)

    def check_origin(self, header: bytes | None) -> str | None:
        """Return the Origin header as text, None without one. Raises `Refused` if it may not call."""
        if header is None:
            return None
        given = header.decode("latin-1")
        origin = _ORIGIN.fullmatch(given.lower())
        local = origin is not None and origin["scheme"] in ("http", "https") and origin["name"] in self._own
        if not local and given.lower() not in self._origins:
            reason = (
                "Pages of this origin may not call; the server's administrator can add it to server.allowed_origins."
            )
            raise Refused(403, "unknown_origin", reason)
        return given


def _address(scope: Scope, name: str) -> str:
    """Return loopback if `name` is the connection's own address: no name was resolved, so none was rebound."""
    server = scope.get("server")
    return LOOPBACK[0] if server and bracket_host(str(server[0])).lower() == name else ""


def allowing(origin: str, send: Send) -> Send:
    """Return a `send` that lets a page at `origin` read the answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = _EXPOSED
            headers.add_vary_header("Origin")
        await send(message)

    return sending


def preflight(headers: Mapping[str, str], methods: Iterable[str]) -> Response:
    """Return the answer to a browser that asks whether it may send a request."""
    asked = [name.strip() for name in headers.get("access-control-request-headers", "").split(",")]
    allowed = [name for name in asked if name.lower() in _ALLOWED_HEADERS or name.lower().startswith("mcp-")]
    answer = {
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": ", ".join(allowed),
        "Access-Control-Max-Age": _PREFLIGHT_AGE,
    }
    return Response(status_code=204, headers=answer)
