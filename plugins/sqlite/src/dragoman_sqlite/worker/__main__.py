"""The process that runs callers' SQL on one file; the executor starts it, and kills it when nothing else helps.

A C loop inside SQLite ignores every interrupt, so the deadline is enforced from outside as well. One thread reads
orders, the main thread runs statements; when standard input ends, so does the process, whatever it is doing.
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
from typing import BinaryIO

import msgspec

from dragoman_sqlite.frames import HEADER, Cancel, Done, Failed, Order, Report, Run, Setup, most_bytes, pack
from dragoman_sqlite.worker.session import Session

FLUSH_AT = 64 * 1024
_ANY = 1 << 32
_TOO_LONG = Failed(
    "ResultTooLarge",
    "The answer's columns, or its plan, take far more bytes than an answer may.",
    "Select fewer columns, and give them short names with AS.",
)
HEADROOM = 64 * 1024 * 1024
"""Address space, in bytes, that a process needs beside what statements take: threads' stacks, loaded libraries."""


class Pipe:
    """Messages to the executor, gathered so that a small answer is one write."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._pending = bytearray()

    def send(self, message: Report, most: int = _ANY) -> None:
        """Send soon: at once when much is pending or the statement is done. What is longer than `most` is a failure."""
        packed = pack(message)
        self._pending += packed if len(packed) - HEADER <= most else pack(_TOO_LONG)
        if len(self._pending) >= FLUSH_AT or isinstance(message, Done):
            self._stream.write(self._pending)
            self._stream.flush()
            self._pending.clear()


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the executor decides
    setup = _read(sys.stdin.buffer)
    if not isinstance(setup, Setup):
        sys.exit(2)
    _limit_resources(setup.memory)
    session = Session(setup)
    orders: queue.SimpleQueue[Run] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(session, orders.put), daemon=True).start()
    pipe = Pipe(sys.stdout.buffer)
    while True:
        order = orders.get()
        session.run(order, functools.partial(pipe.send, most=most_bytes(order)))
        pipe.send(Done())


def _listen(session: Session, put: Callable[[Run], None]) -> None:
    while order := _read(sys.stdin.buffer):
        if isinstance(order, Run):
            session.expect(order.timeout)
            put(order)
        elif isinstance(order, Cancel):
            session.interrupt()
    os._exit(0)


_decoder: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)


def _read(stream: BinaryIO) -> Order | None:
    header = stream.read(HEADER)
    if len(header) < HEADER:
        return None
    return _decoder.decode(stream.read(int.from_bytes(header, "big")))


def _limit_resources(memory: int) -> None:
    """Limits that hold where SQLite's own do not: address space, size of spilled files, no core with data in it."""
    base = _address_space()
    for kind, limit in (
        (resource.RLIMIT_AS, base + HEADROOM + 2 * memory),
        (resource.RLIMIT_FSIZE, 4 * memory),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (allowed, hard))


def _address_space() -> int:
    """Bytes mapped already, so that the limit bounds what statements take; a guess where the kernel does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as status:
            return int(status.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 30


if __name__ == "__main__":
    main()
