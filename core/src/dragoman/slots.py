"""Slots for work in a database: so many at once, each given back only when the work in it is known to be gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any


class Slots(asyncio.Semaphore):
    """So many slots. Each holder gives its slot back, at once or when work that outlives the caller is done.

    `busy`: makes the error of a caller who waited in vain, from the number of slots that such work occupies.
    `locked()` says whether none is free; `acquire()` and `release()` are for callers that see to all of it themselves.
    """

    def __init__(self, size: int, busy: Callable[[int], Exception]) -> None:
        super().__init__(size)
        self._busy = busy
        self.outliving = 0

    async def take(self, seconds: float) -> None:
        """Take a slot. Raises what `busy` makes when none comes free within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self.acquire()
        except TimeoutError:
            raise self._busy(self.outliving) from None

    def release_after(self, work: Iterable[asyncio.Future[Any]]) -> None:
        """Give a slot back once all of `work` is done, however it ends."""
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
        """Hold a slot, waiting for it without end unless `seconds` are given. Raises what `busy` makes."""
        await (self.acquire() if seconds is None else self.take(seconds))
        slot = Slot()
        try:
            yield slot
        finally:
            self.release_after(slot.work)


class Slot:
    """A slot that is held. `work`: what has to be done before it is free again, even after the caller has left."""

    def __init__(self) -> None:
        self.work: set[asyncio.Future[Any]] = set()
