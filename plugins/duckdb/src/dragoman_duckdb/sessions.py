"""One DuckDB in this process, and a thread for each statement that runs in it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import dragoman
import duckdb
from dragoman import Database, finish

from dragoman_duckdb.failures import translate_errors

T = TypeVar("T")
SEALED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "python_enable_replacements": False,
    # Nothing is spilled to files: what does not fit the memory limit fails.
    "temp_directory": "",
    "lock_configuration": True,
}


class Engine:
    """The open file, shared by every session; opened by the first."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._slots = asyncio.Semaphore(database.pool_size)
        self._opening = asyncio.Lock()
        self._root: duckdb.DuckDBPyConnection | None = None
        self._threads = self._new_threads()

    def _new_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.database.pool_size, f"dragoman-duckdb-{self.database.name}")

    @asynccontextmanager
    async def session(self, timeout: float) -> AsyncGenerator["Session"]:
        """A session of its own, one of as many as the pool has. Leaving it ends its work first."""
        async with self._slots:
            session = Session(self._threads, self.database.name, timeout)
            try:
                await session.begin(await self._open_once(session))
                yield session
            finally:
                # Whoever waits may be cancelled again meanwhile.
                await finish(session.close())

    async def _open_once(self, session: "Session") -> duckdb.DuckDBPyConnection:
        async with self._opening:
            if self._root is None:
                self._root = await session.run(self._open)
            return self._root

    def _open(self) -> duckdb.DuckDBPyConnection:
        file = (self.database.folder / (self.database.database or "")).absolute()
        if not file.is_file():
            raise duckdb.IOException("IO Error: there is no such file")
        options = self.database.options
        limits = {name: options[name] for name in ("memory_limit", "threads") if name in options}
        try:
            return duckdb.connect(file, read_only=True, config={**limits, **SEALED})
        except duckdb.Error:
            raise duckdb.IOException("IO Error: this is not a DuckDB file, or another process writes it") from None

    async def aclose(self) -> None:
        """Close the file and end the threads."""
        root, self._root = self._root, None
        if root is not None:
            await asyncio.wrap_future(self._threads.submit(root.close))
        self._threads.shutdown()
        self._threads = self._new_threads()


class Session:
    """A connection for one statement, in a thread, until a deadline."""

    def __init__(self, threads: ThreadPoolExecutor, database: str, timeout: float) -> None:
        self._threads = threads
        self._database = database
        self._timeout = timeout
        self._deadline = asyncio.get_running_loop().time() + timeout
        self._job: asyncio.Future[Any] | None = None
        self.connection: duckdb.DuckDBPyConnection

    async def begin(self, root: duckdb.DuckDBPyConnection) -> None:
        """Connect to an open file."""
        self.connection = await self.run(root.cursor)

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns. Who stops waiting for it leaves it to `close`."""
        self._job = job = asyncio.wrap_future(self._threads.submit(work))
        remaining = self._deadline - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait({job}, timeout=max(0.0, remaining))
        if not done:
            raise dragoman.QueryTimeout(
                f"The query did not finish within {self._timeout:g} seconds and was stopped.",
                suggestion="Narrow it with WHERE, aggregate, or ask for a longer timeout.",
            )
        with translate_errors(self._database):
            return job.result()

    async def close(self) -> None:
        """End what runs, then the connection."""
        connection = getattr(self, "connection", None)
        while self._job and not self._job.done():
            if connection:
                connection.interrupt()
            # Soon again: an interrupt that comes before the statement does nothing.
            await asyncio.wait({self._job}, timeout=0.01)
        if self._job:
            self._job.exception()
        if connection:
            await asyncio.wrap_future(self._threads.submit(connection.close))
