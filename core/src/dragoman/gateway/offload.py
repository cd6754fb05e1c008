"""Work whose time a caller's text decides, in processes that can be killed: the event loop never waits for it.

A thread would not do: Python's own code in one keeps the loop waiting, and nothing ends it.
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
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, BinaryIO, Final, TypeVar

from dragoman.children import environment, limit_resource, serving_command
from dragoman.errors import Busy, InvalidSql
from dragoman.pool import Pool
from dragoman.processes import Process, Processes

T = TypeVar("T")

SHORT: Final = 512
"""Characters of a text that is worked on at hand: it takes less than a process costs."""
SECONDS: Final = 5.0
"""A piece of work may take this long."""
IMPORTING: Final = 20.0
"""Seconds that a worker may take to start and to import what it works with, which no caller's text decides."""
WORKERS: Final = 2
MEMORY: Final = 2 * 1024**3
"""Bytes of address space of a worker."""
_HEAD: Final = struct.Struct(">I")
_GONE: Final = (OSError, EOFError, asyncio.IncompleteReadError)


class _Worker(Process):
    """A process that does one piece of work at a time. `idle`: it waits for one."""

    idle = True

    async def work(self, work: bytes, seconds: float) -> tuple[bool | None, Any]:
        """Return what `_await_answer` made of the work. Raises `TimeoutError`, and `_GONE` when the process ends."""
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

    async def open(self, seconds: float) -> _Worker:
        """Start a process. Raises `Busy` when the system starts none."""
        command = serving_command(__name__, str(self._seconds))
        try:
            # In a session of its own: what a terminal interrupts is our business to end.
            return await _Worker.spawn(*command, env=environment(), start_new_session=True)
        except OSError as error:
            raise Busy(
                "No process that reads long statements can be started.",
                suggestion="Try again in a moment, or raise the server's limits of processes, files and memory.",
            ) from error

    async def clean(self, resource: _Worker) -> bool:
        """Return whether it waits for work; one that was left in the middle of it is killed."""
        return resource.idle


class Offload:
    """Up to two worker processes, started when they are needed and kept. Close it, and none is left."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds + IMPORTING  # the worker itself keeps to its seconds
        self._workers = Pool(_Workers(seconds), WORKERS, "processes that read long statements")

    async def call(self, size: int, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Return what `function` returns, or raise what it raises; `size` characters decide where it runs.

        A function and arguments that cannot be pickled, which a plugin may have, run at hand. Raises `InvalidSql` for
        what takes too long or too much memory, and `Busy` when no process is free in time.
        """
        work = None if size <= SHORT else _pickle((function, arguments, named))
        if work is None:
            return function(*arguments, **named)
        succeeded, answer = await self._answer(work)
        if succeeded is None:  # the worker cannot import it, or not send its answer
            return function(*arguments, **named)
        if not succeeded:
            raise answer
        result: T = answer
        return result

    async def _answer(self, work: bytes) -> tuple[bool | None, Any]:
        async with self._workers.lend(self._seconds) as worker:
            try:
                return await worker.work(work, self._seconds)
            except (TimeoutError, *_GONE):
                raise InvalidSql(
                    "The statement takes too long to be read.",
                    suggestion="Make it shorter or simpler, and pass long values as parameters.",
                ) from None

    async def aclose(self) -> None:
        """Kill the workers."""
        await self._workers.aclose()


_VIEW: Any = MappingProxyType


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Views of mappings, which dialects hold, are sent too."""
        return (_show, (dict(value),)) if isinstance(value, _VIEW) else NotImplemented


def _show(mapping: dict[Any, Any]) -> Any:
    """Return a view; its type itself has no name that can be sent."""
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
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what code of others prints is no answer
    while (work := _read(calls)) is not None:
        called = _unpickle(work)
        signal.setitimer(signal.ITIMER_REAL, seconds)  # whose signal kills
        answer = pickle.dumps((None, None)) if called is None else _await_answer(*called)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(_HEAD.pack(len(answer)) + answer)
        answers.flush()


def _read(calls: BinaryIO) -> bytes | None:
    head = calls.read(_HEAD.size)
    return calls.read(_HEAD.unpack(head)[0]) if len(head) == _HEAD.size else None


def _unpickle(work: bytes) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None:
    """Return a function and its arguments, importing their modules; None for what this process cannot import."""
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
