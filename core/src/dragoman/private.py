"""Files that only their owner may read."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Replace a file atomically, readable only by its owner. Creates its folder. A failure leaves nothing behind.

    Raises `OSError`.
    """
    with _write_beside(path, data) as name:
        os.replace(name, path)


def create_private(path: Path, data: bytes) -> None:
    """Create a file, as `write_private` does. Raises `FileExistsError` if it exists, and `OSError`."""
    with _write_beside(path, data) as name:
        os.link(name, path)


@contextmanager
def _write_beside(path: Path, data: bytes) -> Generator[str]:
    """Yield the path of a temporary file with this content beside a path, and remove it afterwards."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    import tempfile  # only here: it loads the archive modules, and most programs write nothing

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # nobody else may read it
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        yield name
    finally:
        with suppress(OSError):  # it may already have been moved to its final place
            os.unlink(name)
