"""HTTP requests to the issuer: one client with few connections, short deadlines, no redirects, and bounded answers.

Those on whose behalf it is asked take turns. Otherwise a stranger could keep all connections occupied with tokens that
he invents, and nobody could sign in meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import logging
import zlib
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from dragoman.auth.refusals import IssuerUnreachable
from dragoman.turns import Turns

if TYPE_CHECKING:
    import httpx2

LOGGER = logging.getLogger("dragoman.auth")

TIMEOUT = 5.0
"""Seconds for one answer."""

MAX_BYTES = 512 * 1024
RETRY_AFTER = 5
"""Seconds after which a caller may try again while the issuer is down."""

_CONNECTIONS = 16


class IssuerClient:
    """Sends HTTP requests to the issuer. The client is created at the first request."""

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None
        self._turns = Turns(_CONNECTIONS)

    async def ask(self, method: str, url: str, party: Hashable = "", **options: Any) -> dict[str, Any]:
        """Return the JSON object that a URL answers with. Raises `IssuerUnreachable` for any other answer.

        `party`: on whose behalf it is asked.
        """
        import httpx2

        if self._client is None:
            limits = httpx2.Limits(max_connections=_CONNECTIONS)
            # A few compressed bytes can stand for any number of them, which would hold everybody up.
            plain = {"accept-encoding": "identity"}
            self._client = httpx2.AsyncClient(timeout=TIMEOUT, limits=limits, headers=plain)
        try:
            # The client's own timeout is for each read, and a server may send a byte now and then.
            async with (
                asyncio.timeout(TIMEOUT),
                self._turns.hold(party),
                self._client.stream(method, url, **options) as response,
            ):
                response.raise_for_status()
                return _object(await _read_body(response))
        except (httpx2.HTTPError, TimeoutError, ValueError, RecursionError) as error:
            status = f"status {error.response.status_code}" if isinstance(error, httpx2.HTTPStatusError) else ""
            LOGGER.warning("the issuer did not answer as it should (%s)", status or type(error).__name__)
            raise IssuerUnreachable(RETRY_AFTER) from None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()


async def _read_body(response: httpx2.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_BYTES:
            raise ValueError("too large")
    return _unpack(body, response.headers.get("content-encoding", "identity").strip().lower())


def _unpack(body: bytes, encoding: str) -> bytes:
    """Return a body that some servers compress unasked, bounded while it is unpacked. Raises `ValueError`."""
    if encoding == "identity":
        return body
    if encoding != "gzip":
        raise ValueError("compressed")
    try:
        unpacked = zlib.decompressobj(31).decompress(body, MAX_BYTES + 1)
    except zlib.error:
        raise ValueError("not gzip") from None
    if len(unpacked) > MAX_BYTES:
        raise ValueError("too large")
    return unpacked


def _object(body: bytes) -> dict[str, Any]:
    read = json.loads(body)
    if not isinstance(read, dict):
        raise ValueError("no object")
    return read  # pyright: ignore[reportUnknownVariableType]
