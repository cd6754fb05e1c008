"""The folder of a process's kept results, and what ended processes left behind beside it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.kept.lasting import LOCK, Header, is_private, read_headers, tidy


class ProcessFolder:
    """A folder of this process's own below `base`, made at the first use and locked while the process lives.

    `ttl`: seconds after its last reading for which a result exists. Any thread may call the methods; they may block for
    a moment and raise `OSError`.
    """

    def __init__(self, base: Path | None, ttl: float) -> None:
        self._base = base
        self._ttl = ttl
        self._path: Path | None = None
        self._lock: int | None = None
        self._making = threading.Lock()

    def ready(self) -> Path:
        """Return the folder, which exists."""
        with self._making:  # two first results may arrive at once, each in a thread
            if self._path is None or not self._path.is_dir():  # somebody may have tidied up
                self._unlock()
                self._path = self._make()
            return self._path

    def _make(self) -> Path:
        base = self._base or _temporary_folder()
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._tidy(base)
        made = Path(tempfile.mkdtemp(prefix="new-", dir=base))
        self._lock = os.open(made / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Renamed to its final name only once it is locked: another process would take it for an orphan.
        return made.rename(base / made.name.replace("new-", "process-", 1))

    def free(self) -> int:
        """Return the free bytes of its disk."""
        assert self._path is not None  # the caller has written there before
        return shutil.disk_usage(self._path).free

    def left_behind(self) -> Iterator[tuple[Path, float, Header]]:
        """Yield what ended processes kept, with the time of the last reading, and remove the rest of their folders."""
        for orphan in self.ready().parent.glob("process-*"):
            with _hold_orphan(orphan) as held:
                if held:
                    yield from read_headers(orphan, self._oldest())
                    tidy(orphan, self._oldest())

    def tidy(self) -> None:
        """Remove what ended processes left behind and nobody may read any more. Makes nothing."""
        self._tidy(self._base or _usual_folder())

    def _tidy(self, base: Path) -> None:
        for orphan in base.glob("process-*"):
            with _hold_orphan(orphan) as held:
                if held:
                    tidy(orphan, self._oldest())

    def leave(self) -> None:
        """Remove what does not outlive the process, and unlock the rest."""
        if self._path is not None:
            tidy(self._path, self._oldest())
        self._unlock()

    def _oldest(self) -> float:
        """Return the time, in seconds since 1970, since which a result must have been read to still exist."""
        return time.time() - self._ttl

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _usual_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"dragoman-results-{os.getuid()}"


def _temporary_folder() -> Path:
    """Return a folder of this user among the system's temporary files, never one that another user put there."""
    folder = _usual_folder()
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    return folder if is_private(folder) else Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))


@contextmanager
def _hold_orphan(folder: Path) -> Generator[bool]:
    """Yield whether the folder of an ended process is now held.

    Its lock ended with the process; False if the process lives.
    """
    lock = -1
    try:
        # In a folder that others can write, another user may have placed files.
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW) if is_private(folder) else -1
        if lock >= 0:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # being made, removed by another process, or locked
        yield False
    else:
        yield lock >= 0
    finally:
        if lock >= 0:
            os.close(lock)
