"""One statement inside the worker: checked before its first step, its rows sent in batches."""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import apsw
from dragoman import Column, UnsafeSql, WriteDenied
from dragoman.workers.frames import Columns, Run
from dragoman.workers.sending import Send, Sender

from dragoman_sqlite.types import short_type, storage_class
from dragoman_sqlite.values import bind, rescue

# SQLite counts it as a write even if it only reads. The authorizer refuses it with a value.
_JOURNAL_MODE = re.compile(r"\s*pragma\s+(?:main\s*\.\s*)?journal_mode\s*;?\s*", re.IGNORECASE)


class Statement:
    """A statement that is checked before its first step: it is single and only reads. Its columns are recorded."""

    def __init__(self, order: Run) -> None:
        self.order = order
        self.columns: list[Column] = []
        self.compiled = False
        self._cursor: apsw.Cursor | None = None

    def start(self, connection: apsw.Connection, explain: int = 0, sql: str = "", *, run: bool = True) -> apsw.Cursor:
        """Start it and return its rows. `explain`: the mode of sqlite3_stmt_explain.

        If it does not run, it is compiled anew: a compiled one that is remembered may know another schema. So is
        another text, `sql`, of which the authorizer then learns what it calls.
        """
        self.close()
        remember = run and not sql
        sql = sql or self.order.sql
        self._cursor = connection.cursor()
        self._cursor.exec_trace = functools.partial(self._trace, sql=sql, run=run)
        return self._cursor.execute(sql, bind(sql, self.order.parameters), can_cache=remember, explain=explain or -1)

    def rows(self, connection: apsw.Connection) -> Iterator[Any]:
        """Start it and return its rows. Its columns are those of its first step.

        A compiled statement is remembered, and only a step notices that a table was replaced since.
        """
        rows = self.start(connection)
        try:
            self.columns = _columns(rows.get_description())
        except apsw.ExecutionCompleteError:  # it has no rows
            self.columns = []
            self.look(connection)
            return iter(())
        return rows

    def look(self, connection: apsw.Connection) -> None:
        """Compile it and record its columns, without running it."""
        with contextlib.suppress(apsw.ExecTraceAbort):
            self.start(connection, run=False)

    def _trace(self, cursor: apsw.Cursor, statement: str, bindings: object, *, sql: str, run: bool) -> bool:
        """Check the statement.

        apsw calls this when it is compiled, before its first step; False keeps it from running.
        """
        if len(statement.strip(" \t\r\n;")) != len(sql.strip(" \t\r\n;")):
            raise UnsafeSql("There is more than one statement.", suggestion="Send them one by one.")
        if not cursor.is_readonly and not _JOURNAL_MODE.fullmatch(statement):
            raise WriteDenied("The statement would write.", suggestion="Send a SELECT.")
        self.compiled = True
        # apsw remembers the result of each function, so `get_description` is called only after the first step.
        self.columns = self.columns or _columns(cursor.description)
        return run

    def read_columns(self) -> Columns:
        """Return its columns, with the types that SQLite knows."""
        return Columns([column.name for column in self.columns], [column.type for column in self.columns])

    def read_as_bytes(self, connection: apsw.Connection, skip: int = 0) -> Iterator[Any]:
        """Return the same rows with every text read as bytes, from the first one that was not sent yet.

        It begins before the former reading ends, so that both see the same state of the file.
        """
        sql, decode = rescue(self.order.sql, len(self.columns), connection.pragma("encoding"))
        former, self._cursor = self._cursor, None
        try:
            return map(decode, itertools.islice(self.start(connection, sql=sql), skip, None))
        finally:
            if former is not None:
                former.close(True)

    def close(self) -> None:
        """Reset it, so that it holds no lock."""
        if self._cursor is not None:
            self._cursor.close(True)
            self._cursor = None


def _columns(described: Sequence[Sequence[Any]]) -> list[Column]:
    return [Column(field[0], short_type(field[1])) for field in described]


class Rows(Sender):
    """Sends rows, and records the storage classes of columns whose type SQLite does not know."""

    def __init__(self, statement: Statement, send: Send) -> None:
        super().__init__(statement.order, statement.columns, send)
        self._columns = statement.columns
        self._send = send
        self._classes: dict[int, set[type]] = {at: set() for at, column in enumerate(self._columns) if not column.type}
        self._types = [column.type for column in self._columns]

    def note(self, rows: Sequence[Any]) -> None:
        """Record the storage classes of fetched rows."""
        for at, seen in self._classes.items():
            seen.update(map(type, [row[at] for row in rows]))

    def tell(self) -> None:
        """Send new types before rows that change them: the declared type if SQLite knows it, else the storage class."""
        types = [column.type or storage_class(self._classes[at]) for at, column in enumerate(self._columns)]
        if types != self._types:
            self._types = types
            self._send(Columns([column.name for column in self._columns], types))
