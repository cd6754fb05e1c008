"""One read-only SQLite connection and its protections. Runs statements inside the worker process."""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import apsw
import msgspec
from dragoman.workers.frames import Failed, Run
from dragoman.workers.sending import Send

from dragoman_sqlite.files import State, observe
from dragoman_sqlite.frames import Confine, Setup, View
from dragoman_sqlite.worker.authorizer import Authorizer
from dragoman_sqlite.worker.confined import ConfinedConnection
from dragoman_sqlite.worker.failures import describe_failure, is_quoted_by_view, refuse
from dragoman_sqlite.worker.plans import tell_plan
from dragoman_sqlite.worker.statement import Rows, Statement

STEPS = 10_000
"""Virtual machine steps between two checks of the clock: cheap, and within a millisecond of the deadline."""

CONFINED = 8
"""The number of connections kept on which views replace some tables. The one opened first is closed first."""
_RANDOM = re.compile("random", re.IGNORECASE)
BUSY_SECONDS = 5.0
"""Seconds to wait for a locked database, if the deadline allows it."""


def open_read_only(path: str, length: int) -> apsw.Connection:
    """Open a file read-only. SQLite attaches nothing and creates no value larger than `length` bytes."""
    # Not a URI: a path such as `x.db?mode=rwc` must stay a path.
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    restrict(connection, length)
    return connection


def restrict(connection: apsw.Connection, length: int) -> None:
    """Restrict a connection.

    It writes nothing, attaches nothing more and creates no value larger than `length` bytes.
    """
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)  # a misspelled "column" must not become a text
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, length)
    connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
    connection.limit(apsw.SQLITE_LIMIT_WORKER_THREADS, 0)
    connection.pragma("query_only", True)


class Session:
    """Opens the file at the first statement, and again when something has replaced it or written to it.

    Keeps no state between statements.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._connection: apsw.Connection | None = None
        self._interrupting = threading.Lock()
        self._authorizer = Authorizer(setup.functions)
        self._state: State = None
        self._plain: apsw.Connection | None = None
        self._own_authorizer = self._authorizer
        self._confined: OrderedDict[tuple[View, ...], ConfinedConnection] = OrderedDict()
        self._deadline = 0.0
        self._interrupted = False
        apsw.hard_heap_limit(setup.memory)

    def expect(self, timeout: float) -> None:
        """Announce a statement and its timeout in seconds. Called from the listening thread, as `interrupt` is."""
        self._interrupted = False
        self._deadline = time.monotonic() + timeout

    def interrupt(self) -> None:
        """End the statement that runs or is about to run."""
        self._interrupted = True
        with self._interrupting:
            if self._connection is not None:
                self._connection.interrupt()

    def run(self, order: Run, send: Send) -> None:
        """Run one statement and send what it yields. Errors are sent as `Failed`."""
        statement = Statement(order)
        try:
            confine = None if order.confine is None else msgspec.convert(order.confine, Confine)
            self._answer(self._connect(confine), statement, send)
        except Exception as error:  # the executor gets every error, and the worker lives on
            send(self._failure(error, statement))
        finally:
            statement.close()

    def _answer(self, connection: apsw.Connection, statement: Statement, send: Send) -> None:
        try:
            self._tell(connection, statement, send)
        # Both are raised before anything is sent.
        except apsw.AuthError:
            self._authorizer.guard(connection)  # in case the schema has changed
            self._tell(connection, statement, send)
        except apsw.SQLError as error:
            if not is_quoted_by_view(error, statement.order.sql):
                raise
            connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 1)
            try:
                self._tell(connection, statement, send)
            finally:
                connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)

    def _tell(self, connection: apsw.Connection, statement: Statement, send: Send) -> None:
        if statement.order.task != "rows":
            # Only a step notices that the schema has changed, and these take none.
            self._authorizer.guard(connection)
        match statement.order.task:
            case "rows":
                self._send_rows(connection, statement, send)
            case "columns":
                statement.look(connection)
                send(statement.read_columns())
            case "plan":
                send(tell_plan(connection, statement.order, lambda explain: statement.start(connection, explain)))

    def _failure(self, error: Exception, statement: Statement) -> Failed:
        if isinstance(error, apsw.AuthError) and self._authorizer.denied:
            return refuse(*self._authorizer.denied)
        reached = self._connection is not None
        if isinstance(error, apsw.CantOpenError | apsw.NotADBError | apsw.CorruptError | apsw.IOError):
            self._close()
        return describe_failure(
            error,
            statement.order.sql,
            late=time.monotonic() >= self._deadline,
            cancelled=self._interrupted,
            running=statement.compiled,
            reached=reached,
        )

    def _withdraw(self) -> None:
        """Have nothing interrupted until the next connection is chosen: one that is closed must not be."""
        with self._interrupting:
            self._connection = None

    def _close(self) -> None:
        """Close every connection to the file."""
        self._withdraw()
        for connection in (self._plain, *(each.connection for each in self._confined.values())):
            if connection is not None:
                connection.close(True)
        self._plain = None
        self._confined.clear()

    def _connect(self, confine: Confine | None) -> apsw.Connection:
        self._withdraw()
        state = observe(self._setup.path)
        if state != self._state:
            self._close()
            self._state = state
        if confine is None:
            self._plain = self._plain or self._open()
            self._connection, self._authorizer = self._plain, self._own_authorizer
        else:
            confined = self._confined.get(confine.views) or self._open_confined(confine)
            confined.values = confine.values
            self._connection, self._authorizer = confined.connection, confined.authorizer
        return self._connection

    def _open(self) -> apsw.Connection:
        connection = open_read_only(self._setup.path, self._setup.length)
        self._watch(connection)
        connection.pragma("schema_version")  # reads the header, so a file that is not a database fails here
        self._own_authorizer.guard(connection)
        return connection

    def _open_confined(self, confine: Confine) -> ConfinedConnection:
        confined = ConfinedConnection(self._setup.path, self._setup.functions, confine)
        restrict(confined.connection, self._setup.length)
        self._watch(confined.connection)
        confined.authorizer.guard(confined.connection)
        self._confined[confine.views] = confined
        if len(self._confined) > CONFINED:
            self._confined.popitem(last=False)[1].connection.close(True)
        return confined

    def _watch(self, connection: apsw.Connection) -> None:
        connection.set_busy_handler(self._wait_for_lock)
        connection.set_progress_handler(self._must_stop, STEPS)

    def _must_stop(self) -> bool:
        return self._interrupted or time.monotonic() >= self._deadline

    def _wait_for_lock(self, attempts: int) -> bool:
        if self._must_stop() or attempts * 0.005 >= BUSY_SECONDS:
            return False
        time.sleep(0.005)
        return True

    def _send_rows(self, connection: apsw.Connection, statement: Statement, send: Send) -> None:
        rows = self._begin(connection, statement)
        send(statement.read_columns())
        sender = Rows(statement, send)
        try:
            sender.send_all(rows)
        except UnicodeDecodeError as broken:
            self._authorizer.random = False
            try:
                rows = statement.read_as_bytes(connection, skip=sender.seen)
            except apsw.SQLError:  # a statement that cannot be wrapped, such as a PRAGMA
                raise broken from None
            if self._authorizer.random and sender.seen:
                raise broken
            sender.send_all(rows)

    def _begin(self, connection: apsw.Connection, statement: Statement) -> Iterator[Any]:
        """Return the rows. Where chance decides, texts are bytes from the first one: read again, it would be others."""
        if _RANDOM.search(statement.order.sql):
            statement.look(connection)
            with contextlib.suppress(apsw.SQLError):  # a statement that cannot be wrapped, since it has many columns
                return statement.read_as_bytes(connection)
        return statement.rows(connection)
