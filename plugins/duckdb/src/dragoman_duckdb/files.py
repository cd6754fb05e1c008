"""Tells whether a database's files are still the same, without opening them."""

from __future__ import annotations

import os

Identity = tuple[tuple[str, int, int, int], ...]


def identity(path: str) -> Identity:
    """Return a value that changes with the file and its write-ahead log, or with the files of the folder."""
    if os.path.isdir(path):
        with os.scandir(path) as entries:
            return tuple(sorted(_identity(entry.name, entry.stat()) for entry in entries))
    return tuple(_identity(each, os.stat(each)) for each in (path, f"{path}.wal") if os.path.exists(each))


def _identity(name: str, status: os.stat_result) -> tuple[str, int, int, int]:
    return name, status.st_ino, status.st_size, status.st_mtime_ns
