"""Admission: so many calls at once, so many statements on each database, a queue before either; the rest is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dragoman.errors import Busy


class Limiter:
    """Lets `most` run, lets `waiting` more wait, and refuses the rest; `what` says for whom, as a sentence begins."""

    def __init__(self, what: str, most: int, waiting: int) -> None:
        self.slots = asyncio.Semaphore(most)
        self._what = what
        self._most = most
        self._room = waiting
        self._waiting = 0

    async def acquire(self, seconds: float | None = None) -> None:
        """Take one of the slots, waiting for at most so many seconds. Raises `Busy`."""
        if not self.slots.locked():
            await self.slots.acquire()  # at once
            return
        if self._waiting >= self._room:
            raise self._busy(f"and {self._room} wait")
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await self.slots.acquire()
        except TimeoutError:
            raise self._busy(f"and none ended in {seconds:g} seconds") from None
        finally:
            self._waiting -= 1

    def _busy(self, how: str) -> Busy:
        return Busy(f"{self._what}, {self._most} at once, {how}.", suggestion="Try again in a moment.")


@dataclass(slots=True)
class Admission:
    """The slots one call holds: its own among `calls`, and its database's while a statement of it runs.

    `held`: it has its own, which is not lent to others.
    """

    calls: Limiter
    held: bool = False

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        """Lend the call's slot to others, while the call waits for something else than a database."""
        lends, self.held = self.held, False
        if lends:
            self.calls.slots.release()
        try:
            yield
        finally:
            if lends:
                await self.calls.slots.acquire()  # however many wait: a call that was let in once is not refused later
                self.held = True

    @asynccontextmanager
    async def statement(self, database: Limiter, seconds: float) -> AsyncGenerator[None]:
        """Hold a slot of a database too. While it waits, the call's slot is lent to others. Raises `Busy`.

        Of the parts of a call that wait side by side, the first lends the call's slot and takes it back.
        """
        lends = self.held and database.slots.locked()
        if lends:
            self.held = False
            self.calls.slots.release()
        await database.acquire(seconds)
        try:
            if lends:
                await self.calls.slots.acquire()  # however many wait: a call that was let in once is not refused later
                self.held = True
            yield
        finally:
            database.slots.release()
