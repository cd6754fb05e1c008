"""Changing databases while the server runs: the kept state is edited, and the whole configuration taken again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from dragoman.config import Configuration, State, read_state, write_state
from dragoman.gateway import Gateway

PATIENCE = 10.0
"""Seconds a new database has to answer before it counts as unreachable."""


class Administration:
    """Changes databases while the server runs.

    `gateway`: the whole one. `reread`: reads the configuration, the kept state in it. `take`: has it taken.
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
        """Where the state is kept."""
        folder = self.gateway.configuration.server.state_dir
        assert folder is not None  # else there are no such tools
        return folder

    async def reload(self) -> tuple[str, ...]:
        """Take the configuration as it is now. Raises `ConfigurationError` or `DialectError`; then nothing changed."""
        return await self._take(await asyncio.to_thread(self._reread))

    async def change(self, edit: Callable[[State], None]) -> tuple[str, ...]:
        """Keep an edited state and take it; what cannot be taken is not kept. Raises `DragomanError`s."""
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
