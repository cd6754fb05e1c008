"""Pools of resources that are opened once and lent many times, such as connections and processes.

A pool is bounded. It checks, replaces and closes its resources.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeAlias, TypeVar

from dragoman.errors import Busy
from dragoman.slots import Slots

R = TypeVar("R")
best_before: ContextVar[float | None] = ContextVar("best_before", default=None)
"""Until when the decision to use a resource holds, on the monotonic clock. None: forever."""
Begin: TypeAlias = Callable[[R], Awaitable[object]]
Ending: TypeAlias = set[asyncio.Task[None]]

GRACE: Final = 2.0
"""Seconds that a borrower waits until the work it gave up has ended. The slot stays taken until then, however long."""
MOMENT: Final = 0.25
"""Seconds that closing a long unused resource may delay the next borrower."""
CLOSING: Final = 1.0
"""Seconds that closing an unused resource may delay the end of the pool: a busy machine ends a process slowly."""
_log = logging.getLogger(__name__)


class Waited(Busy):
    """A slot came free only after the borrower's `best_before`. The borrower must decide again what to do."""


class Lost(Exception):
    """Raised at the beginning of a loan if the resource ended while it was kept. The pool then tries another one.

    `error`: the error that the borrower gets if a new resource has the same problem.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Manager(abc.ABC, Generic[R]):
    """What a pool must know about one kind of resource."""

    @abc.abstractmethod
    async def open(self) -> R:
        """Open a resource. Returns or raises within a time that no caller chooses: hurry says nothing of the database.

        If the caller stops waiting, it is still opened, and kept for the next caller.
        """

    @abc.abstractmethod
    def is_usable(self, resource: R) -> bool:
        """Return whether a kept resource may be lent again, as far as is known without I/O."""

    @abc.abstractmethod
    async def clean(self, resource: R) -> bool:
        """End what a borrower has left behind, and return whether the resource may be lent again.

        Returns once nothing runs on it any more, however long that takes. May be cancelled and called again.
        """

    @abc.abstractmethod
    async def close(self, resource: R) -> None:
        """Close a resource. Returns once nothing of it is left, however long that takes. May be called again."""

    @abc.abstractmethod
    def abort(self, resource: R) -> None:
        """Drop a resource at once, if it does not end while the pool is being closed."""


class Pool(Generic[R]):
    """A pool of at most `size` resources, opened on demand. The one used last is lent first, so that others stay idle.

    - `what`: what the resources are, in the plural, for the error that reports that none came free.
    - `most_idle`: seconds after which an unused resource is not trusted any more.
    """

    def __init__(
        self, manager: Manager[R], size: int, what: str, *, grace: float = GRACE, most_idle: float = float("inf")
    ) -> None:
        self._manager = manager
        self._size = size
        self._what = what
        self._grace = grace
        self._most_idle = most_idle
        self._slots = Slots(size, self._busy)
        self._idle: list[tuple[R, float]] = []
        self._ending: dict[asyncio.Task[None], tuple[R | None, float]] = {}
        self._closed = False

    @property
    def idle(self) -> list[R]:
        """The resources that are kept. The one that is lent next is the last."""
        return [resource for resource, _ in self._idle]

    @contextlib.asynccontextmanager
    async def lend(self, seconds: float, begin: Begin[R] | None = None) -> AsyncGenerator[R]:
        """Lend a resource on which `begin` was called. Afterwards it is cleaned, or closed.

        A slot is free again when the work is known to have ended, whether or not its borrower still waits for that.
        Raises `Busy` if no slot comes free within `seconds`, `Waited`, and whatever opening and `begin` raise.
        """
        if self._slots.locked():
            await self._slots.take(seconds)
            self._check_age()
        else:
            await self._slots.acquire()  # returns at once
        ending: Ending = set()
        try:
            resource = await self._take(begin, ending)
            try:
                yield resource
                await self._end(resource, ending)
            except BaseException:
                await self._end_apart(resource, ending)
                raise
        finally:
            if ending:
                self._slots.release_after(ending)
            else:
                self._slots.release()

    def _check_age(self) -> None:
        """Give the slot back and raise `Waited` if it came too late."""
        latest = best_before.get()
        if latest is not None and time.monotonic() > latest:
            self._slots.release()
            raise Waited(f"None of the {self._what} was free for a while.", suggestion="Try again in a moment.")

    async def aclose(self) -> None:
        """Close every resource; lent ones are closed when they come back. What does not end in time is dropped.

        What was given up before gets no second grace: a process that ends waits for this. A closed pool still lends,
        and keeps nothing.
        """
        self._closed = True
        for resource in self.idle:
            self._later(self._close(resource), resource, set(), CLOSING)
        self._idle.clear()
        clock = asyncio.get_running_loop().time
        soon = clock() + MOMENT
        while self._ending and (left := max(soon, *(until for _, until in self._ending.values())) - clock()) > 0:
            await asyncio.wait([*self._ending], timeout=left)
        for left_over, _ in [*self._ending.values()]:
            if left_over is not None:
                self._manager.abort(left_over)
        await self._settle()  # what was aborted ends by itself
        for task in [*self._ending]:
            task.cancel()
        await self._settle()

    async def _settle(self) -> None:
        if self._ending:
            await asyncio.wait([*self._ending], timeout=MOMENT)

    def _busy(self, outliving: int) -> Busy:
        stuck = f"; {outliving} of them wait for abandoned work to end" if outliving else ""
        return Busy(
            f"All {self._size} {self._what} are busy{stuck}.",
            suggestion="Try again in a moment, or run fewer queries at once.",
        )

    async def _take(self, begin: Begin[R] | None, ending: Ending) -> R:
        """Return a kept resource on which the loan has begun, or a new one if all kept ones turn out to be dead."""
        while True:
            kept = bool(self._idle)
            resource, since = self._idle.pop() if kept else (await self._open(ending), time.monotonic())
            if kept and not (time.monotonic() - since < self._most_idle and self._manager.is_usable(resource)):
                await self._replace(resource, ending)
                continue
            try:
                if begin is not None:
                    await begin(resource)
            except Lost as lost:
                await self._replace(resource, ending)
                if not kept:
                    raise lost.error from None
            except BaseException:
                await self._end_apart(resource, ending)
                raise
            else:
                return resource

    async def _replace(self, resource: R, ending: Ending) -> None:
        """Close a resource in a task of its own. Its slot is free only after that."""
        closing = self._later(self._close(resource), resource, ending)
        await asyncio.wait({closing}, timeout=MOMENT)

    async def _open(self, ending: Ending) -> R:
        opening = asyncio.get_running_loop().create_task(self._manager.open())
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._later(self._keep(opening), None, ending)
            raise

    async def _keep(self, opening: asyncio.Task[R]) -> None:
        """Keep a resource that its borrower did not wait for.

        If it were closed, a deadline shorter than opening could never be met.
        """
        with contextlib.suppress(Exception):
            await self._end(await opening)

    async def _end(self, resource: R, ending: Ending | None = None) -> None:
        """Keep a resource if it is clean again, else close it: with `ending`, nobody waits for that for long."""
        try:
            clean = await self._manager.clean(resource)
        except Exception:
            _log.warning("one of the %s could not be cleaned and is closed", self._what, exc_info=True)
            clean = False
        if clean and not self._closed:
            self._idle.append((resource, time.monotonic()))
        elif ending is None:
            await self._close(resource)
        else:
            await self._replace(resource, ending)

    async def _close(self, resource: R) -> None:
        """Close a resource.

        An error is only logged: neither the borrower nor the caller that closes the pool can act on it.
        """
        try:
            await self._manager.close(resource)
        except Exception:
            _log.warning("one of the %s could not be closed", self._what, exc_info=True)

    async def _end_apart(self, resource: R, ending: Ending) -> None:
        """End a resource in its own task: a cancellation may come at every await, and no borrower waits forever."""
        await asyncio.wait({self._later(self._end(resource), resource, ending)}, timeout=self._grace)

    def _later(
        self, work: Coroutine[Any, Any, None], resource: R | None, ending: Ending, patience: float | None = None
    ) -> asyncio.Task[None]:
        """Let some work end by itself. The slot of `ending` stays taken until then.

        `patience`: seconds that closing the pool gives it, by default the grace.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        ending.add(task)
        self._ending[task] = resource, loop.time() + (self._grace if patience is None else patience)
        task.add_done_callback(self._ending.pop)
        return task
