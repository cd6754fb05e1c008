"""Changes of what a client has read: sent to the clients that listen, and looked for only while one does."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from dragoman.errors import DragomanError
from dragoman.gateway import Gateway
from dragoman.tools.surfaces import uris

PERIOD = 2.0
"""Seconds between two looks at the fingerprint of a database somebody listens to."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change:
    """A list is another one, or what a resource holds: then `uri` says which."""

    kind: Literal["tools", "resources", "prompts", "resource"]
    uri: str = ""


Listener = Callable[[Change], None]


class Changes:
    """Tells listeners of changes. `period`: seconds between two looks."""

    def __init__(self, gateway: Gateway, period: float = PERIOD) -> None:
        self._gateway = gateway
        self._period = period
        self._listeners: list[Listener] = []
        self._watched: Counter[str] = Counter()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @contextmanager
    def listening(self, listener: Listener) -> Generator[None]:
        """Tell `listener` of changes meanwhile; it must not raise."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def tell(self, change: Change) -> None:
        """Tell everybody who listens."""
        for listener in tuple(self._listeners):
            listener(change)

    @contextmanager
    def watching(self, addresses: Collection[str]) -> Generator[None]:
        """Look meanwhile whether the schemas behind these addresses change."""
        for uri in addresses:
            self.watch(uri)
        try:
            yield
        finally:
            for uri in addresses:
                self.leave(uri)

    def watch(self, uri: str) -> None:
        """Look at what stands behind an address, until `leave`."""
        self._watched[uri] += 1
        name = _database(uri)
        if name in self._gateway.names and name not in self._tasks:
            self._tasks[name] = asyncio.create_task(self._look(name))

    def leave(self, uri: str) -> None:
        """Undo one `watch`."""
        self._watched -= Counter([uri])
        name = _database(uri)
        if name in self._tasks and not any(_database(other) == name for other in self._watched):
            self._tasks.pop(name).cancel()

    async def _look(self, name: str) -> None:
        before = await self._mark(name)
        while True:
            await asyncio.sleep(self._period)
            after = await self._mark(name)
            if after is not None and before is not None and after != before:
                await self._refresh(name)
                for uri in [uri for uri in self._watched if _database(uri) == name]:
                    self.tell(Change("resource", uri))
            before = after or before

    async def _mark(self, name: str) -> str | None:
        try:
            return await self._gateway.database(name).inspector.fingerprint()
        except DragomanError as error:
            _log.debug("whether the schema of %s has changed could not be determined: %s", name, error)
            return None

    async def _refresh(self, name: str) -> None:
        """What is read again must not be what was known before."""
        try:
            await self._gateway.database(name).catalog.refresh()
        except DragomanError as error:
            _log.info("the catalog of %s was not read again: %s", name, error)


def _database(uri: str) -> str:
    """The database whose schema stands behind an address; empty where none does."""
    found = uris.match(uri)
    return found[1]["database"] if found is not None and found[0] in (uris.SCHEMA, uris.TABLE) else ""
