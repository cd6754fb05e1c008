"""Whether a database still holds what was seen of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dragoman.dialect import Inspector

Clock = Callable[[], float]

CONFIRMED = 1.0
"""Seconds for which nothing is taken to have changed once the database has said so."""
PATIENCE = 20
"""A database that takes longer to say so is asked after this many times its own duration."""


class Watch:
    """Notices by its fingerprint that a database has changed."""

    def __init__(self, inspector: Inspector, clock: Clock) -> None:
        self._inspector = inspector
        self._clock = clock
        self._fingerprint: str | None = None
        self._until = clock()

    @property
    def is_due(self) -> bool:
        """Whether the database is to be asked again."""
        return self._clock() >= self._until

    async def confirm(self, read: Callable[[], Awaitable[None]], *, stale: bool) -> None:
        """Have everything read again if it is `stale`, if the database has changed, or if it has no fingerprint.

        Raises what the inspector raises: then nothing is confirmed.
        """
        start = self._clock()
        told = await self._inspector.fingerprint()  # before it is read: what changes meanwhile is seen the next time
        if stale or told is None or told != self._fingerprint:
            await read()
            self._fingerprint = told
        self._until = start + max(CONFIRMED, (self._clock() - start) * PATIENCE)
