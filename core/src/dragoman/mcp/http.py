"""MCP over Streamable HTTP: stateless, at `/mcp`, with `/health`, `/ready` and a short text at `/`."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, cast

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.config.urls import bracket_host
from dragoman.cooperative import begin_each
from dragoman.errors import ConfigurationError, DragomanError
from dragoman.gateway.exporting import PATH as EXPORTS
from dragoman.mcp.calls import Calls
from dragoman.mcp.connections import Connection, Connections, Limits, SecureServer
from dragoman.mcp.downloads import Addressed, downloads
from dragoman.mcp.gate import Gate
from dragoman.mcp.http_frames import NamelessRequests
from dragoman.mcp.http_gate import HttpGate
from dragoman.mcp.identity import PRINCIPAL, SignIn
from dragoman.mcp.middleware import MAX_BODY, AccessMiddleware
from dragoman.mcp.origins import Origins
from dragoman.mcp.refusals import RefusalLog
from dragoman.mcp.server import accepts, build
from dragoman.mcp.sessions import Sessions
from dragoman.mcp.siblings import Siblings
from dragoman.mcp.signals import stopping
from dragoman.mcp.switch import hot_path
from dragoman.mcp.tls import renewing, tls_context
from dragoman.telemetry import CONTENT_TYPE

if TYPE_CHECKING:
    from dragoman.config import Server as Settings
    from dragoman.gateway import Gateway
    from dragoman.mcp.prefork import Worker
    from dragoman.model import Principal
    from dragoman.tools import Toolbox

LOGGER = logging.getLogger("dragoman.mcp")

PATH = "/mcp"
METRICS = "/metrics"
_ABANDON = 2
"""Seconds until connections are dropped although their answers were not read yet."""

_BACKLOG = 2048
_PROBE = 0.5
"""Seconds that `/ready` waits for databases: those who ask it often give up after a second, and then send no calls."""
_READ = ("GET", "HEAD")
_LIMITS = Limits()
_ABOUT = """dragoman: a query gateway for AI agents, over the Model Context Protocol.

Connect an MCP client to {url} (Streamable HTTP).
With a token, send it as "Authorization: Bearer TOKEN".
"""


async def serve_http(
    toolbox: Toolbox,
    settings: Settings,
    limits: Limits = _LIMITS,
    *,
    hot: bool | None = None,
    worker: Worker | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. Calls that still run then are ended in their databases.

    - `hot`: whether calls may bypass the SDK; None: `hot_path` decides.
    - `worker`: which of several processes this is; None: the only one.

    Port 0 takes a free port, and the log says which. Raises `ConfigurationError` if the address cannot be bound.
    """
    tls = tls_context(settings)
    listener = worker.listener if worker else listening(settings)
    siblings = Siblings(worker, toolbox, PATH, METRICS) if worker else None
    calls = Calls(toolbox)
    hot = hot_path() if hot is None else hot
    log = RefusalLog()
    app = http_app(toolbox, settings, calls, limits, log, hot=hot, siblings=siblings)
    config = _config(app, settings, limits)
    # asyncio accepts this many connections at once. Workers leave some to the others.
    config.backlog = 1 if worker else _BACKLOG
    config.load()
    if tls is not None:
        toolbox.parts.append(renewing(tls))
    connections = Connections(limits, log)
    config.http_protocol_class = cast("Any", connections.protocol(config.http_protocol_class))
    servers = [_Uvicorn(config, tls)]

    def stop() -> None:
        toolbox.gateway.stop()
        asyncio.get_running_loop().call_later(settings.drain, leave)

    def leave() -> None:
        for server in servers:
            server.should_exit = True
        asyncio.get_running_loop().call_later(settings.grace, end)

    def end() -> None:
        connections.drop_incomplete()
        calls.stop()

    with stopping(stop):
        if worker is None or siblings is None:
            await servers[0].serve(sockets=[listener])
        else:
            inner = _Uvicorn(_config(siblings.behind(app), settings, limits, lifespan="off"))
            servers.append(inner)
            await _serve_among_others(servers[0], inner, worker, toolbox)
            await siblings.aclose()


async def _serve_among_others(server: _Uvicorn, inner: _Uvicorn, worker: Worker, toolbox: Toolbox) -> None:
    """Serve clients, and the other workers over a separate socket."""

    async def serve_inside() -> None:
        await server.ready.wait()
        # asyncio uses the backlog as the number of connections that it accepts at once
        worker.listener.listen(_BACKLOG)
        worker.up()
        await inner.serve(sockets=[worker.doors[worker.index]])

    async with anyio.create_task_group() as group:
        group.start_soon(serve_inside)
        group.start_soon(toolbox.gateway.kept.tidy)  # of a worker that was killed before it
        await server.serve(sockets=[worker.listener])
        inner.should_exit = True


def _config(app: ASGIApp, settings: Settings, limits: Limits, lifespan: Literal["auto", "off"] = "auto") -> Any:
    return uvicorn.Config(
        app,
        log_config=None,
        # Below this level uvicorn logs malformed requests without the peer; our own line has it.
        log_level="error",
        access_log=False,
        server_header=False,
        # Anybody on this machine could choose the address in the log.
        proxy_headers=False,
        ws="none",
        lifespan=lifespan,
        timeout_keep_alive=limits.idle,
        timeout_graceful_shutdown=math.ceil(settings.grace + _ABANDON),
    )


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handling, which would raise signals again before our clean-up has ended.

    With `tls` it accepts connections with `SecureServer`.
    """

    def __init__(self, config: uvicorn.Config, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(config)
        self._tls = tls
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve, and set `ready`."""
        if self._tls is None:
            await super().startup(sockets=sockets)
        else:
            await super().startup(sockets=[])
            self.servers = [cast("Any", SecureServer(each, self._tls, self._connection)) for each in sockets or ()]
        self.ready.set()

    def _connection(self) -> Connection:
        create = cast("Callable[..., Connection]", self.config.http_protocol_class)
        return create(config=self.config, server_state=self.server_state, app_state=self.lifespan.state, _loop=None)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def listening(settings: Settings) -> socket.socket:
    """Return a listening socket for the configured address, and log the address. Raises as `listen` does."""
    listener = listen(settings.host, settings.port)
    LOGGER.info(
        "serving on %s://%s:%d%s", settings.scheme, bracket_host(settings.host), listener.getsockname()[1], PATH
    )
    return listener


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Its connections send small answers at once (TCP_NODELAY).

    Raises `ConfigurationError` if the address cannot be bound.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        why, *_ = str(error.strerror).split(" (while ")  # Python adds the address once more
        raise ConfigurationError(
            f"server.host, server.port: cannot listen on {host}:{port} ({why})",
            suggestion="Choose another port with --port, or stop what uses this one.",
        ) from None
    # create_server leaves the protocol at 0, and asyncio sets TCP_NODELAY only if it is TCP. Otherwise an answer in two
    # writes would wait for the client's delayed acknowledgement, 40 ms on Linux.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listener.detach())


def http_app(
    toolbox: Toolbox,
    settings: Settings,
    calls: Calls | None = None,
    limits: Limits = _LIMITS,
    log: RefusalLog | None = None,
    *,
    hot: bool = True,
    siblings: Siblings | None = None,
) -> ASGIApp:
    """Return the ASGI application. Its lifespan must run; one application serves one lifespan.

    `siblings`: the other processes that serve the same address, if there are any.
    """
    running = calls or Calls(toolbox)
    sign_in = SignIn(settings, PATH)
    toolbox.parts.append(sign_in.prepare)
    described = sign_in.resource.paths if sign_in.resource else ()

    async def again(context: Any) -> Principal:
        return await sign_in(context.request.scope)

    app: ASGIApp = build(toolbox, running, None, again=again).streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        # True would silently disable cancellation and progress.
        json_response=False,
        max_request_body_size=MAX_BODY,
        # The access middleware checks Host and Origin, on every path.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        custom_starlette_routes=[
            *_pages(toolbox.gateway, metrics=settings.metrics),
            downloads(toolbox.gateway),
            *_metadata(sign_in),
        ],
    )
    app = NamelessRequests(_closing(app, sign_in), PATH)
    if hot:
        app = HttpGate(app, Gate([tool.name for tool in toolbox.tools], accepts), running, PATH)
    app = Addressed(Sessions(app, PATH), settings.scheme, sign_in.resource.origin if sign_in.resource else "")
    return AccessMiddleware(
        siblings.around(app) if siblings else app,
        # The SDK would leave a 2025 client's GET open forever, although a stateless server has nothing to send.
        closed={PATH: ("POST", "DELETE")},
        open=dict.fromkeys(
            ("/", "/health", "/ready", EXPORTS, *([METRICS] if settings.metrics else []), *described), _READ
        ),
        origins=Origins(settings.host, settings.allowed_hosts, settings.allowed_origins),
        authenticate=sign_in,
        limits=limits,
        log=log or RefusalLog(),
    )


def _pages(gateway: Gateway, *, metrics: bool) -> list[Route]:
    async def about(request: Request) -> Response:
        return PlainTextResponse(_ABOUT.format(url=request.url.replace(path=PATH, query="")))

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        if gateway.stopping:
            return JSONResponse({"status": "stopping"}, 503)
        databases = await _states(gateway)
        up = not databases or any(state != "unreachable" for state in databases.values())
        answer: dict[str, object] = {"status": "ready" if up else "unavailable"}
        if PRINCIPAL in request.scope:
            granted = gateway.for_principal(request.scope[PRINCIPAL]).names
            # The caller's kept results are a database that nobody configured.
            answer["databases"] = {name: databases[name] for name in granted if name in databases}
        return JSONResponse(answer, 200 if up else 503)

    async def scrape(_: Request) -> Response:
        return Response(gateway.metrics(), media_type=CONTENT_TYPE)

    pages = [Route("/", about), Route("/health", health), Route("/ready", ready)]
    return [*pages, Route(METRICS, scrape)] if metrics else pages


def _metadata(sign_in: SignIn) -> list[Route]:
    async def metadata(request: Request) -> Response:
        assert sign_in.resource is not None  # a server that has it never loses it
        return JSONResponse(sign_in.resource.document(request.scope))

    return [Route(path, metadata) for path in sign_in.resource.paths] if sign_in.resource else []


def _closing(app: ASGIApp, sign_in: SignIn) -> ASGIApp:
    """Return `app`, with a lifespan that ends with the sign-in's."""

    async def closing(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        finally:
            if scope["type"] == "lifespan":
                await sign_in.aclose()

    return closing


async def _states(gateway: Gateway) -> dict[str, str]:
    names = gateway.names  # a reload may change them meanwhile
    states = await asyncio.gather(*await begin_each([_state(gateway, name) for name in names]))
    return dict(zip(names, states, strict=True))


async def _state(gateway: Gateway, name: str) -> str:
    try:
        return (await gateway.database(name).status(wait=_PROBE)).state
    except DragomanError:
        return "unreachable"
