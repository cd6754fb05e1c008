"""A circuit breaker for each database, so that not every caller waits for one that cannot be reached."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar

from dragoman.errors import ConnectionFailed

FAILURES = 5
"""Failed connections in a row until the breaker opens."""
PAUSE = 10.0
"""Seconds during which calls fail at once, before one of them tries again."""
_TRIAL: ContextVar[object] = ContextVar("dragoman_trial", default=None)
"""The trial that the running call is, or was."""


class Breaker:
    """Closed while a database connects, open after `FAILURES` failures, half-open while one call tries for all.

    The call that tries goes through in every layer that asks, until it is known how it went. `clock` counts seconds.
    """

    def __init__(self, database: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._failures = 0
        self._next_try = 0.0
        self._counted: ConnectionFailed | None = None
        self._trial: object = None

    def check(self) -> None:
        """Let a call try to connect, or raise `ConnectionFailed` at once."""
        if self._failures < FAILURES:
            return
        now = self._clock()
        if self._trial is not None and _TRIAL.get() is self._trial:
            return
        if now >= self._next_try:
            self._next_try = now + PAUSE  # this call tries; the others fail at once until it has an answer
            self._trial = object()
            _TRIAL.set(self._trial)
            return
        wait = math.ceil(self._next_try - now)
        self._counted = ConnectionFailed(
            f"The database {self._database} could not be reached {self._failures} times in a row.",
            suggestion=f"It is tried again in {wait} seconds; use another database meanwhile.",
            context={"retry_after": wait},
        )
        raise self._counted

    def fail(self, error: ConnectionFailed) -> None:
        """Record that it could not be reached. An error that several layers report counts once."""
        if error is self._counted:
            return
        self._counted = error
        self._failures += 1
        self._trial = None
        self._next_try = self._clock() + PAUSE

    def reset(self) -> None:
        """Record that it was reached."""
        self._failures = 0
        self._trial = None
