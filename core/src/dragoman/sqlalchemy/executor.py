"""An executor over any SQLAlchemy driver, blocking or asynchronous."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, ClassVar, Final, TypeVar

import sqlalchemy
from sqlalchemy.exc import DBAPIError

from dragoman.dialect import Dialect, Executor
from dragoman.model import Column, Database, Kind, Request, RowStream
from dragoman.pool import Pool
from dragoman.sqlalchemy.failures import Patterns, translate_errors, unreachable
from dragoman.sqlalchemy.lanes import LaneMaker, lanes_for
from dragoman.sqlalchemy.parameters import Bound, bind
from dragoman.sqlalchemy.session import GRACE, Session, Sessions
from dragoman.sqlalchemy.types import spell_type

T = TypeVar("T")
BATCH_ROWS: Final = 500
FIRST_BATCH_ROWS: Final = 32  # rows may be large: after these, the core stops at its byte limit
BATCH_BYTES: Final = 256 * 1024
"""About this many bytes are read at once, estimated from the rows before. Only the driver can bound a single row."""


class SQLAlchemyExecutor(Executor):
    """Runs statements through a SQLAlchemy driver and always rolls back.

    A subclass adds what is particular to its driver.

    - `failures`: pairs of a pattern of the driver's messages and the error it means. They are tried in order, before
      SQLSTATE and the exception's class. A group `name` is the identifier the database did not know.
    - `percents_in_quotes`: a driver whose placeholders are `%s` reads `%%` as one `%` in texts too. False for a driver
      that leaves texts alone, as pg8000 does.

    Callers' SQL never passes through `text()`, which would interpret colons in it.
    """

    failures: ClassVar[Patterns] = ()
    percents_in_quotes: ClassVar[bool] = True

    def __init__(self, database: Database, dialect: Dialect, url: str | sqlalchemy.URL, **engine_options: Any) -> None:
        """Store the settings, without I/O.

        `engine_options` go to SQLAlchemy's create_engine, `connect_args` among them.

        The engine keeps no connections; the core's pool does, at most `pool_size` of the database.
        """
        self.database = database
        self.dialect = dialect
        self._url = sqlalchemy.make_url(url)
        self._engine_options = engine_options
        self._new_lane: LaneMaker | None = None
        self._pool: Pool[Session] | None = None

    # What a subclass may override

    def prelude(self, request: Request) -> Sequence[str]:
        """Return statements that open the transaction.

        For example SET TRANSACTION READ ONLY, or the engine's own time limit.
        """
        return ()

    def column(self, name: str, code: Any) -> Column:
        """Return a column from its name and the driver's type code (PEP 249). Values are Python's, of any type."""
        return Column(name, spell_type(code) if isinstance(code, str) else "any", Kind("native"))

    def bind(self, request: Request, paramstyle: str) -> Bound:
        """Return the text to send and its parameters in the driver's paramstyle (PEP 249); None for no parameters.

        Raises `ParameterError` when values and placeholders do not match.
        """
        lexicon, quotes = self.dialect.lexicon, self.percents_in_quotes
        return bind(request.statement, request.parameters, lexicon, paramstyle, percents_in_quotes=quotes)

    async def interrupt(self, connection: Any) -> None:
        """End the statement that runs on the driver's own `connection`, as `Capability.CANCEL` promises.

        Called while another thread waits for that statement, and again while that goes on. In the end, asynchronous
        drivers are also cancelled as a task. Use `beside` where the driver itself cannot interrupt.
        """
        return

    async def beside(self, statement: str) -> None:
        """Run one trusted statement, such as KILL, on a separate connection. Raises the driver's errors."""
        if self._new_lane is None:
            return
        pool = Pool(Sessions(self._new_lane, _leave), 1, "connections")
        try:
            async with pool.lend(GRACE, partial(Session.begin, timeout=GRACE)) as opened:
                await opened.run(partial(_send, statement))
        finally:
            await pool.aclose()

    # What the core and an inspector call

    def open(self, request: Request) -> AbstractAsyncContextManager[RowStream]:
        return self._open(request)

    @asynccontextmanager
    async def _open(self, request: Request) -> AsyncGenerator[RowStream]:
        async with self._session(request.limits.timeout) as opened:
            with self._translate_errors():
                columns = await opened.run(partial(self._execute, opened, request))
            yield RowStream(columns, self._batches(opened, request))

    async def run(self, work: Callable[[sqlalchemy.Connection], T]) -> T:
        """Return what `work` returns, run on a connection that is rolled back afterwards.

        For trusted work: reading the catalog.
        """
        async with self._session(self.database.timeout) as opened:
            with self._translate_errors():
                return await opened.run(work)

    async def aclose(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.aclose()

    # Implementation

    @asynccontextmanager
    async def _session(self, timeout: float) -> AsyncGenerator[Session]:
        async with AsyncExitStack() as lent:
            with self._translate_errors():
                begin = partial(Session.begin, timeout=timeout)
                try:
                    opened = await lent.enter_async_context(self._open_pool().lend(timeout, begin))
                except DBAPIError:
                    raise unreachable(self.database.name) from None
            yield opened

    def _open_pool(self) -> Pool[Session]:
        """Return the pool, created on first use: only then is the driver imported."""
        if self._pool is None:
            self._new_lane = lanes_for(self._url, **self._engine_options)
            what = f"connections to the database {self.database.name!r}"
            self._pool = Pool(Sessions(self._new_lane, self.interrupt), self.database.pool_size, what, grace=GRACE)
        return self._pool

    def _translate_errors(self) -> AbstractContextManager[None]:
        return translate_errors(self.database.name, self.failures, self._list_secrets())

    def _list_secrets(self) -> list[str]:
        """Return texts that no message may hold. A database's name may be shown, a path may not."""
        url = self._url
        path = url.database if url.database and "/" in url.database else None
        parts = (url.render_as_string(hide_password=False), url.password, url.host, path)
        return [str(part) for part in parts if part]

    def _execute(self, opened: Session, request: Request, connection: sqlalchemy.Connection) -> tuple[Column, ...]:
        for statement in self.prelude(request):
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
        statement, parameters = self.bind(request, connection.dialect.paramstyle)
        options = {"stream_results": True, "no_parameters": parameters is None}
        opened.result = result = connection.exec_driver_sql(statement, parameters, execution_options=options)
        description = result.cursor.description if result.cursor and result.returns_rows else ()
        return tuple(self.column(name, code) for name, code, *_ in description or ())

    async def _batches(self, opened: Session, request: Request) -> AsyncIterator[Sequence[Sequence[Any]]]:
        result = opened.result
        size = min(FIRST_BATCH_ROWS, request.limits.max_rows + 1)
        while result is not None and result.returns_rows:
            with self._translate_errors():
                rows = await opened.run(partial(_more, result, size))
            if rows:
                yield rows
            if len(rows) < size:
                return
            size = min(max(BATCH_BYTES * len(rows) // (_octets(rows) or 1), 1), BATCH_ROWS)


async def _leave(connection: Any) -> None:
    """Do nothing: an internal statement is short and needs no interruption."""


def _send(statement: str, connection: sqlalchemy.Connection) -> None:
    connection.exec_driver_sql(statement, execution_options={"no_parameters": True})


def _more(result: sqlalchemy.CursorResult[Any], size: int, connection: sqlalchemy.Connection) -> list[tuple[Any, ...]]:
    return _rows(result.fetchmany(size))


def _octets(rows: Sequence[Sequence[Any]]) -> int:
    """Return the length of the texts and binaries in some rows."""
    return sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))


def _rows(rows: Sequence[sqlalchemy.Row[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in rows]
