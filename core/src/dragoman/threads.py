"""Threads for a driver's blocking calls. They are daemons: a call that never returns delays neither us nor our exit.

Also what a thread runs now.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import queue
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_Job = tuple[concurrent.futures.Future[Any], Callable[[], Any]]
_looking = threading.Lock()


class Threads:
    """As many threads as there are concurrent calls, at most `most`. Idle threads are used again.

    With `most` 1, calls run one after the other, in the order in which they were started.
    """

    def __init__(self, name: str, most: int | None = None) -> None:
        self._name = name
        self._most = most
        self._jobs = queue.SimpleQueue[_Job | None]()
        self._lock = threading.Lock()
        self._threads = 0
        self._pending = 0

    def start(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` in a thread and return the future of its result. Cancelling the future does not stop the thread.

        Work that has not begun when its future is cancelled is skipped.
        """
        future = concurrent.futures.Future[T]()
        with self._lock:
            self._pending += 1
            if self._pending > self._threads and (self._most is None or self._threads < self._most):
                self._threads += 1
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        self._jobs.put((future, work))
        return asyncio.wrap_future(future)

    def stop(self) -> None:
        """End every thread once its calls are done."""
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)
            self._threads = 0

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._work(*job)
            del job  # otherwise the last result would live until the next call

    def _work(self, future: concurrent.futures.Future[Any], work: Callable[[], Any]) -> None:
        try:
            if future.set_running_or_notify_cancel():
                _settle(future, work)
        finally:
            with self._lock:
                self._pending -= 1


def _settle(future: concurrent.futures.Future[Any], work: Callable[[], Any]) -> None:
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def current_frame(thread: int) -> FrameType | None:
    """Return the innermost frame of what a thread runs now; None: there is no such thread.

    No garbage is collected meanwhile. In Python 3.11 a finalizer that lets another thread run at that moment would make
    both wait for each other for ever, and with them the process (CPython issue 106883).
    """
    with _looking:
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames().get(thread)  # noqa: TID251  # pyright: ignore[reportPrivateUsage]
        finally:
            if collects:
                gc.enable()
