"""Changes databases while the server runs: the kept state is edited, and the whole configuration is applied again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from dragoman.config import Configuration, State, read_state, write_state
from dragoman.gateway import Gateway

PATIENCE = 10.0
"""Seconds that a new database gets to answer before it counts as unreachable."""


class Administration:
    """Changes databases while the server runs.

    `gateway`: the unrestricted one. `reread`: reads the configuration, including the kept state. `take`: applies it.
    """

    def __init__(
        self,
        gateway: Gateway,
        reread: Callable[[], Configuration],
        take: Callable[[Configuration], Awaitable[tuple[str, ...]]],
    ) -> None:
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

    async def reload(self) -> tuple[str, ...]:
        """Apply the configuration as it is now.

        If it raises `ConfigurationError` or `DialectError`, nothing has changed.
        """
        return await self._take(await asyncio.to_thread(self._reread))

    async def change(self, edit: Callable[[State], None]) -> tuple[str, ...]:
        """Keep an edited state and apply it. A state that cannot be applied is not kept. Raises `DragomanError`s."""
        async with self._one:
            before = await asyncio.to_thread(read_state, self.folder)
            after = {name: dict(kept) for name, kept in before.items()}
            edit(after)
            await asyncio.to_thread(write_state, self.folder, after)
            try:
                return await self.reload()
            except BaseException:
                await asyncio.shield(asyncio.to_thread(write_state, self.folder, before))
                raise

    async def status(self, name: str) -> dict[str, Any]:
        """Return whether a database answers."""
        status = await self.gateway.database(name).status(wait=PATIENCE)
        return {"name": name, "status": status.state, **({"error": status.error} if status.error else {})}
