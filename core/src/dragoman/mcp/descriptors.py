"""Descriptors 0 and 1 belong to the protocol while serving over stdio."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def standard_streams() -> Generator[tuple[int, int]]:
    """Take descriptors 0 and 1 for the protocol and replace them by harmless ones: the null device and stderr.

    So neither a stray print nor a child process reaches the client.
    """
    taken = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1)]
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    try:
        yield taken[0], taken[1]
    finally:
        for fd, original in enumerate(taken):
            os.dup2(original, fd)
            os.close(original)
