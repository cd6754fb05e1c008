"""What a search tells beyond names: the descriptions of a small database, and values."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from dragoman.catalog import Insight, Listing, Match, Snapshot, compact
from dragoman.errors import DragomanError
from dragoman.gateway.opened import OpenDatabase
from dragoman.knowledge.search import fitting
from dragoman.model import Relation
from dragoman.tools.answer import size
from dragoman.tools.budget import Budget

PROBE = 1.0
"""Seconds a database has to say that it is there."""
SMALL = 8
"""A database is small when its descriptions take this part of an answer at most."""
SHORTEST = 8
"""Bytes of a column's line, at least."""
UNKNOWN = Insight()
NOTES = 5
"""Notes and examples that a search tells at most."""
ROOM = 4_000
"""Bytes of them with the overview of a database."""


async def find_notes(opened: OpenDatabase, query: str) -> list[str]:
    """Return what files tell that fits a query; for an empty one the first of it, as far as there is room."""
    written = await opened.read_files()
    if written is None:
        return []
    return await written.find(query, NOTES) if query.strip() else Budget(ROOM).fitting(await written.all())


async def find_description(opened: OpenDatabase) -> str:
    """Return what is said of a database as a whole; what the configuration says where it does not answer in time."""
    try:
        async with asyncio.timeout(PROBE):
            return await opened.describe()
    except (TimeoutError, DragomanError):
        return opened.config.description


async def describe_small(opened: OpenDatabase, listing: Listing) -> dict[str, list[str]] | None:
    """Return the compact descriptions of a whole database; None for one that is not small."""
    room = opened.config.max_bytes // SMALL
    if sum(entry.cost for entry in listing.list_shown()) > room:
        return None  # its names alone are too long: nothing else has to be read
    snapshot = await opened.catalog.snapshot()
    columns = sum(len(table.columns) for table in snapshot.listed)
    if not columns or columns * SHORTEST > room or size(_describe(snapshot, {})) > room:
        return None
    tables = _describe(snapshot, await opened.insights(snapshot.listed))
    return tables if size(tables) <= room else None


def _describe(snapshot: Snapshot, known: Mapping[Relation, Insight]) -> dict[str, list[str]]:
    namespace = snapshot.namespace
    return {
        namespace.name(table.relation): compact(table, namespace, insight=known.get(table.relation, UNKNOWN))
        for table in snapshot.listed
    }


async def find_values(opened: OpenDatabase, snapshot: Snapshot, query: str, *, learn: bool) -> list[Match]:
    """Return the values that a query names, of those that are known. `learn`: ask about those that are not."""
    if learn:
        await opened.insights(snapshot.listed)
    held = await opened.knowledge.find_values(query)
    tables = {relation: snapshot.by_relation.get(relation) for relation in {each.relation for each in held}}
    shown = {
        relation: (table, await opened.get_known(table))
        for relation, table in tables.items()
        if table is not None and snapshot.lists(table) and (learn or not await opened.is_reduced(table))
    }
    matches = fitting((each for each in held if each.relation in shown), shown, query)
    return sorted(matches, key=lambda match: (match.rank, match.column.name if match.column else ""))
