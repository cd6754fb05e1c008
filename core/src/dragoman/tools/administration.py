"""Changes databases while the server runs: the kept state is edited, and the whole configuration is applied again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from dragoman.config import Configuration, State, lock_state, read_state, suppose, write_state
from dragoman.errors import Busy
from dragoman.gateway import Gateway

PATIENCE = 10.0
"""Seconds that a new database gets to answer before it counts as unreachable."""
TURN: Final = 30.0
"""Seconds that a change waits for one that another worker is applying."""
_PAUSE: Final = 0.02


class Take(Protocol):
    """Reads a configuration and applies it. `keep` is called when it was checked and before it is applied."""

    async def __call__(
        self, read: Callable[[], Configuration], keep: Callable[[], Awaitable[None]] = ...
    ) -> tuple[str, ...]: ...


class Administration:
    """Changes databases while the server runs.

    `gateway`: the unrestricted one. `reread`: reads the configuration, including the kept state. `take`: applies it.
    """

    def __init__(self, gateway: Gateway, reread: Callable[[], Configuration], take: Take) -> None:
        self.gateway = gateway
        self._reread = reread
        self._take = take
        self._one = asyncio.Lock()

    @property
    def folder(self) -> Path:
        """The folder of the state."""
        folder = self.gateway.configuration.server.state_dir
        assert folder is not None  # otherwise these tools do not exist
        return folder

    async def reload(self, detail: str) -> tuple[str, ...]:
        """Apply the configuration as it is now.

        `detail`: what the audit says of it. If it raises `ConfigurationError`, `DialectError` or `InternalError`,
        nothing has changed.
        """
        return await self._take(self._reread, partial(self.gateway.announce_change, detail))

    async def change(self, edit: Callable[[State], None], detail: str) -> tuple[str, ...]:
        """Keep an edited state and apply it. Raises `DragomanError`s.

        `detail`: what the audit says of it. A change that must be recorded and cannot be is not made.
        Nobody ever reads a state that cannot be applied, since a reload at that moment would fail with it.
        """
        async with self._one, _turn(self.folder):
            state = await asyncio.to_thread(read_state, self.folder)
            edit(state)
            with suppose(state):
                return await self._take(self._reread, partial(self._keep, state, detail))

    async def _keep(self, state: State, detail: str) -> None:
        await self.gateway.announce_change(detail)
        write_state(self.folder, state)

    async def status(self, name: str) -> dict[str, Any]:
        """Return whether a database answers."""
        status = await self.gateway.database(name).status(wait=PATIENCE)
        return {"name": name, "status": status.state, **({"error": status.error} if status.error else {})}


@asynccontextmanager
async def _turn(folder: Path) -> AsyncGenerator[None]:
    """Wait until no other worker changes the state. Raises `Busy` if one takes too long."""
    until = time.monotonic() + TURN
    while True:
        with lock_state(folder) as locked:
            if locked:
                yield
                return
        if time.monotonic() >= until:
            raise Busy("Another change of the databases is being applied.", suggestion="Try again in a moment.")
        await asyncio.sleep(_PAUSE)
