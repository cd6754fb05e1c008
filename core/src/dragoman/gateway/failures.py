"""Completes errors with near names from the catalog or a line that shows the place, and removes what is hidden."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from traceback import walk_tb
from types import FrameType
from typing import Any, TypeVar

from dragoman.catalog import Catalog, Namespace, did_you_mean
from dragoman.errors import ColumnNotFound, DialectError, DragomanError, NotFound, SchemaNotFound, TableNotFound
from dragoman.gateway.hints import PATIENCE, SHOWN, does_not_parse, explain_column, find_column, find_slip
from dragoman.gateway.tasks import Fatal
from dragoman.model import Database, Relation
from dragoman.plugins import Plugins
from dragoman.plugins.mistakes import words_of
from dragoman.plugins.policies import check_type, fault
from dragoman.sql import Statement
from dragoman.sql.text import caret
from dragoman.words import with_article

T = TypeVar("T")
Named = Callable[[], Awaitable[Sequence[Relation]]]

_CLOSED = "The database's own catalog is not shown to you. Use list_tables, describe_table and search_catalog."
_log = logging.getLogger(__name__)


class Source:
    """Attributes errors to the plugin that raised them, by name and distribution."""

    def __init__(self, plugins: Plugins, database: Database) -> None:
        self._plugins = plugins
        self._database = database

    @property
    def origin(self) -> str:
        """The dialect's plugin and its distribution, for messages."""
        return self._plugins.origin(self._database.dialect)

    def translate(self, error: Exception, method: str) -> DragomanError:
        """Return what may be shown of an error in a plugin's code.

        Our own errors are returned unchanged, others as the plugin's fault.
        """
        if isinstance(error, DragomanError):
            return error
        found = self._plugins.culprit(frame for frame in reversed(_frames(error)))
        origin, function = found or (self.origin, method)
        _log.error("%s raised an unexpected exception for database %s", origin, self._database.name, exc_info=error)
        if words := words_of(error):
            return fault(method, origin, words)
        kind = error.kind if isinstance(error, Fatal) else type(error).__name__
        return fault(method, origin, f"failed with {kind}" + (f" in {function}" if found else ""))

    @contextmanager
    def ours(self, method: str) -> Generator[None]:
        """Translate errors raised inside the block with `translate`."""
        try:
            yield
        except DragomanError:
            raise
        except Exception as error:
            raise self.translate(error, method) from None

    def fault(self, method: str, what: str) -> DialectError:
        """Return the error for a method of the dialect that breaks the contract."""
        return fault(method, self.origin, what)

    def check_nothing(self, answer: object, asked: object, method: str) -> None:
        """Raise `DialectError`, as the fault of the plugin of `asked`, if a method returned anything but None."""
        if answer is not None:
            told = with_article(type(answer).__name__)
            raise fault(method, self._plugins.owner(type(asked)) or self.origin, f"returned {told}, not None")

    def check(self, answer: T, kind: type[Any], method: str) -> T:
        """Return the answer of a method if it is a `kind`. Raises `DialectError`."""
        check_type(answer, kind, method, self.origin)
        return answer


def _frames(error: BaseException) -> list[FrameType]:
    """Return the stack of an error, outermost frame first, after that of its cause."""
    before = [] if error.__cause__ is None else _frames(error.__cause__)
    return [frame for frame, _ in walk_tb(error.__traceback__)] + before


async def explain(error: DragomanError, statement: Statement, catalog: Catalog, named: Named) -> DragomanError:
    """Return `error` with hints that help to fix the statement. `named`: the relations that it names."""
    if isinstance(error, TableNotFound) and (missing := await _missing_schema(error, catalog, named)):
        return missing
    if does_not_parse(error):
        error = await find_slip(error, statement.text, catalog) or error
    if isinstance(error, ColumnNotFound) and (meant := explain_column(error, statement.text)):
        return locate(error.replace(suggestion=meant), statement.text)
    if isinstance(error, ColumnNotFound) and f'"{error.identifier}"'.lower() in statement.text.lower():
        error = error.replace(suggestion="Write texts in single quotes.")
    meant = await _find_meant(error, catalog, named) if isinstance(error, NotFound) and error.identifier else ""
    if not meant:
        return locate(error, statement.text)
    own = "" if error.suggestion == error.remedy else error.suggestion
    return error.replace(suggestion=f"{meant} {own}".strip())


async def have_lost(relations: Sequence[Relation], column: str, catalog: Catalog) -> bool:
    """Return whether relations have lost a column since they were read. Reads them again."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await catalog.have_lost(relations, column)
    except (DragomanError, TimeoutError):
        return False


async def show_more(named: Named, catalog: Catalog) -> bool:
    """Return whether a view of a statement reads what its caller does not see, or if that is not known soon."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await catalog.show_more(await named())
    except (DragomanError, TimeoutError):
        return True


async def not_there(written: Relation, statement: Statement, catalog: Catalog) -> DragomanError:
    """Return the error for a relation of a statement that does not exist for its caller."""

    async def only_it() -> tuple[Relation, ...]:
        return (written,)

    error = TableNotFound(f"There is no relation {written}.", identifier=written.name)
    if catalog.places.is_engine(written.schema or ""):
        return error.replace(suggestion=_CLOSED)
    return await explain(error, statement, catalog, only_it)


def locate(error: DragomanError, text: str) -> DragomanError:
    """Return `error` with the line of `text` it is about and a caret below, if it has a place."""
    if error.offset is None:
        return error
    return error.replace(context={**error.context, "position": caret(text, error.offset)})


async def _missing_schema(error: TableNotFound, catalog: Catalog, named: Named) -> SchemaNotFound | None:
    """Return the error of a missing relation as one about its schema, if that is missing.

    Few databases distinguish them.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            namespace = (await catalog.snapshot()).namespace
            for relation in await named():
                if namespace.may_name(error.identifier or "", relation):
                    await _check_schema(relation, catalog, namespace)
    except SchemaNotFound as missing:
        return missing.replace(message=error.message, context=error.context)
    except (DragomanError, TimeoutError):
        pass
    return None


async def _check_schema(relation: Relation, catalog: Catalog, namespace: Namespace) -> None:
    """Raise `SchemaNotFound`, with near names, if the schema that a relation is written with does not exist."""
    if relation.schema is None or catalog.places.is_engine(relation.schema):
        return
    written, *others = namespace.spellings(relation.catalog, relation.schema)
    for other in others:
        with suppress(SchemaNotFound):
            await catalog.find_schema(other)
            return
    await catalog.find_schema(written)


async def _find_meant(error: NotFound, catalog: Catalog, named: Named) -> str:
    """Return what was meant by a name that was not found; empty if unknown. No error of the catalog takes its place."""
    try:
        async with asyncio.timeout(PATIENCE):
            if isinstance(error, TableNotFound):
                return did_you_mean((await catalog.near_relations(error.identifier or ""))[:SHOWN])
            if isinstance(error, ColumnNotFound):
                return await find_column(error, catalog, await _find_known(catalog, named))
    except (DragomanError, TimeoutError):
        pass
    return ""


async def _find_known(catalog: Catalog, named: Named) -> list[Relation]:
    """Return the relations of a statement that the catalog knows."""
    snapshot = await catalog.snapshot()
    return [relation for relation in await named() if relation in snapshot.by_relation]
