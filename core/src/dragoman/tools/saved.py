"""The toolset `saved`, as data: the tools for a folder of saved queries, and the queries that are tools themselves."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.tools import admin, ask, knowledge, results
from dragoman.tools.arguments import Argument
from dragoman.tools.spec import Spec, sql, text
from dragoman.tools.standard import RESULT, ROWS
from dragoman.tools.standard import SPECS as STANDARD

if TYPE_CHECKING:
    from dragoman.config import Configuration
    from dragoman.saved import SavedQuery

LIST = Spec(
    name="list_queries",
    title="List saved queries",
    description="Saved queries, or your history.",
    arguments=(Argument(name="kind", default="saved", choices=("saved", "history")),),
    reach="none",
    answers={"queries": "array", "omitted": "integer"},
    always=("queries",),
)
RUN = Spec(
    name="run_query",
    title="Run a saved query",
    description="Run a saved query by name.",
    arguments=(text("name", required=True), Argument(name="params", type="object")),
    reach="none",
    answers=RESULT,
    always=tuple(ROWS),
)
SAVE = Spec(
    name="save_query",
    title="Save a query",
    description="Save a query that works. Parameters: lines `-- param: NAME TYPE` above the SQL.",
    arguments=(
        text("name", required=True),
        sql("sql", required=True),
        text("description"),
        text("database"),
    ),
    reach="none",
    read_only=False,
    answers={"saved": "string"},
    always=("saved",),
)
SPECS = (LIST, RUN, SAVE)
_log = logging.getLogger(__name__)
_OURS = (*STANDARD, *knowledge.SPECS, *results.SPECS, *SPECS, ask.ASK, ask.RATE, *admin.SPECS)
_TAKEN = frozenset(spec.name for spec in _OURS)
"""Names of our own tools, of those too that this server does not offer: no query's tool replaces one."""


def offer(configuration: Configuration) -> Sequence[Spec]:
    """Return the tools, which exist if `server.queries_dir` is set. Reads the files of that folder."""
    server = configuration.server
    if server.queries_dir is None:
        return ()
    from dragoman.saved import SavedQueries  # imported only if there is such a folder

    saved = SavedQueries.read(server.queries_dir)
    for each in saved.problems:
        _log.warning("the saved query %s:%d is left out: %s", each.file, each.line, each.message)
    exposed = {name: query for name, query in saved.queries.items() if query.is_tool}
    for name in sorted(exposed.keys() & _TAKEN):
        _log.warning("the saved query %s is not a tool of its own: dragoman's own tool has this name", name)
    own = [_tool(query) for name, query in exposed.items() if name not in _TAKEN]
    return (*offer_ours(configuration), *own)


def offer_ours(configuration: Configuration) -> Sequence[Spec]:
    """Return the tools that no file makes."""
    server = configuration.server
    if server.queries_dir is None:
        return ()
    return (LIST, RUN, SAVE) if server.save_queries else (LIST, RUN)


def _tool(query: SavedQuery) -> Spec:
    return Spec(
        name=query.name,
        title=query.name.replace("_", " ").capitalize(),
        description=query.description or f"The saved query {query.name}.",
        arguments=tuple(
            Argument(name=each.name, type="value", required=each.required, shape=each.schema)
            for each in query.parameters
        ),
        reach="none",
        handler="run_tool",
        binds=True,
        answers=RESULT,
        always=tuple(ROWS),
    )
