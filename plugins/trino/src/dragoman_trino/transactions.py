"""Read-only transactions: the server itself refuses to write in them.

Each statement has one of its own, so that what a catalog caches during a transaction never grows old. Beginning one
takes three requests, so transactions are begun ahead, while nobody waits.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from dragoman import DragomanError, InternalError

if TYPE_CHECKING:
    from dragoman_trino.client import Client

HEADER: Final = "X-Trino-Transaction-Id"
MOST_IDLE: Final = 60.0
"""Seconds after which an unused transaction is left to the server, which drops it."""

MOST_USERS: Final = 32
"""The number of users for whom transactions are begun ahead. The least recently used is dropped first."""

_BEGIN: Final = "START TRANSACTION ISOLATION LEVEL READ UNCOMMITTED, READ ONLY"
_STARTED: Final = "x-trino-started-transaction-id"
_TIMEOUT: Final = 10.0


class Transactions:
    """Begins and ends transactions of one user. Keeps as many ready as were in use at once, at most `size`."""

    def __init__(self, client: Client, size: int, user: str | None = None) -> None:
        self._client = client
        self._user = user
        self._size = size
        self._ready: deque[tuple[str, float]] = deque()
        self._coming = 0

    @asynccontextmanager
    async def lend(self, seconds: float) -> AsyncGenerator[str]:
        """Lend a transaction in which nothing has run. Afterwards it is rolled back, and nobody waits for that."""
        identifier = self._take() or await self._begin(seconds)
        try:
            yield identifier
        finally:
            self._client.later(self._renew(identifier))

    def forget(self) -> None:
        """Drop the transactions that were begun ahead: the server does not know one of them."""
        self._ready.clear()

    def _take(self) -> str | None:
        while self._ready:
            identifier, since = self._ready.pop()
            if time.monotonic() - since < MOST_IDLE:
                return identifier
        return None

    async def _begin(self, seconds: float) -> str:
        headers = await self._client.headers(_BEGIN, seconds, {HEADER: "NONE"}, self._user)
        if _STARTED not in headers:
            raise InternalError("The server did not begin a transaction.")
        return headers[_STARTED]

    async def _renew(self, identifier: str) -> None:
        """End a transaction and begin the next one, unless enough are ready or being begun."""
        with suppress(DragomanError):  # the next caller that needs one gets the error
            await self._end(identifier)
            if len(self._ready) + self._coming < self._size:
                self._coming += 1
                try:
                    self._ready.append((await self._begin(_TIMEOUT), time.monotonic()))
                finally:
                    self._coming -= 1

    async def _end(self, identifier: str) -> None:
        await self._client.headers("ROLLBACK", _TIMEOUT, {HEADER: identifier}, self._user)

    async def aclose(self) -> None:
        """End the transactions that were begun ahead, and begin no more."""
        self._size = 0
        await self._client.settle()
        await self.end()

    async def end(self) -> None:
        """End the transactions that were begun ahead."""
        while (identifier := self._take()) is not None:
            try:
                await self._end(identifier)
            except DragomanError:
                return


class UsersTransactions:
    """The transactions of each user for whom statements run. No transaction belongs to two users."""

    def __init__(self, client: Client, size: int) -> None:
        self._client = client
        self._size = size
        self._known: OrderedDict[str | None, Transactions] = OrderedDict()

    def of(self, user: str | None) -> Transactions:
        """Return the transactions of a user; None: the user who signs in."""
        if user not in self._known:
            self._known[user] = Transactions(self._client, self._size, user)
            if len(self._known) > MOST_USERS:
                self._client.later(self._known.popitem(last=False)[1].end())
        self._known.move_to_end(user)
        return self._known[user]

    async def aclose(self) -> None:
        """End the transactions that were begun ahead, and begin no more."""
        for each in self._known.values():
            await each.aclose()
