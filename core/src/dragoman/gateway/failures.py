"""What the gateway adds to an error, near names from the catalog or a line that shows where; and what it keeps in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager

from dragoman.catalog import Catalog
from dragoman.errors import ColumnNotFound, DialectError, DragomanError, NotFound, TableNotFound
from dragoman.model import Relation
from dragoman.sql import Statement
from dragoman.sql.text import caret

SHOWN = 3
PATIENCE = 2.0
"""Seconds an error waits for the catalog: near names are worth no more."""
_log = logging.getLogger(__name__)


@contextmanager
def ours(dialect: str, database: str) -> Generator[None]:
    """Let only `DragomanError`s out of a plugin's code; a driver's own exceptions become `DialectError`."""
    try:
        yield
    except DragomanError:
        raise
    except Exception as error:
        _log.exception("the plugin of the dialect %s leaked an exception for database %s", dialect, database)
        raise DialectError(
            f"The plugin of the dialect {dialect!r} failed with {type(error).__name__}.",
            suggestion="Report it to the plugin's authors; the log has the details.",
        ) from None


async def explained(error: DragomanError, statement: Statement, catalog: Catalog) -> DragomanError:
    """Return `error` with what helps to mend the statement; the same object."""
    near = await _near(error, statement, catalog) if isinstance(error, NotFound) and error.identifier else []
    if near:
        names = " or ".join(name if name.startswith(('"', "`", "[")) else f'"{name}"' for name in near[:SHOWN])
        own = "" if error.suggestion == error.remedy else error.suggestion
        error.suggestion = f"Did you mean {names}? {own}".strip()
        return error
    return located(error, statement.text)


def located(error: DragomanError, text: str) -> DragomanError:
    """Return `error` with the line of `text` it is about and a caret below, when it says where; the same object."""
    if error.offset is not None:
        error.context = {**error.context, "position": caret(text, error.offset)}
    return error


async def _near(error: NotFound, statement: Statement, catalog: Catalog) -> list[str]:
    """Near names of what was not found; none when the catalog cannot be read: the error itself matters more."""
    name = error.identifier or ""
    try:
        async with asyncio.timeout(PATIENCE):
            if isinstance(error, TableNotFound):
                return await catalog.near_relations(name)
            if isinstance(error, ColumnNotFound):
                return await catalog.near_columns(name, await _known(statement, catalog))
    except (DragomanError, TimeoutError):
        pass
    return []


async def _known(statement: Statement, catalog: Catalog) -> list[Relation]:
    """The relations of a statement that the catalog knows."""
    snapshot = await catalog.snapshot()
    known: list[Relation] = []
    for relation in statement.relations():
        try:
            known.append(snapshot.find(relation.name, relation.schema).relation)
        except DragomanError:
            continue
    return known
