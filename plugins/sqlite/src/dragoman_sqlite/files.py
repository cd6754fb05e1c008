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


def file_of(database: Database) -> Path:
    """Return the database's file. Relative paths start at the configuration's folder."""
    return Path(database.folder, database.database or "").absolute()
