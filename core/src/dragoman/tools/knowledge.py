"""The toolset `knowledge`, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.tools.arguments import Argument
from dragoman.tools.spec import Spec, text

if TYPE_CHECKING:
    from dragoman.config import Configuration

MOST_FOLLOWED = 3
READ_SCHEMA = Spec(
    name="read_schema",
    title="Read a schema",
    description="Whole schema as one text.",
    arguments=(
        text("schema_name"),
        Argument(name="tables", type="strings"),
        Argument(name="format", default="sql", choices=("sql", "mermaid", "json")),
    ),
    answers={"schema": "", "omitted": "integer"},
    always=("schema",),
)
GET_ROW = Spec(
    name="get_row",
    title="Get a row",
    description="A row by key, with rows it refers to.",
    arguments=(
        text("table_name", required=True),
        Argument(name="key", type="key", required=True),
        text("schema_name"),
        Argument(name="follow", type="integer", default=1, minimum=0, maximum=MOST_FOLLOWED),
    ),
    answers={"row": "object", "refers_to": "object"},
    always=("row",),
)
SERVER_INFO = Spec(
    name="server_info",
    title="Server facts",
    description="Version, abilities, limits.",
    answers={"name": "string", "dialect": "string"},
    always=("name", "dialect"),
)
READ_RESOURCE = Spec(
    name="read_resource",
    title="Read a resource",
    description="A resource by URI; without, the list.",
    arguments=(text("uri"),),
    reach="none",
    answers={"text": "string", "resources": "array", "templates": "array"},
    always=(),
)
SPECS = (READ_SCHEMA, GET_ROW, SERVER_INFO, READ_RESOURCE)


def offer(configuration: Configuration) -> Sequence[Spec]:
    """Return the tools. They always exist."""
    return SPECS
