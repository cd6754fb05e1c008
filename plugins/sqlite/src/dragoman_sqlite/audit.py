"""The audit's records in a SQLite file. Many processes may write it, and readers do not block writers."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman import AUDIT_COLUMNS, AuditStore, ConnectionFailed, Database, Sealing
from dragoman.audit.file import lock

from dragoman_sqlite.files import Identity, file_of, identify

PATIENCE = 5.0
"""Seconds that a process waits for other writers."""
_CHUNK = 1000
_TYPES = {"text": "TEXT", "integer": "INTEGER", "number": "REAL", "list": "TEXT", "json": "TEXT"}
_DEFAULTS = {"event": "'call'", "rows": "0", "bytes": "0"}


def _column(name: str, kind: str) -> str:
    value = f"json_extract(line, '$.{name}')"
    if name in _DEFAULTS:
        value = f"coalesce({value}, {_DEFAULTS[name]})"
    return f'"{name}" {_TYPES[kind]} GENERATED ALWAYS AS ({value}) VIRTUAL'


_COLUMNS = ", ".join(_column(name, kind) for name, kind in AUDIT_COLUMNS.items())
_TABLE = f"CREATE TABLE IF NOT EXISTS calls (seq INTEGER PRIMARY KEY, line TEXT NOT NULL, {_COLUMNS})"
_LAST = "SELECT seq, line FROM calls ORDER BY seq DESC LIMIT 1"
_ADD = "INSERT INTO calls (seq, line) VALUES (?, ?)"
_SOME = f"SELECT seq, line FROM calls WHERE seq > ? ORDER BY seq LIMIT {_CHUNK}"


class SQLiteAudit(AuditStore):
    """The audit's table, in a file of its own that only its owner can read."""

    def __init__(self, database: Database) -> None:
        self._path = file_of(database)
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity = None
        self._left: list[sqlite3.Connection] = []
        """Former files with records in their logs alone, as long as somebody reads them."""

    async def open(self) -> None:
        """Create the table if it does not exist."""
        await asyncio.to_thread(self._open)

    async def append(self, seal: Sealing) -> None:
        """Add the records that `seal` returns, in one transaction."""
        await asyncio.to_thread(self._append, seal)

    async def lines(self) -> AsyncIterator[tuple[int, str]]:
        """Yield every record, ordered by number."""
        last = 0
        while rows := await asyncio.to_thread(self._read, last):
            for row in rows:
                yield row
            last = rows[-1][0]

    async def aclose(self) -> None:
        """Close the connection."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._leave()
        for connection in self._left:
            connection.close()

    def _leave(self) -> None:
        """Close the file, which may have been moved, and former ones, as soon as each has all its records."""
        if self._connection is not None:
            self._left.append(self._connection)
            self._connection = None
        self._close_left()

    def _close_left(self) -> None:
        self._left = [connection for connection in self._left if not _close_complete(connection)]

    def _open(self) -> None:
        with _translate_errors():
            self._leave()
            if not self._path.exists():
                _create(self._path)
            # Each method runs in any free thread, and only one at a time.
            self._connection = sqlite3.connect(
                self._path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute(_TABLE)
            self._identity = identify(self._path)

    def _append(self, seal: Sealing) -> None:
        if identify(self._path) != self._identity:
            # The file was removed or replaced. SQLite would go on writing to the former one, which nobody finds.
            self._open()
        elif self._left:
            self._close_left()
        connection = self._get_connection()
        with _translate_errors():
            connection.execute("BEGIN IMMEDIATE")
            try:
                rows = seal(connection.execute(_LAST).fetchone())
                if connection.executemany(_ADD, rows).rowcount != len(rows):  # a trigger of the table may skip them
                    raise ConnectionFailed("The audit's table did not store every record.")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # SQLite ends it by itself when the disk is full
                    connection.execute("ROLLBACK")
                raise

    def _read(self, after: int) -> list[tuple[int, str]]:
        with _translate_errors():
            return self._get_connection().execute(_SOME, (after,)).fetchall()

    def _get_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ConnectionFailed("The audit's database is closed.")
        return self._connection


def _close_complete(connection: sqlite3.Connection) -> bool:
    """Write what SQLite left in the log into the file, and close it. Return False if a reader is in the way."""
    with suppress(sqlite3.Error):
        _, logged, written = connection.execute("PRAGMA wal_checkpoint").fetchone()
        if written < logged:
            return False
    connection.close()
    return True


def _create(path: Path) -> None:
    """Create the file, without the log and the index of a former one that was taken away.

    Other processes may still use the former file and so keep its index. SQLite would take the index for the new file's,
    and fail to read. Only one process at a time removes them, and only while there is no file. Behind a link they lie
    beside the file itself.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _lock(path.parent):
        if not path.exists():
            for end in ("-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))


@contextmanager
def _lock(folder: Path) -> Generator[None]:
    """Hold a folder's lock. Raises `BlockingIOError` if another process keeps it for `PATIENCE` seconds."""
    opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with lock(opened, PATIENCE):
            yield
    finally:
        os.close(opened)


@contextmanager
def _translate_errors() -> Generator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConnectionFailed(f"The audit's database cannot be used: {why}.") from None
