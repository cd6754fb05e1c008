"""The tools of saved queries."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.errors import ConnectionFailed, DragomanError, ParameterError
from dragoman.gateway import Gateway
from dragoman.gateway.queries import Query
from dragoman.model import Principal, Result
from dragoman.saved import SavedQueries, SavedQuery, write
from dragoman.saved.binding import bind
from dragoman.saved.files import check_name, parse_text
from dragoman.tools.answer import Body
from dragoman.tools.context import Budget, ToolCall
from dragoman.tools.querying import rows_body

MAX_BYTES = 100_000
"""Of a list of queries."""


async def list_queries(call: ToolCall) -> Body:
    """Answer the saved queries, or what the caller ran lately."""
    if call["kind"] == "history":
        entries = call.history.of(call.principal) if call.history else ()
        facts = [{"database": each.database, "sql": each.sql, "row_count": each.rows} for each in entries]
    else:
        facts = [query.facts() for query in (await visible(call.gateway, call.principal)).values()]
    shown = Budget(MAX_BYTES).fitting(facts)
    return Body({"queries": shown, **({"omitted": len(facts) - len(shown)} if len(shown) < len(facts) else {})})


async def visible(gateway: Gateway, principal: Principal) -> dict[str, SavedQuery]:
    """Return the saved queries, by name, that a caller may know of; none where there is no folder."""
    if gateway.configuration.server.queries_dir is None:
        return {}
    saved = (await _read_saved(gateway)).queries
    return {name: query for name, query in saved.items() if await _may_run(gateway, query, principal)}


async def _may_run(gateway: Gateway, query: SavedQuery, principal: Principal) -> bool:
    """Whether a saved query reads only what the caller may: its text would tell of the rest."""
    try:
        await _judge(gateway, query, principal)
    except DragomanError:
        return False
    return True


async def _judge(gateway: Gateway, query: SavedQuery, principal: Principal) -> None:
    """Raise what refuses a saved query to who does not see everything."""
    if gateway.is_restricted:
        opened = gateway.database(query.database)
        sql, params = bind(query, query.examples(), opened.dialect.lexicon, opened.dialect.placeholder)
        prepared = await Query.prepare(opened, sql, params, principal=principal, tool="list_queries")
        await prepared.check_part()


async def hidden_tools(gateway: Gateway, names: Collection[str], principal: Principal) -> frozenset[str]:
    """Return those of the tools which are saved queries that a caller may not know of."""
    if not names:
        return frozenset()
    return frozenset(names).difference(await visible(gateway.for_principal(principal), principal))


async def _find(call: ToolCall, name: str) -> SavedQuery:
    """Return a saved query that the caller may know of. Raises `ParameterError`, alike where there is none at all."""
    saved = await _read_saved(call.gateway)
    if name in saved.queries:
        try:
            await _judge(call.gateway, saved.queries[name], call.principal)
            return saved.queries[name]
        except ConnectionFailed:
            raise
        except DragomanError:
            pass
    return replace(saved, queries=await visible(call.gateway, call.principal)).find(name)


async def run_query(call: ToolCall) -> Body:
    """Answer the rows of a saved query."""
    query = await _find(call, call["name"])
    return rows_body(await run(call.gateway, query, call["params"] or {}, principal=call.principal, tool=call.tool))


async def run_tool(call: ToolCall) -> Body:
    """Answer the rows of the saved query that is this tool; the file may have changed since the tools were listed."""
    query = await _find(call, call.tool)
    given = {name: value for name, value in call.arguments.items() if value is not None}
    return rows_body(await run(call.gateway, query, given, principal=call.principal, tool=call.tool))


async def run(
    gateway: Gateway, query: SavedQuery, given: Mapping[str, Any], *, principal: Principal, **how: Any
) -> Result:
    """Return the rows of a saved query, judged, limited and recorded like any other."""
    values = query.values(given)
    opened = gateway.database(query.database)
    sql, params = bind(query, values, opened.dialect.lexicon, opened.dialect.placeholder)
    return await gateway.query(opened.config.name, sql, params, principal=principal, **how)


async def check(gateway: Gateway, query: SavedQuery, principal: Principal) -> None:
    """Have the database compile a saved query, without running it. Raises what is wrong with it."""
    opened = gateway.database(query.database)
    sql, params = bind(query, query.examples(), opened.dialect.lexicon, opened.dialect.placeholder)
    await gateway.explain(opened.config.name, sql, params, principal=principal, tool="save_query")


async def save_query(call: ToolCall) -> Body:
    """Save a query that its database accepts."""
    folder = _folder(call.gateway)
    query = _new(call)
    await check(call.gateway, query, call.principal)
    saved = await _read_saved(call.gateway)
    await asyncio.to_thread(write, folder, query, saved.queries.__contains__)
    return Body({"saved": query.name})


def _new(call: ToolCall) -> SavedQuery:
    try:
        query = parse_text(call["sql"], check_name(call["name"]))
    except ValueError as error:
        raise ParameterError(f"The query cannot be saved: {error}.", suggestion="Correct name and sql.") from None
    database = call.gateway.resolve_name(call["database"] or query.database)
    description = call["description"] or query.description
    # Which queries become tools is decided by those who write the files.
    return replace(query, name=call["name"], description=description, database=database, is_tool=False)


async def _read_saved(gateway: Gateway) -> SavedQueries:
    return await asyncio.to_thread(SavedQueries.read, _folder(gateway))


def _folder(gateway: Gateway) -> Path:
    folder = gateway.configuration.server.queries_dir
    assert folder is not None  # without it the tools are not listed
    return folder
