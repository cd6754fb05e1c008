"""Small, good dialects over SQLite's engine, each behind a driver of another shape.

The drivers are strict: what the database they stand for would refuse, they refuse. The plugin is what an author writes
without any base class.
"""

import asyncio
import contextlib
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from dragoman import (
    CONTRACT,
    Capability,
    Column,
    ColumnNotFound,
    ConnectionFailed,
    Database,
    Dialect,
    DialectPlugin,
    DragomanError,
    Executor,
    Inspection,
    Inspector,
    InvalidSql,
    Kind,
    Lexicon,
    ParameterError,
    QueryError,
    QueryTimeout,
    Relation,
    RowStream,
    Rules,
    Schema,
    Statement,
    Table,
    TableColumn,
    TableNotFound,
    WrappedExecutor,
    WriteDenied,
    hookimpl,
)
from dragoman_sqlite.reserved import RESERVED

AT_ONCE = 500
FAILURES = (
    (r"no such table: (?P<name>.+)", TableNotFound),
    (r"no such column: (?P<name>.+)", ColumnNotFound),
    (r"readonly database", WriteDenied),
    (r"unable to open", ConnectionFailed),
    (r"overflow", QueryError),
    (r"binding|bindings|parameters", ParameterError),
)
Sent = tuple[str, Any]


MOMENT = "'2024-02-29 13:14:15.123456789'"

# Drivers


def with_t(sql: str, values: Sequence[Any]) -> Sent:
    """SQLite as an engine whose cast of a timestamp writes a T between date and time, as DataFusion's."""
    return sql.replace(f"CAST({MOMENT} AS VARCHAR(40))", MOMENT.replace(" ", "T")), tuple(values)


@dataclass(frozen=True)
class Driver:
    """SQLite as another database's driver would show it; `send` makes SQLite's own statement of what it takes."""

    send: Callable[[str, Sequence[Any]], Sent] = lambda sql, values: (sql, tuple(values))
    read_only: bool = True

    def connect(self, path: Any) -> "Connection":
        mode = "ro" if self.read_only else "rw"
        inner = sqlite3.connect(f"file:{path}?mode={mode}", uri=True, check_same_thread=False, isolation_level=None)
        return Connection(inner, self.send)

    def create(self, path: Any) -> "Connection":
        return Connection(sqlite3.connect(path), self.send)


class Connection:
    """A DB-API connection and its own cursor."""

    def __init__(self, inner: sqlite3.Connection, send: Callable[[str, Sequence[Any]], Sent]) -> None:
        self.inner = inner
        self.send = send
        self.interrupt, self.commit = inner.interrupt, inner.commit
        self.busy = threading.Lock()

    def cursor(self) -> "Connection":
        return self

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        with self.busy:
            return self.inner.execute(*self.send(sql, values))

    def close(self) -> None:
        """End what still runs in another thread, then close: SQLite crashes if it is closed meanwhile."""
        while not self.busy.acquire(timeout=0.02):
            self.interrupt()
        self.inner.close()


def tokens(sql: str):
    return Statement.parse(sql, sqlglot="sqlite", lexicon=LEXICON).tokens


LEXICON = Lexicon(identifier_quotes='"')


def rewritten(sql: str, change: Callable[[Any], str]) -> str:
    """The statement with every token changed, and all else as it was."""
    parts, copied = [], 0
    for token in tokens(sql):
        parts += (sql[copied : token.start], change(token))
        copied = token.end
    return "".join((*parts, sql[copied:]))


def percent(sql: str, values: Sequence[Any]) -> Sent:
    """A driver that formats with % when there are values, so that %% is a percent sign and any other % an error."""
    if not values:
        return sql, ()
    marks = re.findall(r"%(.)", sql)
    if not {*marks} <= {"s", "%"}:
        raise sqlite3.ProgrammingError("unsupported format character")
    if marks.count("s") != len(values):
        raise sqlite3.ProgrammingError("not all parameters were converted")
    return re.sub(r"%(.)", lambda found: "?" if found[1] == "s" else "%", sql), tuple(values)


def at_names(sql: str, values: dict[str, Any] | Sequence[Any]) -> Sent:
    """A driver whose parameters are @p1, @p2; its engine has no LIMIT, and FETCH FIRST only at the outermost level."""
    depth = 0
    for word in re.findall(r"'[^']*'|[()]|\w+", sql.upper()):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "LIMIT" or (depth and word == "FETCH"):
            raise sqlite3.OperationalError(f'near "{word}": syntax error')
    return re.sub(r"FETCH FIRST (\d+) ROWS ONLY$", r"LIMIT \1", sql), values


def upper(sql: str, values: Sequence[Any]) -> Sent:
    """An engine that stores unquoted names in upper case and compares exactly; parameters are :1, :2."""
    quoted = {token.text.strip('"') for token in tokens(sql) if token.kind == "name"}
    if any(name != name.upper() and name.startswith("kit_") for name in quoted):
        raise sqlite3.OperationalError(f"no such table: {quoted}")
    sql = rewritten(sql, lambda token: token.text.upper() if token.kind == "word" else token.text)
    return sql, {str(place): value for place, value in enumerate(values, 1)}


def catalogs(sql: str, values: Sequence[Any]) -> Sent:
    """An engine with catalogs: lake.main.t is a relation, and a catalog of another name is not there."""
    return re.sub(r"\blake\.main\.", "main.", sql), tuple(values)


# The plugin


class SmallExecutor(Executor):
    """One connection per statement, in a thread; leaving interrupts what still runs."""

    def __init__(self, database: Database, plugin: "Small") -> None:
        self.database, self.plugin = database, plugin
        self.threads: ThreadPoolExecutor | None = None
        self.free = asyncio.Semaphore(database.pool_size)

    @asynccontextmanager
    async def open(self, request):
        async with self.free:
            connection = await self.call(self.plugin.connect, self.database)
            late: list[bool] = []
            timer = asyncio.get_running_loop().call_later(
                request.limits.timeout, lambda: (late.append(True), connection.interrupt())
            )
            try:
                sent = self.plugin.bind(request.statement, request.parameters)
                cursor = await self.call(self.run, connection, sent, late)
                columns = [Column(entry[0], "any", Kind("any")) for entry in cursor.description or ()]
                yield RowStream(columns, self.batches(cursor, late))
            finally:
                timer.cancel()
                connection.interrupt()
                await self.call(connection.close)

    def run(self, connection, sent, late):
        with self.plugin.translated(self.database.name, late):
            connection.execute("BEGIN")
            return connection.execute(*sent)

    async def batches(self, cursor, late):
        while rows := await self.call(self.fetch, cursor, late):
            yield rows

    def fetch(self, cursor, late):
        with self.plugin.translated(self.database.name, late):
            return cursor.fetchmany(AT_ONCE)

    async def call(self, work, *arguments):
        self.threads = self.threads or ThreadPoolExecutor(self.database.pool_size * 2, "small")
        return await asyncio.get_running_loop().run_in_executor(self.threads, work, *arguments)

    async def aclose(self):
        if self.threads:
            self.threads.shutdown()
            self.threads = None


class SmallInspector(Inspector):
    def __init__(self, executor: SmallExecutor) -> None:
        self.executor = executor

    async def version(self):
        await self.executor.call(self.read, "SELECT 1")
        return sqlite3.sqlite_version

    async def schemas(self):
        return [Schema(name=self.executor.plugin.schema, catalog=self.executor.plugin.catalog)]

    async def tables(self, scope):
        rows = await self.executor.call(
            self.read, "SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view')"
        )
        tables = [await self.executor.call(self.table, *row) for row in rows]
        return Inspection(tuple(table for table in tables if table.relation in scope))

    def table(self, name, kind, sql):
        quoted = name.replace("'", "''")
        columns = [
            TableColumn(name=column, type=type or "any", nullable=not required)
            for column, type, required in self.read(
                f"SELECT name, type, \"notnull\" FROM pragma_table_info('{quoted}')"
            )
        ]
        return Table(
            relation=Relation(name, self.executor.plugin.schema, self.executor.plugin.catalog),
            type=kind,
            columns=tuple(columns),
            definition=sql if kind == "view" else None,
        )

    def read(self, sql):
        plugin, database = self.executor.plugin, self.executor.database
        with plugin.translated(database.name, []), contextlib.closing(plugin.connect(database)) as connection:
            return connection.inner.execute(sql).fetchall()


class Small(DialectPlugin):
    """`write`: how the driver's parameter of a number is written; `percent`: whether it wants percent signs doubled."""

    def __init__(
        self, name: str, driver: Driver, write: Callable[[int], str], *, sqlglot: str = "sqlite", **about: Any
    ) -> None:
        self.driver, self.write = driver, write
        self.percent = write(1) == "%s"
        self.catalog = "lake" if Capability.CATALOGS in about.get("capabilities", ()) else None
        known = {Capability.READ_ONLY_SESSION, Capability.CANCEL, Capability.PARAMETERS}
        about["capabilities"] = frozenset(about.get("capabilities", known))
        about.setdefault("folding", "insensitive")
        about.setdefault("ascii_folding", about["folding"] == "insensitive")
        self.schema = "MAIN" if about["folding"] == "upper" else "main"
        self.dialect = Dialect(
            name=name,
            contract=CONTRACT,
            sqlglot=sqlglot,
            lexicon=LEXICON,
            rules=Rules(functions=frozenset({"sum", "count", "coalesce", "cast", "abs", "date"})),
            reserved=RESERVED | {"fetch"},  # a word of the engine without LIMIT
            implicit_columns=frozenset({"rowid", "_rowid_", "oid"}),
            default_schema=self.schema,
            **about,
        )

    @hookimpl
    def executor(self, database: Database) -> Executor:
        return SmallExecutor(database, self)

    @hookimpl
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        while not isinstance(executor, SmallExecutor):
            assert isinstance(executor, WrappedExecutor)
            executor = executor.inner
        return SmallInspector(executor)

    def path(self, database: Database):
        return database.folder / f"{database.database}.db"

    def connect(self, database: Database) -> Connection:
        with self.translated(database.name, []):
            return self.driver.connect(self.path(database))

    def bind(self, sql: str, values: Sequence[Any]) -> Sent:
        """The statement with parameters as the driver writes them."""
        marks = [token for token in tokens(sql) if token.kind == "parameter"]
        if len(marks) != len(values):
            raise ParameterError(f"The statement has {len(marks)} parameters, {len(values)} values came.")
        parts, copied = [], 0
        for place, mark in enumerate(marks, 1):
            parts += (self.escaped(sql[copied : mark.start]), self.write(place))
            copied = mark.end
        text = "".join((*parts, self.escaped(sql[copied:]))) if marks else sql
        named = self.write(1).startswith("@")
        return text, {f"p{place}": value for place, value in enumerate(values, 1)} if named else tuple(values)

    def escaped(self, text: str) -> str:
        return text.replace("%", "%%") if self.percent else text

    @contextlib.contextmanager
    def translated(self, name: str, late: Sequence[bool]):
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self.failure(str(error), name, late) from None

    def failure(self, message: str, name: str, late: Sequence[bool]) -> DragomanError:
        if late or message == "interrupted":
            return QueryTimeout("The query took too long.")
        for pattern, kind in FAILURES:
            if found := re.search(pattern, message):
                if kind is ConnectionFailed:
                    return kind(f"The database {name} cannot be opened.")
                return kind(message, identifier=found.groupdict().get("name"))
        return InvalidSql(message)


READ_ONLY = frozenset({Capability.READ_ONLY_SESSION, Capability.CANCEL, Capability.PARAMETERS})
unenforced = Small(
    "unenforced",
    Driver(percent, read_only=False),
    lambda place: "%s",
    capabilities=READ_ONLY - {Capability.READ_ONLY_SESSION},
)
unlimited = Small("unlimited", Driver(at_names), lambda place: f"@p{place}", sqlglot="oracle")
folding = Small("folding", Driver(upper), lambda place: f":{place}", folding="upper")
namespaced = Small("namespaced", Driver(catalogs), lambda place: "?", capabilities=READ_ONLY | {Capability.CATALOGS})
lettered = Small("lettered", Driver(with_t), lambda place: "?")
PLUGINS = {plugin.dialect.name: plugin for plugin in (unenforced, unlimited, folding, namespaced, lettered)}
