"""The context that a handler gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dragoman.gateway import Gateway
from dragoman.gateway.opened import OpenDatabase
from dragoman.model import Principal
from dragoman.tools.answer import Body
from dragoman.tools.budget import ENVELOPE, Budget
from dragoman.tools.history import History

if TYPE_CHECKING:
    from dragoman.tools.administration import Administration

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool: its checked arguments, the caller, and the database if the tool uses exactly one.

    `history`: what callers ran, for tools that list it. `administration`: changes databases, where that is possible.
    """

    gateway: Gateway
    tool: str = ""
    arguments: Mapping[str, Any]
    principal: Principal
    progress: Progress | None = None
    opened: OpenDatabase | None = None
    history: History | None = None
    administration: Administration | None = None

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def database(self) -> OpenDatabase:
        """The database of the call. Only tools that use one have it."""
        assert self.opened is not None
        return self.opened

    @property
    def name(self) -> str:
        """The name of the database of the call."""
        return self.database.config.name

    def budget(self) -> Budget:
        """Return the budget of the answer."""
        return Budget(self.database.config.max_bytes - ENVELOPE)

    async def report(self, done: int, total: int, message: str) -> None:
        """Report progress to the caller."""
        if self.progress is not None:
            await self.progress(done, total, message)


Handler = Callable[[ToolCall], Awaitable[Body]]
