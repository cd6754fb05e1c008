"""One read-only SQLite connection and the walls around it: runs statements inside the worker process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import apsw
from dragoman import Column, UnsafeSql, WriteDenied, encode

from dragoman_sqlite.authorizer import Authorizer
from dragoman_sqlite.failures import describe_failure, refused
from dragoman_sqlite.frames import Columns, Failed, Report, Rows, Run, Setup
from dragoman_sqlite.plans import tell_plan
from dragoman_sqlite.types import short_type, storage_class
from dragoman_sqlite.values import bind, rescued

Send = Callable[[Report], None]

STEPS = 10_000
"""Virtual machine steps between two looks at the clock: unnoticeable, and within a millisecond of the deadline."""

FIRST_BATCH, LARGEST_BATCH = 64, 1024
BATCH_BYTES = 256 * 1024
BUSY_SECONDS = 5.0
"""How long a locked database is waited for, when the deadline allows it."""


class Session:
    """Opens the file at the first statement and again after a failure to open; keeps no state between statements."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._connection: apsw.Connection | None = None
        self._authorizer: Authorizer | None = None
        self._deadline = 0.0
        self._interrupted = False
        apsw.hard_heap_limit(setup.memory)

    def interrupt(self) -> None:
        """End the statement that runs; called from the listening thread."""
        self._interrupted = True
        if self._connection is not None:
            self._connection.interrupt()

    def run(self, order: Run, send: Send) -> None:
        """Run one statement and send what it yields; whatever goes wrong is sent as `Failed`."""
        self._interrupted = False
        self._deadline = time.monotonic() + order.timeout
        statement = Statement(order)
        try:
            self._answer(self._connected(), statement, send)
        except Exception as error:  # whatever it is, the executor is told and the worker lives on
            send(self._failure(error, statement))
        finally:
            statement.close()

    def _answer(self, connection: apsw.Connection, statement: Statement, send: Send) -> None:
        match statement.order.task:
            case "rows":
                self._send_rows(connection, statement, send)
            case "columns":
                statement.look(connection)
                send(statement.told())
            case "plan":
                send(tell_plan(connection, statement.order, lambda explain: statement.start(connection, explain)))

    def _failure(self, error: Exception, statement: Statement) -> Failed:
        if isinstance(error, apsw.AuthError) and self._authorizer and self._authorizer.denied:
            return refused(*self._authorizer.denied)
        if isinstance(error, apsw.CantOpenError | apsw.NotADBError | apsw.CorruptError | apsw.IOError):
            self._close()
        return describe_failure(
            error,
            statement.order.sql,
            late=time.monotonic() >= self._deadline,
            cancelled=self._interrupted,
            running=statement.compiled,
        )

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close(True)
            self._connection = None

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> apsw.Connection:
        # Not a URI: a path such as `x.db?mode=rwc` must stay a path.
        connection = apsw.Connection(self._setup.path, flags=apsw.SQLITE_OPEN_READONLY)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)  # a misspelled "column" must not become a text
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, self._setup.length)
        connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
        connection.limit(apsw.SQLITE_LIMIT_WORKER_THREADS, 0)
        connection.set_busy_handler(self._wait_for_lock)
        connection.set_progress_handler(self._must_stop, STEPS)
        connection.pragma("query_only", True)
        connection.pragma("schema_version")  # reads the header: what is not a database says so here
        self._authorizer = Authorizer(connection, self._setup.functions)
        connection.authorizer = self._authorizer
        return connection

    def _must_stop(self) -> bool:
        return self._interrupted or time.monotonic() >= self._deadline

    def _wait_for_lock(self, attempts: int) -> bool:
        if self._must_stop() or attempts * 0.005 >= BUSY_SECONDS:
            return False
        time.sleep(0.005)
        return True

    def _send_rows(self, connection: apsw.Connection, statement: Statement, send: Send) -> None:
        rows = statement.start(connection)
        send(statement.told())
        sender = _Sender(statement, send)
        try:
            sender.send_all(rows)
        except UnicodeDecodeError:
            sender.send_all(statement.rescued(connection, skip=sender.seen))
        send(Columns([column.name for column in statement.columns], sender.final_types()))


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
        self._cursor.exec_trace = lambda cursor, statement, _: self._look(cursor, statement, sql) and run
        return self._cursor.execute(sql, bind(sql, self.order.parameters), explain=explain or -1)

    def look(self, connection: apsw.Connection) -> None:
        """Compile it and note its columns, without running it."""
        with contextlib.suppress(apsw.ExecTraceAbort):
            self.start(connection, run=False)

    def _look(self, cursor: apsw.Cursor, statement: str, sql: str) -> bool:
        if len(statement.strip(" \t\r\n;")) != len(sql.strip(" \t\r\n;")):
            raise UnsafeSql("There is more than one statement.", suggestion="Send them one by one.")
        if not cursor.is_readonly:
            raise WriteDenied("The statement would write.", suggestion="Send a SELECT.")
        self.compiled = True
        self.columns = self.columns or [Column(field[0], short_type(field[1])) for field in cursor.description]
        return True

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


class _Sender:
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
