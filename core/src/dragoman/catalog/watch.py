"""Checks whether a database still has the contents that were read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dragoman.dialect import Inspector

Clock = Callable[[], float]

CONFIRMED = 1.0
"""Seconds for which the catalog counts as unchanged once the database has confirmed it."""
PATIENCE = 20
"""A slower database is asked again only after this many times its own answer time."""


class Watch:
    """Notices by its fingerprint that a database has changed."""

    def __init__(self, inspector: Inspector, clock: Clock) -> None:
        self._inspector = inspector
        self._clock = clock
        self._fingerprint: str | None = None
        self._until = clock()

    @property
    def is_due(self) -> bool:
        """Return whether to ask the database again."""
        return self._clock() >= self._until

    async def holds(self) -> bool:
        """Return whether the database says that it is as it was when `confirm` last had it read.

        Raises what the inspector raises.
        """
        return self._fingerprint is not None and self._fingerprint == await self._inspector.fingerprint()

    async def confirm(self, read: Callable[[], Awaitable[None]], *, stale: bool) -> None:
        """Read everything again if it is `stale`, if the database has changed, or if it has no fingerprint.

        Raises what the inspector raises; then nothing is confirmed.
        """
        start = self._clock()
        told = await self._inspector.fingerprint()  # before reading, so that a change meanwhile is seen the next time
        took = self._clock() - start
        if stale or told is None or told != self._fingerprint:
            await read()
            self._fingerprint = told
        if told is None:  # reading is its only answer
            took = self._clock() - start
        self._until = start + max(CONFIRMED, took * PATIENCE)
