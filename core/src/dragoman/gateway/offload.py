"""Runs work whose duration a caller's text decides in processes that can be killed. The event loop never waits for it.

A thread is not enough: Python code in a thread keeps the event loop waiting, and nothing can end it.
"""

from __future__ import annotations

import asyncio
import io
import os
import pickle
import resource
import signal
import struct
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, BinaryIO, Final, TypeVar
from weakref import WeakValueDictionary

from dragoman.children import environment, limit_resource, serving_command
from dragoman.errors import Busy, DragomanError, InvalidSql
from dragoman.gateway.calls import identify_caller
from dragoman.pool import Pool
from dragoman.processes import Process, Processes
from dragoman.slots import Slots

T = TypeVar("T")

SHORT: Final = 512
"""The most characters of a text that is handled on the event loop. It takes less time than a process costs."""
SECONDS: Final = 5.0
"""Seconds that a piece of work may take."""
IMPORTING: Final = 20.0
"""Seconds that a worker may take to start and to import its modules. This does not depend on a caller's text."""
WORKERS: Final = 3
SHARE: Final = WORKERS - 1
"""Workers that one caller may occupy, so that its statements do not hold up those of the others."""
PATIENCE: Final = 2.0
"""Seconds that work which nobody needs waits for its turn."""
MEMORY: Final = 2 * 1024**3
"""Bytes of address space of a worker."""
_HEAD: Final = struct.Struct(">I")
_GONE: Final = (OSError, EOFError, asyncio.IncompleteReadError)


class _Worker(Process):
    """A process that does one piece of work at a time. `idle`: it waits for one."""

    idle = True

    async def work(self, work: bytes, seconds: float) -> tuple[bool | None, Any]:
        """Return the answer to the work, as `_await_answer` makes it.

        Raises `TimeoutError`, and `_GONE` if the process ends.
        """
        self.idle = False
        async with asyncio.timeout(seconds):
            self._input.write(_HEAD.pack(len(work)) + work)
            await self._input.drain()
            (length,) = _HEAD.unpack(await self._output.readexactly(_HEAD.size))
            answer: tuple[bool | None, Any] = pickle.loads(await self._output.readexactly(length))
        self.idle = True
        return answer


class _Workers(Processes[_Worker]):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def open(self) -> _Worker:
        """Start a process. Raises `Busy` if the system cannot start one."""
        command = serving_command(__name__, str(self._seconds))
        try:
            # In a session of its own, so that we and not the terminal end it.
            return await _Worker.spawn(*command, env=environment(), start_new_session=True)
        except OSError as error:
            raise Busy(
                "No process that reads long statements can be started.",
                suggestion="Try again in a moment, or raise the server's limits of processes, files and memory.",
            ) from error

    async def clean(self, resource: _Worker) -> bool:
        """Return whether it waits for work. One that was left in the middle of it is killed."""
        return resource.idle


class Offload:
    """A few worker processes, started on demand and kept. Closing it ends them."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds + IMPORTING  # the worker itself limits the work to `seconds`
        self._workers = Pool(_Workers(seconds), WORKERS, "processes that read long statements")
        self._shares: WeakValueDictionary[object, Slots] = WeakValueDictionary()
        self._trying = asyncio.Lock()
        self._tries: set[asyncio.Task[Any]] = set()

    async def call(self, size: int, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Return what `function` returns, or raise what it raises. `size`, in characters, decides where it runs.

        A function or arguments that cannot be pickled, as a plugin may have, run in this process. Raises `InvalidSql`
        for work that takes too much time or memory, and `Busy` if no process is free in time.
        """
        work = None if size <= SHORT else _pickle((function, arguments, named))
        if work is None:
            return function(*arguments, **named)
        succeeded, answer = await self._answer(work)
        if succeeded is None:  # the worker cannot import it, or cannot send its answer
            return function(*arguments, **named)
        if not succeeded:
            raise answer
        result: T = answer
        return result

    async def attempt(self, seconds: float, function: Callable[..., T], *arguments: Any) -> T | None:
        """Return what `function` returns in a worker; None if it raises a `DragomanError`, or takes `seconds`.

        Such work is done one after the other, for all callers together. What has begun goes on when nobody waits for it
        any more: otherwise a worker that starts slowly would be killed and started again each time.
        """
        has_begun = asyncio.Event()

        async def work() -> T | None:
            async with self._trying:
                has_begun.set()
                try:
                    return await self.call(SHORT + 1, function, *arguments)
                except DragomanError:
                    return None

        task = asyncio.create_task(work())
        self._tries.add(task)
        task.add_done_callback(self._tries.discard)
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        try:
            async with asyncio.timeout(min(seconds, PATIENCE)):
                await has_begun.wait()
            done, _ = await asyncio.wait({task}, timeout=max(0, end - clock()))
            return task.result() if done and not task.cancelled() else None
        except TimeoutError:
            return None
        finally:
            if not has_begun.is_set():
                task.cancel()

    @asynccontextmanager
    async def _share(self) -> AsyncGenerator[None]:
        """Wait until the caller occupies less than its share of the workers."""
        caller = identify_caller()
        share = self._shares.get(caller)
        if share is None:
            share = self._shares[caller] = Slots(SHARE, self._busy)
        async with share.hold(self._seconds):
            yield

    @staticmethod
    def _busy(_: int) -> Busy:
        return Busy(
            f"{SHARE} of your long statements are being read.",
            suggestion="Try again in a moment, or send fewer at once.",
        )

    async def _answer(self, work: bytes) -> tuple[bool | None, Any]:
        async with self._share(), self._workers.lend(self._seconds) as worker:
            try:
                return await worker.work(work, self._seconds)
            except (TimeoutError, *_GONE):
                raise InvalidSql(
                    "The statement takes too long to parse.",
                    suggestion="Make it shorter or simpler, and pass long values as parameters.",
                ) from None

    async def aclose(self) -> None:
        """Kill the workers."""
        for task in self._tries:
            task.cancel()
        await asyncio.gather(*self._tries, return_exceptions=True)
        await self._workers.aclose()


_VIEW: Any = MappingProxyType


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Pickle views of mappings too, which dialects hold."""
        return (_show, (dict(value),)) if isinstance(value, _VIEW) else NotImplemented


def _show(mapping: dict[Any, Any]) -> Any:
    """Return a view. Its type has no name that can be pickled."""
    return MappingProxyType(mapping)


def _pickle(work: Any) -> bytes | None:
    written = io.BytesIO()
    try:
        _Pickler(written).dump(work)
        return written.getvalue()
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError):
        return None


# In the worker


def serve() -> None:
    """Answer calls on stdin until it ends. Work that takes too long ends the process, even without a parent."""
    limit_resource(resource.RLIMIT_AS, MEMORY)
    seconds, calls, answers = float(sys.argv[1]), sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # output of other code must not mix with answers
    while (work := _read(calls)) is not None:
        called = _unpickle(work)
        signal.setitimer(signal.ITIMER_REAL, seconds)  # its signal kills the process
        answer = pickle.dumps((None, None)) if called is None else _await_answer(*called)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(_HEAD.pack(len(answer)) + answer)
        answers.flush()


def _read(calls: BinaryIO) -> bytes | None:
    head = calls.read(_HEAD.size)
    return calls.read(_HEAD.unpack(head)[0]) if len(head) == _HEAD.size else None


def _unpickle(work: bytes) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None:
    """Return a function and its arguments, importing their modules; None if this process cannot import them."""
    try:
        called: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] = pickle.loads(work)
    except Exception:
        return None
    return called


def _await_answer(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> bytes:
    try:
        answer = _pickle((True, function(*arguments, **named)))
    except Exception as error:
        answer = _pickle((False, error))
    return answer or pickle.dumps((None, None))
