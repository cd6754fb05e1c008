"""The file of a database: where it lies, which one it is, and whether it can be read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dragoman import ConnectionFailed, Database

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


def check_file(path: Path, name: str) -> None:
    """Raise `ConnectionFailed`, which never shows the path, unless `path` is a file: opening a pipe would block."""
    try:
        str(path).encode()  # SQLite accepts only names in UTF-8
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise _unreachable(
            name, "its file does not exist", "Check `url`; a relative path starts at the configuration's folder."
        ) from None
    except OSError:
        raise _unreachable(
            name, "its file may not be read", "Check the permissions of the file and its folders."
        ) from None
    except ValueError:
        raise _unreachable(name, "its path contains characters that SQLite does not accept", "Check `url`.") from None
    if not stat.S_ISREG(mode):
        remedy = (
            "Check `url`: the path stands behind three slashes, as in sqlite:///shop.db, an absolute one behind four."
        )
        raise _unreachable(name, "its path is not a file", remedy)


def _unreachable(name: str, why: str, remedy: str) -> ConnectionFailed:
    return ConnectionFailed(f"The database {name!r} cannot be read: {why}.", suggestion=remedy)
