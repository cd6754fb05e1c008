"""MCP over stdio: one JSON message a line.

The SDK's own transport reads in a thread that no signal can end, drops what it cannot parse without a word, and hops
between threads for every line. This one waits on the descriptors themselves and answers malformed input.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from dragoman.mcp.frames import Fault, read_message
from dragoman.mcp.server import build
from dragoman.mcp.signals import stopping

if TYPE_CHECKING:
    from dragoman.tools import Toolbox

MAX_LINE = 8 * 1024 * 1024
"""Bytes of one message; a longer one is refused and skipped."""

GRACE = 1.0
"""Seconds that calls in flight get to answer once stdin has ended, for clients that write everything and close."""

_CHUNK = 65536


async def serve_stdio(toolbox: Toolbox) -> None:
    """Serve on this process's stdin and stdout until stdin ends, the client is gone, or SIGTERM or SIGINT arrives.

    Meanwhile descriptor 0 is the null device and 1 is stderr, so that neither a stray print nor a child process
    reaches the client.
    """
    server = build(toolbox)
    with _standard_streams() as (source, sink), anyio.CancelScope() as serving, stopping(serving.cancel):
        wire = Wire(source, sink)
        await server.run(Incoming(wire), Outgoing(wire), server.create_initialization_options())


@contextmanager
def _standard_streams() -> Generator[tuple[int, int]]:
    """Take descriptors 0 and 1 for the protocol and put harmless ones in their place."""
    taken = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1)]
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    try:
        yield taken[0], taken[1]
    finally:
        for fd, original in enumerate(taken):
            os.dup2(original, fd)
            os.close(original)


class Wire:
    """The two descriptors, and the requests that still owe an answer.

    The descriptors stay blocking, since they may be shared with the parent: nothing is read or written before the
    kernel says that it will not block.
    """

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._writable = select.poll()
        self._writable.register(sink, select.POLLOUT)
        self._buffer = bytearray()
        self._writing = asyncio.Lock()
        self._pending: set[types.RequestId] = set()
        self._settled = asyncio.Event()
        self._settled.set()
        self._muted = False

    async def read_line(self) -> bytes | None:
        """Return the next line without its end, or None at the end of input. Raises `ValueError` on a too long one."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MAX_LINE:
                await self._skip_line()
                raise ValueError(f"A message may have {MAX_LINE} bytes at most.")
            chunk = await self._read()
            if not chunk:
                rest = bytes(self._buffer)
                self._buffer.clear()
                return rest or None
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    async def _skip_line(self) -> None:
        while (end := self._buffer.find(b"\n")) < 0:
            self._buffer[:] = await self._read()
            if not self._buffer:
                return
        del self._buffer[: end + 1]

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        await _ready(self._source, loop.add_reader, loop.remove_reader)
        return os.read(self._source, _CHUNK)

    async def write_line(self, line: bytes) -> None:
        """Write a line whole. Raises `anyio.BrokenResourceError` when nobody reads any more."""
        loop = asyncio.get_running_loop()
        async with self._writing:
            if self._muted:
                return
            rest = memoryview(line + b"\n")
            try:
                while rest:
                    if not self._writable.poll(0):
                        await _ready(self._sink, loop.add_writer, loop.remove_writer)
                    # As much as a pipe that is ready is sure to take at once.
                    rest = rest[os.write(self._sink, rest[: select.PIPE_BUF]) :]
            except OSError as error:
                raise anyio.BrokenResourceError from error

    def asked(self, request: types.RequestId) -> None:
        """Note that `request` owes an answer."""
        self._pending.add(request)
        self._settled.clear()

    def answered(self, request: Any) -> None:
        """Note that `request` was answered, or that the client does not want the answer any more; it may be no id."""
        if isinstance(request, str | int):
            self._pending.discard(request)
        if not self._pending:
            self._settled.set()

    def mute(self) -> None:
        """Write nothing more: the client has left, and those of SDK 1 fail over what comes while they close."""
        self._muted = True

    async def settle(self, timeout: float) -> None:
        """Wait until every request was answered, `timeout` seconds at most."""
        with anyio.move_on_after(timeout):
            await self._settled.wait()


async def _ready(fd: int, add: Callable[..., None], remove: Callable[[int], bool]) -> None:
    ready = asyncio.get_running_loop().create_future()
    try:
        add(fd, lambda: None if ready.done() else ready.set_result(None))
    except PermissionError:
        return  # a regular file, which is always ready and cannot be waited for
    try:
        await ready
    finally:
        remove(fd)


class Stream:
    """What the SDK asks of both directions beside sending and receiving; the descriptors belong to `serve_stdio`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def aclose(self) -> None:
        """Nothing to do: the descriptors outlive the streams."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class Incoming(Stream):
    """Messages from the client. What is not one is answered here, with the protocol's own error, and skipped."""

    def __aiter__(self) -> Incoming:
        return self

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. Raises `anyio.EndOfStream` after the last."""
        while True:
            try:
                line = await self._wire.read_line()
            except ValueError as error:
                await self._wire.write_line(Fault(b"null", types.INVALID_REQUEST, str(error)).answer())
                continue
            if line is None:
                await self._wire.settle(GRACE)
                self._wire.mute()
                raise anyio.EndOfStream
            if line.strip() and (message := await self._message(line)) is not None:
                return message

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
            self._wire.asked(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._wire.answered((message.params or {}).get("requestId"))
        return SessionMessage(message)


class Outgoing(Stream):
    """Messages to the client, each written whole before `send` returns."""

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message. Raises `anyio.BrokenResourceError` when the client is gone."""
        message = item.message
        await self._wire.write_line(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._wire.answered(message.id)
