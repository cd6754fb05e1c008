"""Worker processes of one database, and what a pool has to know of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

import msgspec

from dragoman.processes import Process, Processes
from dragoman.workers.frames import HEADER, Cancel, Done, Order, Report, Run, most_bytes, pack

READY = 60.0
"""Seconds in which a process has read its code and its setup. No deadline of a caller ends it before."""
GRACE = 0.25
"""Seconds an interrupted statement has to end before its process is killed."""

_decoder: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)


class WorkerDied(Exception):
    """The process ended in the middle of a statement."""


class TooLong(Exception):
    """The process says more than it may."""


class NoWorker(Exception):
    """The system starts no process, or the process is not ready in time."""


class Worker(Process):
    """One process. `idle`: it waits for a statement."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__(process)
        self._expected: int | None = None
        self._most = most_bytes(Cancel())
        self.idle = False

    @classmethod
    async def start(cls, module: str, setup: msgspec.Struct) -> Worker:
        """Start a process that runs a module, with the interpreter of this one, and wait until it is ready.

        Raises `NoWorker`, and `WorkerDied` when it ends instead.
        """
        try:
            # -P keeps the current folder off its path.
            command = (sys.executable, "-P", "-m", module)
            worker = await cls.spawn(*command, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        except OSError as error:
            raise NoWorker from error
        worker._input.write(pack(setup))
        await worker._settle_in()
        return worker

    async def _settle_in(self) -> None:
        """Wait for the first report; a process that does not come to it is killed."""
        try:
            async with asyncio.timeout(READY):
                await self.next()
        except BaseException as error:
            await self.kill()
            if isinstance(error, TimeoutError):
                raise NoWorker from None
            if isinstance(error, TooLong):
                raise WorkerDied from None
            raise

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

    async def close(self) -> None:
        """Let the process end by itself, or end it."""
        self._input.close()
        try:
            async with asyncio.timeout(GRACE):
                await self.wait_closed()
        except TimeoutError:
            await self.kill()


class Workers(Processes[Worker]):
    """Processes that run `module`, each sent `setup` first."""

    def __init__(
        self,
        module: str,
        setup: msgspec.Struct,
        unreachable: Callable[[str, str], Exception],
        unstartable: Callable[[], Exception],
    ) -> None:
        self._module = module
        self._setup = setup
        self._unreachable = unreachable
        self._unstartable = unstartable

    async def open(self, seconds: float) -> Worker:
        """Start a process. Raises what `unreachable` makes of a reason and a remedy, or `unstartable` of nothing."""
        try:
            return await Worker.start(self._module, self._setup)
        except NoWorker:
            why, remedy = "no process that reads it can be started", "Raise the limits of processes, files and memory."
            raise self._unreachable(why, remedy) from None
        except WorkerDied:
            raise self._unstartable() from None

    async def clean(self, resource: Worker) -> bool:
        """End the statement that runs, or the process; one that has died in between is noticed when it is taken."""
        if not resource.idle:
            await resource.settle()
        return resource.idle
