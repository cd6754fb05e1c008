"""Tells the log when a plugin keeps the event loop from turning: until it returns, no database answers."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Final

INTERVAL: Final = 0.5
"""Seconds between two looks while calls are under way; while there are none, nobody looks."""
LIMIT: Final = 1.0
"""Seconds the loop may stand still before that is told."""
Culprit = Callable[[Iterable[FrameType]], tuple[str, str] | None]
_log = logging.getLogger(__name__)


class Watchdog:
    """Watches while it is entered, from a thread that begins with the first call. `culprit` reads a stack."""

    def __init__(self, culprit: Culprit) -> None:
        self._culprit = culprit
        self._under_way = 0
        self._busy = threading.Event()
        self._beat = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        self._under_way += 1
        if self._under_way == 1:
            self._busy.set()
        if self._thread is None and not self._closed.is_set():
            place = asyncio.get_running_loop(), threading.get_ident()
            self._thread = threading.Thread(target=self._watch, args=place, name="dragoman-watchdog", daemon=True)
            self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._busy.clear()

    def close(self) -> None:
        """Let the thread end."""
        for event in (self._closed, self._busy, self._beat):
            event.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._closed.wait(INTERVAL):
            self._busy.wait()
            self._beat = beat = threading.Event()
            try:
                loop.call_soon_threadsafe(beat.set)
            except RuntimeError:
                return  # the loop is closed
            if not beat.wait(LIMIT) and not self._closed.is_set():
                self._tell(thread)
                while not beat.wait(INTERVAL) and not self._closed.is_set():
                    pass

    def _tell(self, thread: int) -> None:
        frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]
        who, where = self._culprit(_outwards(frame)) or ("no plugin", frame.f_code.co_qualname if frame else "nothing")
        _log.warning(
            "the event loop stands still: %s has kept it for more than %g seconds, in %s; no database answers"
            " meanwhile. Work that takes long belongs into a thread or a process",
            who,
            LIMIT,
            where,
        )


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
