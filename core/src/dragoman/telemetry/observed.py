"""What is known of a call that is over, as far as telemetry tells it."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Run(NamedTuple):
    """A statement that a database ran: nanoseconds since 1970 when it began and ended, and what it was.

    `dialect`: the kind of database. `relations`: what the statement reads. `outcome`: ok, or
    the error's code; `status`: the database's own code of the error, such as an SQLSTATE.
    """

    began: int
    ended: int
    database: str
    dialect: str
    relations: tuple[str, ...] = ()
    outcome: str = "ok"
    status: str = ""


class Observed(Protocol):
    """A call; see `gateway.calls.CallRecord`."""

    @property
    def tool(self) -> str:
        """The tool that was called."""
        ...

    @property
    def database(self) -> str | None:
        """The database that was asked, when there was one."""
        ...

    @property
    def outcome(self) -> str:
        """How it ended: ok, or an error's code."""
        ...

    @property
    def refused(self) -> bool:
        """Whether it was refused before it ran."""
        ...

    @property
    def rows(self) -> int:
        """Rows that were answered."""
        ...

    @property
    def bytes(self) -> int:
        """Bytes that were answered."""
        ...

    @property
    def ms(self) -> float:
        """Milliseconds it took."""
        ...
