"""Garbage collection, put off while many values are made. Light, so that worker processes may import it."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def pause_collection() -> Generator[None]:
    """Collect no garbage while many small values are made that all stay or all go: looking for some takes longer."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
