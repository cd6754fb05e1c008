"""A deadline for each case that no event loop can miss. A case that hangs fails with its name, or ends the run."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Generator
from types import FrameType
from typing import Final

from dragoman.threads import current_frame

GRACE: Final = 20.0
"""Seconds that the main thread gets to return from the driver once the time is over."""
AGAIN: Final = 8.0
"""Seconds after which a fixture that hangs at its end is reported again."""
HUNG: Final = 70
"""The exit status of a run that could not be ended otherwise (EX_SOFTWARE)."""


class Hung(AssertionError):
    """A case did not end within its deadline."""


@contextlib.contextmanager
def limit_time(seconds: float, what: str, stderr: int = 2) -> Generator[None]:
    """Raise `Hung` in the main thread if the block takes longer. End the process if even that does not help.

    Outside the main thread, and where there are no alarms, it only ends the process. `stderr`: where the last message
    goes.
    """
    over = threading.Event()
    watchdog = threading.Thread(
        target=_watch, args=(over, seconds + GRACE, what, stderr), name="kit-deadline", daemon=True
    )
    watchdog.start()
    alarmed = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    alarm = _alarm(seconds, what) if alarmed else contextlib.nullcontext()
    try:
        with alarm:
            yield
    finally:
        over.set()
        watchdog.join()


@contextlib.contextmanager
def _alarm(seconds: float, what: str) -> Generator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise Hung(
            f"{what} did not end within {seconds:g} seconds. Something waits for the driver "
            "without a deadline, or the driver blocks the thread of the event loop: call it in a "
            "thread, and interrupt it when nobody waits. Or a change of the schema waits for a transaction that was "
            "left open: end each. If the case is only slow, raise `deadline` of the class."
        )

    before, left = signal.signal(signal.SIGALRM, ring), signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *left)
        signal.signal(signal.SIGALRM, before)


def _watch(over: threading.Event, seconds: float, what: str, stderr: int) -> None:
    if not over.wait(seconds):
        end_process(f"{what} hangs, and the driver does not release its thread, so the run ends here.", HUNG, stderr)


def is_leaving(main: threading.Thread) -> bool:
    """Return whether the interpreter waits for threads to end.

    It joins pools before the main thread counts as ended.
    """
    frame = current_frame(main.ident or 0) if main.is_alive() else None
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame is None or (frame.f_globals.get("__name__"), frame.f_code.co_name) == ("threading", "_shutdown")


def end_process(why: str, status: int, stderr: int = 2) -> None:
    """Report the reason and the stacks of all threads, past any capture of output; then exit without waiting."""
    with contextlib.suppress(OSError, ValueError):
        os.write(stderr, f"\ndragoman conformance kit: {why}\n".encode())
        faulthandler.dump_traceback(file=stderr, all_threads=True)
    sys.stdout.flush()
    os._exit(status)
