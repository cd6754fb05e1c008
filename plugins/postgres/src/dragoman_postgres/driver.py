"""The driver's connection, with what the driver lacks.

Bytes are bounded as they arrive, what the server tells of columns is kept, and types are looked up where nobody's
functions can be taken for the system's.
"""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import AsyncGenerator, Awaitable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement

if TYPE_CHECKING:
    _Connection = asyncpg.Connection[asyncpg.Record]
else:
    _Connection = asyncpg.Connection

T = TypeVar("T")
Statement: TypeAlias = "PreparedStatement[asyncpg.Record]"

_APART = "SAVEPOINT apart; SET LOCAL search_path = pg_catalog, pg_temp"
_BACK = "ROLLBACK TO SAVEPOINT apart; RELEASE SAVEPOINT apart"


class TooMuch(Exception):
    """The server sent more than it may; the connection is gone."""


class Tap(asyncio.Protocol):
    """Stands between the socket and the driver: counts what arrives, keeps it when asked, and ends what is too much."""

    def __init__(self, transport: asyncio.Transport, driver: asyncio.Protocol) -> None:
        self._transport = transport
        self._driver = driver
        self.left: float = math.inf
        self.kept: bytearray | None = None

    def data_received(self, data: bytes) -> None:
        """Hand bytes on to the driver, unless they are more than may come."""
        self.left -= len(data)
        if self.left < 0:
            self._transport.abort()
            return
        if self.kept is not None:
            self.kept += data
        self._driver.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the driver."""
        self._driver.connection_lost(exc)

    def pause_writing(self) -> None:
        """Tell the driver."""
        self._driver.pause_writing()

    def resume_writing(self) -> None:
        """Tell the driver."""
        self._driver.resume_writing()


class Connection(_Connection):
    """A connection of the driver; made by it, as its `connection_class`."""

    def __init__(self, protocol: Any, transport: Any, *rest: Any) -> None:
        super().__init__(protocol, transport, *rest)
        self._tap = Tap(transport, protocol)
        transport.set_protocol(self._tap)

    async def within(self, most: int, work: Awaitable[T]) -> T:
        """Await what the server is asked for. Raises `TooMuch` when it sends more than `most` bytes.

        Nothing less than closing the socket stops a server in the middle of a row. So when the work is cancelled, what
        still comes of it stays bounded, until `unbound`.
        """
        self._tap.left = most
        try:
            done = await work
        except (asyncpg.PostgresConnectionError, OSError):
            if self._tap.left < 0:
                raise TooMuch from None
            raise
        self.unbound()
        return done

    def unbound(self) -> None:
        """Let the server send what it will again."""
        self._tap.left = math.inf

    async def compile(self, text: str, name: str) -> tuple[Statement, tuple[int, ...]]:
        """Prepare a statement; return it with the type modifiers of its columns, -1 where there is none."""
        self._tap.kept = kept = bytearray()
        try:
            return await self.prepare(text, name=name), modifiers(kept)
        finally:
            self._tap.kept = None

    async def _introspect_types(self, *given: Any) -> Any:
        async with self._apart():
            return await super()._introspect_types(*given)  # type: ignore[misc]

    async def _introspect_type(self, *given: Any) -> Any:
        async with self._apart():
            return await super()._introspect_type(*given)  # type: ignore[misc]

    @asynccontextmanager
    async def _apart(self) -> AsyncGenerator[None]:
        """While it is entered, names are the system's: the driver's queries about types trust the search path."""
        await self.execute(_APART)
        yield
        await self.execute(_BACK)


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
    """After their number, each column has its name, ended by NUL, and 18 bytes: the modifier is bytes 13 to 16."""
    (count,) = struct.unpack_from("!h", answer, place)
    place += 2
    for _ in range(count):
        place = answer.index(0, place) + 1
        yield struct.unpack_from("!i", answer, place + 12)[0]
        place += 18
