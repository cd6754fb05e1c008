"""Statements to one server, without blocking the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dragoman import Busy, Database, QueryTimeout

from dragoman_trino.connecting import Connector
from dragoman_trino.failures import translate_errors
from dragoman_trino.protocol import Exchange, Page, ServerError, TooMuch
from dragoman_trino.workers import Workers

T = TypeVar("T")

GRACE: Final = 2.0
"""Seconds that ending a statement may take before it is left to itself."""
LATE: Final = 1.0
"""Seconds the server has to enforce the deadline, which it looks at once a second, before we do."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of one answer to an internal statement."""
MOST_IN_ALL: Final = 512 * 1024 * 1024
"""Bytes of all its answers."""
CATALOG_STATEMENTS: Final = 4
"""Of ours at once: many catalogs may be read, of which some do not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A statement and how it is sent. `most`: bytes that are read of one answer. `headers` go beside the usual ones.

    What goes wrong is told in terms of `about`, the caller's part of `statement`, where that is not `sql` itself.
    """

    sql: str
    timeout: float
    most: int = MOST_BYTES
    headers: Mapping[str, str] | None = None
    tags: tuple[str, ...] = ()
    statement: str = ""
    about: str = ""


class Running:
    """A statement under way; `page` asks for its answers one after another."""

    def __init__(self, workers: Workers, connector: Connector, sent: Sent) -> None:
        self._workers = workers
        self._connector = connector
        self._exchange = _exchange(connector, sent)
        self._sent = sent
        self._until = asyncio.get_running_loop().time() + sent.timeout + LATE
        self._asked: asyncio.Future[Any] | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """Those of the answers so far, named in lower case."""
        return self._exchange.headers

    async def page(self, handle: Callable[[Page], T]) -> T | None:
        """Return what `handle` makes of the next page, in a thread; None at the end. Raises `DragomanError`s."""

        def ask() -> T | None:
            with translate_errors(self._connector.database.name, self._sent.statement, self._sent.about):
                page = self._next()
                return None if page is None else handle(page)

        self._asked = asked = self._workers.start(ask)
        try:
            async with asyncio.timeout_at(self._until):
                return await asyncio.shield(asked)
        except TimeoutError:
            raise QueryTimeout(
                f"The server did not answer within {self._sent.timeout:g} seconds and was told to stop."
            ) from None

    def _next(self) -> Page | None:
        try:
            return self._exchange.page()
        except ServerError as error:
            if not self._connector.learn(error.error):
                raise
        self._exchange = _exchange(self._connector, self._sent)
        return self._exchange.page()

    async def end(self) -> set[asyncio.Future[Any]]:
        """End it in the server unless it has ended there; return what has not come to its end in `GRACE` seconds."""
        if self._exchange.over and (self._asked is None or self._asked.done()):
            return set()
        jobs: set[asyncio.Future[Any]] = {self._workers.start(self._exchange.cancel)}
        if self._asked is not None:
            jobs.add(self._asked)
        _, left = await asyncio.wait(jobs, timeout=GRACE)
        for job in jobs:
            job.add_done_callback(_retrieve)
        return left


def _exchange(connector: Connector, sent: Sent) -> Exchange:
    return Exchange(
        connect=lambda: connector.session(sent.timeout, sent.headers or {}, sent.tags),
        url=f"{connector.origin}/v1/statement",
        sql=sent.sql,
        most=sent.most,
        connect_timeout=min(connector.options.connect_timeout, sent.timeout),
    )


def _rows(page: Page) -> list[list[Any]]:
    return page.rows()


def _measure(page: Page) -> tuple[list[list[Any]], int]:
    """All rows of an answer, and their bytes."""
    if page.cut:
        raise TooMuch(page.size)
    return page.rows(), page.size


def _retrieve(job: asyncio.Future[Any]) -> None:
    """Fetch the outcome of what nobody waits for any more: asyncio would report it."""
    if not job.cancelled():
        job.exception()


class Client:
    """Sends statements to one server, at most `size` at once. It is created without I/O."""

    def __init__(self, database: Database, size: int = CATALOG_STATEMENTS) -> None:
        self._name = database.name
        self._size = size
        self._free = asyncio.Semaphore(size)
        self._workers = Workers()
        self._ending: set[asyncio.Task[None]] = set()
        self._held = self._kept = 0
        self.connector = Connector(database)

    async def rows(self, sql: str, *, timeout: float = 30.0) -> list[list[Any]]:
        """Run an internal statement and return its rows: raw values of the protocol, text, bool, int, float or lists.

        Raises `DragomanError`s; whatever ends it early ends it in the server too.
        """
        async with self.place(timeout):
            return await self.all_rows(Sent(sql=sql, timeout=timeout))

    async def all_rows(self, sent: Sent) -> list[list[Any]]:
        """Run a statement and return its rows, whoever waits for a place."""
        rows: list[list[Any]] = []
        left = MOST_IN_ALL
        async with self.run(sent) as running:
            while (page := await running.page(_measure)) is not None:
                more, size = page
                rows += more
                left -= size
                if left < 0:
                    raise TooMuch(MOST_IN_ALL)
        return rows

    async def headers(self, sql: str, timeout: float, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Run a statement that answers in headers, and return those, named in lower case."""
        async with self.run(Sent(sql=sql, timeout=timeout, headers=headers)) as running:
            while await running.page(_rows) is not None:
                pass
            return running.headers

    @asynccontextmanager
    async def place(self, seconds: float) -> AsyncGenerator[None]:
        """Hold one of the places for statements. Raises `Busy` when none comes free in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._free.acquire()
        except TimeoutError:
            raise Busy(
                f"{self._size} queries run on the database {self._name!r} already.",
                suggestion="Try again in a moment, or run fewer queries at once.",
            ) from None
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if self._kept:
                self._kept -= 1
            else:
                self._free.release()

    def _keep_place(self, until: set[asyncio.Future[Any]]) -> None:
        """Have the next place that is given back stay occupied until some work is done."""
        self._kept += 1
        asyncio.gather(*until, return_exceptions=True).add_done_callback(lambda _: self._free.release())

    @asynccontextmanager
    async def run(self, sent: Sent) -> AsyncGenerator[Running]:
        """Send a statement; leaving ends it in the server, whatever strikes the caller meanwhile."""
        running = Running(self._workers, self.connector, sent)
        try:
            yield running
        finally:
            await self.finish(self._end(running))

    async def _end(self, running: Running) -> None:
        left = await running.end()
        if left and self._held > self._kept:
            self._keep_place(left)

    async def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Await what ends something, in a task of its own: a cancellation may strike at every await."""
        await asyncio.shield(self.later(work))

    def later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let some work end by itself; `settle` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def settle(self) -> None:
        """Wait for what ends by itself."""
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def aclose(self) -> None:
        """Close the connections, once what is ending has ended."""
        await self.settle()
        self.connector.close()
        self._workers.stop()
