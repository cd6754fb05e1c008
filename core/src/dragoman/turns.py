"""Places at which callers take turns, however much each of them wants."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager
from typing import Final

RECENT: Final = 300.0
"""Seconds after which callers who have no place are forgotten."""
MANY: Final = 10_000
"""The number of callers at which those who have no place are forgotten sooner."""


class Turns:
    """A number of places. A place that becomes free goes to the callers who wait in turn, one for each.

    The last free place is not for a caller who has others while somebody who was here lately has none. Whoever is alone
    has all places.

    - `free`: how many are free.
    - `held`: how many each caller has; 0 for one who was here lately.
    """

    def __init__(self, places: int) -> None:
        self.free = places
        self.held = Counter[Hashable]()
        self.waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._places = places
        self._since = time.monotonic()

    def take(self, caller: Hashable) -> bool:
        """Take a place at once. Return whether there was one."""
        if time.monotonic() > self._since + RECENT or len(self.held) >= MANY:
            self._forget()
        if not self.free or (self.free == 1 < self._places and self.held[caller] and self._is_missing()):
            return False
        self.free -= 1
        self.held[caller] += 1
        return True

    async def wait(self, caller: Hashable) -> None:
        """Take a place as soon as it is this caller's turn."""
        if self.take(caller):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.give_back(caller)
            raise

    @asynccontextmanager
    async def hold(self, caller: Hashable) -> AsyncGenerator[None]:
        """Hold a place, once it is this caller's turn."""
        await self.wait(caller)
        try:
            yield
        finally:
            self.give_back(caller)

    def waits(self, caller: Hashable) -> bool:
        """Return whether a caller waits already."""
        return any(not turn.done() for turn in self.waiting.get(caller, ()))

    def give_back(self, caller: Hashable) -> None:
        """Give a place back, to whom it is the turn of."""
        self.free += 1
        self.held[caller] -= 1
        if self.waiting:
            self.pass_on()

    def pass_on(self) -> None:
        """Give the free places to those who wait and may have them."""
        while self.free and self._pass_one_on():
            pass

    def _pass_one_on(self) -> bool:
        """Give a place to the next caller who may have it, and put that caller at the end."""
        for caller, turns in [*self.waiting.items()]:
            while turns and turns[0].done():
                turns.popleft()
            if turns and not self.take(caller):
                continue
            del self.waiting[caller]
            if turns:
                turns.popleft().set_result(None)
                if turns:
                    self.waiting[caller] = turns
                return True
        return False

    def _is_missing(self) -> bool:
        """Return whether a caller who was here lately has no place now. The gateway itself, None, can wait."""
        return any(not held for caller, held in self.held.items() if caller is not None)

    def _forget(self) -> None:
        """Forget the callers who have no place."""
        self.held = Counter({caller: held for caller, held in self.held.items() if held})
        self._since = time.monotonic()
