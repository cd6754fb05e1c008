"""Slots for work in a database. A slot is given back only when the work in it is known to have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any


class Slots(asyncio.Semaphore):
    """A number of slots. A holder gives its slot back at once, or when work that outlives the caller has ended.

    `busy`: makes the error for a caller that waited in vain, given the number of slots that such work occupies.
    `locked()` says whether none is free. `acquire()` and `release()` are for callers that do all of this themselves.
    """

    def __init__(self, size: int, busy: Callable[[int], Exception]) -> None:
        super().__init__(size)
        self._busy = busy
        self.outliving = 0

    async def take(self, seconds: float) -> None:
        """Take a slot. Raises the error that `busy` makes if none comes free within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self.acquire()
        except TimeoutError:
            raise self._busy(self.outliving) from None

    def release_after(self, work: Iterable[asyncio.Future[Any]]) -> None:
        """Give a slot back once all of `work` has ended, however it ends."""
        left = [each for each in work if not each.done()]
        if not left:
            self.release()
            return
        self.outliving += 1
        asyncio.gather(*left, return_exceptions=True).add_done_callback(self._end)

    def _end(self, _: object) -> None:
        self.outliving -= 1
        self.release()

    @asynccontextmanager
    async def hold(self, seconds: float | None = None) -> AsyncGenerator[Slot]:
        """Hold a slot, and wait for it forever unless `seconds` is given. Raises the error that `busy` makes."""
        await (self.acquire() if seconds is None else self.take(seconds))
        slot = Slot()
        try:
            yield slot
        finally:
            self.release_after(slot.work)


class Slot:
    """A held slot. `work`: the work that must end before the slot is free again, even after the caller has left."""

    def __init__(self) -> None:
        self.work: set[asyncio.Future[Any]] = set()
