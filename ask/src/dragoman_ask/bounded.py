"""Limits what is read of the responses of a model's server, which may send anything for as long as it likes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

MOST_BYTES = 8_000_000
"""Bytes of one response that are read. The longest reply that fits `model.max_tokens` has a small part of them."""


def bounding() -> dict[str, list[Any]]:
    """Return hooks of a client that let no response take more memory than `MOST_BYTES`."""
    return {"request": [_ask_for_plain_bytes], "response": [_limit]}


class _Bounded(httpx2.AsyncByteStream):
    """A response's body. Raises `ReadError` when more than `MOST_BYTES` of it have come."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        come = 0
        async for chunk in self._stream:
            come += len(chunk)
            if come > MOST_BYTES:
                raise httpx2.ReadError(f"The response has more than {MOST_BYTES} bytes.")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _ask_for_plain_bytes(request: httpx2.Request) -> None:
    """Ask for a response that is not compressed: a few bytes can stand for any number of them."""
    request.headers["accept-encoding"] = "identity"


async def _limit(response: httpx2.Response) -> None:
    """Limit a response. Raises `DecodingError` for one that is compressed, although that was not asked for."""
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise httpx2.DecodingError("The response is compressed.")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(response.stream)
