"""One statement inside the worker: looked at before its first step, its rows sent in batches."""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import apsw
from dragoman import Column, UnsafeSql, WriteDenied, encode

from dragoman_sqlite.frames import Columns, Report, Rows, Run
from dragoman_sqlite.types import short_type, storage_class
from dragoman_sqlite.values import bind, rescued

Send = Callable[[Report], None]

FIRST_BATCH, LARGEST_BATCH = 64, 1024
BATCH_BYTES = 256 * 1024


class Statement:
    """A statement that is looked at before its first step: single, reading only, its columns noted."""

    def __init__(self, order: Run) -> None:
        self.order = order
        self.columns: list[Column] = []
        self.compiled = False
        self._cursor: apsw.Cursor | None = None

    def start(self, connection: apsw.Connection, explain: int = 0, sql: str = "", *, run: bool = True) -> apsw.Cursor:
        """Start it and return its rows; `explain` as sqlite3_stmt_explain has it."""
        self.close()
        sql = sql or self.order.sql
        self._cursor = connection.cursor()
        self._cursor.exec_trace = functools.partial(self._trace, sql=sql, run=run)
        return self._cursor.execute(sql, bind(sql, self.order.parameters), explain=explain or -1)

    def look(self, connection: apsw.Connection) -> None:
        """Compile it and note its columns, without running it."""
        with contextlib.suppress(apsw.ExecTraceAbort):
            self.start(connection, run=False)

    def _trace(self, cursor: apsw.Cursor, statement: str, bindings: object, *, sql: str, run: bool) -> bool:
        """Called by apsw when a statement is compiled, before its first step; False keeps it from running."""
        if len(statement.strip(" \t\r\n;")) != len(sql.strip(" \t\r\n;")):
            raise UnsafeSql("There is more than one statement.", suggestion="Send them one by one.")
        if not cursor.is_readonly:
            raise WriteDenied("The statement would write.", suggestion="Send a SELECT.")
        self.compiled = True
        self.columns = self.columns or [Column(field[0], short_type(field[1])) for field in cursor.description]
        return run

    def told(self) -> Columns:
        """Its columns, with the types SQLite knows."""
        return Columns([column.name for column in self.columns], [column.type for column in self.columns])

    def rescued(self, connection: apsw.Connection, skip: int) -> Iterator[Any]:
        """The same rows with every text read as bytes, from the first one not sent yet."""
        sql, decode = rescued(self.order.sql, len(self.columns), connection.pragma("encoding"))
        for index, row in enumerate(self.start(connection, sql=sql)):
            if index >= skip:
                yield decode(row)

    def close(self) -> None:
        """Reset it, so that it holds no lock."""
        if self._cursor is not None:
            self._cursor.close(True)
            self._cursor = None


class Sender:
    """Sends rows in batches, one row beyond the limits so that truncation is exact, noting what types were seen."""

    def __init__(self, statement: Statement, send: Send) -> None:
        self._columns = statement.columns
        self._order = statement.order
        self._send = send
        self._classes: list[set[type]] = [set() for _ in statement.columns]
        self._bytes = 0
        self.seen = 0

    def send_all(self, rows: Iterator[Any]) -> None:
        batch: list[Any] = []
        size = FIRST_BATCH
        weight = 0
        for row in rows:
            batch.append(row)
            weight += _weight(row)
            if len(batch) >= size or weight >= BATCH_BYTES or self.seen + len(batch) > self._order.max_rows:
                self._flush(batch)
                if self.seen > self._order.max_rows or self._bytes > self._order.max_bytes:
                    return
                batch, weight = [], 0
                size = min(size * 2, LARGEST_BATCH)
        if batch:
            self._flush(batch)

    def _flush(self, batch: list[Any]) -> None:
        for seen, values in zip(self._classes, zip(*batch, strict=True), strict=True):
            seen.update(map(type, values))
        encoded = encode(self._columns, batch)
        self._send(Rows(list(encoded.rows), list(encoded.notices)))
        self.seen += len(batch)
        self._bytes += sum(map(len, encoded.rows))

    def final_types(self) -> list[str]:
        """The declared type where SQLite knows the column, else the one storage class seen."""
        return [column.type or storage_class(seen) for column, seen in zip(self._columns, self._classes, strict=True)]


def _weight(row: Any) -> int:
    return sum(len(value) for value in row if isinstance(value, str | bytes))
