"""Child processes that speak over their pipes, and what a pool must know about all of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from typing import Self, TypeVar

from dragoman.pool import Manager


class Process:
    """A child process with a pipe to it and a pipe from it. Its stderr is dropped."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._input = process.stdin
        self._output = process.stdout

    @classmethod
    async def spawn(cls, *command: str, env: Mapping[str, str], start_new_session: bool = False) -> Self:
        """Start a process. Raises `OSError` if the system cannot start one."""
        return cls(
            await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=env,
                start_new_session=start_new_session,
            )
        )

    @property
    def alive(self) -> bool:
        """Whether the process is running. The kernel knows this before the event loop does."""
        return self._process.returncode is None and not self._input.is_closing() and not _has_ended(self._process.pid)

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
        """End the process."""
        await self.kill()

    async def wait_closed(self) -> None:
        """Wait until the process has ended and its pipes are closed."""
        await self._process.wait()
        self._input.close()
        with contextlib.suppress(ConnectionError):
            await self._input.wait_closed()


def _has_ended(child: int) -> bool:
    """Return whether a child process has ended. Leaves its exit status to the event loop, which may have it already."""
    if sys.platform == "win32" or not hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
        return False
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


P = TypeVar("P", bound=Process)


class Processes(Manager[P]):
    """The part of a pool's manager that is the same for all processes."""

    def is_usable(self, resource: P) -> bool:
        """Return whether the process is running."""
        return resource.alive

    async def close(self, resource: P) -> None:
        """End the process."""
        await resource.close()

    def abort(self, resource: P) -> None:
        """Kill the process."""
        resource.strike()
