"""Logs when a plugin blocks the event loop: until it returns, no database answers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Final

from dragoman.threads import current_frame

INTERVAL: Final = 0.5
"""Seconds between two checks while calls are running. Without calls, nothing is checked."""
LIMIT: Final = 1.0
"""Seconds that the loop may be blocked before this is logged."""
Culprit = Callable[[Iterable[FrameType]], tuple[str, str] | None]
_log = logging.getLogger(__name__)


class Watchdog:
    """Watches while calls are `under_way`, in a thread that starts with the first one.

    `culprit` finds the plugin in a stack.

    The code around a call counts it in `under_way`, and calls `wake` if the watchdog is `asleep`.
    """

    def __init__(self, culprit: Culprit) -> None:
        self.under_way = 0
        self.asleep = True
        self._culprit = culprit
        self._awake = threading.Event()
        self._beat = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Watch from now on: a call is running."""
        self.asleep = False
        self._awake.set()
        if self._thread is None and not self._closed.is_set():
            place = asyncio.get_running_loop(), threading.get_ident()
            self._thread = threading.Thread(target=self._watch, args=place, name="dragoman-watchdog", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Let the thread end."""
        for event in (self._closed, self._awake, self._beat):
            event.set()

    def _sleep(self) -> None:
        """Wait until a call is running. A call that begins just now sees `asleep`, or is seen here."""
        self.asleep = True
        if not self.under_way:
            self._awake.wait()
        self._awake.clear()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._closed.wait(INTERVAL):
            if not self.under_way:
                self._sleep()
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
        frame = current_frame(thread)
        who, where = self._culprit(_outwards(frame)) or ("no plugin", frame.f_code.co_qualname if frame else "nothing")
        _log.warning(
            "the event loop is blocked: %s has blocked it for more than %g seconds, in %s; no database answers"
            " meanwhile. Work that takes long belongs in a thread or a process",
            who,
            LIMIT,
            where,
        )


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
