"""The facts of a finished call that telemetry reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Run(NamedTuple):
    """A statement that a database ran: its begin and end in nanoseconds since 1970, and its facts.

    - `dialect`: the kind of database.
    - `relations`: the relations that the statement reads.
    - `outcome`: ok, or the error's code.
    - `status`: the database's own code of the error, such as an SQLSTATE.
    """

    began: int
    ended: int
    database: str
    dialect: str
    relations: tuple[str, ...] = ()
    outcome: str = "ok"
    status: str = ""


@dataclass(slots=True)
class ModelUse:
    """What a call used of a language model.

    - `cost`: in the currency of the configured prices.
    - `attempts`: the statements that the model wrote, each with its outcome: ok, or an error's code.
    """

    name: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    attempts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def add(self, other: ModelUse) -> None:
        """Add what another call used."""
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cost += other.cost

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input_tokens + self.output_tokens


class Observed(Protocol):
    """A finished call; see `gateway.calls.CallRecord`."""

    @property
    def tool(self) -> str:
        """The tool that was called."""
        ...

    @property
    def database(self) -> str | None:
        """The database of the call, if there was one."""
        ...

    @property
    def outcome(self) -> str:
        """The outcome: ok, or an error's code."""
        ...

    @property
    def refused(self) -> bool:
        """Whether it was refused before it ran."""
        ...

    @property
    def rows(self) -> int:
        """Rows returned."""
        ...

    @property
    def bytes(self) -> int:
        """Bytes returned."""
        ...

    @property
    def ms(self) -> float:
        """Milliseconds it took."""
        ...

    @property
    def model_use(self) -> ModelUse | None:
        """What it used of a language model, or None."""
        ...
