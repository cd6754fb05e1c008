"""Whether a database answers, according to queries and to probes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal

from dragoman.errors import ConnectionFailed, DragomanError
from dragoman.gateway.breaker import Breaker


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a database answers, as far as is known. `error`: why not, without its address."""

    state: Literal["ready", "unknown", "unreachable"] = "unknown"
    version: str = ""
    error: str = ""


class Health:
    """The health of one database. `version` asks it, and `up` is called whenever it has become reachable.

    `breaker` is told of every failure to reach it. `ready`: it has answered, and nothing since then contradicts that.
    """

    def __init__(self, version: Callable[[], Awaitable[str]], up: Callable[[], None], breaker: Breaker) -> None:
        self._version = version
        self._up = up
        self.breaker = breaker
        self.ready = False
        self._known = Status()
        self._probe: asyncio.Task[bool] | None = None

    @property
    def known(self) -> Status:
        """The status, without asking."""
        return self._known

    def saw(self, error: DragomanError | None) -> None:
        """Record an answer, or an error. One that a statement may have caused says nothing about the database."""
        if isinstance(error, ConnectionFailed):
            if error.reached:
                return
            self.breaker.fail(error)
            self._note(replace(self._known, state="unreachable", error=error.message))
        elif error is None and not self.ready:
            self._note(replace(self._known, state="ready", error=""))

    def _note(self, status: Status) -> None:
        self._known = status
        self.ready = status.state == "ready"
        if self.ready:
            self.breaker.reset()
            self._up()

    async def status(self, wait: float) -> Status:
        """Return the status. With `wait`, ask first, for at most so many seconds.

        Concurrent callers share the probe.
        """
        if wait > 0 and not (await self._wait_for_probe(wait)).done():
            return replace(self._known, state="unknown")
        return self._known

    async def find_down(self, wait: float) -> bool:
        """Ask it, and return whether it cannot be reached, or has not answered within `wait` seconds."""
        probe = await self._wait_for_probe(wait)
        return not probe.done() or probe.cancelled() or probe.result()

    async def _wait_for_probe(self, wait: float) -> asyncio.Task[bool]:
        probe = self._probe = self._probe or asyncio.get_running_loop().create_task(self._ask())
        await asyncio.wait({probe}, timeout=wait)
        return probe

    async def _ask(self) -> bool:
        """Ask the database, and return whether it cannot be reached."""
        try:
            version = await self._version()
        except DragomanError as error:
            self._note(replace(self._known, state="unreachable", error=error.message))
            return isinstance(error, ConnectionFailed)
        else:
            self._note(Status("ready", version))
            return False
        finally:
            self._probe = None

    def close(self) -> None:
        """Stop asking."""
        if self._probe is not None:
            self._probe.cancel()
