"""SIGTERM and SIGINT end serving in order, so that databases are closed and workers have ended."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopping(stop: Callable[[], object]) -> Generator[None]:
    """Call `stop` at the first SIGTERM or SIGINT; a second one ends the process at once."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
        stop()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, first)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


@contextmanager
def reloading(reload: Callable[[], object]) -> Generator[None]:
    """Call `reload` at every SIGHUP."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # while closing there is nothing to reload
