"""Work that several callers want at the same time and that is done once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable


class SingleFlight:
    """Callers that want the same key while it is being worked on share the work. None of them can cancel it."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work`, or wait for the same work if it is already running for this key. Raises what the work raises."""
        await asyncio.shield(self.start(key, work))

    async def run_anew(self, key: Hashable, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work` as `run` does, but share only what begins from now on: what runs already may miss what is new."""
        running = self._tasks.get(key)
        if running is not None:
            await asyncio.wait({running})
        await self.run(key, work)

    def start(self, key: Hashable, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Start `work`, unless the work of this key is already running. Nobody has to wait for it.

        Work that has ended is no longer running, though its callbacks have yet to run: a caller who waited for it until
        it had done what that caller needs would block the event loop for ever.
        """
        task = self._tasks.get(key)
        if task is None or task.done():
            task = asyncio.create_task(_wait_for(work))
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._land(key, done))
        return task

    def _land(self, key: Hashable, task: asyncio.Task[None]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        if not task.cancelled():
            task.exception()  # marks it as retrieved: every caller may be gone

    async def aclose(self) -> None:
        """End all running work."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _wait_for(work: Callable[[], Awaitable[None]]) -> None:
    await work()
