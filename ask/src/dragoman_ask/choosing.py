"""Chooses the database that a question is about."""

from __future__ import annotations

import asyncio

from dragoman.errors import AmbiguousQuery, DragomanError, ModelError
from dragoman.model import Database
from dragoman.words import display

from dragoman_ask.models import Message
from dragoman_ask.replies import Chosen
from dragoman_ask.session import Session

ROOM = 16_000
"""The most characters of all databases' descriptions and tables together."""
PATIENCE = 5.0
"""Seconds that a database gets to list its tables."""


async def choose(session: Session) -> tuple[str, str]:
    """Return the database that a question is about, and the reason; the reason is empty if there is no choice.

    Raises `AmbiguousQuery` if it may be several or none.
    """
    gateway = session.gateway
    if session.question.database is not None or len(gateway.names) < 2:
        return gateway.resolve_name(session.question.database), ""
    await session.report(0, "choosing the database")
    each = ROOM // len(gateway.names)
    told = await asyncio.gather(*(_describe(session, name, each) for name in gateway.names))
    databases = session.fence.around("\n".join(told), "databases")
    chosen = await session.ask([Message("user", session.fill("choose", databases=databases))], Chosen)
    if not chosen.database:
        what = display(chosen.clarify, 500) if chosen.clarify else "Which database is meant?"
        raise AmbiguousQuery(what, context={"ask": what, "databases": list(gateway.names)})
    if chosen.database not in gateway.names:
        raise ModelError("The model chose a database that does not exist.", suggestion="Name the database.")
    return chosen.database, display(chosen.reason, 300)


async def _describe(session: Session, name: str, room: int) -> str:
    """Return one line: the database's name, its description, the names of its tables."""
    try:
        opened = session.gateway.database(name)
        async with asyncio.timeout(PATIENCE):
            snapshot = await opened.catalog.snapshot()
    except (TimeoutError, DragomanError):
        return _introduce(session.gateway.configuration.databases[name])[:room]
    tables = ", ".join(opened.catalog.namespace.name(table.relation) for table in snapshot.listed)
    return f"{_introduce(opened.config)} Tables: {tables}"[:room]


def _introduce(database: Database) -> str:
    return f"{database.name} ({database.dialect}): {' '.join(database.description.split())}"
