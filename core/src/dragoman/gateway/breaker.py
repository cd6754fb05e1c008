"""A circuit breaker for each database, so that not every caller waits for one that cannot be reached."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable

from dragoman.errors import ConnectionFailed

FAILURES = 5
"""Failed connections in a row until the breaker opens."""
PAUSE = 10.0
"""Seconds during which calls fail at once, before the database is asked again."""


class Breaker:
    """Closed while a database connects, open after `FAILURES` failures, half-open while the gateway asks it.

    `probe` asks, and returns whether it failed to reach the database, or has no answer after so many seconds. It is the
    gateway's own question: a caller's statement may be refused before it reaches the database, and a caller may leave.
    `clock` counts seconds.
    """

    def __init__(
        self, database: str, probe: Callable[[float], Awaitable[bool]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._probe = probe
        self._clock = clock
        self._failures = 0
        self._next_try = 0.0
        self._counted: ConnectionFailed | None = None

    async def check(self, timeout: float) -> None:
        """Let a call try to connect, or raise `ConnectionFailed`.

        After each pause one call waits for the probe, as long as that call may take, and at most a pause.
        """
        if self._failures < FAILURES:
            return
        if self._clock() >= self._next_try:
            self._next_try = self._clock() + PAUSE  # the others fail at once until there is an answer
            if not await self._probe(min(timeout, PAUSE)):
                self._failures = min(self._failures, FAILURES - 1)
        if self._failures < FAILURES:
            return
        wait = max(math.ceil(self._next_try - self._clock()), 1)
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
        self._next_try = self._clock() + PAUSE

    def reset(self) -> None:
        """Record that it was reached."""
        self._failures = 0
