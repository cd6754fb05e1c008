"""Long loops that do not block the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Made = TypeVar("Made")
FEW: Final = 20
"""Up to this many relations are processed on the event loop: a thread costs more than that."""
SLICE: Final = 0.002
"""Seconds of processor time after which the event loop serves others."""


async def without_blocking(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield items in order, and let the event loop serve others every few milliseconds.

    Work on one item is not interrupted. Work that takes long for a single item belongs in a thread.
    """
    began = time.thread_time()
    for item in items:
        yield item
        if time.thread_time() - began > SLICE:
            await asyncio.sleep(0)
            began = time.thread_time()


async def begin_each(works: Sequence[Coroutine[Any, Any, T]]) -> list[asyncio.Task[T]]:
    """Start works one by one and return their tasks. The event loop serves others in between.

    If the caller is cancelled meanwhile, the started tasks are cancelled too.
    """
    begun: list[asyncio.Task[T]] = []
    try:
        for work in works:
            begun.append(asyncio.create_task(work))
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        for task in begun:
            task.cancel()
        for work in works[len(begun) :]:
            work.close()
        raise
    return begun


async def in_thread_if_many(count: int, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function that processes `count` relations, in a thread if they are many."""
    if count <= FEW:
        return function(*arguments, **named)
    return await asyncio.to_thread(function, *arguments, **named)


async def consume_in_thread(held: list[T], function: Callable[[T], Made]) -> Made:
    """Call a function in a thread with the only item of a list, which is taken out of the list.

    The thread then frees the item too, unless others hold it: freeing a million small values takes a tenth of a second.
    """
    return await asyncio.to_thread(lambda: function(held.pop()))
