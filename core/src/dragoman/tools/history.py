"""What each caller ran lately, for that caller alone; kept in memory and gone with the server."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

from dragoman.model import Principal

PER_CALLER: Final = 50
CALLERS: Final = 500
LONGEST: Final = 4_000
"""Characters of a statement that is kept; longer ones are left out, since a cut one cannot be run again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A statement that ran: on which database, and how many rows it gave."""

    database: str
    sql: str
    rows: int


@dataclass(slots=True)
class History:
    """The last statements of each caller, newest first."""

    _entries: OrderedDict[Principal, deque[Entry]] = field(default_factory=OrderedDict[Principal, deque[Entry]])

    def add(self, principal: Principal, entry: Entry) -> None:
        """Remember a statement; of too many callers the one who was silent longest is forgotten."""
        if len(entry.sql) > LONGEST:
            return
        own = self._entries.setdefault(principal, deque(maxlen=PER_CALLER))
        own.appendleft(entry)
        self._entries.move_to_end(principal)
        if len(self._entries) > CALLERS:
            self._entries.popitem(last=False)

    def of(self, principal: Principal) -> tuple[Entry, ...]:
        """Return what a caller ran."""
        return tuple(self._entries.get(principal, ()))
