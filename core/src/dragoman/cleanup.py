"""Clean-up that a cancellation does not interrupt. Executors run it when their caller leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

import anyio

CLEANUP: Final = 5.0
"""Seconds that ending the work in a database may take before it is abandoned."""
_log = logging.getLogger(__name__)


async def finish(work: Coroutine[Any, Any, None], seconds: float = CLEANUP) -> None:
    """Await `work` to its end, even if the caller is cancelled meanwhile, for at most `seconds`.

    A caller is cancelled again at its deadline plus a grace, and a shielded scope alone does not stop that. The
    cancellation goes on once `work` has ended. Work that does not end in time is cancelled, and this is logged. Raises
    what `work` raises, unless the caller was cancelled.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        await wait_for(task, seconds)
    finally:
        if not task.done():
            _log.warning("clean-up took more than %g seconds and was abandoned", seconds)
            task.cancel()
        elif not task.cancelled():
            task.exception()  # mark as retrieved: asyncio would report it when the caller's cancellation hides it
    if task.done() and not task.cancelled():
        task.result()


async def wait_for(task: asyncio.Task[Any], seconds: float = CLEANUP) -> None:
    """Wait at most `seconds` until `task` is done. A cancellation of the caller goes on only then.

    The caller may be in an anyio scope, which cancels it at every await, or may be cancelled several times.
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
