"""Work whose time a caller's text decides, in processes that can be killed: the event loop never waits for it.

A thread would not do: Python's own code in one keeps the loop waiting, and nothing ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import pickle
import resource
import signal
import struct
import sys
from collections.abc import AsyncGenerator, Callable
from types import MappingProxyType
from typing import Any, BinaryIO, Final, TypeVar

from dragoman.errors import InvalidSql

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


class Offload:
    """Up to two worker processes, started when they are needed and kept. Close it, and none is left."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._free = asyncio.Semaphore(WORKERS)
        self._idle: list[asyncio.subprocess.Process] = []
        self._started: list[asyncio.subprocess.Process] = []

    async def call(self, size: int, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Return what `function` returns, or raise what it raises; `size` characters decide where it runs.

        A function and arguments that cannot be pickled, which a plugin may have, run at hand. Raises `InvalidSql` for
        what takes too long or too much memory.
        """
        work = None if size <= SHORT else _pickle((function, arguments, named))
        if work is None:
            return function(*arguments, **named)
        async with self._free, self._worker() as worker:
            succeeded, answer = await self._answer(worker, work)
        if succeeded is None:  # the worker cannot import it, or not send its answer
            return function(*arguments, **named)
        if not succeeded:
            raise answer
        result: T = answer
        return result

    async def _answer(self, worker: asyncio.subprocess.Process, work: bytes) -> tuple[bool | None, Any]:
        assert worker.stdin is not None  # both were asked for when it was started
        assert worker.stdout is not None
        try:
            async with asyncio.timeout(self._seconds + IMPORTING):  # the worker itself keeps to the seconds
                worker.stdin.write(_HEAD.pack(len(work)) + work)
                await worker.stdin.drain()
                (length,) = _HEAD.unpack(await worker.stdout.readexactly(_HEAD.size))
                answer: tuple[bool | None, Any] = pickle.loads(await worker.stdout.readexactly(length))
                return answer
        except (TimeoutError, *_GONE):
            raise InvalidSql(
                "The statement takes too long to be read.",
                suggestion="Make it shorter or simpler, and pass long values as parameters.",
            ) from None

    @contextlib.asynccontextmanager
    async def _worker(self) -> AsyncGenerator[asyncio.subprocess.Process]:
        """Lend a worker. One that was left in the middle of its work, however that came, is killed."""
        self._started = [each for each in self._started if each.returncode is None]
        worker = self._idle.pop() if self._idle else None
        if worker not in self._started:
            worker = await _start(self._seconds)
            self._started.append(worker)
        try:
            yield worker
        except BaseException:
            _kill(worker)
            raise
        self._idle.append(worker)

    async def aclose(self) -> None:
        """Kill the workers."""
        for worker in self._started:
            _kill(worker)
        await asyncio.gather(*(worker.wait() for worker in self._started))


async def _start(seconds: float) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        # -P keeps the current folder off its path; what is on ours it gets from us.
        *(sys.executable, "-P", "-c", "from dragoman.gateway.offload import serve; serve()", str(seconds)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # what a terminal interrupts is our business to end
    )


def _kill(worker: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        worker.kill()


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
    _limit_memory()
    seconds, calls, answers = float(sys.argv[1]), sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what code of others prints is no answer
    while (work := _read(calls)) is not None:
        called = _unpickle(work)
        signal.setitimer(signal.ITIMER_REAL, seconds)  # whose signal kills
        answer = pickle.dumps((None, None)) if called is None else _await_answer(*called)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(_HEAD.pack(len(answer)) + answer)
        answers.flush()


def _limit_memory() -> None:
    if sys.platform == "darwin":  # which has no such bound
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY if most == resource.RLIM_INFINITY else min(MEMORY, most), most))


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
