"""What is opened once and lent many times, connections and processes: bounded, checked, replaced, closed."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, Final, Generic, TypeAlias, TypeVar

from dragoman.errors import Busy
from dragoman.slots import Slots

R = TypeVar("R")
Begin: TypeAlias = Callable[[R], Awaitable[object]]
Ending: TypeAlias = set[asyncio.Task[None]]

GRACE: Final = 2.0
"""Seconds a borrower waits until what it gave up has ended; its place is occupied until then, however long."""
MOMENT: Final = 0.25
"""Seconds that closing a resource nobody has used for long may hold up its next borrower."""
_log = logging.getLogger(__name__)


class Lost(Exception):
    """Raised by what begins a loan: the resource had ended while it was kept. Another one is tried.

    `error`: what the borrower is told where a new resource is no better.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Manager(abc.ABC, Generic[R]):
    """What a pool has to know of one kind of resource."""

    @abc.abstractmethod
    async def open(self, seconds: float) -> R:
        """Open one, within so many seconds. If the caller stops waiting, it is still opened, and kept for the next."""

    @abc.abstractmethod
    def is_usable(self, resource: R) -> bool:
        """Whether one that was kept may be lent again, as far as can be known without I/O."""

    @abc.abstractmethod
    async def clean(self, resource: R) -> bool:
        """End what a borrower has left behind; return whether the resource may be lent again.

        Returns once nothing runs on it any more, however long that takes. May be cancelled and called again.
        """

    @abc.abstractmethod
    async def close(self, resource: R) -> None:
        """Close a resource. Returns once nothing of it is left, however long that takes. May be called again."""

    @abc.abstractmethod
    def abort(self, resource: R) -> None:
        """Let go at once of a resource that does not come to its end while the pool is closed."""


class Pool(Generic[R]):
    """At most `size` resources, opened when they are needed; the one used last is lent first, so that others stay cold.

    `what`: what the resources are, in the plural, for the error of who waits in vain. `most_idle`: seconds after which
    an unused one is not trusted any more.
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
        self._ending: dict[asyncio.Task[None], R | None] = {}
        self._closed = False

    @property
    def idle(self) -> list[R]:
        """The resources that are kept, the one that is lent next last."""
        return [resource for resource, _ in self._idle]

    @contextlib.asynccontextmanager
    async def lend(self, seconds: float, begin: Begin[R] | None = None) -> AsyncGenerator[R]:
        """Lend a resource on which `begin` has been done; on the way out it is clean or gone.

        A place is free again when the work is known to have ended, whether or not its borrower still waits for that.
        Raises `Busy` when no place comes free within `seconds`, and what opening and `begin` raise.
        """
        if self._slots.locked():
            await self._slots.take(seconds)
        else:
            await self._slots.acquire()  # at once
        ending: Ending = set()
        try:
            resource = await self._take(seconds, begin, ending)
            try:
                yield resource
                await self._end(resource)
            except BaseException:
                await self._end_apart(resource, ending)
                raise
        finally:
            if ending:
                self._slots.release_after(ending)
            else:
                self._slots.release()

    async def aclose(self) -> None:
        """Close every resource, those that are lent when they come back. What does not end in time is let go.

        A pool that was closed still lends, and keeps nothing.
        """
        self._closed = True
        await self._settle()
        for resource in self.idle:
            self._later(self._close(resource), resource, set())
        self._idle.clear()
        await self._settle()
        for task, left in [*self._ending.items()]:
            task.cancel()
            if left is not None:
                self._manager.abort(left)
        await self._settle()

    def _busy(self, outliving: int) -> Busy:
        stuck = f"; {outliving} of them wait for the end of what was given up" if outliving else ""
        return Busy(
            f"All {self._size} {self._what} are busy{stuck}.",
            suggestion="Try again in a moment, or run fewer queries at once.",
        )

    async def _take(self, seconds: float, begin: Begin[R] | None, ending: Ending) -> R:
        """A kept resource on which the loan has begun, unless all turn out to be dead, else a new one."""
        while True:
            kept = bool(self._idle)
            resource, since = self._idle.pop() if kept else (await self._open(seconds, ending), time.monotonic())
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
        """Close a resource apart; its place is not free before."""
        closing = self._later(self._close(resource), resource, ending)
        await asyncio.wait({closing}, timeout=MOMENT)

    async def _open(self, seconds: float, ending: Ending) -> R:
        opening = asyncio.get_running_loop().create_task(self._manager.open(seconds))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._later(self._keep(opening), None, ending)
            raise

    async def _keep(self, opening: asyncio.Task[R]) -> None:
        """Keep what its borrower did not wait for: were it closed, no deadline shorter than opening were ever met."""
        with contextlib.suppress(Exception):
            await self._end(await opening)

    async def _end(self, resource: R) -> None:
        """Keep a resource that is clean again, and close any other."""
        try:
            clean = await self._manager.clean(resource)
        except Exception:
            _log.warning("one of %s could not be cleaned and is closed", self._what, exc_info=True)
            clean = False
        if clean and not self._closed:
            self._idle.append((resource, time.monotonic()))
        else:
            await self._close(resource)

    async def _close(self, resource: R) -> None:
        """Close a resource. An error is logged: it is no concern of a borrower, nor of who closes the pool."""
        try:
            await self._manager.close(resource)
        except Exception:
            _log.warning("one of %s could not be closed", self._what, exc_info=True)

    async def _end_apart(self, resource: R, ending: Ending) -> None:
        """End in a task: a cancellation may strike at every await, and no borrower waits for ever."""
        await asyncio.wait({self._later(self._end(resource), resource, ending)}, timeout=self._grace)

    def _later(self, work: Coroutine[Any, Any, None], resource: R | None, ending: Ending) -> asyncio.Task[None]:
        """Let some work end by itself; the place of `ending` is occupied until then."""
        task = asyncio.get_running_loop().create_task(work)
        ending.add(task)
        self._ending[task] = resource
        task.add_done_callback(self._ending.pop)
        return task

    async def _settle(self) -> None:
        if self._ending:
            await asyncio.wait([*self._ending], timeout=self._grace)
