"""The two descriptors of a stdio connection: lines in, lines out, and the requests that are not answered yet."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import socket
import stat
import sys
from collections import Counter, deque
from collections.abc import Callable

import anyio

from dragoman.mcp.answers import RequestId

MAX_LINE = 8 * 1024 * 1024
"""The most bytes of one message. A longer one is refused and skipped."""

_CHUNK = 65536
_AHEAD = 1024 * 1024
"""The most bytes that are read before anyone asks for them."""
_ENDS = 4096
"""The bytes that are kept of either end of a line that is too long: its id is there."""
_PIPE = 1024 * 1024
"""Bytes of the buffer of the pipe to the client, where the system lets us set it.

A large answer then needs fewer writes.
"""


class LongLineError(ValueError):
    """A line is longer than a message may be. `head` and `tail`: its first and last bytes."""

    def __init__(self, head: bytes, tail: bytes) -> None:
        super().__init__(f"A message may have {MAX_LINE} bytes at most.")
        self.head = head
        self.tail = tail


def same_id(request: RequestId) -> RequestId:
    """Return the key of a request: "7" and 7 are the same, as in the SDK."""
    try:
        return int(request)
    except ValueError:
        return request


class Wire:
    """Lines to and from a client.

    The descriptors stay blocking, since they may be shared with the parent. Nothing is read before the kernel says that
    it will not block, and writing never blocks. Lines are written in order and whole, even if their senders are
    cancelled meanwhile. `begun`: bytes that were read from the source before, up to its end if it has `ended`.
    """

    def __init__(self, source: int, sink: int, begun: bytes = b"", *, ended: bool = False) -> None:
        self._source = source
        self._buffer = bytearray(begun)
        self._read = asyncio.Event()
        self._reading = False
        self._ended = ended
        self._sink = _Sink(sink)
        self._unwritten: deque[tuple[memoryview, asyncio.Future[None]]] = deque()
        self._gone: OSError | None = None
        self._pending: Counter[RequestId] = Counter()  # a client may use an id again before it is answered
        self._settled = asyncio.Event()
        self._settled.set()
        self._muted = False

    # Reading

    async def read_line(self) -> bytes | None:
        """Return the next line without its end, or None at the end of input. Raises `LongLineError`."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > MAX_LINE:
                head = bytes(self._buffer[:_ENDS])
                raise LongLineError(head, await self._skip_line())
            if not await self._more():
                rest = bytes(self._buffer)
                self._buffer.clear()
                return rest or None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    async def _skip_line(self) -> bytes:
        """Skip the rest of a line, and return its end."""
        tail = b""
        while (end := self._buffer.find(b"\n")) < 0:
            tail = (tail + self._buffer[-_ENDS:])[-_ENDS:]
            self._buffer.clear()
            if not await self._more():
                return tail
        tail += self._buffer[:end]
        del self._buffer[: end + 1]
        return tail[-_ENDS:]

    async def _more(self) -> bool:
        """Wait until more was read. Return whether there is any."""
        if self._ended:
            return False
        self._read.clear()
        if not self._reading:
            try:
                asyncio.get_running_loop().add_reader(self._source, self._on_readable)
                self._reading = True
            except PermissionError:  # a regular file, which is always ready and cannot be waited for
                self._on_readable()
        await self._read.wait()
        return not self._ended

    def _on_readable(self) -> None:
        chunk = os.read(self._source, _CHUNK)
        self._buffer += chunk
        self._ended = not chunk
        self._read.set()
        if self._ended or len(self._buffer) > _AHEAD:
            self.stop_reading()

    def stop_reading(self) -> None:
        """Read nothing more from the source until a line is asked for."""
        if self._reading:
            self._reading = False
            asyncio.get_running_loop().remove_reader(self._source)

    # Writing

    async def write_line(self, line: bytes) -> None:
        """Write a whole line, after those before it, even if the caller is cancelled meanwhile.

        Raises `anyio.BrokenResourceError` if nobody reads any more.
        """
        if self._muted:
            return
        rest = memoryview(line + b"\n")
        if not self._unwritten and self._gone is None:
            rest = self._write_some(rest)
        if self._gone is not None:
            raise anyio.BrokenResourceError from self._gone
        if not rest:
            return
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._unwritten.append((rest, done))
        if len(self._unwritten) == 1:
            loop.add_writer(self._sink.descriptor, self._on_writable)
        await done

    def _write_some(self, data: memoryview) -> memoryview:
        """Write as much as the sink accepts at once, and return the rest."""
        try:
            while data and (taken := self._sink.write(data)):
                data = data[taken:]
        except OSError as error:
            self._gone = error
        return data

    def _on_writable(self) -> None:
        while self._unwritten:
            rest, done = self._unwritten[0]
            rest = self._write_some(rest)
            if self._gone is not None:
                self._give_up()
                break
            if rest:
                self._unwritten[0] = (rest, done)
                return
            self._unwritten.popleft()
            if not done.done():
                done.set_result(None)
        asyncio.get_running_loop().remove_writer(self._sink.descriptor)

    def _give_up(self) -> None:
        while self._unwritten:
            _, done = self._unwritten.popleft()
            if not done.done():
                error = anyio.BrokenResourceError()
                error.__cause__ = self._gone
                done.set_exception(error)

    async def aclose(self, timeout: float) -> None:
        """Stop reading, and wait at most `timeout` seconds for pending output."""
        self.stop_reading()
        if self._unwritten:
            last = self._unwritten[-1][1]
            await asyncio.wait([last], timeout=timeout)
            with contextlib.suppress(BaseException):
                last.exception() if last.done() else None
        if self._unwritten:
            asyncio.get_running_loop().remove_writer(self._sink.descriptor)
        self._sink.close()

    # Requests without an answer

    def owes(self, request: RequestId) -> bool:
        """Return whether a request with this id waits for its answer."""
        return self._pending[same_id(request)] > 0

    def note_request(self, request: RequestId) -> None:
        """Record that `request` waits for an answer."""
        self._pending[same_id(request)] += 1
        self._settled.clear()

    def note_answer(self, request: object) -> None:
        """Record that `request` was answered, or that the client does not want the answer any more."""
        if isinstance(request, str | int) and self.owes(request):
            self._pending[same_id(request)] -= 1
            self._pending += Counter()  # drops the counts that are zero
        if not self._pending:
            self._settled.set()

    def mute(self) -> None:
        """Write nothing more: the client has left.

        Clients with SDK 1 fail over output that arrives while they close.
        """
        self._muted = True

    async def settle(self, timeout: float) -> None:
        """Wait until every request was answered, at most `timeout` seconds."""
        with anyio.move_on_after(timeout):
            await self._settled.wait()


class _Sink:
    """A descriptor that is written to without blocking, and that stays blocking for others who share it."""

    def __init__(self, descriptor: int) -> None:
        self._own: int | None = None
        self._socket: socket.socket | None = None
        self.descriptor = descriptor
        self._write: Callable[[memoryview], int] = self._in_small_pieces
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(kind):
            self._reopen()
        elif stat.S_ISSOCK(kind):
            self._socket = socket.socket(fileno=os.dup(descriptor))
            self._write = self._send
        self._poll = select.poll()
        self._poll.register(self.descriptor, select.POLLOUT)

    def _reopen(self) -> None:
        """Open the pipe again, so that only our descriptor does not block. Linux allows this."""
        if sys.platform != "linux":
            return
        with contextlib.suppress(OSError):
            self._own = os.open(f"/proc/self/fd/{self.descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self.descriptor = self._own
            self._write = self._to_own
            fcntl.fcntl(self._own, fcntl.F_SETPIPE_SZ, _PIPE)

    def write(self, data: memoryview) -> int:
        """Write some of the bytes and return how many: none if the reader is behind. Raises `OSError`."""
        try:
            return self._write(data)
        except BlockingIOError:
            return 0

    def _to_own(self, data: memoryview) -> int:
        return os.write(self.descriptor, data)

    def _send(self, data: memoryview) -> int:
        assert self._socket is not None
        return self._socket.send(data, socket.MSG_DONTWAIT)

    def _in_small_pieces(self, data: memoryview) -> int:
        # The most bytes that a pipe which is ready certainly accepts at once.
        return os.write(self.descriptor, data[: select.PIPE_BUF]) if self._poll.poll(0) else 0

    def close(self) -> None:
        """Close what belongs to us alone."""
        if self._own is not None:
            os.close(self._own)
        if self._socket is not None:
            self._socket.close()
