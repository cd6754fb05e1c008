"""MCP over Streamable HTTP: stateless, `/mcp`, with `/health` and `/ready` beside it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.errors import ConfigurationError, DragomanError
from dragoman.mcp.server import PRINCIPAL, Calls, build
from dragoman.mcp.signals import stopping
from dragoman.model import Principal, Secret

if TYPE_CHECKING:
    from dragoman.config import Server as Settings
    from dragoman.gateway import Gateway
    from dragoman.tools import Toolbox

LOGGER = logging.getLogger("dragoman.mcp")

MAX_BODY = 1024 * 1024
"""Bytes of one request."""

_PATH = "/mcp"
_GRACE = 0.5
"""Seconds that running calls get to end by themselves when the server is told to stop; then they are cancelled."""

_ABANDON = 2
"""Seconds until connections are dropped although their answers were not yet read."""

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_PROBE = 1.0


async def serve_http(toolbox: Toolbox, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; calls that still run then are ended in their databases.

    Port 0 takes a free one; the log says which. Raises `ConfigurationError` when the address cannot be bound.
    """
    listener = listen(settings.host, settings.port)
    calls = Calls()
    config = uvicorn.Config(
        http_app(toolbox, settings, calls),
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_ABANDON,
    )
    server = _Uvicorn(config)
    LOGGER.info("serving on http://%s:%d%s", _in_url(settings.host), listener.getsockname()[1], _PATH)

    def stop() -> None:
        server.should_exit = True
        asyncio.get_running_loop().call_later(_GRACE, calls.stop)

    with stopping(stop):
        await server.serve(sockets=[listener])


class _Uvicorn(uvicorn.Server):
    """uvicorn, except that signals are ours: it would raise them again after stopping, past our own clean-up."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; its connections send small answers at once (TCP_NODELAY).

    Raises `ConfigurationError` when the address cannot be bound.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server((str(address[0]), port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigurationError(
            f"server.host, server.port: cannot listen on {host}:{port} ({error.strerror})",
            suggestion="Choose another port with --port, or stop what uses this one.",
        ) from None
    # create_server leaves the protocol at 0, and asyncio sets TCP_NODELAY only where it is TCP: an answer in two
    # writes would wait for the client's delayed acknowledgement, 40 ms on Linux.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listener.detach())


def http_app(toolbox: Toolbox, settings: Settings, calls: Calls | None = None) -> ASGIApp:
    """Return the ASGI application. Its lifespan must run; one application serves one lifespan."""
    app: Starlette = build(toolbox, calls).streamable_http_app(
        streamable_http_path=_PATH,
        stateless_http=True,
        # True would silently disable cancellation and progress.
        json_response=False,
        max_request_body_size=MAX_BODY,
        transport_security=_transport_security(settings),
        custom_starlette_routes=_status_routes(toolbox.gateway, settings.token),
    )
    return Door(app, settings.token)


def _transport_security(settings: Settings) -> TransportSecuritySettings:
    """Return which Host and Origin headers pass: loopback, the address served, and what the configuration adds."""
    hosts = {*_LOOPBACK, _in_url(settings.host)} - {"0.0.0.0", "[::]"}
    own = {f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")}
    allowed = hosts | set(settings.allowed_hosts)
    return TransportSecuritySettings(
        allowed_hosts=sorted(allowed | {f"{host}:*" for host in allowed}),
        allowed_origins=sorted(own | {f"{origin}:*" for origin in own} | set(settings.allowed_origins)),
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class Door:
    """Stands in front of the SDK: who may come in, and by which method."""

    def __init__(self, app: ASGIApp, token: Secret | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "http" and scope["path"] not in ("/health", "/ready"):
            refusal = self._refusal(scope)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
            scope[PRINCIPAL] = Principal("token" if self._token else "anonymous")
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        if not authorised(scope, self._token):
            given = "authorization" in Headers(scope=scope)
            challenge = 'Bearer error="invalid_token"' if given else "Bearer"
            return JSONResponse({"error": "invalid_token"}, 401, {"WWW-Authenticate": challenge})
        if scope["path"] == _PATH and scope["method"] != "POST":
            # The SDK would leave a 2025 client's GET open for ever, although a stateless server has nothing to say.
            return Response("Method Not Allowed", 405, {"Allow": "POST"})
        return None


def authorised(scope: Scope, token: Secret | None) -> bool:
    """Tell whether the request carries `token`, or none is needed; takes the same time whatever was sent."""
    if not token:
        return True
    scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
    return (
        hmac.compare_digest(_digest(given.strip().encode("latin-1")), _digest(token.reveal().encode()))
        and scheme.lower() == "bearer"
    )


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def _status_routes(gateway: Gateway, token: Secret | None) -> list[Route]:
    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        databases = await _states(gateway)
        up = not databases or any(state != "unreachable" for state in databases.values())
        answer: dict[str, object] = {"status": "ready" if up else "unavailable"}
        if authorised(request.scope, token):
            answer["databases"] = databases
        return JSONResponse(answer, 200 if up else 503)

    return [Route("/health", health), Route("/ready", ready)]


async def _states(gateway: Gateway) -> dict[str, str]:
    states = await asyncio.gather(*(_state(gateway, name) for name in gateway.names))
    return dict(zip(gateway.names, states, strict=True))


async def _state(gateway: Gateway, name: str) -> str:
    try:
        return (await gateway.database(name).status(wait=_PROBE)).state
    except DragomanError:
        return "unreachable"
