"""The saved queries that a caller may see; runs and checks them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.cooperative import without_blocking
from dragoman.errors import DragomanError, ParameterError
from dragoman.gateway import Gateway
from dragoman.gateway.queries import Query
from dragoman.model import Principal, Result
from dragoman.saved import SavedQueries, SavedQuery
from dragoman.saved.binding import bind


async def visible(gateway: Gateway, principal: Principal) -> dict[str, SavedQuery]:
    """Return the saved queries, by name, that a caller may see; none if there is no folder."""
    if gateway.configuration.server.queries_dir is None:
        return {}
    return await _visible(gateway, (await read(gateway)).queries.values(), principal)


async def _visible(gateway: Gateway, queries: Iterable[SavedQuery], principal: Principal) -> dict[str, SavedQuery]:
    """Return those of `queries` that a caller may see. Others are served between them: each is judged."""
    return {query.name: query async for query in without_blocking(queries) if await _may_run(gateway, query, principal)}


async def _may_run(gateway: Gateway, query: SavedQuery, principal: Principal) -> bool:
    """Return whether a saved query reads only what the caller may read. Otherwise its text would reveal the rest.

    While its database does not answer, nobody knows.
    """
    try:
        await _judge(gateway, query, principal)
    except DragomanError:
        return False
    return True


async def _judge(gateway: Gateway, query: SavedQuery, principal: Principal) -> None:
    """Raise the refusal of a saved query for a caller who may not see everything."""
    if gateway.is_restricted:
        opened = gateway.database(query.database)
        sql, params = bind(query, query.examples(), opened.dialect.lexicon, opened.dialect.placeholder)
        prepared = await Query.prepare(opened, sql, params, principal=principal, tool="list_queries")
        await prepared.check_part()


async def hidden_tools(gateway: Gateway, names: Collection[str], principal: Principal) -> frozenset[str]:
    """Return the tools among `names` that are saved queries which a caller may not see."""
    if not names:
        return frozenset()
    saved = (await read(gateway)).queries
    asked = [saved[name] for name in names if name in saved]
    return frozenset(names).difference(await _visible(gateway.for_principal(principal), asked, principal))


async def is_known(gateway: Gateway, name: str, principal: Principal) -> bool:
    """Return whether a caller may see a saved query."""
    return await look_up(gateway, name, principal) is not None


async def look_up(gateway: Gateway, name: str, principal: Principal) -> SavedQuery | None:
    """Return a saved query that a caller may see, or None. No other is judged for that."""
    query = (await read(gateway)).queries.get(name)
    return query if query is not None and await _may_run(gateway, query, principal) else None


async def find(gateway: Gateway, name: str, principal: Principal) -> SavedQuery:
    """Return a saved query that a caller may see.

    Raises the same `ParameterError` whether it is hidden or does not exist, also while a database does not answer.
    """
    saved = await read(gateway)
    query = saved.queries.get(name)
    if query is not None and await _may_run(gateway, query, principal):
        return query
    try:
        return replace(saved, queries=await visible(gateway, principal)).find(name)
    except ParameterError as error:
        silent = [each for each in gateway.names if not _answers(gateway, each)] if gateway.is_restricted else []
        raise (_later(error, silent) if silent else error) from None


def _answers(gateway: Gateway, name: str) -> bool:
    try:
        return gateway.database(name).health.known.state != "unreachable"
    except DragomanError:
        return True  # a broken dialect does not begin to answer


def _later(error: ParameterError, silent: Sequence[str]) -> ParameterError:
    """Return the error of a saved query that is not found while databases do not answer."""
    named = ", ".join(silent)
    return error.replace(suggestion=f"{error.suggestion} What reads {named} is found when that answers again.")


async def run(
    gateway: Gateway, query: SavedQuery, given: Mapping[str, Any], *, principal: Principal, **how: Any
) -> Result:
    """Return the rows of a saved query, which is judged, limited and recorded like any other query."""
    values = query.values(given)
    opened = gateway.database(query.database)
    sql, params = bind(query, values, opened.dialect.lexicon, opened.dialect.placeholder)
    return await gateway.query(opened.config.name, sql, params, principal=principal, **how)


async def check(gateway: Gateway, query: SavedQuery, principal: Principal) -> None:
    """Have the database compile a saved query, without running it. Raises the error that it finds."""
    opened = gateway.database(query.database)
    sql, params = bind(query, query.examples(), opened.dialect.lexicon, opened.dialect.placeholder)
    await gateway.explain(opened.config.name, sql, params, principal=principal, tool="save_query")


async def read(gateway: Gateway) -> SavedQueries:
    """Return the saved queries that are in the folder now."""
    return await asyncio.to_thread(SavedQueries.read, folder_of(gateway))


def folder_of(gateway: Gateway) -> Path:
    """Return the folder of saved queries. Tools that need it are listed only if it is configured."""
    folder = gateway.configuration.server.queries_dir
    assert folder is not None
    return folder
