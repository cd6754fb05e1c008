"""The loop of a worker process: one thread reads orders, and the main thread runs statements.

When standard input ends, the process ends too, whatever it is doing.
"""

from __future__ import annotations

import functools
import os
import queue
import resource
import signal
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, Protocol, TypeVar

import msgspec

from dragoman.children import limit_resource
from dragoman.workers.frames import HEADER, Done, Failed, Order, Report, Run, most_bytes, pack

S = TypeVar("S", bound=msgspec.Struct)
FLUSH_AT = 64 * 1024
_ANY = 1 << 32
_TOO_LONG = Failed(
    "ResultTooLarge",
    "The answer's columns or plan have far more bytes than an answer may have.",
    "Select fewer columns, and give them short names with AS.",
)
HEADROOM = 64 * 1024 * 1024
"""Bytes of address space that a process needs beyond what statements take, for thread stacks and loaded libraries."""


class Pipe:
    """Sends messages to the executor, collected so that a small answer is one write."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._pending = bytearray()

    def send(self, message: Report, most: int = _ANY) -> None:
        """Send soon: at once when much is pending or the statement is done.

        A message longer than `most` is replaced by a failure.
        """
        packed = pack(message)
        self._pending += packed if len(packed) - HEADER <= most else pack(_TOO_LONG)
        if len(self._pending) >= FLUSH_AT or isinstance(message, Done):
            self._stream.write(self._pending)
            self._stream.flush()
            self._pending.clear()


class Session(Protocol):
    """Runs statements, one at a time."""

    def expect(self, timeout: float) -> None:
        """Announce a statement and its timeout in seconds. Called from the listening thread, as `interrupt` is."""

    def interrupt(self) -> None:
        """End the statement that runs or is about to run."""

    def run(self, order: Run, send: Callable[[Report], None]) -> None:
        """Run one statement and send what it yields. Errors are sent as `Failed`."""


def serve(kind: type[S], make: Callable[[S], Session]) -> None:
    """Serve until standard input ends. The first message is a `kind`, from which `make` makes the session."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the executor decides
    first = _read(sys.stdin.buffer)
    if first is None:
        sys.exit(2)
    session = make(msgspec.msgpack.decode(first, type=kind))
    orders: queue.SimpleQueue[Run] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(session, orders.put), daemon=True).start()
    pipe = Pipe(sys.stdout.buffer)
    pipe.send(Done())  # ready
    while True:
        order = orders.get()
        session.run(order, functools.partial(pipe.send, most=most_bytes(order)))
        pipe.send(Done())


def _listen(session: Session, put: Callable[[Run], None]) -> None:
    while body := _read(sys.stdin.buffer):
        order = _decoder.decode(body)
        if isinstance(order, Run):
            session.expect(order.timeout)
            put(order)
        else:
            session.interrupt()
    os._exit(0)


_decoder: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)


def _read(stream: BinaryIO) -> bytes | None:
    header = stream.read(HEADER)
    return stream.read(int.from_bytes(header, "big")) if len(header) == HEADER else None


def limit_resources(address_space: int, spilled: int) -> None:
    """Set limits where the engine has none of its own.

    They are in bytes: address space beyond what is mapped, and the size of files. Core dumps are switched off.
    """
    limit_resource(resource.RLIMIT_AS, _address_space() + HEADROOM + address_space)
    limit_resource(resource.RLIMIT_FSIZE, spilled)
    limit_resource(resource.RLIMIT_CORE, 0)


def _address_space() -> int:
    """Return the bytes that are mapped already, so that the limit bounds statements only.

    A guess where the kernel gives none.
    """
    try:
        with open("/proc/self/statm", encoding="ascii") as status:
            return int(status.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 30
