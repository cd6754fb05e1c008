"""Runs several pieces of work concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, overload

A = TypeVar("A")
B = TypeVar("B")


@overload
async def together(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B], /) -> tuple[A, B]: ...
@overload
async def together(*work: Coroutine[Any, Any, A]) -> tuple[A, ...]: ...
async def together(*work: Coroutine[Any, Any, Any]) -> tuple[Any, ...]:
    """Run all works concurrently and return their results in order. If one fails, the others are ended."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
