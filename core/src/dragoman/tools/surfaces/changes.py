"""Changes of what a client has read. They are sent to clients that listen, and detected only while one does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dragoman.errors import DragomanError
from dragoman.gateway import Gateway
from dragoman.kept import Owner
from dragoman.tools.surfaces import uris

PERIOD = 2.0
"""Seconds between two checks of the fingerprint of a database that somebody listens to."""
SHARE = 20
"""A check takes at most one of this many parts of the time: some engines run many queries for it."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change:
    """A list has changed, or the content of a resource, whose address is `uri`.

    The address of a schema stands for its tables, too. `owner`: whose it is; None: everybody's.
    """

    kind: Literal["tools", "resources", "prompts", "resource"]
    uri: str = ""
    owner: Owner | None = None


Listener = Callable[[Change], None]


class Backlog:
    """Keeps changes, each once, until the client can be notified."""

    def __init__(self) -> None:
        self._kept: dict[Change, None] = {}
        self._listener: Listener | None = None

    def note(self, change: Change) -> None:
        """Notify the client, or keep the change until that is possible."""
        if self._listener is None:
            self._kept[change] = None
        else:
            self._listener(change)

    def deliver_to(self, listener: Listener) -> None:
        """Pass the kept changes to `listener`, and from now on every change."""
        self._listener = listener
        for change in self._kept:
            listener(change)
        self._kept.clear()


ListKind = Literal["prompts", "resources"]
Mark = set[tuple[str, int, int]]
"""The name, modification time and size of each file."""


class Changes:
    """Notifies listeners of changes. `period`: seconds between two checks.

    `take_queries` is called when files of saved queries have changed, before listeners are notified.
    """

    def __init__(self, gateway: Gateway, period: float = PERIOD) -> None:
        self._gateway = gateway
        self._period = period
        self.take_queries: Callable[[], None] | None = None
        self._listeners: list[tuple[Listener, Owner | None]] = []
        self._watched: Counter[str] = Counter()
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by database
        self._files_task: asyncio.Task[None] | None = None
        # Before anybody reads them, so that a change while they are read counts as a change.
        self._files = self._mark_files()
        gateway.kept.announce_to(lambda owner: self.tell(Change("resources", owner=owner)))

    @contextmanager
    def listening(self, listener: Listener, owner: Owner | None = None) -> Generator[None]:
        """Notify `listener` of changes inside the block, and of those of the caller's own. It must not raise."""
        entry = (listener, owner)
        self._listeners.append(entry)
        task = self._files_task = self._files_task or asyncio.create_task(self._look_at_files())
        try:
            yield
        finally:
            self._listeners.remove(entry)
            if not self._listeners:
                task.cancel()
                self._files_task = None

    def tell(self, change: Change) -> None:
        """Notify all listeners whom the change concerns."""
        for listener, owner in tuple(self._listeners):
            if change.owner in (None, owner):
                listener(change)

    async def _look_at_files(self) -> None:
        """Notify listeners when files of prompts or of saved queries are added or changed."""
        while True:
            await asyncio.sleep(self._period)
            before, self._files = self._files, await asyncio.to_thread(self._mark_files)
            for kind, mark in self._files.items():
                if mark != before[kind]:
                    self._take_files(kind)

    def _take_files(self, kind: ListKind) -> None:
        if kind == "resources" and self.take_queries is not None:
            self.take_queries()
        self.tell(Change(kind))

    def _mark_files(self) -> dict[ListKind, Mark]:
        server = self._gateway.configuration.server
        return {"prompts": _mark(server.prompts_dir, "*.md"), "resources": _mark(server.queries_dir, "*.sql")}

    @contextmanager
    def watching(self, addresses: Collection[str]) -> Generator[None]:
        """Check inside the block whether the schemas behind these addresses change."""
        for uri in addresses:
            self.watch(uri)
        try:
            yield
        finally:
            for uri in addresses:
                self.leave(uri)

    def watch(self, uri: str) -> None:
        """Check the schema behind an address, until `leave`."""
        self._watched[uris.whole(uri)] += 1
        name = uris.database(uri)
        if name in self._gateway.names and name not in self._tasks:
            self._tasks[name] = asyncio.create_task(self._look(name))

    def leave(self, uri: str) -> None:
        """Undo one `watch`."""
        whole, name = uris.whole(uri), uris.database(uri)
        self._watched[whole] -= 1
        if not self._watched[whole]:
            del self._watched[whole]
            if name in self._tasks:
                self._tasks.pop(name).cancel()

    async def _look(self, name: str) -> None:
        before, took = await self._mark(name)
        while True:
            await asyncio.sleep(max(self._period, took * SHARE))
            after, took = await self._mark(name)
            if after is not None and before is not None and after != before:
                await self._refresh(name)
                self.tell(Change("resource", uris.expand(uris.SCHEMA, database=name)))
            before = after or before

    async def _mark(self, name: str) -> tuple[str | None, float]:
        """Return the fingerprint, and the seconds that it took."""
        began, told = time.monotonic(), None
        try:
            told = await self._gateway.database(name).inspector.fingerprint()
        except DragomanError as error:
            _log.debug("whether the schema of %s has changed could not be determined: %s", name, error)
        return told, time.monotonic() - began

    async def _refresh(self, name: str) -> None:
        """Read the catalog again, so that the next reading is not the old one."""
        try:
            await self._gateway.database(name).catalog.refresh()
        except DragomanError as error:
            _log.info("the catalog of %s was not read again: %s", name, error)


def _mark(folder: Path | None, pattern: str) -> Mark:
    """Return a mark of the files of a folder that changes when they do.

    Files that are just being removed are left out.
    """
    found: Mark = set()
    for path in folder.glob(pattern) if folder is not None else ():
        with suppress(OSError):
            state = path.stat()
            found.add((path.name, state.st_mtime_ns, state.st_size))
    return found
