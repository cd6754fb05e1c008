"""Tells whether a database's files are still the same, without opening them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

Identity = tuple[tuple[str, int, int, int], ...]


def identity(path: str) -> Identity:
    """Return a value that changes with the file and its write-ahead log, or with the files of the folder."""
    if not os.path.isdir(path):
        return tuple(_identities([path, f"{path}.wal"]))
    with os.scandir(path) as entries:
        return tuple(sorted(_identities([entry.path for entry in entries])))


def _identities(paths: list[str]) -> Iterator[tuple[str, int, int, int]]:
    for path in paths:
        with contextlib.suppress(OSError):  # a file may go at any time, and a link may lead nowhere
            status = os.stat(path)
            yield path, status.st_ino, status.st_size, status.st_mtime_ns
