"""The file of a database: where it lies, and which one it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman import Database

Identity = tuple[int, int] | None
"""The device and the number of a file. None: there is none that can be read."""


def identify(path: str | Path) -> Identity:
    """Return the identity of the file that has a path now: a file that replaces another has the same path."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


State = tuple[int, int, int, int] | None
"""A file's device, number, size and time of change. None: there is none that can be read."""


def observe(path: str | Path) -> State:
    """Return the state of the file that has a path now. Whoever writes to the file changes it.

    SQLite counts its own writes in the file. If a copy of another database is written over the file, the count may be
    the same, and an open connection would go on with what it remembers of the former content.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def file_of(database: Database) -> Path:
    """Return the database's file. Relative paths start at the configuration's folder."""
    return Path(database.folder, database.database or "").absolute()
