"""The tools of saved queries."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dragoman.errors import Busy, ParameterError
from dragoman.saved import SavedQuery, write
from dragoman.saved.files import check_name, parse_text
from dragoman.tools import saved_queries
from dragoman.tools.answer import Body
from dragoman.tools.budget import Budget
from dragoman.tools.context import ToolCall
from dragoman.tools.querying import rows_body

MAX_BYTES = 100_000
"""The most queries in a list."""
MAX_SAVED = 1000
"""The number of files at which callers may save no more. A list of resources judges each query for its caller."""


async def list_queries(call: ToolCall) -> Body:
    """Return the saved queries, or what the caller ran recently."""
    if call["kind"] == "history":
        entries = call.history.of(call.principal) if call.history else ()
        facts = [{"database": each.database, "sql": each.sql, "row_count": each.rows} for each in entries]
    else:
        facts = [query.facts() for query in (await saved_queries.visible(call.gateway, call.principal)).values()]
    shown = Budget(MAX_BYTES).fitting(facts)
    return Body({"queries": shown, **({"omitted": len(facts) - len(shown)} if len(shown) < len(facts) else {})})


async def run_query(call: ToolCall) -> Body:
    """Return the rows of a saved query."""
    query = await saved_queries.find(call.gateway, call["name"], call.principal)
    return rows_body(
        await saved_queries.run(call.gateway, query, call["params"] or {}, principal=call.principal, tool=call.tool)
    )


async def run_tool(call: ToolCall) -> Body:
    """Return the rows of the saved query that is this tool. The file may have changed since the tools were listed."""
    query = await saved_queries.find(call.gateway, call.tool, call.principal)
    given = {name: value for name, value in call.arguments.items() if value is not None}
    return await _run(call, query, given)


async def _run(call: ToolCall, query: SavedQuery, given: Mapping[str, Any]) -> Body:
    result = await saved_queries.run(call.gateway, query, given, principal=call.principal, tool=call.tool)
    return rows_body(result)


async def save_query(call: ToolCall) -> Body:
    """Save a query that its database accepts."""
    folder = saved_queries.folder_of(call.gateway)
    query = _new(call)
    await saved_queries.check(call.gateway, query, call.principal)
    saved = await saved_queries.read(call.gateway)
    if len(saved.queries) + len(saved.problems) >= MAX_SAVED:
        raise Busy(
            f"The folder holds {MAX_SAVED} saved queries already.",
            suggestion="Ask the administrator to remove some that nobody needs.",
        )
    await call.gateway.announce_change(f"query {query.name} saved by {call.principal.name}")
    await asyncio.to_thread(write, folder, query, saved.queries.__contains__)
    return Body({"saved": query.name})


def _new(call: ToolCall) -> SavedQuery:
    try:
        query = parse_text(call["sql"], check_name(call["name"]))
    except ValueError as error:
        raise ParameterError(f"The query cannot be saved: {error}.", suggestion="Correct name and sql.") from None
    database = call.gateway.resolve_name(call["database"] or query.database)
    description = call["description"] or query.description
    # Those who write the files decide which queries become tools.
    return replace(query, name=call["name"], description=description, database=database, is_tool=False)
