"""The engine's own wall: SQLite asks before it compiles each access, and what is not allowed is denied."""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Iterable

import apsw

from dragoman_sqlite.allowed import FUNCTIONS, PRAGMAS

SHADOWS = "SELECT name FROM pragma_table_list WHERE type = 'shadow'"

_READING = {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_RECURSIVE}
_WRITING = {apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE}


class Authorizer:
    """Allows reading, listed functions and listed PRAGMAs. `denied` says what the last denial was about."""

    def __init__(self, connection: apsw.Connection, functions: Iterable[str]) -> None:
        self._functions = FUNCTIONS | {name.lower() for name in functions}
        # R-Tree prepares writes to its own tables when it opens; the statement itself must still be reading only.
        self._shadows = _names(connection.execute(SHADOWS))
        self.denied: tuple[str, str] | None = None

    def learns(self, connection: apsw.Connection) -> bool:
        """Whether there are shadow tables not known before, so that what was denied may now be allowed."""
        before, self._shadows = self._shadows, _names(connection.execute(SHADOWS))
        return self._shadows != before

    def __call__(self, action: int, first: str | None, second: str | None, schema: str | None, by: str | None) -> int:
        if self._allows(action, first, second):
            return apsw.SQLITE_OK
        kind = apsw.mapping_authorizer_function[action]
        named = second if action == apsw.SQLITE_FUNCTION else first
        self.denied = (str(kind).removeprefix("SQLITE_"), named or "")
        return apsw.SQLITE_DENY

    def _allows(self, action: int, first: str | None, second: str | None) -> bool:
        if action in _READING:
            return True
        if action == apsw.SQLITE_FUNCTION:
            return second is not None and second.lower() in self._functions
        if action == apsw.SQLITE_PRAGMA:
            return first is not None and _reads(first.lower(), second)
        return action in _WRITING and first in self._shadows


def _names(rows: Iterable[tuple[str]]) -> frozenset[str]:
    return frozenset(name for (name,) in rows)


def _reads(pragma: str, argument: str | None) -> bool:
    return pragma in PRAGMAS and (argument is None or PRAGMAS[pragma])
