"""Places that several parties take turns at, however much each of them wants."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager


class Turns:
    """A number of places. While all are taken, parties wait in a circle: each gets one before any gets another."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def hold(self, party: Hashable) -> AsyncGenerator[None]:
        """Hold a place for a party, once one is free. May be cancelled."""
        await self._take(party)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, party: Hashable) -> None:
        if self._free:  # then nobody waits
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(party, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it came at the same moment
                self._give_back()
            raise

    def _give_back(self) -> None:
        while self._waiting:
            party, turns = next(iter(self._waiting.items()))
            turn = turns.popleft()
            del self._waiting[party]
            if turns:
                self._waiting[party] = turns  # behind all others
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
