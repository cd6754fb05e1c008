"""The SDK's two streams over a stdio connection: the lines that the SDK must answer, and its answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from dragoman.mcp.early import Exchange
from dragoman.mcp.frames import Fault, find_id_at_ends, read_message
from dragoman.mcp.gate import read_cancellation
from dragoman.mcp.handshake import VERSION_KEY
from dragoman.mcp.wire import LongLineError, Wire

LOGGER = logging.getLogger("dragoman.mcp")

_REPLAYING = 10.0
"""Seconds that the SDK gets to answer what was answered early. It takes milliseconds."""


class Lines(Protocol):
    """The source of the lines for the SDK."""

    async def next_line(self) -> bytes | None:
        """Return the next line, or None after the last. Raises `LongLineError`."""
        ...

    def set_version(self, version: str) -> None:
        """Record that the SDK speaks this version of the protocol with the client from now on."""
        ...


class Stream:
    """What the SDK requires of both directions beside sending and receiving.

    The descriptors belong to `serve_stdio`.
    """

    async def aclose(self) -> None:
        """Do nothing: the descriptors outlive the streams."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class Replay:
    """Requests that were answered before the SDK was loaded: it gets the same frames, and must give the same answers.

    `is_news`: whether a different answer reports a change since then, which the client must be notified of.
    """

    def __init__(self, exchanges: Sequence[Exchange], is_news: Callable[[dict[str, Any] | None], bool]) -> None:
        self._is_news = is_news
        self.frames = [exchange.frame for exchange in exchanges]
        self._owed = [(exchange.request, exchange.result) for exchange in exchanges if exchange.result is not None]
        self._over = asyncio.Event()
        self._settle()

    def _settle(self) -> None:
        if not self._owed:
            self._over.set()

    def takes(self, message: types.JSONRPCMessage) -> bool:
        """Return whether a message answers something that was answered already. Logs a difference."""
        if self._over.is_set() or not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            return False
        place = next((place for place, (request, _) in enumerate(self._owed) if request == message.id), None)
        if place is None:
            return False
        request, said = self._owed.pop(place)
        self._settle()
        own = message.result if isinstance(message, types.JSONRPCResponse) else None
        if own != said and not self._is_news(own):
            LOGGER.error("the early answer to request %r is not the SDK's", request)
        return True

    async def over(self) -> None:
        """Wait until the SDK has answered all of them."""
        with anyio.move_on_after(_REPLAYING) as scope:
            await self._over.wait()
        if scope.cancelled_caught:
            LOGGER.error("the SDK did not answer %d of the early requests", len(self._owed))
            self._over.set()


class Incoming(Stream):
    """Messages from the client. Invalid ones are answered here, with the protocol's own error, and skipped."""

    def __init__(self, wire: Wire, lines: Lines, replay: Replay) -> None:
        self._wire = wire
        self._lines = lines
        self._replay = replay
        self._opening = True
        self._early = list(reversed(replay.frames))
        self.handshakes: set[types.RequestId] = set()

    def __aiter__(self) -> Incoming:
        return self

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. Raises `anyio.EndOfStream` after the last."""
        if self._early:
            return self._first(types.jsonrpc_message_adapter.validate_json(self._early.pop(), by_name=False))
        await self._replay.over()
        while True:
            try:
                line = await self._lines.next_line()
            except LongLineError as error:
                request = find_id_at_ends(error.head, error.tail)
                await self._wire.write_line(Fault(request, types.INVALID_REQUEST, str(error)).answer())
                continue
            if line is None:
                raise anyio.EndOfStream
            if not line.strip() or self._cancels_nothing(line):
                continue
            if (message := await self._message(line)) is not None:
                return message

    def _cancels_nothing(self, line: bytes) -> bool:
        """Return whether a line cancels a request that was answered already: the SDK would take time to ignore it."""
        request = read_cancellation(line)
        return request is not None and not self._wire.owes(request)

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            raise StopAsyncIteration from None

    async def _message(self, line: bytes) -> SessionMessage | None:
        message = read_message(line)
        if isinstance(message, Fault):
            await self._wire.write_line(message.answer())
            return None
        if isinstance(message, types.JSONRPCRequest):
            self._wire.note_request(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._wire.note_answer((message.params or {}).get("requestId"))
        return self._first(message)

    def _first(self, message: types.JSONRPCMessage) -> SessionMessage:
        """Record the version that the first request opens. The SDK decides by the same rule."""
        if isinstance(message, types.JSONRPCRequest):
            if message.method == "initialize":
                self.handshakes.add(message.id)
            elif self._opening and (version := _envelope(message.params)) is not None:
                self._lines.set_version(version)
            self._opening = False
        return SessionMessage(message)


def _envelope(params: dict[str, Any] | None) -> str | None:
    """Return the version of the protocol in a request's envelope, or None without an envelope."""
    meta: Any = (params or {}).get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        return None
    return str(meta[VERSION_KEY])  # pyright: ignore[reportUnknownArgumentType]


class Outgoing(Stream):
    """Messages to the client, each written whole before `send` returns."""

    def __init__(self, wire: Wire, incoming: Incoming, replay: Replay, lines: Lines) -> None:
        self._wire = wire
        self._incoming = incoming
        self._replay = replay
        self._lines = lines

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message. Raises `anyio.BrokenResourceError` if the client has left."""
        message = item.message
        if self._replay.takes(message):
            self._note_version(message)
            return
        await self._wire.write_line(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._note_version(message)
            self._wire.note_answer(message.id)

    def _note_version(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id in self._incoming.handshakes:
            self._incoming.handshakes.discard(message.id)
            if isinstance(message, types.JSONRPCResponse):
                self._lines.set_version(str(message.result["protocolVersion"]))
