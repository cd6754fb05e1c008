"""The first message to a worker process."""

from __future__ import annotations

import msgspec


class Setup(msgspec.Struct, frozen=True):
    """Which file, within which bounds (`memory`, `length` in bytes)."""

    path: str
    functions: list[str]
    memory: int
    length: int
