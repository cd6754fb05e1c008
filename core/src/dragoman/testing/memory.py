"""Measures the memory of this process while it waits for a database, for the tests of plugins."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/self/statm")
_INTERVAL: Final = 0.002


@asynccontextmanager
async def within_memory(most: int) -> AsyncGenerator[None]:
    """Fail if this process grows by more than `most` bytes inside the block, if the kernel reports its size."""
    before = peak = resident()

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, resident())
            await asyncio.sleep(_INTERVAL)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
    assert peak - before < most, f"The process grew by {(peak - before) >> 20} MiB."


def resident() -> int:
    """Return the bytes of memory of this process; 0 if the kernel does not report them."""
    return int(_STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if _STATUS.exists() else 0
