"""The first message to a worker process."""

from __future__ import annotations

import msgspec


class Setup(msgspec.Struct, frozen=True):
    """The file or folder, and the limits of one statement: `memory` in MiB, `threads`."""

    path: str
    memory: int
    threads: int
