"""Exported files over HTTP, at signed addresses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from typing import TYPE_CHECKING, Final, cast

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from dragoman.errors import ResultNotFound
from dragoman.exports import MEDIA_TYPES
from dragoman.gateway.exporting import PATH, missing, origin
from dragoman.mcp.identity import PRINCIPAL, UNCHECKED

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from dragoman.gateway import Gateway
    from dragoman.kept import OpenFile
    from dragoman.mcp.refusals import Refused

PIECE: Final = 256 * 1024
_HEADERS: Final = {
    "Cache-Control": "private, no-store",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def downloads(gateway: Gateway) -> Route:
    """Return the route of exported files. Whatever is wrong with an address, the answer is 404 with the same text.

    A token that cannot be checked now is no fault of the address: that answer is 503.
    """

    async def download(request: Request) -> Response:
        if UNCHECKED in request.scope:
            return cast("Refused", request.scope[UNCHECKED]).response()
        caller = request.scope.get(PRINCIPAL)
        try:
            if caller is None and request.headers.get("authorization", "").lower().startswith("bearer"):
                raise missing()  # a token that nobody has, such as an expired one, is not its owner's
            exported, file = await gateway.kept.exports.open(request.query_params, caller)
        except ResultNotFound as error:
            return JSONResponse({"error": "not_found", "message": error.message}, 404, _HEADERS)
        headers = {
            **_HEADERS,
            "Content-Disposition": f'attachment; filename="{exported.kept.name}.{exported.form}"',
            "Content-Length": str(file.stat().st_size),
        }
        return StreamingResponse(_pieces(file), headers=headers, media_type=MEDIA_TYPES[exported.form])

    return Route(PATH, download)


async def _pieces(file: OpenFile) -> AsyncIterator[bytes]:
    place = 0
    with closing(file):
        while piece := await asyncio.to_thread(file.read, PIECE, place):
            yield piece
            place += len(piece)


class Addressed:
    """Records the address by which a request reached this server. `own`: the server's own address, if configured."""

    def __init__(self, app: ASGIApp, scheme: str, own: str = "") -> None:
        self._app = app
        self._scheme = scheme
        self._own = own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "http":
            origin.set(self._own or f"{self._scheme}://{Headers(scope=scope).get('host', '')}")
        await self._app(scope, receive, send)
