"""The first message to a worker process."""

from __future__ import annotations

import msgspec


class Setup(msgspec.Struct, frozen=True):
    """Which file or folder, and the bounds of one statement: `memory` in MiB, `threads`."""

    path: str
    memory: int
    threads: int
