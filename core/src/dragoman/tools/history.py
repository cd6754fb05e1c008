"""The statements that each caller ran recently, for that caller alone. Kept in memory until the server ends."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

from dragoman.model import Principal

PER_CALLER: Final = 50
CALLERS: Final = 500
LONGEST: Final = 4_000
"""The most characters of a statement that is kept. Longer ones are left out, since a cut one could not run again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A statement that ran: its database, and the number of rows it returned."""

    database: str
    sql: str
    rows: int


@dataclass(slots=True)
class History:
    """The last statements of each caller, newest first."""

    _entries: OrderedDict[Principal, deque[Entry]] = field(default_factory=OrderedDict[Principal, deque[Entry]])

    def add(self, principal: Principal, entry: Entry) -> None:
        """Add a statement. If there are too many callers, the one that was idle longest is dropped."""
        if len(entry.sql) > LONGEST:
            return
        own = self._entries.setdefault(principal, deque(maxlen=PER_CALLER))
        own.appendleft(entry)
        self._entries.move_to_end(principal)
        if len(self._entries) > CALLERS:
            self._entries.popitem(last=False)

    def of(self, principal: Principal) -> tuple[Entry, ...]:
        """Return the statements of a caller."""
        return tuple(self._entries.get(principal, ()))
