"""Checks the folders of the server for write access by others."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress

from dragoman.config.settings import Audit, Results, Server


def find_writable(server: Server, results: Results, audit: Audit) -> Iterator[str]:
    """Yield a warning for each folder that every user of this machine may write to, and so replace its contents."""
    folders = {
        "server.state_dir": server.state_dir,
        "server.queries_dir": server.queries_dir,
        "results.dir": results.dir,
        "audit.path": audit.path and audit.path.parent,
    }
    for key, folder in folders.items():
        with suppress(OSError):  # created when needed, for the server's user alone
            if folder and folder.stat().st_mode & stat.S_IWOTH:
                yield f"{key}: every user of this machine may replace the files in {folder}; chmod o-w it."
