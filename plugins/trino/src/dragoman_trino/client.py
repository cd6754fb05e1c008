"""Statements to one server, without blocking the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dragoman import Busy, Database, QueryTimeout
from dragoman.slots import Slot, Slots
from dragoman.threads import Threads

from dragoman_trino.connecting import OURS, Connector
from dragoman_trino.failures import translate_errors
from dragoman_trino.protocol import Exchange, Page, ServerError, TooMuch

T = TypeVar("T")

GRACE: Final = 2.0
"""Seconds that ending a statement may take before it is abandoned."""
LATE: Final = 1.0
"""Seconds that the server gets to enforce the deadline, which it checks once a second, before we do."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""The most bytes of one answer to an internal statement."""
MOST_IN_ALL: Final = 512 * 1024 * 1024
"""The most bytes of all its answers."""
CATALOG_STATEMENTS: Final = 4
"""The most internal statements at once: many catalogs may be read, and some of them may not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A statement and how it is sent. `most`: the bytes that are read of one answer. `headers`: beside the usual ones.

    - `about`: the caller's part of `statement`, if that is not `sql` itself. Errors refer to it.
    - `slot`: the slot it occupies until it has ended in the server.
    - `user`: the user it runs as, if not the configured one.
    - `off`: which of the server's ways of planning it must not use: `STATISTICS` of tables, `PUSHDOWN` into connectors.
    """

    sql: str
    timeout: float
    most: int = MOST_BYTES
    headers: Mapping[str, str] | None = None
    tags: tuple[str, ...] = ()
    statement: str = ""
    about: str = ""
    slot: Slot | None = None
    user: str | None = None
    off: tuple[str, ...] = ()


class Running:
    """A running statement. `page` reads its answers one after another."""

    def __init__(self, threads: Threads, connector: Connector, sent: Sent) -> None:
        self._threads = threads
        self._connector = connector
        self._exchange = _exchange(connector, sent)
        self._sent = sent
        self._until = asyncio.get_running_loop().time() + sent.timeout + LATE
        self._asked: asyncio.Future[Any] | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answers so far, with names in lower case."""
        return self._exchange.headers

    async def page(self, handle: Callable[[Page], T]) -> T | None:
        """Return the result of `handle` for the next page, in a thread; None at the end. Raises `DragomanError`s."""

        def ask() -> T | None:
            with translate_errors(self._connector.database.name, self._sent.statement, self._sent.about):
                page = self._next()
                return None if page is None else handle(page)

        self._asked = asked = self._threads.start(ask)
        try:
            async with asyncio.timeout_at(self._until):
                return await asyncio.shield(asked)
        except TimeoutError:
            raise QueryTimeout(
                f"The server did not answer within {self._sent.timeout:g} seconds and was told to stop."
            ) from None

    def _next(self) -> Page | None:
        for _ in OURS:
            try:
                return self._exchange.page()
            except ServerError as error:
                if not self._connector.learn(error.error):
                    raise
            self._exchange = _exchange(self._connector, self._sent)
        return self._exchange.page()

    async def end(self) -> set[asyncio.Future[Any]]:
        """End it in the server unless it has ended there. Return work that has not ended within `GRACE` seconds."""
        if self._exchange.over and (self._asked is None or self._asked.done()):
            return set()
        jobs: set[asyncio.Future[Any]] = {self._threads.start(self._exchange.cancel)}
        if self._asked is not None:
            jobs.add(self._asked)
        _, left = await asyncio.wait(jobs, timeout=GRACE)
        for job in jobs:
            job.add_done_callback(_retrieve)
        return left


def _exchange(connector: Connector, sent: Sent) -> Exchange:
    return Exchange(
        connect=lambda: connector.session(sent.timeout, sent.headers or {}, sent.tags, sent.user, off=sent.off),
        url=f"{connector.origin}/v1/statement",
        sql=sent.sql,
        most=sent.most,
        connect_timeout=min(connector.options.connect_timeout, sent.timeout),
    )


def _rows(page: Page) -> list[list[Any]]:
    return page.rows()


def _measure(page: Page) -> tuple[list[list[Any]], int]:
    """Return all rows of an answer, and their bytes."""
    if page.cut:
        raise TooMuch(page.size)
    return page.rows(), page.size


async def _wait_until_gone(ending: asyncio.Task[set[asyncio.Future[Any]]]) -> None:
    """Return once a statement has ended, and everything that did not end in time."""
    if left := await asyncio.shield(ending):
        await asyncio.wait(left)


def _retrieve(job: asyncio.Future[Any]) -> None:
    """Retrieve the outcome of abandoned work, since asyncio would report it."""
    if not job.cancelled():
        job.exception()


class Client:
    """Sends statements to one server, at most `size` at once. Created without I/O."""

    def __init__(self, database: Database, size: int = CATALOG_STATEMENTS) -> None:
        self._name = database.name
        self._size = size
        self._slots = Slots(size, self._busy)
        self._threads = Threads("dragoman-trino")
        self._ending: set[asyncio.Task[Any]] = set()
        self.connector = Connector(database)

    async def rows(self, sql: str, *, timeout: float = 30.0, off: tuple[str, ...] = ()) -> list[list[Any]]:
        """Run an internal statement and return its rows: raw values of the protocol, text, bool, int, float or lists.

        Raises `DragomanError`s. Anything that ends it early ends it in the server too.
        """
        async with self.slot(timeout) as slot:
            return await self.all_rows(Sent(sql=sql, timeout=timeout, slot=slot, off=off))

    async def all_rows(self, sent: Sent) -> list[list[Any]]:
        """Run a statement and return its rows, in its own slot, if it has one."""
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

    async def headers(
        self, sql: str, timeout: float, headers: Mapping[str, str], user: str | None = None
    ) -> Mapping[str, str]:
        """Run a statement that answers in headers, and return those, with names in lower case."""
        async with self.run(Sent(sql=sql, timeout=timeout, headers=headers, user=user)) as running:
            while await running.page(_rows) is not None:
                pass
            return running.headers

    def slot(self, seconds: float) -> AbstractAsyncContextManager[Slot]:
        """Hold one of the slots for statements. Raises `Busy` if none comes free in time."""
        return self._slots.hold(seconds)

    def _busy(self, outliving: int) -> Busy:
        stuck = f"; {outliving} of them wait for the server to end abandoned queries" if outliving else ""
        return Busy(
            f"{self._size} queries run on the database {self._name!r} already{stuck}.",
            suggestion="Try again in a moment, or run fewer queries at once.",
        )

    @asynccontextmanager
    async def run(self, sent: Sent) -> AsyncGenerator[Running]:
        """Send a statement. Leaving ends it in the server, even if the caller is cancelled meanwhile."""
        running = Running(self._threads, self.connector, sent)
        try:
            yield running
        finally:
            # In a task of its own: a cancellation may come at every await.
            ending = self.later(running.end())
            if sent.slot is not None:
                sent.slot.work.add(asyncio.get_running_loop().create_task(_wait_until_gone(ending)))
            await asyncio.shield(ending)

    def later(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Let some work end by itself. `settle` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def settle(self) -> None:
        """Wait for work that ends by itself."""
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def aclose(self) -> None:
        """Close the connections once running work has ended."""
        await self.settle()
        self.connector.close()
        self._threads.stop()
