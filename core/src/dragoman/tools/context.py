"""What a handler is given, and how much it may answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.gateway import Gateway
from dragoman.gateway.opened import OpenDatabase
from dragoman.model import Principal
from dragoman.tools.answer import Body, size
from dragoman.tools.history import History

if TYPE_CHECKING:
    from dragoman.tools.administering import Administration
    from dragoman.tools.surfaces import Surfaces

T = TypeVar("T")
Progress = Callable[[float, float | None, str | None], Awaitable[None]]
ENVELOPE = 400
"""Bytes kept for what stands around the parts of an answer: keys, counts, a hint, the database's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool: its checked arguments, who calls, and the database where the tool asks just one.

    `history`: what callers ran, where a tool lists it. `surfaces`: what there is beside tools. `administration`: what
    changes databases, where something can.
    """

    gateway: Gateway
    tool: str = ""
    arguments: Mapping[str, Any]
    principal: Principal
    progress: Progress | None = None
    opened: OpenDatabase | None = None
    history: History | None = None
    surfaces: Surfaces | None = None
    administration: Administration | None = None

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def database(self) -> OpenDatabase:
        """The database asked. Only tools that reach one have it."""
        assert self.opened is not None
        return self.opened

    @property
    def name(self) -> str:
        """The name of the database asked."""
        return self.database.config.name

    def budget(self) -> Budget:
        """Return what the answer may take."""
        return Budget(self.database.config.max_bytes - ENVELOPE)

    async def report(self, done: int, total: int, message: str) -> None:
        """Report progress to the caller."""
        if self.progress is not None:
            await self.progress(done, total, message)


Handler = Callable[[ToolCall], Awaitable[Body]]


@dataclass(slots=True)
class Budget:
    """Bytes of minified JSON that are left."""

    left: int
    spent: int = field(default=0, init=False)

    def take(self, value: Any) -> bool:
        """Take what `value` and a comma need; says no, and takes nothing, when that is more than is left."""
        return self.spend(size(value) + 1)

    def spend(self, needed: int) -> bool:
        """Take so many bytes; says no, and takes nothing, when that is more than is left."""
        if needed > self.left:
            return False
        self.left -= needed
        self.spent += needed
        return True

    def fitting(self, values: Iterable[T]) -> list[T]:
        """Take values in order up to the first that does not fit."""
        taken: list[T] = []
        for value in values:
            if not self.take(value):
                break
            taken.append(value)
        return taken
