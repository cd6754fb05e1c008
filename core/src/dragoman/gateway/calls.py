"""Around every call: how many at once, and one line in the log that says who asked what, without values or secrets."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError, InternalError, QueryCancelled
from dragoman.gateway.turns import Turn, Turns
from dragoman.gateway.watchdog import Watchdog
from dragoman.model import Principal
from dragoman.sql import Statement

if TYPE_CHECKING:
    from dragoman.gateway.recording import Recorder

_log = logging.getLogger("dragoman.calls")


_LOGGED = ("who", "tool", "database", "hash", "rows", "bytes", "ms", "outcome", "trace", "audit")


@dataclass(slots=True)
class CallRecord:
    """What is known of a call; filled in while it lives. `outcome`: ok, or an error's code.

    `turn`: the call's place among all calls. `sql`, `params` and `arguments` are as they came, for the audit alone, as
    `relations` and `columns` are; the log never shows them. `audit`: the place of its record in the audit's chain.
    """

    turn: Turn
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

    @property
    def who(self) -> str:
        """The principal's name."""
        return self.principal.name

    def judged(self, statement: Statement) -> None:
        """Note a statement that may run."""
        self.hash = statement.hash
        self.relations += statement.judged_relations
        self.columns += statement.judged_columns

    def as_dict(self) -> dict[str, object]:
        """Return the fields of the log that say something."""
        fields = {name: getattr(self, name) for name in _LOGGED}
        return {name: value for name, value in fields.items() if value not in (None, "")}


_current: ContextVar[CallRecord | None] = ContextVar("call", default=None)


class Calls:
    """Lets `at_once` calls in, as many more wait, and refuses the rest."""

    def __init__(self, at_once: int, watchdog: Watchdog, recorder: Recorder) -> None:
        self._recorder = recorder
        self._watchdog = watchdog
        self._turns = Turns("Calls are answered", at_once, at_once)

    @asynccontextmanager
    async def call(self, tool: str, principal: Principal, database: str | None) -> AsyncGenerator[CallRecord]:
        """Be one call, whatever parts it has. Raises `Busy`."""
        async with self._call(CallRecord(Turn(self._turns), principal, tool, database)) as record:
            token = _current.set(record)
            try:
                yield record
            finally:
                _current.reset(token)

    @asynccontextmanager
    async def part(self, tool: str, principal: Principal, database: str | None) -> AsyncGenerator[CallRecord]:
        """Be a part of the call this runs in, else a call of its own. Raises `Busy`."""
        outer = _current.get()
        if outer is not None:
            yield outer
            return
        async with self._call(CallRecord(Turn(self._turns), principal, tool, database)) as record:
            yield record

    @asynccontextmanager
    async def _call(self, record: CallRecord) -> AsyncGenerator[CallRecord]:
        began = time.perf_counter()
        try:
            await record.turn.take()
            try:
                with self._watchdog:
                    yield record
            finally:
                record.turn.leave()
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
            record.ms = round((time.perf_counter() - began) * 1000, 1)
            try:
                self._recorder.record(record)
            finally:
                _log.info("call", extra={"call": record.as_dict()})
