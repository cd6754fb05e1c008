"""Taking a new configuration while a server runs; a wrong one changes nothing and is told in the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError
from dragoman.mcp.signals import reloading

if TYPE_CHECKING:
    from dragoman.config import Configuration
    from dragoman.tools import Toolbox

LOGGER = logging.getLogger("dragoman.mcp")

Reread = Callable[[], "Configuration"]
"""Reads the configuration again, from where it was read at the start. Raises `ConfigurationError`."""


@contextmanager
def reloaded_by_signal(toolbox: Toolbox, reread: Reread | None) -> Generator[None]:
    """Take the configuration anew at every SIGHUP, one after the other."""
    if reread is None:
        yield
        return
    tasks: set[asyncio.Task[None]] = set()
    one = asyncio.Lock()

    async def reload() -> None:
        async with one:
            await _reload(toolbox, reread)

    def begin() -> None:
        task = asyncio.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    with reloading(begin):
        yield
    for task in tasks:
        task.cancel()


async def _reload(toolbox: Toolbox, reread: Reread) -> None:
    try:
        # In a thread: files are read, and calls go on meanwhile.
        changed = await toolbox.gateway.reload(await asyncio.to_thread(reread))
    except DragomanError as error:
        LOGGER.error("the configuration was not taken: %s %s", error.message, error.suggestion)
        return
    toolbox.refresh()
    LOGGER.info("the configuration was taken; changed databases: %s", ", ".join(changed) or "none")
