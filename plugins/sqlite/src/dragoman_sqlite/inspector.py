"""The catalog of a SQLite file: a few queries over table-valued pragmas, whatever the number of tables."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import apsw
from dragoman import (
    ColumnProfile,
    ConnectionFailed,
    Database,
    DragomanError,
    Executor,
    Inspection,
    Inspector,
    Names,
    ProfileBudget,
    Relation,
    Request,
    Schema,
    Scope,
    Table,
)
from dragoman.cooperative import consume_in_thread
from dragoman.words import mention, quote_foreign

from dragoman_sqlite.executor import check_file
from dragoman_sqlite.files import file_of
from dragoman_sqlite.quoting import quote_name
from dragoman_sqlite.sampling import sample
from dragoman_sqlite.tables import Facts, build, group_names
from dragoman_sqlite.worker.failures import UNREACHABLE

T = TypeVar("T")

TABLES = """
SELECT list.name, list.type, list.wr, schema.sql
FROM pragma_table_list AS list LEFT JOIN sqlite_schema AS schema
  ON schema.name = list.name AND schema.type IN ('table', 'view')
WHERE list.schema = 'main' ORDER BY list.name
"""
COLUMNS = """
SELECT list.name, info.name, info.type, info."notnull", info.dflt_value, info.pk, info.hidden
FROM sqlite_schema AS list JOIN pragma_table_xinfo(list.name) AS info
WHERE list.type IN ('table', 'view') AND {which} ORDER BY list.name, info.cid
"""
WRITTEN = "SELECT CAST(name || ' ' || coalesce(sql, '') AS BLOB) FROM sqlite_schema ORDER BY name"
READERS = 2
"""The number of questions that are answered at once."""
STORED, COMPILED = "list.rootpage > 0", "list.rootpage = 0"
"""Stored tables can always be read. Views and virtual tables must be compiled for it, which may fail."""
FOREIGN_KEYS = """
SELECT list.name, key.id, key."table", key."from", key."to", key.on_update, key.on_delete
FROM sqlite_schema AS list JOIN pragma_foreign_key_list(list.name) AS key
WHERE list.type = 'table' ORDER BY list.name, key.id DESC, key.seq
"""
INDEXES = """
SELECT list.name, item.name, item."unique", item.origin, own.sql, part.name
FROM sqlite_schema AS list JOIN pragma_index_list(list.name) AS item JOIN pragma_index_xinfo(item.name) AS part
  LEFT JOIN sqlite_schema AS own ON own.name = item.name AND own.type = 'index'
WHERE list.type = 'table' AND part.key ORDER BY list.name, item.seq DESC, part.seqno
"""
STATISTICS = "SELECT tbl, max(CAST(substr(stat, 1, instr(stat || ' ', ' ')) AS INTEGER)) FROM sqlite_stat1 GROUP BY tbl"
SPAN = "SELECT {number}, (SELECT max({rowid}) FROM {table}) - (SELECT min({rowid}) FROM {table}) + 1"
SMALLEST_ROW = 4
"""The least bytes of a row: two varints, a header and a pointer.

If a span of rowids would need more than the file has, it has gaps.
"""
MOST_SPANS = 400
"""Less than SQLite's limit of terms in one compound SELECT (500)."""
FAILURES = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What a question fails with. Python cannot decode a message that quotes a name in another encoding."""


class SQLiteInspector(Inspector):
    """Opens the file for each question and closes it again. The catalog caches the answers."""

    def __init__(self, database: Database, executor: Executor) -> None:
        self._database = database
        self._executor = executor
        self._path = file_of(database)
        self._threads: ThreadPoolExecutor | None = None

    async def version(self) -> str:
        """Return the version of the SQLite that runs queries.

        Reading the file's header proves that it is a database.
        """
        await self._read("PRAGMA schema_version")
        return apsw.sqlite_lib_version()

    async def schemas(self) -> Sequence[Schema]:
        """Return `main`: nothing can be attached."""
        await self._read("PRAGMA schema_version")
        return [Schema(name="main")]

    async def tables(self, scope: Scope) -> Inspection:
        """Return the file's tables and views, with shadow and system tables marked."""
        if scope.schemas and "main" not in scope.schemas:
            return Inspection(())
        held = [await self._ask(_facts)]
        await self._add_unreadable(held[0])
        return await consume_in_thread(held, partial(_inspect, scope))

    async def names(self, scope: Scope) -> Sequence[Names]:
        """Return the names of the file's tables and views."""
        if scope.schemas and "main" not in scope.schemas:
            return ()
        return await self._ask(lambda connection: group_names(_rows(connection, TABLES), scope))

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """Return profiles from some rows of each table: the file is local, and SQLite keeps no statistics of values."""
        return await self._ask(lambda connection: sample(connection, tables, budget))

    async def fingerprint(self) -> str | None:
        """Return SQLite's own counter of schema changes, with a hash of the schema, since files may be replaced."""
        return await self._ask(_fingerprint)

    async def _read(self, sql: str) -> None:
        await self._ask(lambda connection: _rows(connection, sql))

    async def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Return the answer to `question` on a connection of its own, in a thread. Cancelling interrupts it."""
        opened = _Opened(self._path, self._database.name)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(READERS, f"dragoman-{self._database.name}")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, opened.ask, question)
        except asyncio.CancelledError:
            opened.interrupt()
            raise

    async def aclose(self) -> None:
        """End the threads. Their work was awaited, or interrupted when its caller left."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()

    async def _add_unreadable(self, facts: Facts) -> None:
        for name in facts.unreadable:
            facts.columns += await self._describe_columns(name, facts)

    async def _describe_columns(self, name: str, facts: Facts) -> list[Any]:
        """Return columns from the workers' SQLite, which is newer than Python's and has more modules and functions."""
        try:
            columns = await self._executor.describe(Request(statement=f"SELECT * FROM {quote_name(name)}"))
        except DragomanError as error:
            facts.notices.append(f"The columns of {mention(name)} cannot be read: {quote_foreign(error.message)}.")
            return []
        return [(name, column.name, column.type, 0, None, 0, 0) for column in columns]


class _Opened:
    """A read-only connection for one question. Errors are raised as `ConnectionFailed`."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._connection: sqlite3.Connection | None = None

    def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Open the file, ask, and close the file again."""
        check_file(self._path, self._name)
        # Quoted, so that a path such as `x.db?mode=rwc` stays a path.
        uri = f"file:{quote(self._path.as_posix())}?mode=ro"
        try:
            with closing(sqlite3.connect(uri, uri=True, timeout=5, check_same_thread=False)) as self._connection:
                self._connection.text_factory = _readable
                return question(self._connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._failure(error) from None

    def interrupt(self) -> None:
        """Make a running question fail soon. May be called from any thread."""
        if self._connection is not None:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                self._connection.interrupt()

    def _failure(self, error: sqlite3.Error | UnicodeDecodeError) -> ConnectionFailed:
        told = apsw.exception_for(getattr(error, "sqlite_errorcode", apsw.SQLITE_ERROR))
        why = _message(error), "Check the configured file; if it is being written to, try again."
        cause, remedy = UNREACHABLE.get(type(told), why)
        return ConnectionFailed(
            f"The catalog of the database {self._name!r} cannot be read: {cause}.", suggestion=remedy
        )


def _readable(text: bytes) -> str:
    """Decode a comment. One in another encoding must not hide its table."""
    return text.decode(errors="replace")


def _message(error: sqlite3.Error | UnicodeDecodeError) -> str:
    """Return what SQLite says, also where it quotes a name in another encoding."""
    return _readable(error.object) if isinstance(error, UnicodeDecodeError) else str(error)


def _inspect(scope: Scope, facts: Facts) -> Inspection:
    return Inspection(tuple(table for table in build(facts) if table.relation in scope), tuple(facts.notices))


def _rows(connection: sqlite3.Connection, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
    return connection.execute(sql, parameters).fetchall()


def _fingerprint(connection: sqlite3.Connection) -> str:
    digest = hashlib.sha256()
    for (written,) in connection.execute(WRITTEN):
        digest.update(written + b"\0")
    return f"{_rows(connection, 'PRAGMA schema_version')[0][0]} {digest.hexdigest()}"


def _facts(connection: sqlite3.Connection) -> Facts:
    connection.execute("BEGIN")  # one state of the file for the whole answer
    facts = Facts(tables=_rows(connection, TABLES))
    facts.columns = _rows(connection, COLUMNS.format(which=STORED))
    _add_compiled_columns(connection, facts)
    facts.foreign_keys = _rows(connection, FOREIGN_KEYS)
    facts.indexes = _rows(connection, INDEXES)
    facts.row_estimates = _row_estimates(connection, facts)
    return facts


def _add_compiled_columns(connection: sqlite3.Connection, facts: Facts) -> None:
    """Add the columns of views and virtual tables: all at once, or one by one if one of them fails."""
    try:
        facts.columns += _rows(connection, COLUMNS.format(which=COMPILED))
        return
    except FAILURES:  # a virtual table's module may say that the table is damaged
        pass
    for name in (name for name, kind, *_ in facts.tables if kind in ("view", "virtual")):
        try:
            facts.columns += _rows(connection, COLUMNS.format(which=f"{COMPILED} AND list.name = ?"), (name,))
        except FAILURES:
            facts.unreadable.append(name)


def _row_estimates(connection: sqlite3.Connection, facts: Facts) -> dict[str, int]:
    """Return the counts of ANALYZE, else the span of rowids, which is the count if nothing was deleted."""
    counted = _count_rows(connection)
    try:
        spans = _spans(connection, {name: key for name, key in facts.rowids().items() if name not in counted})
    except FAILURES as error:
        facts.notices.append(f"The number of rows is not known: {quote_foreign(_message(error))}.")
        return counted
    pages, size = (_rows(connection, "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size"))[0]
    possible = pages * size // SMALLEST_ROW
    return {name: rows for name, rows in spans.items() if rows <= possible} | counted


def _count_rows(connection: sqlite3.Connection) -> dict[str, int]:
    try:
        return dict(_rows(connection, STATISTICS))
    except sqlite3.OperationalError:
        return {}  # never analyzed: the table of statistics does not exist


def _spans(connection: sqlite3.Connection, rowids: dict[str, str]) -> dict[str, int]:
    spans: dict[str, int] = {}
    names = list(rowids)
    for start in range(0, len(names), MOST_SPANS):
        some = names[start : start + MOST_SPANS]
        terms = (SPAN.format(number=n, rowid=rowids[name], table=quote_name(name)) for n, name in enumerate(some))
        spans |= {some[number]: span or 0 for number, span in _rows(connection, " UNION ALL ".join(terms))}
    return spans
