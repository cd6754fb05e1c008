"""A server that lives only while somebody uses it: the demo's. Its data is kept in a folder, like a database file."""

from __future__ import annotations

import asyncio
import atexit
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    from dragoman_postgres.testing import Server

_starting = threading.Lock()
_running: dict[str, Server] = {}
ABSENT = (FileNotFoundError, ConnectionRefusedError, asyncpg.CannotConnectNowError)
"""Errors of connecting if no server runs in the folder of its socket."""


async def awake(folder: str) -> bool:
    """Start the server whose data is in `folder`, unless one runs there. Return False if it cannot be started.

    It ends with this process, however that ends. A process that is not killed waits for it, so that the folder can be
    removed afterwards. Another process that uses it starts it again.
    """
    return await asyncio.to_thread(_awake, folder)


def _awake(folder: str) -> bool:
    from dragoman_postgres.testing import Server  # only for those who have the embedded server

    with _starting:
        if Path(folder, ".s.PGSQL.5432").exists() and folder in _running:
            return True
        try:
            server = _running[folder] = Server.reopen(Path(folder))
        except (RuntimeError, OSError):
            return False
        atexit.register(server.stop)
        return True
