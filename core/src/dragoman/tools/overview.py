"""What a search returns beyond names: the descriptions of a small database, and values."""

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
"""Seconds that a database gets to answer."""
SMALL = 8
"""A database is small if its descriptions take at most this share of an answer."""
SHORTEST = 8
"""The least bytes of a column's line."""
UNKNOWN = Insight()
NOTES = 5
"""The most notes and examples that a search returns."""
ROOM = 4_000
"""The most bytes of notes with the overview of a database."""


async def find_notes(opened: OpenDatabase, query: str) -> list[str]:
    """Return the text from files that matches a query; for an empty query the beginning, as far as there is room."""
    written = await opened.read_files()
    if written is None:
        return []
    return await written.find(query, NOTES) if query.strip() else Budget(ROOM).fitting(await written.all())


async def find_description(opened: OpenDatabase) -> str:
    """Return the description of a database. If it does not answer in time, the one in the configuration."""
    try:
        async with asyncio.timeout(PROBE):
            return await opened.describe()
    except (TimeoutError, DragomanError):
        return opened.config.description


async def describe_small(opened: OpenDatabase, listing: Listing) -> dict[str, list[str]] | None:
    """Return the compact descriptions of a whole database; None if it is not small."""
    room = opened.config.max_bytes // SMALL
    if sum(entry.cost for entry in listing.list_shown()) > room:
        return None  # its names alone are too long: nothing else needs to be read
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
    """Return the known values that a query names. `learn`: read those that are not known yet."""
    if learn:
        await opened.insights(snapshot.listed)
    held = await opened.knowledge.find_values(query)
    tables = {relation: snapshot.by_relation.get(relation) for relation in {each.relation for each in held}}
    shown = {
        relation: (table, await opened.get_known(table))
        for relation, table in tables.items()
        if table is not None and snapshot.lists(table) and (learn or not await opened.is_reduced(table.relation))
    }
    matches = fitting((each for each in held if each.relation in shown), shown, query)
    return sorted(matches, key=lambda match: (match.rank, match.column.name if match.column else ""))
