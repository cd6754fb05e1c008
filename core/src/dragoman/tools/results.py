"""The toolset `results`, as data: reads pages of kept results, exports them to files, and drops them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.exports import CHARTS, FORMATS
from dragoman.tools.arguments import Argument
from dragoman.tools.spec import Spec, count, sql, text
from dragoman.tools.standard import RESULT, ROWS

if TYPE_CHECKING:
    from dragoman.config import Configuration

_RESULT = text("result", required=True)
SPECS = (
    Spec(
        name="get_result",
        title="Page a kept result",
        description="Rows of a kept result.",
        arguments=(_RESULT, Argument(name="offset", type="integer", default=0, minimum=0), count("limit", None)),
        reach="none",
        answers={**RESULT, "status": "string", "total_rows": "integer", "next_offset": "integer"},
        always=(*ROWS, "status", "total_rows"),
    ),
    Spec(
        name="export_result",
        title="Export a result",
        description="Write a kept result, or a query's, to a file.",
        arguments=(
            text("result"),
            sql("sql"),
            Argument(name="format", default="csv", choices=tuple(FORMATS)),
            Argument(name="chart", choices=CHARTS),
        ),
        reach="any",
        read_only=False,
        answers={
            "file": "string",
            "url": "string",
            "expires": "integer",
            "format": "string",
            "rows": "integer",
            "bytes": "integer",
            "truncated": "object",
            "notices": "array",
        },
        always=("format", "rows", "bytes"),
    ),
    Spec(
        name="drop_result",
        title="Drop a kept result",
        description="End and forget a kept result.",
        arguments=(_RESULT,),
        reach="none",
        read_only=False,
        answers={"dropped": "string"},
        always=("dropped",),
    ),
)


def offer(configuration: Configuration) -> Sequence[Spec]:
    """Return the tools of the toolset."""
    return SPECS if configuration.server.results else ()
