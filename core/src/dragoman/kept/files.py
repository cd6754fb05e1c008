"""Open files that several threads use."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path


class OpenFile:
    """An open file, whose descriptor is closed once no thread uses it any more.

    A thread goes on reading or writing for a moment after others have closed the file. If they closed the descriptor,
    its number might already be another file's, and the rows of one caller would get into the result of another.
    """

    def __init__(self, path: Path, flags: int) -> None:
        """Open a file, never through a link. A new one is its user's alone. Raises `OSError`."""
        self._descriptor: _Descriptor | None = _Descriptor(path, flags)

    @property
    def closed(self) -> bool:
        """Whether the file was given up."""
        return self._descriptor is None

    def read(self, length: int, place: int) -> bytes:
        """Return at most `length` bytes from `place` on; none at the end. Raises `OSError`, also after `close`."""
        descriptor = self._use()
        return os.pread(descriptor.number, length, place)

    def write(self, data: bytes, place: int) -> None:
        """Write all of `data` at `place`. Raises `OSError`, also after `close`."""
        descriptor, left = self._use(), memoryview(data)
        while left:
            written = os.pwrite(descriptor.number, left, place)
            left, place = left[written:], place + written

    def stat(self) -> os.stat_result:
        """Return what the file system knows of it. Raises `OSError`, also after `close`."""
        descriptor = self._use()
        return os.fstat(descriptor.number)

    def _use(self) -> _Descriptor:
        """Return the descriptor. It stays open as long as its user refers to it."""
        if (descriptor := self._descriptor) is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return descriptor

    def close(self) -> None:
        """Give the file up. What uses it at this moment goes on."""
        self._descriptor = None


class _Descriptor:
    """The number of an open file, closed when nothing refers to it."""

    def __init__(self, path: Path, flags: int) -> None:
        self.number = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def __del__(self) -> None:
        with suppress(AttributeError):  # it could not be opened
            os.close(self.number)
