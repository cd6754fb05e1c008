"""Around every call: how many at once, and one line in the log that says who asked what, without values or secrets."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from dragoman.errors import Busy, DragomanError, InternalError, QueryCancelled
from dragoman.gateway.watchdog import Watchdog
from dragoman.model import Principal

_log = logging.getLogger("dragoman.calls")


@dataclass(slots=True)
class CallRecord:
    """What the log line of a call says; filled in while the call lives. `outcome`: ok, or an error's code."""

    who: str
    tool: str
    database: str | None
    hash: str = ""
    rows: int = 0
    bytes: int = 0
    ms: float = 0.0
    outcome: str = "ok"

    def as_dict(self) -> dict[str, object]:
        """Return the fields that say something."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in fields.items() if value not in (None, "")}


_current: ContextVar[CallRecord | None] = ContextVar("call", default=None)


class Calls:
    """Lets `at_once` calls in, as many more wait, and refuses the rest."""

    def __init__(self, at_once: int, watchdog: Watchdog) -> None:
        self._watchdog = watchdog
        self._at_once = at_once
        self._free = asyncio.Semaphore(at_once)
        self._waiting = 0

    @asynccontextmanager
    async def call(self, tool: str, principal: Principal, database: str | None) -> AsyncGenerator[CallRecord]:
        """Be one call, whatever parts it has. Raises `Busy`."""
        async with self._call(CallRecord(principal.name, tool, database)) as record:
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
        async with self._call(CallRecord(principal.name, tool, database)) as record:
            yield record

    @asynccontextmanager
    async def _call(self, record: CallRecord) -> AsyncGenerator[CallRecord]:
        began = time.perf_counter()
        try:
            await self._enter()
            try:
                with self._watchdog:
                    yield record
            finally:
                self._free.release()
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
            _log.info("call", extra={"call": record.as_dict()})

    async def _enter(self) -> None:
        if self._free.locked() and self._waiting >= self._at_once:
            raise Busy(
                f"{self._at_once} calls are being answered and as many wait.", suggestion="Try again in a moment."
            )
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
