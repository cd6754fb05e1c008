"""The toolset `admin`, as data: administrators add, change and remove databases while the server runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.tools.arguments import Argument
from dragoman.tools.spec import Spec, count, text

if TYPE_CHECKING:
    from dragoman.config import Configuration

_SETTINGS = (
    Argument(name="description", clears=True),
    Argument(name="schemas", type="strings", clears=True),
    count("max_rows", None),
    count("timeout", None),
    Argument(name="roles", type="strings", clears=True),
)
_ANSWER = {"name": "string", "status": "string", "error": "string"}
SPECS = (
    Spec(
        name="add_database",
        title="Add a database",
        description="Add a database; the roles named may read all of it.",
        arguments=(text("name", required=True), text("url", required=True), *_SETTINGS),
        reach="none",
        read_only=False,
        answers=_ANSWER,
        always=("name", "status"),
    ),
    Spec(
        name="edit_database",
        title="Change a database",
        description="Change settings of a database.",
        arguments=(text("name", required=True), text("url"), *_SETTINGS),
        reach="none",
        read_only=False,
        answers=_ANSWER,
        always=("name", "status"),
    ),
    Spec(
        name="remove_database",
        title="Remove a database",
        description="Take away what add_database or edit_database did.",
        arguments=(text("name", required=True),),
        reach="none",
        read_only=False,
        answers={"changed": "array"},
        always=("changed",),
    ),
    Spec(
        name="reload",
        title="Reload the configuration",
        description="Take the configuration as its file is now.",
        reach="none",
        read_only=False,
        answers={"changed": "array"},
        always=("changed",),
    ),
)
NAMES = frozenset(spec.name for spec in SPECS)


def offer(configuration: Configuration) -> Sequence[Spec]:
    """Return the tools, which exist if `server.state_dir` is set and a role lists them."""
    listed = {name for role in configuration.roles.values() for name in role.tools or ()}
    return SPECS if configuration.server.state_dir is not None and listed & {"admin", *NAMES} else ()
