"""The driver's connection, with additions to the driver.

Bytes are counted and bounded as they arrive, the server's descriptions of columns are kept, and types are looked up
where nobody's functions can be mistaken for the system's.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import asyncpg
from asyncpg import connect_utils
from asyncpg.prepared_stmt import PreparedStatement
from dragoman import ResultTooLarge

from dragoman_postgres.batches import SYNC, Batch
from dragoman_postgres.deadline import Deadline

if TYPE_CHECKING:
    _Connection = asyncpg.Connection[asyncpg.Record]
else:
    _Connection = asyncpg.Connection

Statement: TypeAlias = "PreparedStatement[asyncpg.Record]"

OURS = 4 * 1024 * 1024
"""Bytes that the server may send beside a caller's answer: descriptions, and answers about types."""
CATALOG = 512 * 1024 * 1024
"""The most bytes of a read of the catalog."""
MOST_TOLD = 1024 * 1024
"""Bytes of one error or notice; the driver takes a time for them that grows with their square."""

_APART = "SAVEPOINT apart; SET LOCAL search_path = pg_catalog, pg_temp"
_BACK = "ROLLBACK TO SAVEPOINT apart; RELEASE SAVEPOINT apart"
_TERMINATE = b"X\0\0\0\4"
_HEAD = struct.Struct("!BI")
_TOLD = (ord("E"), ord("N"))
_ERROR = ord("E")
_PARAMETERS = ord("t")
_ANSWERS = frozenset(b"123CtT")
"""The kinds of messages that answer a command: parsed, bound, closed, complete, its parameters, its columns."""
# A peer that has vanished without a word is noticed within half a minute.
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}


class TooMuch(ResultTooLarge):
    """The server sent more than it may. Nothing more is read from this connection."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"The database's answer takes more than {most} bytes as the server writes it; it was not read.",
            suggestion="Select fewer columns or rows, or shorter values, for instance with substr().",
        )


class CountingProtocol(asyncio.Protocol):
    """Stands between the socket and the driver: counts what arrives, and ends answers that are too large.

    It keeps what arrives on request. Whatever the server sends after the end is dropped: a server that waits for its
    reader notices no cancellation. `gone` is done once the server has closed the connection, which is the last thing it
    does.
    """

    def __init__(self, aside: list[Aside], driver: asyncio.Protocol) -> None:
        self._driver = driver
        self._frames: Frames | None = None
        self._most = self._left = CATALOG
        self._deadline: Deadline | None = None
        self.kept: bytearray | None = None
        self.aside = aside
        self.deaf = False
        self.gone = asyncio.get_running_loop().create_future()

    def allow(self, most: int, *, trusted: bool = False, deadline: Deadline | None = None) -> None:
        """Let the server send `most` bytes from now on. Beyond them the connection is lost, because of `TooMuch`.

        `deadline`: of a caller's statement. It keeps the statement's rows when the deadline passes. Call it between the
        server's answers. After a cancellation, what still arrives stays bounded until the next `allow`. `trusted`: no
        caller influences what the server sends.
        """
        self._most = self._left = most
        self._deadline = deadline
        # Looking at every message costs time, which what is so short or no caller's does not need.
        self._frames = None if trusted or most <= OURS else Frames(OURS)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on to the driver, unless they are more than may come."""
        if self.deaf:
            return
        self._left -= len(data)
        if self._left < 0 or (self._frames and self._frames.tell(data) > MOST_TOLD):
            self.end(TooMuch(self._most))
            return
        while self.aside and data:
            data = self.aside[0].take(data)
            if self.aside[0].left:
                break
            del self.aside[0]
        if not data:
            return
        if self.kept is not None:
            self.kept += data
        if self._deadline is not None:
            if time.monotonic() < self._deadline.near:
                self._deadline.passed.append(data)
            else:
                data = self._deadline.change(data)
        self._driver.data_received(data)

    def end(self, why: Exception | None) -> None:
        """Tell the driver that the connection is lost. The socket stays open until the server has closed it."""
        if not self.deaf:
            self.deaf = True
            self._driver.connection_lost(why)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the event on to the driver."""
        self.end(exc)
        if not self.gone.done():
            self.gone.set_result(None)

    def pause_writing(self) -> None:
        """Pass the event on to the driver."""
        self._driver.pause_writing()

    def resume_writing(self) -> None:
        """Pass the event on to the driver."""
        self._driver.resume_writing()


class Frames:
    """Follows the server's messages from one to the next: a byte that says its kind, four that say its length.

    It begins once more than `unseen` bytes have arrived: no message in fewer is a burden.
    """

    def __init__(self, unseen: int) -> None:
        self._unseen = unseen
        self._arrived: list[bytes] = []
        self._head = b""
        self._rest = 0

    def tell(self, data: bytes) -> int:
        """Return the length of the longest error or notice that begins in what has arrived and was not looked at."""
        if self._unseen >= 0:
            self._unseen -= len(data)
            self._arrived.append(data)
            if self._unseen >= 0:
                return 0
            data, self._arrived = b"".join(self._arrived), []
        if self._rest >= len(data):
            self._rest -= len(data)
            return 0
        arrived = self._head + data[self._rest :]
        longest = place = 0
        while place + 5 <= len(arrived):
            kind, length = _HEAD.unpack_from(arrived, place)
            if kind in _TOLD:
                longest = max(longest, length)
            place += 1 + length
        self._rest = max(place - len(arrived), 0)
        self._head = arrived[place:]
        return longest


@dataclass(slots=True)
class Aside:
    """Removes the answers to a `Batch` from the data that arrives. `left`: the number of answers still to come.

    The driver sees an error, and no more answers come after it. `parameters`: the OIDs of the types that the first
    description of parameters names.
    """

    left: int
    last: int
    parameters: tuple[int, ...] | None = None
    _held: bytes = b""

    def take(self, data: bytes) -> bytes:
        """Return the part of the data that the driver should see."""
        data, place, seen = self._held + data, 0, b""
        while self.left and place + _HEAD.size <= len(data):
            kind, length = _HEAD.unpack_from(data, place)
            end = place + 1 + length
            if end > len(data):
                break
            if kind == _ERROR:
                self.left = 0
                break
            if kind not in _ANSWERS:
                seen += data[place:end]
            elif kind == _PARAMETERS and self.parameters is None:
                self.parameters = struct.unpack_from(f"!{(length - 6) // 4}I", data, place + 7)
            self.left -= kind == self.last
            place = end
        self._held = data[place:] if self.left else b""
        return seen if self.left else seen + data[place:]


class Transport:
    """The driver's way to the socket. It sends commands of ours in one write with the driver's own.

    Each write wakes the server, and costs both sides more than the commands of a transaction do. `aside`: the answers
    that the driver does not see, in order.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.aside: list[Aside] = []
        self._held = b""
        self._behind = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def send_with_next(self, before: Batch | None, behind: Batch | None = None) -> Aside | None:
        """Send commands in one batch with the driver's next message, which runs or prepares a statement.

        Return what takes the answers to those `before`.

        The driver must have all its answers, and no cancellation may be on its way. The answers to those `before` are
        taken out of what arrives; when one of them fails, its error is the statement's, which does not run. Those
        `behind` a statement run only if it succeeds. The driver takes their answers for the statement's own: its rows
        stay, its status is the last command's.
        """
        if before is not None:
            self._held += before.messages
            self.aside.append(Aside(before.answers, before.last))
        if behind is not None:
            self._behind = behind.messages
        return self.aside[-1] if before is not None else None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send this, with what belongs before and behind it."""
        if self._behind:
            whole, behind, self._behind = bytes(data), self._behind, b""
            data = whole.removesuffix(SYNC) + behind + SYNC if whole.endswith(SYNC) else data
        if self._held:
            data, self._held = b"".join((self._held, data)), b""
        self.transport.write(data)


class Opening(asyncio.Protocol):
    """Stands before a protocol of the driver while a connection is opened, and gives it a `Transport`."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.transport: Transport | None = None

    def connection_made(self, transport: Any) -> None:
        """Pass the event on to the driver."""
        self.transport = Transport(transport)
        self.driver.connection_made(self.transport)

    def data_received(self, data: bytes) -> None:
        """Pass the event on to the driver."""
        self.driver.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the event on to the driver."""
        self.driver.connection_lost(exc)


class Loop:
    """The event loop as the driver sees it.

    Its connections get a `Transport`; the driver offers no other way for that.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        # Methods that it calls for each statement, bound directly.
        self.create_future = loop.create_future
        self.call_later = loop.call_later

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loop, name)

    async def create_connection(self, factory: Callable[[], Any], *address: Any, **how: Any) -> tuple[Any, Any]:
        """Connect over TCP."""
        return _split(await self.loop.create_connection(lambda: Opening(factory()), *address, **how))

    async def create_unix_connection(self, factory: Callable[[], Any], *address: Any, **how: Any) -> tuple[Any, Any]:
        """Connect to a socket of this machine."""
        return _split(await self.loop.create_unix_connection(lambda: Opening(factory()), *address, **how))

    async def start_tls(self, transport: Transport, *context: Any, **how: Any) -> Transport | None:
        """Continue with encryption."""
        encrypted = await self.loop.start_tls(transport.transport, *context, **how)
        return None if encrypted is None else Transport(encrypted)


def _split(opened: tuple[Any, Opening]) -> tuple[Any, Any]:
    return opened[1].transport, opened[1].driver


_RANGES = (b"r", b"m")
"""Ranges and multiranges, as pg_type has them."""


class Connection(_Connection):
    """A connection of the driver, which creates it as its `connection_class`, with a `Loop`.

    `cluster`: the identifier of the cluster that it reached. None: it is not known. `path`: the search path that it was
    given.
    """

    cluster: str | None = None
    path: str | None = None

    def __init__(self, protocol: Any, transport: Any, loop: Loop, *rest: Any) -> None:
        super().__init__(protocol, transport, loop.loop, *rest)
        self._own_transport = transport
        self._counting = CountingProtocol(transport.aside, protocol)
        self.allow = self._counting.allow
        self.send_with_next = transport.send_with_next
        self._leaving = False
        self._key = protocol.backend_pid, protocol.backend_secret
        transport.set_protocol(self._counting)
        _keep_alive(transport.get_extra_info("socket"))

    async def leave(self) -> None:
        """End everything that the server does for us, and return once it has closed the connection.

        Takes as long as the server does. May be called again.
        """
        if not self._leaving and not self._counting.gone.done():
            self._leaving = True
            self._counting.end(None)
            self._own_transport.write(_TERMINATE)
            await self._ask_to_stop()
        await asyncio.shield(self._counting.gone)

    async def _ask_to_stop(self) -> None:
        own: Any = self
        cancel: Any = connect_utils._cancel  # type: ignore[attr-defined]  # the driver offers it for its own statements alone
        pid, secret = self._key
        with contextlib.suppress(OSError):  # otherwise its deadline ends it
            await cancel(loop=own._loop, addr=own._addr, params=own._params, backend_pid=pid, backend_secret=secret)

    def abort(self) -> None:
        """Close the socket at once, whatever the server is doing."""
        self._counting.end(None)
        self._own_transport.abort()

    async def compile(self, text: str, name: str) -> tuple[Statement, tuple[int, ...]]:
        """Prepare a statement. Return it with the type modifiers of its columns, -1 for none."""
        self._counting.kept = kept = bytearray()
        try:
            return await self.prepare(text, name=name), modifiers(kept)
        finally:
            self._counting.kept = None

    async def _cleanup_stmts(self) -> None:
        """Close statements that nobody uses any more, without waiting for each, as the driver would."""
        own: Any = self
        closing, own._stmts_to_close = own._stmts_to_close, set()
        self.send_with_next(Batch.closing([statement.name for statement in closing]))

    async def set_type_codec(self, typename: str, *, schema: str = "public", **codec: Any) -> None:
        """Set how values are sent and read, also of ranges. The driver refuses those, but can send their texts."""
        known = await self._introspect_type(typename, schema)
        if known["kind"] not in _RANGES:
            return await super().set_type_codec(typename, schema=schema, **codec)
        own: Any = self
        how = codec["encoder"], codec["decoder"], codec["format"]
        own._protocol.get_settings().add_python_codec(known["oid"], typename, schema, [], "scalar", *how)
        own._drop_local_statement_cache()

    async def _introspect_types(self, *given: Any) -> Any:
        async with self._apart():
            return await super()._introspect_types(*given)  # type: ignore[misc]

    async def _introspect_type(self, *given: Any) -> Any:
        async with self._apart():
            return await super()._introspect_type(*given)  # type: ignore[misc]

    @contextlib.asynccontextmanager
    async def _apart(self) -> AsyncGenerator[None]:
        """Make names mean the system's own inside the block: the driver's queries about types trust the search path."""
        await self.execute(_APART)
        yield
        await self.execute(_BACK)


def _keep_alive(connected: socket.socket) -> None:
    if connected.family == socket.AF_UNIX:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if option := getattr(socket, name, None):  # not every system has all of them
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def modifiers(answer: bytes | bytearray) -> tuple[int, ...]:
    """Return the type modifiers in the first description of rows among the server's messages."""
    place = 0
    while place < len(answer):
        kind, length = struct.unpack_from("!cI", answer, place)
        if kind == b"T":
            return tuple(_modifiers(answer, place + 5))
        place += 1 + length
    return ()


def _modifiers(answer: bytes | bytearray, place: int) -> Iterator[int]:
    """Yield the modifiers.

    After their number, each column has its name, ended by NUL, and 18 bytes; the modifier is bytes 13 to 16.
    """
    (count,) = struct.unpack_from("!h", answer, place)
    place += 2
    for _ in range(count):
        place = answer.index(0, place) + 1
        yield struct.unpack_from("!i", answer, place + 12)[0]
        place += 18
