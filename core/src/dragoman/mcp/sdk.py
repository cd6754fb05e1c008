"""Loads the MCP SDK while calls are answered."""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
import threading

_MODULES = ("pydantic", "mcp_types", "mcp_types.methods", "starlette.applications", "mcp.server", "dragoman.mcp.server")
_SWITCH = 0.0005
"""Seconds for which a thread may hold the interpreter while the SDK is imported.

Calls are answered meanwhile.
"""


async def load() -> None:
    """Import the SDK in a thread. After a cancellation, no further part of it is imported."""
    abandoned = threading.Event()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        await asyncio.to_thread(import_sdk, abandoned)
    except asyncio.CancelledError:
        abandoned.set()
        raise
    finally:
        sys.setswitchinterval(interval)


def import_sdk(abandoned: threading.Event | None = None) -> None:
    """Import the SDK, part by part until `abandoned`."""
    # Importing creates thousands of classes that live as long as the process, so garbage collection only costs time.
    gc.disable()
    try:
        for module in _MODULES:
            if abandoned is None or not abandoned.is_set():
                importlib.import_module(module)
    finally:
        gc.enable()
        gc.freeze()
