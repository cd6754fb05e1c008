"""The interface of `ask`, which answers questions in plain words. Its implementation is a distribution of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from dragoman.config import ModelSettings
from dragoman.errors import ConfigurationError
from dragoman.gateway.calls import CallRecord
from dragoman.model import LOCAL, Plan, Principal, Result
from dragoman.plugins.extensions import ASKERS, load_extension

if TYPE_CHECKING:
    from dragoman.gateway.gateway import Gateway

ReturnType = Literal["sql", "result", "both"]
Confidence = Literal["high", "medium", "low"]
Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Awaited with (done, total, message) while a question is answered."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of the same conversation, and the SQL of its answer."""

    question: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question. `database`: None if the asker chooses one. `limit`: the most rows of the answer."""

    text: str
    database: str | None = None
    return_type: ReturnType = "result"
    limit: int | None = None
    principal: Principal = LOCAL
    report: Report | None = None
    history: Sequence[Turn] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAnswer:
    """The answer to a question.

    - `sql`: the query that answers it.
    - `result`: its rows, unless only the SQL was wanted.
    - `explanation`: what the query does.
    - `assumptions`: how the model understood the question.
    - `attempts`: the number of queries tried.
    - `reason`: why this database, if the asker chose it.
    """

    database: str
    sql: str
    result: Result | None
    explanation: str
    assumptions: tuple[str, ...] = ()
    confidence: Confidence = "medium"
    attempts: int = 1
    reason: str = ""
    plan: Plan | None = None


class Asker(Protocol):
    """Answers questions with a language model. Created once from the gateway's settings, without I/O."""

    async def ask(self, gateway: Gateway, record: CallRecord, question: Question) -> AskAnswer:
        """Answer a question with the gateway as its principal sees it; note in `record` what was used.

        Raises `AmbiguousQuery`, `ModelError`, `QuotaExceeded`, and what the last query raised.
        """
        ...

    async def rate(self, principal: Principal, question: str, *, right: bool) -> str:
        """Mark the answer to a question of a caller as right or wrong; return the name of the file it was added to.

        Raises `ParameterError` if there was no recent one, `ConfigurationError` if none are kept.
        """
        ...

    async def aclose(self) -> None:
        """Release the connections to the model."""
        ...


class Asking:
    """Loads the asker at the first question."""

    def __init__(self, settings: ModelSettings | None, prompts_dir: Path | None = None) -> None:
        self._settings = settings
        self._prompts_dir = prompts_dir
        self._asker: Asker | None = None

    def load(self) -> Asker:
        """Return the asker. Raises `ConfigurationError` if no model is configured."""
        if self._asker is not None:
            return self._asker
        if self._settings is None:
            raise ConfigurationError(
                "No model is configured, so nothing answers questions in plain words.",
                suggestion='Add [model] with name = "provider:model" and api_key = "${NAME}".',
            )
        make: Callable[[ModelSettings, Path | None], Asker] = load_extension(ASKERS, "ask", "ask")
        self._asker = make(self._settings, self._prompts_dir)
        return self._asker

    async def aclose(self) -> None:
        """Close the asker, if it was loaded."""
        if self._asker is not None:
            await self._asker.aclose()
