"""Files that only their owner may read."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Replace a file at once, for its owner alone; nothing is left of one that fails. Makes its folder.

    Raises `OSError`.
    """
    with _write_beside(path, data) as name:
        os.replace(name, path)


def create_private(path: Path, data: bytes) -> None:
    """Make a new file, as `write_private`. Raises `FileExistsError` where there is one already, and `OSError`."""
    with _write_beside(path, data) as name:
        os.link(name, path)


@contextmanager
def _write_beside(path: Path, data: bytes) -> Generator[str]:
    """Have a file of this content beside a path meanwhile."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    import tempfile  # only here: it loads what packs archives, and most programs write nothing

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # nobody else may read it
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        yield name
    finally:
        with suppress(OSError):  # it may have taken the other's place
            os.unlink(name)
