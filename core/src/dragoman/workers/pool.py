"""Worker processes of one database: started when needed, kept, handed out one statement at a time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
from collections.abc import AsyncGenerator

import msgspec

from dragoman.errors import Busy
from dragoman.slots import Slots
from dragoman.workers.frames import HEADER, Cancel, Done, Order, Report, Run, most_bytes, pack

GRACE = 0.25
"""Seconds an interrupted statement has to end before its process is killed."""

_decoder: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)


class WorkerDied(Exception):
    """The process ended in the middle of a statement."""


class TooLong(Exception):
    """The process says more than it may."""


class NoWorker(Exception):
    """The system starts no process."""


class Worker:
    """One process. `idle`: it waits for a statement; `proven`: it has answered before."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._input = process.stdin
        self._output = process.stdout
        self._hang_up = select.poll()
        self._hang_up.register(self._input.get_extra_info("pipe"), 0)
        self._expected: int | None = None
        self._most = 0
        self.idle = True
        self.proven = False

    @classmethod
    async def start(cls, module: str, setup: msgspec.Struct) -> Worker:
        """Start a process that runs a module, with the interpreter of this one. Raises `NoWorker`."""
        try:
            process = await asyncio.create_subprocess_exec(
                # -P keeps the current folder off its path.
                *(sys.executable, "-P", "-m", module),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        except OSError as error:
            raise NoWorker from error
        worker = cls(process)
        worker._input.write(pack(setup))
        return worker

    @property
    def alive(self) -> bool:
        """Whether the process still holds its end of the pipe: the kernel knows before the event loop does."""
        return not self._input.is_closing() and not self._hang_up.poll(0)

    def send(self, order: Order) -> None:
        """Send an order; one to a process that has died is lost, and `next` tells."""
        if isinstance(order, Run):
            self.idle = False
            self._most = most_bytes(order)
        self._input.write(pack(order))

    async def next(self) -> Report:
        """Return what the worker says next of its statement; `Done` when it has ended.

        Raises `WorkerDied`, and `TooLong` for what is not read.
        """
        try:
            if self._expected is None:
                # Kept, so that a cancelled read of the body is taken up where it was left.
                self._expected = int.from_bytes(await self._output.readexactly(HEADER), "big")
            if self._expected > self._most:
                raise TooLong
            body = await self._output.readexactly(self._expected)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerDied from None
        self._expected = None
        self.proven = True
        report = _decoder.decode(body)
        self.idle = isinstance(report, Done)
        return report

    async def settle(self) -> None:
        """End the statement that runs, if one does: by an interrupt, else by ending the process."""
        if self.idle or not self.alive:
            return
        self.send(Cancel())
        try:
            async with asyncio.timeout(GRACE):
                while not self.idle:
                    await self.next()
        except (TimeoutError, WorkerDied, TooLong):
            await self.kill()

    async def kill(self) -> None:
        """End the process, whatever it is doing."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                # Not `Process.kill`: it polls first, and would take the exit status from asyncio's own watcher.
                os.kill(self._process.pid, signal.SIGKILL)
        await self.wait_closed()

    async def close(self) -> None:
        """Let the process end by itself, or end it."""
        self._input.close()
        try:
            async with asyncio.timeout(GRACE):
                await self.wait_closed()
        except TimeoutError:
            await self.kill()

    async def wait_closed(self) -> None:
        """Wait until the process has ended and its pipes are closed."""
        await self._process.wait()
        self._input.close()
        with contextlib.suppress(ConnectionError):
            await self._input.wait_closed()


class Pool:
    """At most `size` processes that run `module`, each sent `setup` first.

    The one used last is used first, so that the others' memory stays cold.
    """

    def __init__(self, module: str, setup: msgspec.Struct, size: int) -> None:
        self._module = module
        self._setup = setup
        self._size = size
        self._slots = Slots(size, self._busy)
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._ending: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def worker(self, seconds: float) -> AsyncGenerator[Worker]:
        """Lend a worker for one statement; on the way out the statement is ended and the worker is clean or gone.

        Raises `Busy` when none comes free within `seconds`, and `NoWorker`.
        """
        if self._slots.locked():
            await self._slots.take(seconds)
        else:
            await self._slots.acquire()  # at once
        ending: set[asyncio.Task[None]] = set()
        try:
            worker = await self._idle_or_new()
            try:
                yield worker
            finally:
                if worker.idle:
                    self._idle.append(worker)  # one that has died is noticed when it is taken
                else:
                    await self._end_apart(worker, ending)
        finally:
            if ending:
                self._slots.release_after(ending)
            else:
                self._slots.release()

    def _busy(self, outliving: int) -> Busy:
        stuck = f"; {outliving} of them end what was given up" if outliving else ""
        return Busy(
            f"All {self._size} processes for queries of this database are busy{stuck}.",
            suggestion="Try again in a moment, or run fewer queries at once.",
        )

    async def _idle_or_new(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            await worker.kill()
            self._all.discard(worker)
        worker = await Worker.start(self._module, self._setup)
        self._all.add(worker)
        return worker

    async def _end_apart(self, worker: Worker, ending: set[asyncio.Task[None]]) -> None:
        """End a statement in a task: whoever is cancelled twice leaves at once, and it is ended all the same."""
        task = asyncio.create_task(self._end(worker))
        ending.add(task)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        await asyncio.shield(task)

    async def _end(self, worker: Worker) -> None:
        try:
            await worker.settle()
        finally:
            self._idle.append(worker)

    async def aclose(self) -> None:
        """End every process."""
        await asyncio.gather(*self._ending)
        await asyncio.gather(*(worker.close() for worker in self._all))
        self._all.clear()
        self._idle.clear()
