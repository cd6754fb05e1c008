"""One file per day, to which any number of processes append. One chain runs through all of them.

`audit.jsonl` becomes `audit-2026-11-22.jsonl`, a file for each day (UTC), readable by its owner alone. A lock on the
folder admits one writer at a time. The next writer continues the chain where the file ends. Each file begins with a
record that names it and follows the last record of the file before.
"""

from __future__ import annotations

import errno
import fcntl
import fnmatch
import logging
import math
import os
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from dragoman.audit.chain import BEGIN, Link, seal, unseal
from dragoman.audit.record import Record, encode

_log = logging.getLogger(__name__)
_CHUNK = 65536
_MOMENT = 0.002
"""Seconds that a writer blocks while others write. Each of them needs some 0.1 milliseconds."""
_SECOND = 1.0
_PAUSE = 0.0002
_TICK = 0.02
"""Seconds in which a folder may change once more with the same time of change."""


def moment(seconds: float) -> str:
    """Return seconds since 1970 as UTC text, to the microsecond."""
    whole = int(seconds)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int((seconds - whole) * 1e6):06d}Z"


def audit_files(path: Path) -> list[Path]:
    """Return the files that belong to `path`, oldest first."""
    return sorted(path.parent.glob(_pattern(path)))


def _pattern(path: Path) -> str:
    day = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
    return f"{path.stem}-{day}{path.suffix}"


@contextmanager
def lock(folder: int, patience: float = math.inf) -> Generator[None]:
    """Hold the lock for writing, or for checking a complete state.

    Raises `BlockingIOError` if another process has held it for `patience` seconds. That process may have been stopped.
    """
    until = time.monotonic() + patience
    while not _hold(folder):
        if time.monotonic() >= until:
            raise BlockingIOError(errno.EWOULDBLOCK, "another process keeps the files locked")
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)


def _hold(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class AuditFile:
    """Appends records. Raises `OSError` if it cannot; nothing of the record is then left in the file.

    It is a `BlockingIOError` while another process keeps the folder locked.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = path
        self._parent = path.parent
        self._folder = os.open(self._parent, os.O_RDONLY | os.O_CLOEXEC)
        self._home = _identify(os.fstat(self._folder))
        self._changed = 0
        self._since = self._listed = 0.0
        self._file = -1
        self._place = path
        self._identity = (-1, -1)
        self._name = ""
        self._size = 0
        self._head = BEGIN
        self._day = -1
        self._today = ""

    @property
    def head(self) -> Link:
        """The last record that this process wrote."""
        return self._head

    def open(self) -> None:
        """Open the file of the day, so that a problem shows before the first record."""
        with self._alone(_SECOND):
            self._open(self._name_file(time.time()))

    def append(self, body: bytes, patience: float = _MOMENT) -> Link:
        """Write one record, a JSON object, and return its place in the chain.

        Waits `patience` seconds for other writers.
        """
        with self._alone(patience):
            self._open(self._name_file(time.time()))
            return self._write(body)

    def close(self) -> None:
        """Close the files."""
        if self._file >= 0:
            os.close(self._file)
        os.close(self._folder)
        self._file = self._folder = -1

    def _alone(self, patience: float) -> AbstractContextManager[None]:
        """Hold the lock of the folder that has the path now."""
        if _identify(os.stat(self._parent)) != self._home:
            folder = os.open(self._parent, os.O_RDONLY | os.O_CLOEXEC)
            os.close(self._folder)
            self._folder, self._home = folder, _identify(os.fstat(folder))
        return lock(self._folder, patience)

    def _name_file(self, now: float) -> str:
        day = int(now // 86400)
        if day != self._day:
            self._day = day
            self._today = f"{self._path.stem}-{moment(now)[:10]}{self._path.suffix}"
        # A clock that goes back must not reopen the file of a past day.
        return max(self._today, self._name)

    def _open(self, name: str) -> None:
        """Open the file of the day and find the end of its chain."""
        if name == self._name and self._is_newest() and self._is_unchanged():
            return
        known = self._head
        files = audit_files(self._path)
        newest = max(name, files[-1].name if files else "")
        self._reopen(newest)
        self._head = self._last(self._file)
        if self._size == 0:
            try:
                self._begin([each for each in files if each.name < newest], known)
            except OSError:
                # Of an empty file nobody can tell whether it had records. The next record creates it again.
                with suppress(OSError):
                    self._place.unlink()
                raise

    def _is_newest(self) -> bool:
        """Return whether no file follows the open one.

        A process that wrote before the clock went back may have begun the file of a later day.
        """
        changed, now = os.fstat(self._folder).st_mtime_ns, time.monotonic()
        if changed != self._changed:
            self._changed, self._since = changed, now
        if self._listed > self._since + _TICK:
            return True
        self._listed = now
        later = [name for name in os.listdir(self._folder) if name > self._name]
        return not fnmatch.filter(later, _pattern(self._path))

    def _is_unchanged(self) -> bool:
        """Return whether the open file still has its name, and nobody else has written to it."""
        try:
            there = os.stat(self._place)
        except FileNotFoundError:
            return False
        return there.st_size == self._size and _identify(there) == self._identity

    def _reopen(self, name: str) -> None:
        place = self._path.with_name(name)
        file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if self._file >= 0:  # only now: if opening fails, no closed file's descriptor may be left behind
            os.close(self._file)
        self._file, self._place, self._name = file, place, name
        self._identity = _identify(os.fstat(file))

    def _begin(self, before: list[Path], known: Link) -> None:
        """Begin a file: its first record names it and follows the last record of the file before.

        `known`: the last record that this process wrote since then. If somebody removed it, the gap shows.
        """
        for file in reversed(before):
            descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            try:
                self._head = self._last(descriptor)
            finally:
                os.close(descriptor)
            if self._head != BEGIN:
                break
        self._head = max(self._head, known)
        self._size = 0
        self._write(encode(Record(ts=moment(time.time()), event="file", detail=self._name)))

    def _last(self, descriptor: int) -> Link:
        """Return the last link of a file, and determine its size. An incomplete line at the end is removed.

        A process that is killed while it writes leaves such a line. The answer to that call was never sent.
        """
        self._size = os.fstat(descriptor).st_size
        tail = _tail(descriptor, self._size)
        whole, _, torn = tail.rpartition(b"\n")
        if torn:
            _log.warning("the audit file ended with an incomplete record, which was removed")
            self._size -= len(torn)
            os.ftruncate(descriptor, self._size)
        sealed = unseal(whole.rpartition(b"\n")[2])
        if sealed is not None:
            return sealed.link
        if whole:
            _log.error("the last record of the audit file does not match its seal; a new chain begins after it")
        return BEGIN

    def _write(self, body: bytes) -> Link:
        line, link = seal(body, self._head)
        try:
            written = os.write(self._file, line)
            if written != len(line):
                raise OSError(28, os.strerror(28))
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += written
        self._head = link
        return link


def _identify(there: os.stat_result) -> tuple[int, int]:
    return there.st_dev, there.st_ino


def _tail(descriptor: int, size: int) -> bytes:
    """Return the end of a file: its last complete line, and what follows it."""
    length = _CHUNK
    while True:
        tail = os.pread(descriptor, length, max(size - length, 0))
        if tail.count(b"\n") > 1 or length >= size:
            return tail
        length *= 4
