"""Cooperation of several worker processes: each caller has a home among them.

What one process remembers about a caller is at that caller's home: kept results, use of quotas, the history of
statements, the remaining budget of a model. So a request that needs these is passed on to the home, by HTTP over the
home's own Unix socket. A call that only queries a configured database is answered where it arrived. A cancellation is
sent to all, since any of them may run the call.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.gateway.exporting import PATH as EXPORTS
from dragoman.gateway.exporting import home_in, home_of
from dragoman.mcp.http_frames import replaying
from dragoman.mcp.identity import PRINCIPAL
from dragoman.mcp.refusals import Refused
from dragoman.telemetry import CONTENT_TYPE
from dragoman.telemetry.metrics import Gauge, by_worker
from dragoman.tools.registry import default_of
from dragoman.tools.standard import SPECS as STANDARD

if TYPE_CHECKING:
    from dragoman.mcp.prefork import Worker
    from dragoman.model import Principal
    from dragoman.tools import Toolbox

LOGGER = logging.getLogger("dragoman.mcp")

CONNECTION: Final = b"x-dragoman-connection"
"""The header in which a worker tells another by which connection a request came. Nobody else can reach that socket."""
HISTORY: Final = "list_queries"
"""The tool that lists what callers ran."""
PATIENCE: Final = 2.0
"""Seconds that another worker gets to return its metrics, or to receive a cancellation."""
_PASSED: Final = "dragoman.passed"
# Headers of the connection itself, those that the first worker has checked, and those that the client sets again.
_LEFT_OUT: Final = frozenset(
    (b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"date", b"origin", CONNECTION)
)
_ANYWHERE: Final = frozenset(spec.name for spec in STANDARD if spec.reach == "one")


class _Arguments(msgspec.Struct):
    database: str | None = None
    keep: Any = None


class _Params(msgspec.Struct):
    name: str = ""
    arguments: _Arguments = msgspec.field(default_factory=_Arguments)


class _Connection(msgspec.Struct):
    """What the checks of a request need to know of its connection: who sent it, to which address, and how."""

    client: str = "unknown"
    server: tuple[str, int | None] | None = None
    scheme: str = "http"

    @classmethod
    def of(cls, scope: Scope) -> _Connection:
        client = str((scope.get("client") or ("unknown",))[0])
        return cls(client, scope.get("server"), scope.get("scheme", "http"))


class _Peek(msgspec.Struct):
    method: str = ""
    params: msgspec.Raw = msgspec.Raw()


_CONNECTION = msgspec.json.Decoder(_Connection)
_PEEK = msgspec.json.Decoder(_Peek)
_PARAMS = msgspec.json.Decoder(_Params)
_NO_MESSAGE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Siblings:
    """The other workers, as one of them reaches them. `path`: of the MCP endpoint. `metrics`: of the counters."""

    def __init__(self, worker: Worker, toolbox: Toolbox, path: str, metrics: str) -> None:
        self._worker = worker
        self._toolbox = toolbox
        self._path = path
        self._metrics = metrics
        self._number = len(worker.doors)
        self._clients = {
            index: httpx2.AsyncClient(
                transport=httpx2.AsyncHTTPTransport(uds=worker.path(index), limits=httpx2.Limits()), timeout=None
            )
            for index in range(self._number)
            if index != worker.index
        }

    def around(self, app: ASGIApp) -> ASGIApp:
        """Return `app`, wrapped to pass on requests that another worker must answer. It runs inside the middleware."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or _PASSED in scope:
                await app(scope, receive, send)
            elif scope["path"] == self._metrics:
                await Response(await self._all_metrics(scope), media_type=CONTENT_TYPE)(scope, receive, send)
            elif scope["path"] == self._path:
                await self._route(app, scope, receive, send)
            elif scope["path"] == EXPORTS:
                await self._fetch(app, scope, receive, send)
            else:
                await app(scope, receive, send)

        return serve

    def behind(self, app: ASGIApp) -> ASGIApp:
        """Return the whole application as it serves the other workers."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            connection = _decode(_CONNECTION, dict(scope["headers"]).get(CONNECTION, b"")) or _Connection()
            came = {"client": (connection.client, 0), "server": connection.server, "scheme": connection.scheme}
            await app({**scope, **came, _PASSED: True}, receive, send)

        return serve

    async def aclose(self) -> None:
        """Close the connections to the others."""
        for client in self._clients.values():
            await client.aclose()

    async def _route(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        body, receive = message.get("body", b""), replaying(message, receive)
        peek = _decode(_PEEK, body) or _Peek()
        if scope["method"] == "DELETE" or peek.method == "notifications/cancelled":
            await self._tell_all(scope, body)
            await app(scope, receive, send)
            return
        home = self._home(scope[PRINCIPAL])
        if home == self._worker.index or self._is_for_anyone(scope[PRINCIPAL], peek):
            await app(scope, receive, send)
        else:
            await self._pass_on(home, scope, body, receive, send)

    async def _fetch(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a file that was exported at its owner's home. The address alone is enough."""
        home = home_in(scope["query_string"].decode("latin-1"))
        if home is None or home % self._number == self._worker.index:
            await app(scope, receive, send)
        else:
            await self._pass_on(home % self._number, scope, b"", receive, send)

    def _home(self, principal: Principal) -> int:
        return home_of(principal.identity) % self._number

    def _is_for_anyone(self, principal: Principal, peek: _Peek) -> bool:
        """Return whether every worker would give the same answer, and nothing is counted or remembered for later."""
        gateway = self._toolbox.gateway
        if gateway.roles.quota(principal) or any(tool.name == HISTORY for tool in self._toolbox.tools):
            return False
        call = _decode(_PARAMS, peek.params) if peek.method == "tools/call" else None
        if call is None or call.name not in _ANYWHERE or call.arguments.keep is not None:
            return False
        named = call.arguments.database or default_of(gateway.configuration)
        return named in gateway.configuration.databases

    async def _tell_all(self, scope: Scope, body: bytes) -> None:
        """Send a request to all others. Their answers do not matter; one that hangs is abandoned after `PATIENCE`."""
        requests = [(client, self._request(client, scope, body)) for client in self._clients.values()]
        told = (client.send(request) for client, request in requests)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*told, return_exceptions=True)

    async def _pass_on(self, index: int, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Answer with the answer of another worker.

        If the client leaves, the connection to the other worker is closed.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(_leave, receive, group.cancel_scope)
            try:
                await self._relay(self._clients[index], scope, body, send)
            except Refused as refused:
                await refused.response()(scope, receive, send)
            group.cancel_scope.cancel()

    async def _relay(self, client: httpx2.AsyncClient, scope: Scope, body: bytes, send: Send) -> None:
        try:
            response = await client.send(self._request(client, scope, body), stream=True)
        except httpx2.TransportError:
            words = "The process that has your state has ended, and another one replaces it. Send the request again."
            raise Refused(503, "worker_ended", words, {"Retry-After": "1"}) from None
        try:
            headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _LEFT_OUT]
            length = [(b"content-length", value) for value in response.headers.get_list("content-length")]
            start = {"status": response.status_code, "headers": [*headers, *((n, v.encode()) for n, v in length)]}
            await send({"type": "http.response.start", **start})
            async for chunk in response.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except httpx2.TransportError:
            # The server closes the connection of an incomplete answer, so the client sees that it is cut.
            LOGGER.warning("a worker ended while it answered; the client's connection is closed")
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    def _request(self, client: httpx2.AsyncClient, scope: Scope, body: bytes) -> httpx2.Request:
        headers = [(name, value) for name, value in scope["headers"] if name not in _LEFT_OUT]
        connection = msgspec.json.encode(_Connection.of(scope))
        query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
        return client.build_request(
            scope["method"],
            f"http://worker{scope['path']}{query}",
            headers=[*headers, (CONNECTION, connection)],
            content=body,
        )

    async def _all_metrics(self, scope: Scope) -> str:
        texts = await asyncio.gather(*(self._metrics_of(index, scope) for index in range(self._number)))
        told = {str(index): text for index, text in enumerate(texts) if text is not None}
        up = tuple(({"worker": str(index)}, float(text is not None)) for index, text in enumerate(texts))
        return by_worker(told, Gauge("worker_up", "Whether a worker process answers.", up))

    async def _metrics_of(self, index: int, scope: Scope) -> str | None:
        if index == self._worker.index:
            return self._toolbox.gateway.metrics()
        client = self._clients[index]
        try:
            async with asyncio.timeout(PATIENCE):
                return (await client.send(self._request(client, scope, b""))).text
        except (httpx2.TransportError, TimeoutError):
            return None


async def _leave(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel running work when the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def _decode(decoder: msgspec.json.Decoder[Any], data: bytes | msgspec.Raw) -> Any:
    """Return the decoded `data`, or None if it has another shape."""
    try:
        return decoder.decode(data)
    except _NO_MESSAGE:
        return None
