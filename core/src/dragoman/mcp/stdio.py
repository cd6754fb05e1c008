"""MCP over stdio: one JSON message per line.

The SDK's own transport reads in a thread that no signal can end, silently drops what it cannot parse, and switches
threads for every line. This one waits on the descriptors themselves and answers malformed input. Calls of tools go
through the gate. Everything else goes to the SDK, which may still be loading when the first of them arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import anyio

from dragoman._version import VERSION
from dragoman.mcp import answers
from dragoman.mcp.calls import Calls
from dragoman.mcp.descriptors import standard_streams
from dragoman.mcp.early import Early
from dragoman.mcp.gate import Call, Gate, origin_of, read_cancellation
from dragoman.mcp.handshake import HANDSHAKE_VERSIONS, MODERN_VERSION, NAME, Handshake
from dragoman.mcp.sdk import load
from dragoman.mcp.signals import stopping
from dragoman.mcp.switch import hot_path
from dragoman.mcp.wire import LongLineError, Wire, same_id
from dragoman.model import LOCAL
from dragoman.tools.surfaces import Backlog, Change

if TYPE_CHECKING:
    from dragoman.mcp.answers import RequestId
    from dragoman.model import Principal
    from dragoman.tools import Toolbox
    from dragoman.tools.context import Progress

LOGGER = logging.getLogger("dragoman.mcp")

GRACE = 1.0
"""Seconds that running calls get to answer once stdin has ended, for clients that write everything and close."""

_LAST_WRITE = 1.0
"""Seconds to write pending output when serving ends."""
_WAITING = 256
"""The number of lines waiting for the SDK above which nothing more is read."""

_CLOSED = -32000
_INTERNAL = -32603


async def serve_stdio(
    toolbox: Toolbox, early: Early | None = None, *, hot: bool | None = None, principal: Principal = LOCAL
) -> None:
    """Serve on this process's stdin and stdout until stdin ends, the client leaves, or SIGTERM or SIGINT arrives.

    Meanwhile descriptor 0 is the null device and 1 is stderr, so that neither a stray print nor a child process reaches
    the client.

    - `early`: the handshake has begun on these descriptors, which are taken already.
    - `hot`: whether calls may bypass the SDK; None: `hot_path` decides.
    - `principal`: the caller.
    """
    with ExitStack() as stack:
        if early is None:
            early = Early(*stack.enter_context(standard_streams()))
        with anyio.CancelScope() as serving, stopping(serving.cancel):
            if not early.stopped:
                await _Connection(toolbox, early, hot_path() if hot is None else hot, principal).serve()


class _Connection:
    """One client over stdio."""

    def __init__(self, toolbox: Toolbox, early: Early, hot: bool, principal: Principal) -> None:
        self._toolbox = toolbox
        self._principal = principal
        self._early = early
        self._calls = Calls(toolbox)
        self._wire = Wire(early.source, early.sink, early.rest, ended=early.ended)
        self._gate = Gate([tool.name for tool in toolbox.show_to(principal).tools]) if hot else None
        self._version = early.version
        self._stamp = {"name": NAME, "version": VERSION}
        self._running: dict[RequestId, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self._lines: asyncio.Queue[bytes | LongLineError | None] = asyncio.Queue(_WAITING)
        self._needed = asyncio.Event()
        self._ended = asyncio.Event()

    async def serve(self) -> None:
        """Serve until the client leaves; then end running calls."""
        reading = asyncio.create_task(self._read())
        # Calls may change something before the SDK is there to notify the client.
        backlog = Backlog()

        def note(change: Change) -> None:
            backlog.note(change)
            self._needed.set()

        try:
            with self._toolbox.surfaces.changes.listening(note, self._principal.identity):
                await self._serve_sdk(backlog)
        finally:
            reading.cancel()
            with anyio.CancelScope(shield=True):
                await self._end()

    async def _end(self) -> None:
        self._closing = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            # A client that reads nothing delays their last answers.
            await asyncio.wait(self._tasks, timeout=_LAST_WRITE)
        self._wire.mute()
        await self._wire.aclose(_LAST_WRITE)

    # Lines

    async def _read(self) -> None:
        with contextlib.suppress(OSError):
            while (line := await self._line()) is not None:
                if isinstance(line, LongLineError) or not self._take(line):
                    await self._lines.put(line)
        self._ended.set()
        await self._lines.put(None)

    async def _line(self) -> bytes | LongLineError | None:
        try:
            return await self._wire.read_line()
        except LongLineError as error:
            self._needed.set()
            return error

    def _take(self, line: bytes) -> bool:
        """Start the call in a line. Return False if the line is for the SDK."""
        if (request := read_cancellation(line)) is not None:
            if (task := self._running.pop(request, None)) is not None:
                task.cancel()
            return False
        call = self._gate.call(line, self._version) if self._gate and self._version else None
        if call is None or self._wire.owes(call.request) or not self._calls.takes(call.name, self._principal):
            if line.strip():
                self._needed.set()
            return False
        self._wire.note_request(call.request)
        task = asyncio.create_task(self._answer(call))
        self._running[same_id(call.request)] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def next_line(self) -> bytes | None:
        """Return the next line for the SDK; None after the last, once all requests were answered or the time is up."""
        line = await self._lines.get()
        if isinstance(line, LongLineError):
            raise line
        if line is None:
            self._lines.put_nowait(None)
            await self._leave()
        return line

    async def _leave(self) -> None:
        self._calls.end_streams()
        await self._wire.settle(GRACE)
        self._wire.mute()

    def set_version(self, version: str) -> None:
        """Let calls of this version of the protocol bypass the SDK from now on."""
        self._version = version if version in (*HANDSHAKE_VERSIONS, MODERN_VERSION) else None

    # Calls

    async def _answer(self, call: Call) -> None:
        try:
            await self._send(call.request, await self._make_answer(call))
        except asyncio.CancelledError:
            if self._closing and self._owes(call):
                await self._send(call.request, answers.error(call.request, _CLOSED, "Connection closed"))
            raise
        except Exception:
            LOGGER.exception("a call of %s could not be answered", call.name)
            await self._send(call.request, answers.error(call.request, _INTERNAL, "Internal server error"))
        finally:
            self._wire.note_answer(call.request)

    async def _make_answer(self, call: Call) -> bytes:
        answer = await self._calls.call(
            call.name,
            call.arguments,
            progress=self._progress(call),
            principal=self._principal,
            origin=origin_of(call.trace, call.request, self._version or ""),
        )
        line = answers.message(call.request, answer, self._stamp if self._version == MODERN_VERSION else None)
        if self._owes(call):  # from here on it cannot be cancelled any more
            del self._running[same_id(call.request)]
        return line

    def _owes(self, call: Call) -> bool:
        """Return whether the client still waits for a call: it has neither been answered nor cancelled."""
        return self._running.get(same_id(call.request)) is asyncio.current_task()

    def _progress(self, call: Call) -> Progress:
        async def report(done: float, total: float | None = None, words: str | None = None) -> None:
            if call.token is not None and self._owes(call):
                await self._send(call.request, answers.notification(call.token, done, total, words))

        return report

    async def _send(self, request: RequestId, line: bytes) -> None:
        try:
            await self._wire.write_line(line)
        except anyio.BrokenResourceError:
            LOGGER.debug("nobody reads the answer to %r", request)

    # The SDK

    async def _serve_sdk(self, backlog: Backlog) -> None:
        """Let the SDK handle what the gate does not. Returns at the end of input.

        It is loaded for the first frame or change that needs it: most of this process's memory would be the SDK's.
        """
        if not await self._needs_sdk():
            await self._leave()
            return
        await load()
        from dragoman.mcp.server import accepts, build, options
        from dragoman.mcp.streams import Incoming, Outgoing, Replay

        server = build(self._toolbox, self._calls, self._principal, backlog)
        if self._gate is not None:
            self._gate.judge = accepts
        replay = Replay(self._early.exchanges, self._is_news)
        incoming = Incoming(self._wire, self, replay)
        outgoing = Outgoing(self._wire, incoming, replay, self)
        await server.run(incoming, outgoing, options(server))

    async def _needs_sdk(self) -> bool:
        """Wait until something needs the SDK. Return False if input ended before."""
        told = [each.result["tools"] for each in self._early.exchanges if each.result and "tools" in each.result]
        if self._version is None or any(tools != self._tools() for tools in told):
            return True
        waiting = [asyncio.create_task(event.wait()) for event in (self._needed, self._ended)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        return self._needed.is_set()

    def _tools(self) -> list[dict[str, Any]]:
        """Return the present tools, as the handshake describes them."""
        return Handshake(self._toolbox.show_to(self._principal).tools, "", VERSION).tools

    def _is_news(self, result: dict[str, Any] | None) -> bool:
        """Return whether a result lists other tools than the client was told early. The client is then notified."""
        is_news = result is not None and result.get("tools") == self._tools()
        if is_news:
            self._toolbox.surfaces.changes.tell(Change("tools", owner=self._principal.identity))
        return is_news
