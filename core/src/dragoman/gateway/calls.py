"""The code around every call: admission, and one line in the log that says who called what, without values or secrets.

The number of running calls, and of running statements on each database, is limited. Some more wait in a queue, and the
rest is refused.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

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
from dragoman.telemetry import ModelUse, Run
from dragoman.turns import Turns

_log = logging.getLogger("dragoman.calls")
REFUSED = frozenset(
    {kind.code for kind in Refused.__subclasses__()} | {PermissionDenied.code, QuotaExceeded.code, CostExceeded.code}
)
"""The error codes of refusals by a rule, before anything runs."""
_LOGGED = ("tool", "database", "hash", "rows", "bytes", "ms", "outcome", "trace", "audit")


class Limiter:
    """Lets `most` callers run and `waiting` more wait, and refuses the rest.

    Callers take turns. `what`: the beginning of the error's sentence.
    """

    def __init__(self, what: str, most: int, waiting: int) -> None:
        self.turns = Turns(most)
        self._what = what
        self._most = most
        self._room = waiting
        self._waiting = 0

    async def acquire(self, caller: Hashable, seconds: float | None = None) -> None:
        """Take a slot. Wait for it at most `seconds`. Raises `Busy`.

        A caller who does not wait yet may always wait: others may have filled the queue.
        """
        if self.turns.take(caller):
            return
        if self._waiting >= self._room and self.turns.waits(caller):
            raise self._busy(f"and {self._room} wait")
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await self.turns.wait(caller)
        except TimeoutError:
            raise self._busy(f"and none ended in {seconds:g} seconds") from None
        finally:
            self._waiting -= 1

    def _busy(self, how: str) -> Busy:
        return Busy(f"{self._what}, {self._most} at once, {how}.", suggestion="Try again in a moment.")


@dataclass(slots=True)
class Admission:
    """The slots that one call holds: its own among `calls`, and its database's while one of its statements runs.

    `held`: it holds its own slot, which is not lent to others.
    """

    calls: Limiter
    held: bool = False
    caller: Hashable = None

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        """Lend the call's slot to others, while the call waits for something other than a database."""
        lends, self.held = self.held, False
        if lends:
            self.calls.turns.give_back(self.caller)
        try:
            yield
        finally:
            if lends:
                # however many wait: a call that was admitted once is not refused later
                await self.calls.turns.wait(self.caller)
                self.held = True

    @asynccontextmanager
    async def statement(self, database: Limiter, seconds: float) -> AsyncGenerator[None]:
        """Take a database slot; lend the call slot to others while waiting. Raises `Busy`.

        If several parts of a call wait at the same time, the first one lends the call slot and takes it back.
        """
        lends = False
        if not database.turns.take(self.caller):
            lends, self.held = self.held, False
            if lends:
                self.calls.turns.give_back(self.caller)
            await database.acquire(self.caller, seconds)
        try:
            if lends:
                # however many wait: a call that was admitted once is not refused later
                await self.calls.turns.wait(self.caller)
                self.held = True
            yield
        finally:
            database.turns.give_back(self.caller)


@dataclass(slots=True)
class CallRecord:
    """The facts about a call, filled in while it runs. `outcome`: ok, or an error's code.

    - `admission`: the slots it holds.
    - `sql`, `params`, `arguments`: as they were sent. These and `relations`, `columns`, `confined`, `acting` are only
      for the audit; the log never shows them.
    - `known`: the names of the tool's arguments; None: all that were sent are.
    - `audit`: the place of its record in the audit's chain.
    - `model_use`: what it used of a language model.
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
    known: Collection[str] | None = None
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
        """Whether a rule refused it, before anything ran."""
        return self.outcome in REFUSED

    def as_dict(self) -> dict[str, object]:
        """Return the fields of the log line that are not empty."""
        fields = {"who": self.principal.name, **{name: getattr(self, name) for name in _LOGGED}}
        return {name: value for name, value in fields.items() if value not in (None, "")}


_current: ContextVar[CallRecord | None] = ContextVar("call", default=None)


def identify_caller() -> tuple[str, str, str] | None:
    """Return who made the call that runs now; None outside of a call."""
    record = _current.get()
    return None if record is None else record.principal.identity


class Calls:
    """Lets `most` calls run and as many more wait, and refuses the rest.

    - `record`: records a finished call. If that must wait, it returns the rest as a coroutine to await.
    - `quotas`: the quotas of callers, if any role sets one.
    """

    quotas: Quotas | None = None

    def __init__(
        self, most: int, watchdog: Watchdog, record: Callable[[CallRecord], Coroutine[None, None, None] | None]
    ) -> None:
        self._record = record
        self._watchdog = watchdog
        self._limiter = Limiter("Calls are answered", most, most)
        self._running: set[int] = set()
        self._drains: list[tuple[set[int], asyncio.Future[None]]] = []

    async def drain(self) -> None:
        """Wait until every call that runs now has ended. Later calls do not count."""
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
        """Run a call, or a part of the current call. Raises `Busy` and `QuotaExceeded`.

        Everything that runs in this context meanwhile is a part of it. With `whole=False` that is not so, for streams
        that others read.
        """
        outer = _current.get()
        if outer is not None and outer.admission.calls is self._limiter:
            yield outer
            return
        turns = self._limiter.turns
        # As `Principal.identity`, whose call would be one more on the path of every call.
        caller = principal.issuer, principal.subject or principal.name, principal.token
        record = CallRecord(Admission(self._limiter, caller=caller), principal, tool, database)
        token = _current.set(record) if whole else None
        self._running.add(id(record))
        began, told = time.perf_counter(), 0
        try:
            if self.quotas is not None:
                self.quotas.charge(principal)
            if not turns.take(caller):
                await self._limiter.acquire(caller)
            record.admission.held = True
            self._watchdog.under_way += 1
            if self._watchdog.asleep:
                self._watchdog.wake()
            try:
                yield record
            finally:
                self._watchdog.under_way -= 1
                if record.admission.held:
                    turns.give_back(caller)
        except DragomanError as error:
            record.outcome = error.code
            told = _size(error) if self.quotas is not None else 0
            raise
        except asyncio.CancelledError:
            record.outcome = QueryCancelled.code
            raise
        except BaseException:
            record.outcome = InternalError.code
            raise
        finally:
            if self.quotas is not None:
                self.quotas.spend(principal, record.rows, record.bytes + told)
            record.ms = round((time.perf_counter() - began) * 1000, 1)
            if token is not None:
                _current.reset(token)
            try:
                rest = self._record(record)
                if rest is not None:
                    await rest
            finally:
                self._running.discard(id(record))
                if self._drains:
                    self._tell_drains(id(record))
                if _log.isEnabledFor(logging.INFO):
                    _log.info("call", extra={"call": record.as_dict()})


def _size(error: DragomanError) -> int:
    """Return about the bytes in which a caller is told of an error: a database's may hold values of rows."""
    return 0 if isinstance(error, QuotaExceeded) else len(str(error.as_dict()))
