"""Applies a new configuration while a server runs. A wrong one changes nothing and is logged."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING

from dragoman.mcp.signals import reloading

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.config import Configuration
    from dragoman.mcp.prefork import Worker
    from dragoman.tools import Toolbox

LOGGER = logging.getLogger("dragoman.mcp")

LOOK = 1.0
"""Seconds between two looks at the files, if they are watched."""
Reread = Callable[[], "Configuration"]
"""Reads the configuration again, from the same place as at the start. Raises `ConfigurationError`."""


@contextmanager
def reload_on_signal(toolbox: Toolbox, reread: Reread | None) -> Generator[None]:
    """Apply the configuration again at every SIGHUP, one after the other."""
    if reread is None:
        yield
        return
    tasks: set[asyncio.Task[bool]] = set()
    one = asyncio.Lock()

    async def reload() -> bool:
        async with one:
            return await _reload(toolbox, reread)

    def begin() -> None:
        task = asyncio.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    with _watching(toolbox, begin), reloading(begin):
        yield
    for task in tasks:
        task.cancel()


@contextmanager
def reload_with_others(toolbox: Toolbox, worker: Worker) -> Generator[None]:
    """Apply the configuration that the first process sends; report to it every reason to read it again."""
    ordered: list[Configuration] = []

    async def reload(configuration: Configuration) -> bool:
        def take() -> Configuration:
            ordered[:] = [configuration]
            return configuration

        return await _reload(toolbox, take)

    def prepare(configuration: Configuration) -> Callable[[], None]:
        is_ordered = any(configuration is each for each in ordered)
        return lambda: None if is_ordered else worker.announce_change()

    def stop() -> None:
        if not toolbox.gateway.stopping:
            os.kill(os.getpid(), signal.SIGTERM)

    # An administrator's tool changes the configuration of its own worker.
    toolbox.parts.append(prepare)
    with worker.attending(stop, reload), reloading(worker.announce_change):
        if worker.index:
            yield
        else:
            with _watching(toolbox, worker.announce_change):
                yield


@contextmanager
def _watching(toolbox: Toolbox, changed: Callable[[], None]) -> Generator[None]:
    """Call `changed` when the configuration file or the server's certificate changes, if they are watched."""
    if not toolbox.gateway.configuration.server.watch:
        yield
        return
    task = asyncio.create_task(_watch(toolbox, _contents(toolbox.gateway.configuration), changed))
    try:
        yield
    finally:
        task.cancel()


async def _watch(toolbox: Toolbox, before: bytes, changed: Callable[[], None]) -> None:
    """Call `changed` whenever the content of a file changes that a reload reads again."""
    looks = Looks(before)
    while True:
        await asyncio.sleep(LOOK)
        if looks.is_news(await asyncio.to_thread(_contents, toolbox.gateway.configuration)):
            changed()


class Looks:
    """What was seen of the files, one look after the other."""

    def __init__(self, taken: bytes) -> None:
        self._taken = self._seen = taken

    def is_news(self, now: bytes) -> bool:
        """Return whether a content differs from the one that was taken, and was there at the last look already.

        An editor that writes in place may be halfway. The first half of a file can be valid, and say nothing of roles.
        Empty: there was nothing to read.
        """
        settled, self._seen = now == self._seen, now
        if not settled or now in (b"", self._taken):
            return False
        self._taken = now
        return True


def _contents(configuration: Configuration) -> bytes:
    """Return digests of the configuration file and of the server's certificate; empty without the first one now."""
    file, server = configuration.source, configuration.server
    written = _content(file)
    if file is not None and not written:
        return b""
    return b"/".join((written, _content(server.tls_cert), _content(server.tls_key)))


def _content(file: Path | None) -> bytes:
    """Return a digest of the content; empty for a file that cannot be read now, for instance while it is replaced.

    A pipe or a device is never read: that could last forever, and the server could not end.
    """
    try:
        if file is None or not file.is_file():
            return b""
        # Without waiting, in case a pipe has taken its place by now.
        with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as opened:
            return sha256(opened.read() or b"").digest()  # None: it has become a pipe
    except OSError:
        return b""


async def _reload(toolbox: Toolbox, reread: Reread) -> bool:
    """Apply the configuration. Return whether it was applied."""
    from dragoman.gateway.reloading import changed_keys, log_failure  # not before the handshake

    before = toolbox.gateway.configuration
    try:
        databases = await toolbox.reload_from(reread)
    except Exception as error:  # otherwise nobody would learn that a restriction is not in force
        log_failure(error)
        return False
    changed = changed_keys(before, toolbox.gateway.configuration, databases)
    LOGGER.info("the configuration was applied; changed: %s", ", ".join(changed) or "nothing")
    return True
