"""The toolset `ask`, as data. It exists if a model is configured and `dragoman[ask]` is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.tools.arguments import Argument
from dragoman.tools.spec import Spec, count
from dragoman.tools.standard import RESULT

if TYPE_CHECKING:
    from dragoman.config import Configuration

LONGEST = 4000
ASK = Spec(
    name="ask",
    title="Ask in plain words",
    description="A question answered by a checked query.",
    arguments=(
        Argument(name="question", required=True, longest=LONGEST),
        Argument(name="return_type", default="result", choices=("sql", "result", "both")),
        count("limit", None),
    ),
    reach="any",
    answers={**RESULT, "sql": "string", "explanation": "string", "confidence": "string", "attempts": "integer"},
    always=("explanation", "confidence", "attempts"),
)

RATE = Spec(
    name="rate_answer",
    title="Rate an answer",
    description="Mark the answer to a question you asked.",
    arguments=(
        Argument(name="question", required=True, longest=LONGEST),
        Argument(name="right", type="boolean", required=True),
    ),
    reach="none",
    read_only=False,
    answers={"kept": "string"},
    always=("kept",),
)


def offer(configuration: Configuration) -> Sequence[Spec]:
    """Return the tools, if a model is configured and the distribution that asks it is installed."""
    if configuration.model is None:
        return ()
    from dragoman.plugins.extensions import ASKERS, has_extension

    if not has_extension(ASKERS, "ask"):
        return ()
    return (ASK,) if configuration.model.examples_dir is None else (ASK, RATE)
