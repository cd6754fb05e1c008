"""Clean-up that no cancellation cuts short: what an executor runs when its caller leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

import anyio

CLEANUP: Final = 5.0
"""Seconds that ending the work in a database may take before it is given up."""
_log = logging.getLogger(__name__)


async def finish(work: Coroutine[Any, Any, None], seconds: float = CLEANUP) -> None:
    """Await `work` to its end, whatever cancels the caller meanwhile, for at most so many seconds.

    A caller is cancelled again at its deadline plus a grace; a shielded scope alone does not hold against that. The
    cancellation goes on once `work` has ended. Work that does not end in time is cancelled, and the log says so.
    Raises what `work` raises, unless the caller was cancelled.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        await wait_for(task, seconds)
    finally:
        if not task.done():
            _log.warning("clean-up took more than %g seconds and was given up", seconds)
            task.cancel()
        elif not task.cancelled():
            task.exception()  # seen: asyncio would report it where the caller's cancellation hides it
    if task.done() and not task.cancelled():
        task.result()


async def wait_for(task: asyncio.Task[Any], seconds: float = CLEANUP) -> None:
    """Wait for at most so many seconds until `task` is done; only then does a cancellation of the caller go on.

    The caller may be in an anyio scope, which cancels it at every await, or be cancelled several times.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done() and (left := end - loop.time()) > 0:
            try:
                await asyncio.wait({task}, timeout=left)
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        raise cancelled
