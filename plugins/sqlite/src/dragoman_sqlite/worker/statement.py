"""One statement inside the worker: looked at before its first step, its rows sent in batches."""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import apsw
from dragoman import Column, Encoded, UnsafeSql, WriteDenied, encode

from dragoman_sqlite.frames import Columns, Report, Rows, Run
from dragoman_sqlite.types import short_type, storage_class
from dragoman_sqlite.values import bind, rescue

Send = Callable[[Report], None]

# SQLite counts it as a write even when it only reads; with a value the authorizer refuses it.
_JOURNAL_MODE = re.compile(r"\s*pragma\s+(?:main\s*\.\s*)?journal_mode\s*;?\s*", re.IGNORECASE)

FIRST_CHUNK, CHUNK = 8, 256
"""Rows fetched and encoded at once, at first and at most."""
BATCH_BYTES = 64 * 1024


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
        if not cursor.is_readonly and not _JOURNAL_MODE.fullmatch(statement):
            raise WriteDenied("The statement would write.", suggestion="Send a SELECT.")
        self.compiled = True
        self.columns = self.columns or [Column(field[0], short_type(field[1])) for field in cursor.description]
        return run

    def read_columns(self) -> Columns:
        """Its columns, with the types SQLite knows."""
        return Columns([column.name for column in self.columns], [column.type for column in self.columns])

    def reread(self, connection: apsw.Connection, skip: int) -> Iterator[Any]:
        """The same rows with every text read as bytes, from the first one not sent yet."""
        sql, decode = rescue(self.order.sql, len(self.columns), connection.pragma("encoding"))
        return map(decode, itertools.islice(self.start(connection, sql=sql), skip, None))

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
        # Of the columns whose type SQLite does not know, by position.
        self._classes: dict[int, set[type]] = {at: set() for at, column in enumerate(self._columns) if not column.type}
        self._types = [column.type for column in self._columns]
        self._waiting: list[Encoded] = []
        self._waiting_bytes = 0
        self._bytes = 0
        self._full = False
        self.seen = 0

    def send_all(self, rows: Iterator[Any]) -> None:
        """Send rows until they or the limits end."""
        while chunk := list(itertools.islice(rows, self._chunk())):
            self._encode(chunk)
            if self._waiting_bytes >= BATCH_BYTES or self._full:
                self._flush()
            if self.seen > self._order.max_rows or self._full:
                break
        self._flush()

    def _chunk(self) -> int:
        """How many rows to fetch next: about a batch by the width of those seen, so that wide rows stay few."""
        fitting = BATCH_BYTES * self.seen // (self._bytes or 1) if self.seen else FIRST_CHUNK
        return min(max(fitting, 1), CHUNK, self._order.max_rows + 1 - self.seen)

    def _encode(self, chunk: list[Any]) -> None:
        for at, seen in self._classes.items():
            seen.update(map(type, [row[at] for row in chunk]))
        encoded = encode(self._columns, chunk)
        if self._bytes + len(encoded.json) > self._order.max_bytes:
            encoded = self._up_to_the_limit(chunk)
        self._waiting.append(encoded)
        self._waiting_bytes += len(encoded.json)
        self._bytes += len(encoded.json)
        self.seen += encoded.count

    def _up_to_the_limit(self, chunk: list[Any]) -> Encoded:
        """The rows up to the one that goes beyond the limit; one that does so by itself is announced, and not sent."""
        most, taken = self._order.max_bytes, self._bytes
        fitting: list[Encoded] = []
        oversized = False
        for row in chunk:
            one = encode(self._columns, [row])
            oversized = len(one.json) > most
            if not oversized:
                fitting.append(one)
                taken += len(one.json)
            if oversized or taken > most:
                break
        notices = dict.fromkeys(notice for one in fitting for notice in one.notices)
        self._full = oversized or taken > most
        return Encoded(b",".join(one.json for one in fitting), len(fitting), tuple(notices), oversized)

    def _flush(self) -> None:
        if self._waiting:
            notices = dict.fromkeys(notice for encoded in self._waiting for notice in encoded.notices)
            self._tell_types()
            text = b",".join(encoded.json for encoded in self._waiting if encoded.count)
            count = sum(encoded.count for encoded in self._waiting)
            self._send(Rows(text, count, tuple(notices), self._waiting[-1].oversized))
        self._waiting, self._waiting_bytes = [], 0

    def _tell_types(self) -> None:
        """Before rows, when they change it: the declared type where SQLite knows it, else the storage class seen."""
        types = [column.type or storage_class(self._classes[at]) for at, column in enumerate(self._columns)]
        if types != self._types:
            self._types = types
            self._send(Columns([column.name for column in self._columns], types))
