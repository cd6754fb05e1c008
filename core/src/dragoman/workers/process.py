"""The worker processes of one database, and what a pool must know about them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

import msgspec

from dragoman.processes import Process, Processes
from dragoman.workers.frames import HEADER, Cancel, Done, Order, Report, Run, most_bytes, pack

READY = 60.0
"""Seconds in which a process must have loaded its code and its setup. No caller's deadline ends this earlier."""
GRACE = 0.25
"""Seconds that an interrupted statement gets to end before its process is killed."""

_decoder: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)


class WorkerDied(Exception):
    """The process ended in the middle of a statement."""


class TooLong(Exception):
    """A message of the process is longer than allowed."""


class NoWorker(Exception):
    """The system cannot start a process, or the process is not ready in time."""


class Worker(Process):
    """One process. `idle`: whether it waits for a statement."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        super().__init__(process)
        self._expected: int | None = None
        self._most = most_bytes(Cancel())
        self.idle = False

    @classmethod
    async def start(cls, module: str, setup: msgspec.Struct) -> Worker:
        """Start a process that runs a module, with this interpreter, and wait until it is ready.

        Raises `NoWorker`, and `WorkerDied` if the process ends instead.
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
        """Wait for the first report. A process that does not send it in time is killed."""
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
        """Send an order. If the process has died, the order is lost, and `next` raises."""
        if isinstance(order, Run):
            self.idle = False
            self._most = most_bytes(order)
        self._input.write(pack(order))

    async def next(self) -> Report:
        """Return the worker's next report on its statement: `Done` when the statement has ended.

        Raises `WorkerDied`, and `TooLong` for a message that is too long to read.
        """
        try:
            if self._expected is None:
                # Kept, so that reading the body goes on where a cancellation stopped it.
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
        """End the statement that runs, if any: by an interrupt, or else by ending the process."""
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
        """Let the process end by itself, or kill it."""
        self._input.close()
        try:
            async with asyncio.timeout(GRACE):
                await self.wait_closed()
        except TimeoutError:
            await self.kill()


class Workers(Processes[Worker]):
    """Processes that run `module`. Each is sent `setup` first."""

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

    async def open(self) -> Worker:
        """Start a process.

        Raises the error that `unreachable` makes from a reason and a remedy, or the one `unstartable` makes.
        """
        try:
            return await Worker.start(self._module, self._setup)
        except NoWorker:
            why, remedy = "no process that reads it can be started", "Raise the limits of processes, files and memory."
            raise self._unreachable(why, remedy) from None
        except WorkerDied:
            raise self._unstartable() from None

    async def clean(self, resource: Worker) -> bool:
        """End the statement that runs, or the process. A process that died in between is noticed when it is lent."""
        if not resource.idle:
            await resource.settle()
        return resource.idle
