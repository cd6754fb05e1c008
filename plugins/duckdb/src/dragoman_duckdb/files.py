"""Tells whether a database's files are still the same, without opening them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

Identity = tuple[tuple[str, int, int, int, int], ...]


def identity(path: str) -> Identity:
    """Return a value that changes with the file and its write-ahead log, or with what is in the folder, however deep.

    The time of change (ctime) tells of a file that was written over, or given an older time.
    """
    if not os.path.isdir(path):
        return tuple(_identities([path, f"{path}.wal"]))
    return tuple(sorted(_identities(_below(path))))


def _below(folder: str) -> Iterator[str]:
    """Yield the paths of all files and folders. A link to a folder is not followed: DuckDB does not follow it."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield os.path.join(parent, name)


def _identities(paths: Iterable[str]) -> Iterator[tuple[str, int, int, int, int]]:
    for path in paths:
        with contextlib.suppress(OSError):  # a file may go at any time, and a link may lead nowhere
            status = os.stat(path)
            yield path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
