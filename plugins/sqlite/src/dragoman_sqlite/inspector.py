"""The catalog of a SQLite file: four queries over table-valued pragmas, whatever the number of tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

import aiosqlite
import apsw
from dragoman import ConnectionFailed, Database, Inspection, Inspector, Schema, Scope

from dragoman_sqlite.executor import check_file, file_of
from dragoman_sqlite.tables import Facts, build

TABLES = """
SELECT list.name, list.type, list.wr, schema.sql
FROM pragma_table_list AS list LEFT JOIN sqlite_schema AS schema
  ON schema.name = list.name AND schema.type IN ('table', 'view')
WHERE list.schema = 'main' ORDER BY list.name
"""
COLUMNS = """
SELECT list.name, info.name, info.type, info."notnull", info.dflt_value, info.pk, info.hidden
FROM sqlite_schema AS list JOIN pragma_table_xinfo(list.name) AS info
WHERE list.type IN ('table', 'view') {only} ORDER BY list.name, info.cid
"""
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
SPAN = "SELECT {number}, max(rowid) - min(rowid) + 1 FROM {table}"
SMALLEST_ROW = 4
"""Bytes: two varints, a header and a pointer. A span of rowids that would need more than the file has gaps."""
MOST_SPANS = 400
"""Below SQLite's limit of terms in one compound SELECT (500)."""


class SQLiteInspector(Inspector):
    """Opens the file for each question and closes it again: the catalog caches what is told."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._path = file_of(database)

    async def version(self) -> str:
        """Return the version of the SQLite that runs queries; reading the file's header proves it is a database."""
        await self._read("PRAGMA schema_version")
        return apsw.sqlite_lib_version()

    async def schemas(self) -> Sequence[Schema]:
        """Return `main`: nothing can be attached."""
        await self._read("PRAGMA schema_version")
        return [Schema(name="main")]

    async def tables(self, scope: Scope) -> Inspection:
        """Return the file's tables and views, shadow and system tables marked."""
        if scope.schemas and "main" not in scope.schemas:
            return Inspection(())
        async with self._open() as connection:
            facts = await _facts(connection)
        tables = build(facts)
        return Inspection(tuple(table for table in tables if table.relation in scope), tuple(facts.notices))

    async def _read(self, sql: str) -> Iterable[Any]:
        async with self._open() as connection:
            return await connection.execute_fetchall(sql)

    def _open(self) -> _Opened:
        return _Opened(self._path.as_posix(), self._database.name)


class _Opened:
    """A read-only connection for a moment; what goes wrong comes out as `ConnectionFailed`."""

    def __init__(self, path: str, name: str) -> None:
        self._path = path
        self._name = name

    async def __aenter__(self) -> aiosqlite.Connection:
        from pathlib import Path

        check_file(Path(self._path), self._name)
        # Quoted, so that a path such as `x.db?mode=rwc` stays a path.
        uri = f"file:{quote(self._path)}?mode=ro"
        try:
            self._connection = await aiosqlite.connect(uri, uri=True, timeout=5)
        except sqlite3.Error as error:
            raise self._failure(error) from None
        return self._connection

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        await self._connection.close()
        if isinstance(error, sqlite3.Error):
            raise self._failure(error) from None

    def _failure(self, error: sqlite3.Error) -> ConnectionFailed:
        return ConnectionFailed(
            f"The catalog of the database {self._name!r} cannot be read: {error}.",
            suggestion="Check the configured file; if it is being written to, try again.",
        )


async def _facts(connection: aiosqlite.Connection) -> Facts:
    facts = Facts(tables=await _rows(connection, TABLES))
    facts.columns = await _columns(connection, facts)
    facts.foreign_keys = await _rows(connection, FOREIGN_KEYS)
    facts.indexes = await _rows(connection, INDEXES)
    facts.row_estimates = await _row_estimates(connection, facts)
    return facts


async def _rows(connection: aiosqlite.Connection, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
    return list(await connection.execute_fetchall(sql, parameters))


async def _columns(connection: aiosqlite.Connection, facts: Facts) -> list[Any]:
    """All columns at once; when a broken view or a missing module spoils that, those that can be read, one by one."""
    try:
        return await _rows(connection, COLUMNS.format(only=""))
    except sqlite3.OperationalError:
        pass
    found: list[Any] = []
    for name, *_ in facts.tables:
        try:
            found += await _rows(connection, COLUMNS.format(only="AND list.name = ?"), (name,))
        except sqlite3.OperationalError as error:
            facts.notices.append(f"The columns of {name} cannot be read: {error}.")
    return found


async def _row_estimates(connection: aiosqlite.Connection, facts: Facts) -> dict[str, int]:
    """What ANALYZE counted, else the span of rowids, which is the count when nothing was deleted."""
    counted: dict[str, int] = await _counted(connection)
    plain: list[str] = [name for name, kind, without_rowid, _ in facts.tables if kind == "table" and not without_rowid]
    spans = await _spans(connection, [name for name in plain if name not in counted and not name.startswith("sqlite_")])
    pages, size = (await _rows(connection, "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size"))[0]
    possible = pages * size // SMALLEST_ROW
    return {name: rows for name, rows in spans.items() if rows <= possible} | counted


async def _counted(connection: aiosqlite.Connection) -> dict[str, int]:
    try:
        return dict(await _rows(connection, STATISTICS))
    except sqlite3.OperationalError:
        return {}  # never analyzed: the table of statistics does not exist


async def _spans(connection: aiosqlite.Connection, names: Sequence[str]) -> dict[str, int]:
    spans: dict[str, int] = {}
    for start in range(0, len(names), MOST_SPANS):
        some = names[start : start + MOST_SPANS]
        terms = (SPAN.format(number=number, table=_quoted(name)) for number, name in enumerate(some))
        rows = await _rows(connection, " UNION ALL ".join(terms))
        spans |= {some[number]: span or 0 for number, span in rows}
    return spans


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
