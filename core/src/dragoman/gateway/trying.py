"""Checks at the start whether the database compiles what roles leave of its tables."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

from dragoman.access import Grants, Misfit, NamedTables, Permission, ReadGrant, as_condition, as_conditions
from dragoman.catalog import Snapshot
from dragoman.catalog.granted import FindSources, sources_of
from dragoman.cooperative import without_blocking
from dragoman.dialect import CannotDescribe, Dialect
from dragoman.errors import ColumnNotFound, DragomanError
from dragoman.gateway.confining import UNCOMPILED, Confiner, Prepare, TooLong
from dragoman.model import ConfinedRelation, Database, Relation, Table

TOGETHER = 16
"""The number of parts of relations that the database compiles in one statement."""
_ONE_ROW = (
    "Leave out aggregates, window functions and functions that return sets; a filter may have them in a subquery."
)
_NO_COLUMN = "Give the relations that have no such column a grant of their own."
_NO_CHECK = "The dialect's plugin needs one of these methods to confine callers. Tell its authors."


Found = Mapping[ConfinedRelation, Sequence[str]]
"""Parts of relations, and the keys of the grants that errors name for each."""


class PartsOfRoles:
    """Finds the parts that roles leave of relations, only where their grants filter or mask."""

    def __init__(self, snapshot: Snapshot, dialect: Dialect, database: Database, find_sources: FindSources) -> None:
        self._snapshot = snapshot
        self._tables = NamedTables(snapshot.tables, dialect, database)
        self._dialect = dialect
        self._database = database
        self._find_sources = find_sources

    async def find(self, roles: Sequence[Sequence[ReadGrant]]) -> Found:
        """Return the parts that the grants of each role leave together."""
        found: dict[ConfinedRelation, list[str]] = {}
        for grants in roles:
            async for permission in self._find(grants):
                if permission.confined:
                    found.setdefault(permission.confined, []).append(permission.keys[0])
        return found

    async def _find(self, grants: Sequence[ReadGrant]) -> AsyncIterator[Permission]:
        decider = Grants(grants, self._dialect, self._database)
        async for table in without_blocking(await asyncio.to_thread(self._find_named, grants)):
            permission = decider.on(table)
            if permission and await self._is_there(table, permission, decider):
                yield permission

    def _find_named(self, grants: Sequence[ReadGrant]) -> Sequence[Table]:
        """Return the relations that the grants which filter or mask name."""
        patterns = dict.fromkeys(pattern for grant in grants if grant.confines for pattern in grant.tables)
        named = {table.relation: table for pattern in patterns for table in self._tables.find(pattern)}
        return tuple(named.values())

    async def _is_there(self, table: Table, permission: Permission, decider: Grants) -> bool:
        """Return whether a relation exists for the role, as `GrantedCatalog` decides. A view of a part may not."""
        shown = () if table.shows is None else (table.shows,)
        behind = () if permission.named else await sources_of(table, self._find_sources)
        return behind is not None and all(self._is_whole(each, decider) for each in (*shown, *behind))

    def _is_whole(self, relation: Relation, decider: Grants) -> bool:
        table = self._snapshot.by_relation.get(relation)
        permission = decider.on(table) if table else None
        if table is None or permission is None or not permission.whole:
            return False
        return table.shows is None or self._is_whole(table.shows, decider)


async def try_parts(
    found: Found, confiner: Confiner, prepare: Prepare, compiled: set[ConfinedRelation]
) -> list[Misfit]:
    """Return the filters and masks of roles that the database cannot compile.

    Parts that do not compile together are split in halves until the faulty one is found. Parts that compile are added
    to `compiled` and not tried again, so an interrupted check continues where it stopped. Raises `ConnectionFailed`.
    """
    wrong: list[Misfit] = []
    left = await asyncio.to_thread(lambda: _batch([part for part in found if part not in compiled])[::-1])
    while left:
        some = left.pop()
        try:
            await prepare(await confiner.trial(*map(as_conditions, some)))
        except UNCOMPILED as error:
            middle = len(some) // 2
            if middle:
                left += (some[middle:], some[:middle])
            else:
                message, remedy = await _explain(some[0], error, confiner, prepare)
                wrong += [Misfit(key, message, remedy) for key in found[some[0]]]
        else:
            compiled.update(some)
    return wrong


def _batch(parts: Sequence[ConfinedRelation]) -> list[list[ConfinedRelation]]:
    """Return the batches to try, each in one statement, with at most one part of each relation."""
    rounds: list[list[ConfinedRelation]] = []
    seen = Counter[Relation]()
    for part in parts:
        if seen[part.relation] == len(rounds):
            rounds.append([])
        rounds[seen[part.relation]].append(part)
        seen[part.relation] += 1
    return [some[start : start + TOGETHER] for some in rounds for start in range(0, len(some), TOGETHER)]


async def _explain(
    part: ConfinedRelation, error: DragomanError, confiner: Confiner, prepare: Prepare
) -> tuple[str, str]:
    """Return why a part does not compile, and the remedy."""
    why = error.message.removesuffix(".")
    if isinstance(error, CannotDescribe):
        return f"nothing checks the filter without `Executor.describe` or `Executor.prepare`: {why}", _NO_CHECK
    wrong = None if isinstance(error, TooLong) else await _find_of_rows(part, confiner, prepare)
    if wrong is None:
        # An administrator reads it, who has other ways to see columns than the tools that the error names.
        near = error.suggestion if error.suggestion.startswith("Did you mean") else ""
        remedy = f"{near} {_NO_COLUMN}".strip() if isinstance(error, ColumnNotFound) else error.suggestion
        return f"the filter or a mask does not match {part.relation}: {why}", remedy
    return f"the {wrong} must be an expression of one row of {part.relation}: {why}", _ONE_ROW


async def _find_of_rows(part: ConfinedRelation, confiner: Confiner, prepare: Prepare) -> str | None:
    """Return the expression that compiles in a SELECT list, but not as a condition on one row."""
    first = replace(part.columns[0], expression=None)
    masks = {f"mask of {column.name}": column.expression for column in part.columns}
    for name, expression in {"filter": part.filter, **masks}.items():
        if expression is None:
            continue
        shown = replace(part, columns=(replace(first, expression=expression),), filter=None)
        condition = replace(part, columns=(first,), filter=as_condition(expression))
        if await _compiles(shown, confiner, prepare) and not await _compiles(condition, confiner, prepare):
            return name
    return None


async def _compiles(part: ConfinedRelation, confiner: Confiner, prepare: Prepare) -> bool:
    try:
        await prepare(await confiner.trial(part))
    except UNCOMPILED:
        return False
    return True
