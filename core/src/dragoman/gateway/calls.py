"""Around every call: admission, and one line in the log that says who asked what, without values or secrets.

So many calls run at once, and so many statements on each database; a queue waits before either, the rest is refused.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragoman.access import Quotas
from dragoman.errors import (
    Busy,
    CostExceeded,
    DragomanError,
    InternalError,
    PermissionDenied,
    QueryCancelled,
    QuotaExceeded,
    Refused,
)
from dragoman.gateway.watchdog import Watchdog
from dragoman.model import Acting, ConfinedRelation, Principal
from dragoman.sql import Statement
from dragoman.telemetry import ModelUse, Run

if TYPE_CHECKING:
    from dragoman.gateway.opened import OpenDatabase
    from dragoman.gateway.queries import Query
    from dragoman.gateway.recording import Recorder

_log = logging.getLogger("dragoman.calls")
REFUSED = frozenset(
    {kind.code for kind in Refused.__subclasses__()} | {PermissionDenied.code, QuotaExceeded.code, CostExceeded.code}
)
"""The codes of what is refused by a rule, before anything runs."""
_LOGGED = ("tool", "database", "hash", "rows", "bytes", "ms", "outcome", "trace", "audit")


class Limiter:
    """Lets `most` run, lets `waiting` more wait, and refuses the rest; `what` says for whom, as a sentence begins."""

    def __init__(self, what: str, most: int, waiting: int) -> None:
        self.slots = asyncio.Semaphore(most)
        self._what = what
        self._most = most
        self._room = waiting
        self._waiting = 0

    async def acquire(self, seconds: float | None = None) -> None:
        """Take one of the slots, waiting for at most so many seconds. Raises `Busy`."""
        if not self.slots.locked():
            await self.slots.acquire()  # at once
            return
        if self._waiting >= self._room:
            raise self._busy(f"and {self._room} wait")
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await self.slots.acquire()
        except TimeoutError:
            raise self._busy(f"and none ended in {seconds:g} seconds") from None
        finally:
            self._waiting -= 1

    def _busy(self, how: str) -> Busy:
        return Busy(f"{self._what}, {self._most} at once, {how}.", suggestion="Try again in a moment.")


@dataclass(slots=True)
class Admission:
    """The slots one call holds: its own among `calls`, and its database's while a statement of it runs.

    `held`: it has its own, which is not lent to others.
    """

    calls: Limiter
    held: bool = False

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        """Lend the call's slot to others, while the call waits for something else than a database."""
        lends, self.held = self.held, False
        if lends:
            self.calls.slots.release()
        try:
            yield
        finally:
            if lends:
                await self.calls.slots.acquire()  # however many wait: a call that was let in once is not refused later
                self.held = True

    @asynccontextmanager
    async def statement(self, database: Limiter, seconds: float) -> AsyncGenerator[None]:
        """Hold a slot of a database too. While it waits, the call's slot is lent to others. Raises `Busy`.

        Of the parts of a call that wait side by side, the first lends the call's slot and takes it back.
        """
        lends = self.held and database.slots.locked()
        if lends:
            self.held = False
            self.calls.slots.release()
        if database.slots.locked():
            await database.acquire(seconds)
        else:
            await database.slots.acquire()  # at once
        try:
            if lends:
                await self.calls.slots.acquire()  # however many wait: a call that was let in once is not refused later
                self.held = True
            yield
        finally:
            database.slots.release()


@dataclass(slots=True)
class CallRecord:
    """What is known of a call; filled in while it lives. `outcome`: ok, or an error's code.

    `admission`: the slots it holds. `sql`, `params` and `arguments` are as they came, for the audit alone, as
    `relations`, `columns`, `confined` and `acting` are; the log never shows them. `audit`: the place of its record
    in the audit's chain. `model_use`: what it used of a language model.
    """

    admission: Admission
    principal: Principal
    tool: str
    database: str | None
    hash: str = ""
    rows: int = 0
    bytes: int = 0
    ms: float = 0.0
    outcome: str = "ok"
    trace: str = ""
    audit: str = ""
    sql: str = ""
    params: Sequence[Any] = ()
    arguments: Mapping[str, Any] | None = None
    relations: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    confined: tuple[ConfinedRelation, ...] = ()
    acting: Acting | None = None
    runs: list[Run] = field(default_factory=list[Run])
    model_use: ModelUse | None = None

    @property
    def who(self) -> str:
        """The principal's name."""
        return self.principal.name

    @property
    def refused(self) -> bool:
        """Whether it was refused by a rule, before anything ran."""
        return self.outcome in REFUSED

    @contextmanager
    def running(self, opened: OpenDatabase, statement: Statement) -> Generator[None]:
        """Note when a statement ran on a database, and how that ended."""
        began, outcome, status = time.time_ns(), "ok", ""
        opened.whole.running += 1
        try:
            yield
        except DragomanError as error:
            outcome, status = error.code, str(error.context.get("sqlstate", ""))
            raise
        except asyncio.CancelledError:
            outcome = QueryCancelled.code
            raise
        finally:
            opened.whole.running -= 1
            name, dialect = opened.config.name, opened.dialect.name
            run = Run(began, time.time_ns(), name, dialect, statement.judged_relations, outcome, status)
            self.runs.append(run)

    def note_query(self, query: Query) -> None:
        """Note a statement that may run, what of its relations it reads, and as whom the database runs it."""
        statement, confined, self.acting = query.statement, query.confined, query.request.acting
        self.database = self.database or query.opened.config.name
        self.hash = statement.hash
        self.relations += statement.judged_relations
        self.columns += statement.judged_columns
        if confined is not None:
            self.confined += confined.parts

    def as_dict(self) -> dict[str, object]:
        """Return the fields of the log that say something."""
        fields = {"who": self.principal.name, **{name: getattr(self, name) for name in _LOGGED}}
        return {name: value for name, value in fields.items() if value not in (None, "")}


_current: ContextVar[CallRecord | None] = ContextVar("call", default=None)


class Calls:
    """Lets `most` calls run, as many more wait, and refuses the rest.

    `quotas`: what callers get in a while, where any role bounds it.
    """

    quotas: Quotas | None = None

    def __init__(self, most: int, watchdog: Watchdog, recorder: Recorder) -> None:
        self._recorder = recorder
        self._watchdog = watchdog
        self._limiter = Limiter("Calls are answered", most, most)
        self._running: set[int] = set()
        self._drains: list[tuple[set[int], asyncio.Future[None]]] = []

    async def drain(self) -> None:
        """Wait until every call that runs now is over; those that come later do not count."""
        if not self._running:
            return
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        drain = (set(self._running), over)
        self._drains.append(drain)
        try:
            await over
        finally:
            self._drains.remove(drain)

    def _tell_drains(self, call: int) -> None:
        for running, over in self._drains:
            running.discard(call)
            if not running and not over.done():
                over.set_result(None)

    @asynccontextmanager
    async def call(
        self, tool: str, principal: Principal, database: str | None, *, whole: bool = True
    ) -> AsyncGenerator[CallRecord]:
        """Be one call, or a part of the call this runs in. Raises `Busy` and `QuotaExceeded`.

        What runs in this context meanwhile is a part of it. Not so with `whole=False`, for what is handed out and read
        by others.
        """
        outer = _current.get()
        if outer is not None and outer.admission.calls is self._limiter:
            yield outer
            return
        record = CallRecord(Admission(self._limiter), principal, tool, database)
        token = _current.set(record) if whole else None
        self._running.add(id(record))
        began = time.perf_counter()
        try:
            if self.quotas is not None:
                self.quotas.charge(principal)
            await (self._limiter.acquire() if self._limiter.slots.locked() else self._limiter.slots.acquire())
            record.admission.held = True
            self._watchdog.under_way += 1
            if self._watchdog.asleep:
                self._watchdog.wake()
            try:
                yield record
            finally:
                self._watchdog.under_way -= 1
                if record.admission.held:
                    self._limiter.slots.release()
        except DragomanError as error:
            record.outcome = error.code
            raise
        except asyncio.CancelledError:
            record.outcome = QueryCancelled.code
            raise
        except BaseException:
            record.outcome = InternalError.code
            raise
        finally:
            if self.quotas is not None:
                self.quotas.spend(principal, record.rows, record.bytes)
            record.ms = round((time.perf_counter() - began) * 1000, 1)
            if token is not None:
                _current.reset(token)
            try:
                rest = self._recorder.record(record)
                if rest is not None:
                    await rest
            finally:
                self._running.discard(id(record))
                if self._drains:
                    self._tell_drains(id(record))
                if _log.isEnabledFor(logging.INFO):
                    _log.info("call", extra={"call": record.as_dict()})
