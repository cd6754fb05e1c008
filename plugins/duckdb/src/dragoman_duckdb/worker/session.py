"""Runs statements inside the worker process: one SELECT each, described before it runs, its rows in batches."""

# pyright: reportUnknownMemberType=false
# (a connection's methods take what no stub names)

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Sequence
from typing import Any

import dragoman
import duckdb
from dragoman import Column, DragomanError
from dragoman.workers.frames import Columns, Failed, Run, Told
from dragoman.workers.sending import Send, Sender

from dragoman_duckdb.failures import translate
from dragoman_duckdb.files import Identity, identity
from dragoman_duckdb.frames import Setup
from dragoman_duckdb.types import add_casts, columns
from dragoman_duckdb.worker.opening import borrow, find_posing, open_sealed, put_engine_first
from dragoman_duckdb.worker.reading import Readings
from dragoman_duckdb.worker.texts import find_looked_at, find_replaced
from dragoman_duckdb.worker.variants import merge_rows

Row = tuple[Any, ...]
AGAIN = 0.01
"""Seconds between two interrupts. An interrupt before the statement begins has no effect."""


class Session:
    """Opens a folder at once, a file at the first statement, and again when they have changed.

    Looking at a folder's files may take longer than a statement may, whose process is then killed. The next process
    gets the time that it needs: no caller's deadline ends a start. Keeps no state between statements.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._readings = Readings(setup.functions)
        self._root: duckdb.DuckDBPyConnection | None = None
        self._identity: Identity = ()
        self._setting = ""
        self._posing: re.Pattern[str] | None = None
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._ended = threading.Event()
        self._timer: threading.Timer | None = None
        self._why = ""
        if os.path.isdir(setup.path):
            with contextlib.suppress(Exception):  # the first statement tells
                self._connect()

    def expect(self, timeout: float) -> None:
        """Announce a statement and its timeout in seconds. Called from the listening thread, as `interrupt` is."""
        self._ended, self._why = threading.Event(), ""
        self._timer = threading.Timer(timeout, self._stop, ("QueryTimeout", self._ended))
        self._timer.daemon = True
        self._timer.start()

    def interrupt(self) -> None:
        """End the statement that runs or is about to run."""
        threading.Thread(target=self._stop, args=("QueryCancelled", self._ended), daemon=True).start()

    def _stop(self, why: str, ended: threading.Event) -> None:
        self._why = self._why or why
        while not ended.wait(AGAIN):
            if self._cursor is not None:
                self._cursor.interrupt()

    def run(self, order: Run, send: Send) -> None:
        """Run one statement and send what it yields. Errors are sent as `Failed`."""
        reached = False
        try:
            self._cursor = cursor = borrow(self._connect(), self._setting)
            reached = True
            self._check(cursor, order)
            self._answer(cursor, order, send)
        except Exception as error:  # the executor gets every error, and the worker lives on
            send(self._failure(error, reached=reached))
        finally:
            self._end()

    def _end(self) -> None:
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        now = identity(self._setup.path)
        if self._root is not None and now != self._identity:
            self._root.close()
            self._root = None
        if self._root is None:
            try:
                self._root, self._identity = open_sealed(self._setup), now
            except duckdb.Error:
                raise dragoman.ConnectionFailed(
                    "it is not a DuckDB file, or another process writes to it",
                    suggestion="Check the file, or serve a copy of it.",
                ) from None
            self._setting = put_engine_first(self._root, self._setup)
            self._posing = find_posing(borrow(self._root, self._setting))
        return self._root

    def _check(self, cursor: duckdb.DuckDBPyConnection, order: Run) -> None:
        """Refuse what DuckDB's own parser does not take for the one query that was judged."""
        _check_single(cursor, order.sql)
        self._refuse_posing(order.sql)
        if order.reads is not None:
            self._readings.check(cursor, order.sql, order.reads, order.types)

    def _refuse_posing(self, sql: str) -> None:
        posing = self._posing.search(sql) if self._posing else None
        if posing:
            raise dragoman.UnsafeSql(
                f"The function {posing[1]} is a macro here, under the name of something of DuckDB's own.",
                suggestion="Write the query without it.",
            )

    def _answer(self, cursor: duckdb.DuckDBPyConnection, order: Run, send: Send) -> None:
        if order.task == "plan":
            send(Told(self._plan(cursor, order)))
            return
        described = _ask(cursor, "DESCRIBE ", order)
        report = Columns([name for name, *_ in described], [type_ for _, type_, *_ in described])
        send(report)
        if order.task == "rows":
            statement, variants = add_casts(order.sql, described)
            cursor.execute(statement, order.parameters)
            # One by one: if several are fetched at once, none arrives before an interrupt.
            rows = iter(cursor.fetchone, None)
            sender = _Sender(order, columns(report.names, report.types), send)
            sender.send_all(merge_rows(rows, variants) if variants else rows)
            sender.tell()

    def _plan(self, cursor: duckdb.DuckDBPyConnection, order: Run) -> Any:
        plan = _ask(cursor, "EXPLAIN (FORMAT JSON) " if order.verbose else "EXPLAIN ", order)[0][1]
        return json.loads(plan) if order.verbose else plan

    def _failure(self, error: Exception, *, reached: bool) -> Failed:
        if self._why and isinstance(error, duckdb.InterruptException):
            late = self._why == "QueryTimeout"
            return Failed(self._why, f"The query {'ran into its deadline' if late else 'was cancelled'} and was ended.")
        told = error if isinstance(error, DragomanError) else translate(error)
        message = told.message.replace(f"{self._setup.path}/", "").replace(self._setup.path, "the database")
        return Failed(type(told).__name__, message, told.suggestion, told.identifier, reached=reached)


class _Sender(Sender):
    """Sends no rows of a file that was replaced meanwhile: they might stand under the names of other columns."""

    def __init__(self, order: Run, columns: Sequence[Column], send: Send) -> None:
        super().__init__(order, columns, send)
        self._files = find_looked_at(order.sql, order.reads)

    def tell(self) -> None:
        replaced = find_replaced(self._files)
        if replaced is not None:
            raise dragoman.Busy(f"{replaced} was replaced while the query read it.", suggestion="Send the query again.")


def _ask(cursor: duckdb.DuckDBPyConnection, what: str, order: Run) -> list[Row]:
    """Return what DuckDB reports about a query without running it."""
    return cursor.execute(what + order.sql, order.parameters).fetchall()


def _check_single(cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse a text in which DuckDB's own parser finds more than one statement, or one that is no query."""
    found = cursor.extract_statements(sql)
    if len(found) != 1:
        raise dragoman.UnsafeSql(f"{len(found)} statements were sent.", suggestion="Send one statement per call.")
    if found[0].type == duckdb.StatementType.MULTI:
        raise dragoman.UnsafeSql(
            "DuckDB runs this as several statements.",
            suggestion="List the values that PIVOT makes columns of: ON x IN (...).",
        )
    if found[0].type != duckdb.StatementType.SELECT:
        raise dragoman.WriteDenied(f"{found[0].type.name} is not a query.", suggestion="Send a SELECT.")
