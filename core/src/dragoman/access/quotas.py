"""Quotas of callers: calls per minute, rows per hour, bytes per day. This process alone counts them."""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.errors import QuotaExceeded
from dragoman.model import Principal

CALLERS = 10_000
"""The number of callers whose use is remembered. The longest idle is forgotten first."""
_SLOTS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The quota of one caller. None: no bound."""

    calls_per_minute: int | None = None
    rows_per_hour: int | None = None
    bytes_per_day: int | None = None

    def __bool__(self) -> bool:
        """Return whether there is any bound."""
        return self != _UNBOUNDED


_UNBOUNDED = Quota()


class Window:
    """Adds up the amounts of the last `seconds`, in sixty slots.

    A slot counts in full until its last amount expires.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._slots: deque[tuple[int, float, int]] = deque()
        """For each slot: its number, when it was last added to, and its amount."""
        self._total = 0

    def add(self, now: float, amount: int) -> None:
        """Add an amount."""
        slot = int(now * _SLOTS // self._seconds)
        before = self._slots.pop()[2] if self._slots and self._slots[-1][0] >= slot else 0
        self._slots.append((slot, now, before + amount))
        self._total += amount

    def wait(self, now: float, most: int) -> float:
        """Return the seconds until the sum is less than `most`; 0 if it is now."""
        while self._slots and now - self._slots[0][1] >= self._seconds:
            self._total -= self._slots.popleft()[2]
        left, wait = self._total, 0.0
        for _, last, amount in self._slots:
            if left < most:
                break
            left -= amount
            wait = self._seconds - (now - last)
        return wait


class Use:
    """What one caller has used."""

    def __init__(self) -> None:
        self.calls = Window(60)
        self.rows = Window(3600)
        self.bytes = Window(86400)


class Quotas:
    """The use of every caller. `quota_of` returns the quota of a principal; `clock` counts seconds."""

    def __init__(self, quota_of: Callable[[Principal], Quota], clock: Callable[[], float] = time.monotonic) -> None:
        self._quota_of = quota_of
        self._clock = clock
        self._used: OrderedDict[tuple[str, str, str], Use] = OrderedDict()

    def charge(self, principal: Principal) -> None:
        """Count a call that begins. If it raises `QuotaExceeded`, nothing is counted."""
        quota = self._quota_of(principal)
        if not quota:
            return
        used, now = self._use(principal), self._clock()
        _check(used.calls, now, quota.calls_per_minute, "make", "calls a minute")
        _check(used.rows, now, quota.rows_per_hour, "read", "rows an hour")
        _check(used.bytes, now, quota.bytes_per_day, "read", "bytes a day")
        used.calls.add(now, 1)

    def spend(self, principal: Principal, rows: int, size: int) -> None:
        """Count what a call has returned: rows and bytes."""
        if (rows or size) and self._quota_of(principal):
            used, now = self._use(principal), self._clock()
            used.rows.add(now, rows)
            used.bytes.add(now, size)

    def _use(self, principal: Principal) -> Use:
        identity = principal.identity
        used = self._used.get(identity)
        if used is None:
            used = self._used[identity] = Use()
            if len(self._used) > CALLERS:
                self._used.popitem(last=False)
        self._used.move_to_end(identity)
        return used


def _check(window: Window, now: float, most: int | None, verb: str, what: str) -> None:
    seconds = window.wait(now, most) if most is not None else 0.0
    if seconds > 0:
        wait = math.ceil(seconds)
        raise QuotaExceeded(
            f"Your quota is used up: you may {verb} {most} {what}.",
            suggestion=f"Try again in {wait} seconds.",
            context={"retry_after": wait},
        )
