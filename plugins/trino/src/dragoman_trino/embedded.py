"""A server that lives only while somebody uses it: the demo's. It keeps nothing, so there is nothing to open again."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from dragoman import ConnectionFailed

if TYPE_CHECKING:
    from dragoman_trino.testing import Server

_starting = threading.Lock()
_running: dict[int, Server] = {}


def wake(database: str, port: int) -> None:
    """Start the server of a port unless one listens there. It ends with this process. Blocking.

    Raises `ConnectionFailed` when it cannot be started.
    """
    from dragoman_trino.testing import Server  # only for who has the embedded server

    with _starting:
        if _listens(port):
            return
        try:
            _running[port] = Server.start(port=port)
        except (RuntimeError, OSError):
            raise ConnectionFailed(
                f"The server of the database {database!r} cannot be started.",
                suggestion="Run `dragoman demo --trino` again; it says what is missing.",
            ) from None


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
