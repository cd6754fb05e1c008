"""A server that lives only while somebody uses it: the demo's. It keeps nothing, so nothing must be opened again."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Final

from dragoman import ConnectionFailed

if TYPE_CHECKING:
    from dragoman_trino.testing import Server

PATIENCE: Final = 120.0
"""Seconds to wait for it if no caller waits."""

_lock = threading.Lock()
_starting: dict[int, threading.Thread] = {}
_running: dict[int, Server] = {}


def wake(database: str, port: int, seconds: float = PATIENCE) -> None:
    """Start the server of a port unless one listens there, and wait. It ends with this process. Blocking.

    Raises `ConnectionFailed` if it cannot be started, or not in time; it then goes on starting.
    """
    with _lock:
        starting = _starting.get(port)
        if starting is None or not starting.is_alive():
            if _listens(port):
                return
            starting = _starting[port] = threading.Thread(target=_start, args=(port,), daemon=True)
            starting.start()
    starting.join(seconds)
    if starting.is_alive():
        raise ConnectionFailed(
            f"The server of the database {database!r} is starting.",
            suggestion="Try again in a moment; it takes some ten seconds, and longer on a busy machine.",
        )
    if not _listens(port):
        raise ConnectionFailed(
            f"The server of the database {database!r} cannot be started.",
            suggestion="Run `dragoman demo --trino` again; it says what is missing.",
        )


def _start(port: int) -> None:
    from dragoman_trino.testing import Server  # only for those who have the embedded server

    with contextlib.suppress(RuntimeError, OSError):
        _running[port] = Server.start(port=port)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
