"""What the gateway adds to an error: near names from the catalog, else a line that shows where."""

from __future__ import annotations

from dragoman.catalog import Catalog
from dragoman.errors import ColumnNotFound, DragomanError, TableNotFound
from dragoman.model import Relation
from dragoman.sql import Statement
from dragoman.sql.text import caret

SHOWN = 3


async def explained(error: DragomanError, statement: Statement, catalog: Catalog) -> DragomanError:
    """Return `error` with what helps to mend the statement; the same object."""
    near = await _near(error, statement, catalog)
    if near:
        names = " or ".join(f'"{name}"' for name in near[:SHOWN])
        error.suggestion = f"Did you mean {names}? {error.suggestion}".strip()
        return error
    return located(error, statement.text)


def located(error: DragomanError, text: str) -> DragomanError:
    """Return `error` with the line of `text` it is about and a caret below, when it says where; the same object."""
    if error.offset is not None:
        error.context = {**error.context, "position": caret(text, error.offset)}
    return error


async def _near(error: DragomanError, statement: Statement, catalog: Catalog) -> list[str]:
    """Near names of what was not found; none when the catalog cannot be read: the error itself matters more."""
    try:
        if isinstance(error, TableNotFound) and error.identifier:
            return await catalog.near_relations(error.identifier)
        if isinstance(error, ColumnNotFound) and error.identifier:
            return await catalog.near_columns(error.identifier.split(".")[-1], await _known(statement, catalog))
    except DragomanError:
        pass
    return []


async def _known(statement: Statement, catalog: Catalog) -> list[Relation]:
    return [(await catalog.find(str(relation))).relation for relation in statement.relations()]
