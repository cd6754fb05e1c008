"""What files say about a database beside its relations: notes, and example questions whose queries were run."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Sequence

from dragoman.errors import ConnectionFailed, DragomanError
from dragoman.meaning import Example, Meaning, Note
from dragoman.meaning.search import rank

PATIENCE = 2.0
"""Seconds that a call waits until the queries of examples have run."""
Try = Callable[[str], Awaitable[None]]
"""Judges and runs a query. Raises `DragomanError`."""
_log = logging.getLogger(__name__)


class Written:
    """Notes and examples of one database. An example is shown once its query has run; one that fails is dropped."""

    def __init__(self, meaning: Meaning, attempt: Try) -> None:
        self.about = meaning.about
        self.notes: Sequence[Note] = meaning.notes
        self._waiting = list(meaning.examples)
        self._usable: list[Example] = []
        self._attempt = attempt
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start to run the queries of the examples that have not run yet."""
        running = self._task is not None and not self._task.done()
        if self._waiting and not running:
            self._task = asyncio.create_task(self._run(), context=contextvars.Context())

    async def examples(self, patience: float = PATIENCE) -> Sequence[Example]:
        """Return the examples whose queries have run. Waits at most `patience` seconds for others."""
        self.begin()
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=patience)
        return tuple(self._usable)

    async def all(self) -> list[str]:
        """Return all notes and examples, each as one text."""
        return [*map(str, self.notes), *map(str, await self.examples())]

    async def find(self, question: str, limit: int) -> list[str]:
        """Return the notes and examples that match a question, best first, each as one text."""
        return rank(question, await self.all(), str)[:limit]

    async def _run(self) -> None:
        while self._waiting:
            example = self._waiting[0]
            try:
                await self._attempt(example.sql)
            except ConnectionFailed:
                return  # the next caller tries again
            except DragomanError as error:
                _log.warning("%s: the example is dropped, its query fails: %s", example.place, error.message)
            else:
                self._usable.append(example)
            del self._waiting[0]

    async def aclose(self) -> None:
        """End running queries."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
