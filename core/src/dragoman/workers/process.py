"""Worker processes of one database, and what a pool has to know of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable

import msgspec

from dragoman.pool import Manager
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


class Worker:
    """One process. `idle`: it waits for a statement."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._input = process.stdin
        self._output = process.stdout
        self._expected: int | None = None
        self._most = most_bytes(Cancel())
        self.idle = False

    @classmethod
    async def start(cls, module: str, setup: msgspec.Struct) -> Worker:
        """Start a process that runs a module, with the interpreter of this one, and wait until it is ready.

        Raises `NoWorker`, and `WorkerDied` when it ends instead.
        """
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

    @property
    def alive(self) -> bool:
        """Whether the process is there: the kernel knows before the event loop does."""
        return self._process.returncode is None and not self._input.is_closing() and not _has_ended(self._process.pid)

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

    def strike(self) -> None:
        """Kill the process, whatever it is doing, without waiting for its end."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                # Not `Process.kill`: it polls first, and would take the exit status from asyncio's own watcher.
                os.kill(self._process.pid, signal.SIGKILL)

    async def kill(self) -> None:
        """Kill the process, and wait for its end."""
        self.strike()
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


def _has_ended(child: int) -> bool:
    """Whether a child process has ended; its exit status stays for the event loop, which may have it already."""
    if sys.platform == "win32" or not hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
        return False
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


class Workers(Manager[Worker]):
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

    def is_usable(self, resource: Worker) -> bool:
        """Whether the process is there."""
        return resource.alive

    async def clean(self, resource: Worker) -> bool:
        """End the statement that runs, or the process; one that has died in between is noticed when it is taken."""
        if not resource.idle:
            await resource.settle()
        return resource.idle

    async def close(self, resource: Worker) -> None:
        """End the process."""
        await resource.close()

    def abort(self, resource: Worker) -> None:
        """Kill the process."""
        resource.strike()
