"""Work on a database runs in a task of its own, so that whoever asked can go away without leaving it behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio

from dragoman.errors import QueryTimeout

T = TypeVar("T")

GRACE = 0.5
"""Seconds the engine has to enforce its own deadline, whose error says more, before ours does."""
CLEANUP = 5.0
"""Seconds that ending the work in the database may take before it is left alone."""


async def to_its_end(work: Coroutine[Any, Any, T], timeout: float) -> T:
    """Await `work`; when the caller is cancelled or `timeout` seconds (and some grace) pass, end it first.

    The caller may sit in an anyio scope, whose cancellation strikes at every await: hence the task and the shield.
    Raises `QueryTimeout`.
    """
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_retrieve)
    try:
        await asyncio.wait({task}, timeout=timeout + GRACE)
    finally:
        if not task.done():
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({task}, timeout=CLEANUP)
    if task.done() and not task.cancelled():
        return task.result()
    raise late(timeout)


def late(timeout: float) -> QueryTimeout:
    """Return what to raise when the deadline has passed."""
    return QueryTimeout(
        f"The query did not end within {timeout:g} seconds and was ended.",
        suggestion="Narrow it with WHERE or LIMIT, look at explain_query, or raise timeout_ms.",
    )


def _retrieve(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # seen: asyncio would report it when nobody waits any more
