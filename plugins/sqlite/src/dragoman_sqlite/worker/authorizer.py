"""The engine's own check: SQLite asks the authorizer before it compiles each access.

The authorizer denies what is not allowed.
"""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import cast

import apsw
from dragoman.words import lower_ascii

from dragoman_sqlite.allowed import FUNCTIONS, PRAGMAS

OPENINGS = """
SELECT printf('SELECT 1 FROM {schema}."%w" LIMIT 0', name) FROM {schema}.sqlite_schema
WHERE type = 'table' AND rootpage = 0
"""
_RANDOM = frozenset({"random", "randomblob"})
_READING = {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_RECURSIVE}


class Authorizer:
    """Allows reading, listed functions and listed PRAGMAs.

    `denied`: what the last denial was about. `random`: set when a statement is compiled in which chance decides.
    """

    def __init__(self, functions: Iterable[str], schema: str = "main") -> None:
        self._functions = FUNCTIONS | {name.lower() for name in functions}
        self._openings = OPENINGS.format(schema=schema)
        self.denied: tuple[str, str] | None = None
        self.random = False

    def guard(self, connection: apsw.Connection) -> None:
        """Open the virtual tables, then set the authorizer of `connection`.

        R-Tree prepares writes to its own tables when it is opened, and never runs them for a reader. Opened before, it
        needs no permission to write, until the schema changes and the tables must be opened again.
        """
        connection.authorizer = None
        for (opening,) in cast("list[tuple[str]]", connection.execute(self._openings).fetchall()):
            with contextlib.suppress(apsw.Error):  # a table that cannot be opened reports it when it is read
                connection.execute(opening)
        connection.authorizer = self

    def __call__(self, action: int, first: str | None, second: str | None, schema: str | None, by: str | None) -> int:
        if self._allows(action, first, second) and not self._hides(action, first, second, schema, by):
            return apsw.SQLITE_OK
        kind = apsw.mapping_authorizer_function[action]
        named = second if action == apsw.SQLITE_FUNCTION else first
        self.denied = (str(kind).removeprefix("SQLITE_"), named or "")
        return apsw.SQLITE_DENY

    def _hides(self, action: int, first: str | None, second: str | None, schema: str | None, by: str | None) -> bool:
        """Return whether an access that is otherwise allowed reaches something hidden. Nothing is hidden here."""
        return False

    def _allows(self, action: int, first: str | None, second: str | None) -> bool:
        if action in _READING:
            return True
        if action == apsw.SQLITE_FUNCTION:
            name = lower_ascii(second or "")
            self.random = self.random or name in _RANDOM
            return name in self._functions
        return action == apsw.SQLITE_PRAGMA and first is not None and _reads(first.lower(), second)


def _reads(pragma: str, argument: str | None) -> bool:
    return pragma in PRAGMAS and (argument is None or PRAGMAS[pragma])
