"""The catalog of a PostgreSQL database: seven queries and one for names, whatever the number of relations."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dragoman import (
    Busy,
    ColumnProfile,
    Database,
    Inspection,
    Inspector,
    Names,
    ProfileBudget,
    Relation,
    Schema,
    Scope,
    Table,
)
from dragoman.collection import pause_collection
from dragoman.cooperative import consume_in_thread
from dragoman.words import mention

from dragoman_postgres import profiles, queries
from dragoman_postgres.tables import Facts, Row, build, group_names

if TYPE_CHECKING:
    from dragoman_postgres.driver import Connection
    from dragoman_postgres.pool import Connections

ATTEMPTS = 3


class PostgresInspector(Inspector):
    """Reports what the role may read: schemas it may use, relations and columns it may select from.

    Foreign keys that partitions inherit are listed only with their parent.
    """

    def __init__(self, database: Database, connections: Connections) -> None:
        self._database = database
        self._connections = connections

    async def version(self) -> str:
        """Return the server's version, without the packager's additions."""
        async with self._connections.borrow() as connection:
            version: str = await connection.fetchval(queries.VERSION)
        return version.split()[0]

    async def schemas(self) -> Sequence[Schema]:
        """Return the schemas the role may use, with the system's marked and those of the search path numbered."""
        async with self._connections.borrow() as connection:
            rows = await connection.fetch(queries.SCHEMAS)
        return [
            Schema(name=name, owner=owner, comment=comment, system=system, search_order=place)
            for name, owner, comment, system, place in rows
        ]

    async def tables(self, scope: Scope) -> Inspection:
        """Return relations of every kind. Raises `Busy` if others keep locking them while they are read."""
        if scope.catalogs:
            return Inspection(())
        with pause_collection():
            return await consume_in_thread([await self._facts(scope)], _inspect)

    async def names(self, scope: Scope) -> Sequence[Names]:
        """Return the names of relations. No lock delays them."""
        if scope.catalogs:
            return ()
        async with self._connections.borrow() as connection:
            await connection.execute(queries.SETTINGS)
            return group_names(await connection.fetch(queries.NAMES, _list(scope.schemas), _list(scope.names)))

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """Return what ANALYZE counted, of relations that the role may read.

        Returns nothing for views and behind row-level security.
        """
        async with self._connections.borrow() as connection:
            return await profiles.profiles(connection, tables, budget)

    async def fingerprint(self) -> str | None:
        """Return a hash over the catalog rows of relations, and the transactions that wrote them.

        It also changes after VACUUM FULL, restoring a dump, and a change in another schema; not after changes of rows,
        ANALYZE and VACUUM.
        """
        async with self._connections.borrow() as connection:
            cluster = None if self._connections.connector.pooled else connection.cluster
            told: str = await connection.fetchval(queries.fingerprint(cluster))
        return told

    async def _facts(self, scope: Scope) -> Facts:
        from asyncpg import LockNotAvailableError

        for _ in range(ATTEMPTS):
            async with self._connections.borrow() as connection:
                try:
                    return await _read(connection, scope)
                except LockNotAvailableError:
                    continue  # taken since the first query; the next attempt sees the lock and leaves the relation out
        raise Busy(
            f"The catalog of {self._database.name} changes all the time.", suggestion="Try again in a few seconds."
        )


async def _read(connection: Connection, scope: Scope) -> Facts:
    await connection.execute(queries.SETTINGS)
    relations = await connection.fetch(queries.RELATIONS, _list(scope.schemas), _list(scope.names))
    oids = [row[0] for row in relations]
    partly_hidden = [row[0] for row in relations if not row[7]]
    facts = Facts(relations, columns=await connection.fetch(queries.COLUMNS, oids, partly_hidden))
    facts.types = await connection.fetch(queries.TYPES, *await asyncio.to_thread(_list_types, facts.columns))
    facts.constraints = await connection.fetch(queries.CONSTRAINTS, oids)
    facts.indexes = await connection.fetch(queries.INDEXES, oids)
    facts.storage = await connection.fetch(queries.STORAGE, oids)
    facts.definitions = await connection.fetch(queries.DEFINITIONS, [row[0] for row in relations if not row[6]])
    return facts


def _inspect(facts: Facts) -> Inspection:
    return Inspection(build(facts), tuple(_notices(facts)))


def _list_types(columns: Iterable[Row]) -> tuple[list[int], list[str]]:
    """Return the types and modifiers of columns, each pair once."""
    used = {(row[3], row[4]) for row in columns}
    return [type_ for type_, _ in used], [str(modifier) for _, modifier in used]


def _list(names: Collection[str]) -> list[str] | None:
    return sorted(names) or None


def _notices(facts: Facts) -> Iterator[str]:
    for _, schema, name, *_, locked in facts.relations:
        if locked:
            yield (
                f"{mention(f'{schema}.{name}')} is locked by another session: its defaults, checks and expressions,"
                " and the definitions of views, are left out."
            )
