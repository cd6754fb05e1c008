"""Who runs now and who waits: so many at once, so many in a queue, the rest is refused at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.errors import Busy


class Turns:
    """Lets `at_once` in, lets `waiting` wait, and refuses the rest; `what` says for whom, as a sentence begins."""

    def __init__(self, what: str, at_once: int, waiting: int) -> None:
        self._what = what
        self._at_once = at_once
        self._room = waiting
        self._free = asyncio.Semaphore(at_once)
        self._waiting = 0

    @property
    def full(self) -> bool:
        """Whether who comes now has to wait."""
        return self._free.locked()

    async def enter(self, seconds: float | None) -> None:
        """Wait for a place, for at most so many seconds. Raises `Busy`."""
        if self.full and self._waiting >= self._room:
            raise self._busy(f"and {self._room} wait")
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await self._free.acquire()
        except TimeoutError:
            raise self._busy(f"and none ended in {seconds:g} seconds") from None
        finally:
            self._waiting -= 1

    async def reenter(self) -> None:
        """Wait for a place without being counted among those who wait."""
        await self._free.acquire()

    def leave(self) -> None:
        """Give the place back."""
        self._free.release()

    def _busy(self, how: str) -> Busy:
        return Busy(f"{self._what}, {self._at_once} at once, {how}.", suggestion="Try again in a moment.")


class Turn:
    """One place among `Turns`, which may be left for a while and is never given back twice."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._held = False

    async def take(self) -> None:
        """Wait for the place. Raises `Busy`."""
        await self._turns.enter(None)
        self._held = True

    def leave(self) -> None:
        """Give the place back, if it is held."""
        if self._held:
            self._held = False
            self._turns.leave()

    async def _return(self) -> None:
        """Wait for the place left before, whoever else waits: who was let in once is not refused later."""
        await self._turns.reenter()
        self._held = True

    @asynccontextmanager
    async def and_one_of(self, others: Turns, seconds: float) -> AsyncGenerator[None]:
        """Hold a place among `others` too; who has to wait for it leaves this one meanwhile. Raises `Busy`.

        Of the parts of a call that wait side by side, the first leaves it and comes back to it.
        """
        waits = self._held and others.full
        if waits:
            self.leave()
        await others.enter(seconds)
        try:
            if waits:
                await self._return()
            yield
        finally:
            others.leave()
