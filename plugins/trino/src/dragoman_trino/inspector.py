"""The catalogs of a Trino server: five queries for each, whatever the number of its relations."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dragoman import (
    ColumnProfile,
    ConnectionFailed,
    Database,
    DragomanError,
    Inspection,
    Inspector,
    Names,
    PermissionDenied,
    ProfileBudget,
    QueryTimeout,
    Relation,
    Schema,
    SchemaNotFound,
    Scope,
    Table,
)
from dragoman.cooperative import consume_in_thread, in_thread_if_many
from dragoman.words import mention, quote_foreign

from dragoman_trino import queries
from dragoman_trino.concurrency import together
from dragoman_trino.connecting import PUSHDOWN
from dragoman_trino.partitions import partitioning
from dragoman_trino.profiles import profile, shows_whole
from dragoman_trino.tables import (
    Facts,
    Row,
    build,
    group_names,
    is_system,
    row_estimates,
    without_columns,
)

if TYPE_CHECKING:
    from dragoman_trino.client import Client

PLAIN_CONNECTORS = frozenset({"system", "tpch", "tpcds", "jmx"})
"""Connectors whose tables have no comments and that have no views."""
AT_ONCE = 4
"""The number of statements at once: the server has other work, and each of them may ask a metastore."""
PATIENCE = 3
"""The share of the database's timeout for a statement: a catalog that hangs must not delay the others."""
SILENCE = 60.0
"""Seconds for which a slow catalog is not asked again."""
MOST_SCHEMAS = 50
"""In a catalog that cannot be read as a whole, this many schemas are asked one by one."""
MOST_ESTIMATED = 50
"""The number of tables whose rows are estimated in bulk.

If there are more, only those of the default schema are, if they are as few.
"""
IN_ONE_PLAN = 25
PROFILED_AT_ONCE = 100
"""The number of tables. Each takes statements of its own."""
MOST_DETAILED = 20
ESTIMATING = 3.0
"""Seconds for estimates: they are not worth more."""


@dataclass(frozen=True, slots=True)
class Known:
    """A catalog of the server. `connector`: None if the user may not know it."""

    name: str
    connector: str | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.connector})" if self.connector else self.name


class TrinoInspector(Inspector):
    """Reports what the user may see: catalogs, their schemas and relations. A catalog that fails becomes a notice."""

    def __init__(self, database: Database, client: Client) -> None:
        self._database = database
        self._client = client
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._timeout = database.timeout / PATIENCE
        self._wanted = _catalogs_of(database)
        self._silent: dict[str, tuple[float, DragomanError]] = {}

    async def version(self) -> str:
        """Return the server's version."""
        rows = await self._client.rows(queries.VERSION)
        return str(rows[0][0])

    async def schemas(self) -> Sequence[Schema]:
        """Return the schemas of every catalog that answers."""
        found = await together(*(self._schemas(catalog) for catalog in await self._catalogs()))
        return [schema for schemas in found if not isinstance(schemas, DragomanError) for schema in schemas]

    async def names(self, scope: Scope) -> Sequence[Names] | None:
        """Return the names of relations; None if a catalog does not answer at once. `tables` then reports why."""
        catalogs = [known for known in await self._catalogs() if not scope.catalogs or known.name in scope.catalogs]
        portions = [(known, each) for known in catalogs for each in queries.portions(scope)]
        found = await together(*(self._names(known, each) for known, each in portions))
        told = [group for groups in found if groups is not None for group in groups]
        return None if None in found else told

    async def tables(self, scope: Scope) -> Inspection:
        """Return relations with their columns, comments and views' queries. Rows are estimated only for few tables."""
        catalogs = [known for known in await self._catalogs() if not scope.catalogs or known.name in scope.catalogs]
        held = [await together(*(self._inspect(known, scope) for known in catalogs))]
        return await self._estimate_all(await consume_in_thread(held, _together))

    async def details(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Return tables with their estimated rows and their partitioning, if the user may know it."""
        few = [table.relation for table in tables if _is_stored(table)][:MOST_DETAILED]
        rows, parts = await together(self._estimates(few), partitioning(few, self._optional))
        return [_with_partitions(_with_rows(table, rows), parts) for table in tables]

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """Return the server's statistics of stored tables, and the values of their partitions."""
        stored = [table for table in tables if _is_stored(table)]
        found: dict[Relation, tuple[ColumnProfile, ...]] = {}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(budget.seconds):
                for start in range(0, len(stored), PROFILED_AT_ONCE):
                    await self._profile_some(stored[start : start + PROFILED_AT_ONCE], budget, found)
        return found

    async def fingerprint(self) -> str | None:
        """Return a checksum of the server over names, types, columns and the queries of views.

        None if a catalog does not answer, or does not tell its views in time. Comments and the partitioning of tables
        may change without it.
        """
        portions = [
            (known, scope) for known in await self._catalogs() for scope in queries.portions(self._scope(known.name))
        ]
        asked = [(known, queries.checksums(known.name, scope)) for known, scope in portions]
        viewing = [(known, scope) for known, scope in portions if known.connector not in PLAIN_CONNECTORS]
        optional = [sql for known, scope in viewing for sql in queries.view_checksums(known.name, scope)]
        answers, of_views = await together(
            together(*(self._ask_catalog(*each) for each in asked)), together(*map(self._attempt, optional))
        )
        told = [rows for rows in answers if not isinstance(rows, DragomanError)]
        if len(told) < len(asked) or any(isinstance(rows, QueryTimeout) for rows in of_views):
            return None
        texts = [*(sql for _, sql in asked), *optional]
        facts = sorted((sql, _texts(rows)) for sql, rows in zip(texts, [*told, *of_views], strict=True))
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def _scope(self, catalog: str) -> Scope:
        """Return the part of a catalog that the configuration makes visible."""
        return Scope(schemas=frozenset(schema for own, schema in _places_of(self._database) if own == catalog))

    async def _profile_some(
        self, tables: Sequence[Table], budget: ProfileBudget, found: dict[Relation, tuple[ColumnProfile, ...]]
    ) -> None:
        """Add what is known of tables to `found`."""
        parts = await partitioning([table.relation for table in tables], self._optional)
        connectors = {known.name: known.connector for known in await self._catalogs()} if parts else {}
        await together(*(self._profile(table, parts, connectors, budget, found) for table in tables))

    async def _profile(
        self,
        table: Table,
        parts: Mapping[Relation, tuple[str, ...]],
        connectors: Mapping[str, str | None],
        budget: ProfileBudget,
        found: dict[Relation, tuple[ColumnProfile, ...]],
    ) -> None:
        """Add what is known of a table to `found`."""
        counted = connectors.get(table.relation.catalog or "") == "iceberg"
        own = parts.get(table.relation, ())
        whole = self._shows_whole(table)
        if told := await profile(table, own, budget, self._optional, counted=counted, whole=whole):
            found[table.relation] = told

    async def _shows_whole(self, table: Table) -> bool:
        """Return whether the server shows the user every row and value of a table. Its own rules may hide some."""
        columns = [column.name for column in table.columns]
        plan = await self._attempt(queries.scan(table.relation, columns), off=(PUSHDOWN,)) if columns else ()
        pushed = PUSHDOWN in self._client.connector.refused
        return not isinstance(plan, DragomanError) and any(shows_whole(text, pushed=pushed) for (text,) in plan)

    # Catalogs

    async def _catalogs(self) -> list[Known]:
        """Return the catalogs that the configuration makes visible."""
        rows = await self._rows(*queries.CATALOGS)
        return [Known(*row) for row in rows if not self._wanted or row[0] in self._wanted]

    async def _schemas(self, catalog: Known) -> list[Schema] | DragomanError:
        rows = await self._ask_catalog(catalog, queries.schemas(catalog.name))
        if isinstance(rows, DragomanError):
            return rows
        return [
            Schema(name=name, catalog=catalog.name, system=is_system(name, catalog.name, catalog.connector))
            for (name,) in rows
        ]

    async def _ask_catalog(self, catalog: Known, sql: str) -> list[Row] | DragomanError:
        """Return the rows of a statement about a catalog. A slow catalog is not asked again for a while."""
        silent = self._silent.get(catalog.name)
        if silent is not None and time.monotonic() < silent[0]:
            return silent[1]
        rows = await self._attempt(sql)
        if isinstance(rows, QueryTimeout):
            self._silent[catalog.name] = (time.monotonic() + SILENCE, rows)
        return rows

    async def _inspect(self, catalog: Known, scope: Scope) -> Inspection:
        """Read a catalog. If it cannot be read as a whole, read the schemas that can be read."""
        found = await self._read(catalog, scope)
        if not isinstance(found, DragomanError):
            return found
        if len(scope.schemas) == 1:
            name = mention(f"{catalog.name}.{min(scope.schemas)}")
            return Inspection((), (f"Schema {name} could not be read: {quote_foreign(found.message)}",))
        schemas = found if isinstance(found, QueryTimeout) else await self._schemas(catalog)
        told = [] if isinstance(schemas, DragomanError) else schemas
        names = [schema.name for schema in told if not scope.schemas or schema.name in scope.schemas]
        if not 0 < len(names) <= MOST_SCHEMAS:
            return Inspection((), (f"Catalog {catalog} could not be read: {quote_foreign(found.message)}",))
        alone = (replace(scope, schemas=frozenset({name})) for name in names)
        return _together(await together(*(self._inspect(catalog, each) for each in alone)))

    async def _read(self, catalog: Known, scope: Scope) -> Inspection | DragomanError:
        found = await together(*(self._portion(catalog, each) for each in queries.portions(scope)))
        return next((each for each in found if isinstance(each, DragomanError)), None) or _together(
            each for each in found if isinstance(each, Inspection)
        )

    async def _portion(self, catalog: Known, scope: Scope) -> Inspection | DragomanError:
        name = catalog.name
        # One query first: if a catalog does not answer, the others would only wait too.
        relations = await self._ask_catalog(catalog, queries.relations(name, scope))
        if isinstance(relations, DragomanError):
            return relations
        optional = () if catalog.connector in PLAIN_CONNECTORS else (queries.comments, queries.views)
        columns, (rest, kept) = await together(
            self._alternatives(*queries.columns(name, scope)),
            together(
                together(*(self._optional(query(name, scope)) for query in optional)),
                self._materialized_views(catalog, scope),
            ),
        )
        if isinstance(columns, DragomanError):
            return columns
        comments, views = rest or ((), ())
        held = [Facts(name, relations, columns, comments, views, kept, connector=catalog.connector)]
        del relations, columns, rest, comments, views, kept
        return await consume_in_thread(held, _make_inspection)

    async def _names(self, catalog: Known, scope: Scope) -> list[Names] | None:
        """Return the names of a catalog that answers. A second query tells tables from materialized views."""
        relations, kept = await together(
            self._ask_catalog(catalog, queries.relations(catalog.name, scope)), self._materialized_views(catalog, scope)
        )
        if isinstance(relations, DragomanError):
            return None
        facts = Facts(catalog.name, relations, materialized_views=kept, connector=catalog.connector)
        return await in_thread_if_many(len(relations), group_names, facts)

    async def _materialized_views(self, catalog: Known, scope: Scope) -> list[Row] | None:
        """Return the materialized views of a catalog with their queries; None if they are not known."""
        if catalog.connector in PLAIN_CONNECTORS:
            return []
        rows = await self._attempt(queries.materialized_views(catalog.name, scope))
        return None if isinstance(rows, DragomanError) else rows

    # Facts about few relations

    async def _estimate_all(self, seen: Inspection) -> Inspection:
        """Estimate the rows of all relations, or of those in the default schema, if they are few."""
        home = (self._database.database, self._database.schema)
        own = await in_thread_if_many(len(seen.tables), _choose_estimated, seen.tables, home)
        if not own:
            return seen
        return await in_thread_if_many(len(seen.tables), _with_all_rows, seen, await self._estimates(own))

    async def _estimates(self, relations: Sequence[Relation]) -> Mapping[Relation, int]:
        """Return the rows of relations. What is not known in time is left out."""
        found: dict[Relation, int] = {}
        groups = [relations[start : start + IN_ONE_PLAN] for start in range(0, len(relations), IN_ONE_PLAN)]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ESTIMATING):
                await together(*(self._estimate(group, found) for group in groups))
        return found

    async def _estimate(self, relations: Sequence[Relation], found: dict[Relation, int]) -> None:
        """Add the rows of relations to `found`. If one of them makes the plan fail, the others still count."""
        rows = await self._attempt(queries.estimates(relations))
        if not isinstance(rows, DragomanError):
            found |= row_estimates(rows[0][0])
        elif len(relations) > 1:
            middle = len(relations) // 2
            await together(*(self._estimate(half, found) for half in (relations[:middle], relations[middle:])))

    # Statements

    async def _rows(self, *alternatives: str) -> list[Row]:
        """Return the rows of the first statement that does not fail. Raises the last one's error."""
        rows = await self._alternatives(*alternatives)
        if isinstance(rows, DragomanError):
            raise rows
        return rows

    async def _alternatives(self, *alternatives: str) -> list[Row] | DragomanError:
        """Return the rows of the first statement that does not fail, else the last one's error."""
        rows: list[Row] | DragomanError = []
        for sql in alternatives:
            rows = await self._attempt(sql)
            if not isinstance(rows, (PermissionDenied, SchemaNotFound)):
                break
        return rows

    async def _optional(self, sql: str) -> list[Row]:
        """Return rows with more facts about relations; none if the connector or the user's rights do not allow it."""
        rows = await self._attempt(sql)
        return [] if isinstance(rows, DragomanError) else rows

    async def _attempt(self, sql: str, off: tuple[str, ...] = ()) -> list[Row] | DragomanError:
        """Return the rows, or the error. Raises `ConnectionFailed`: nothing else would be answered either."""
        try:
            return await self._ask(sql, off)
        except ConnectionFailed:
            raise
        except DragomanError as error:
            return error

    async def _ask(self, sql: str, off: tuple[str, ...]) -> list[Row]:
        async with self._turns:
            return list(await self._client.rows(sql, timeout=self._timeout, off=off))


def _catalogs_of(database: Database) -> frozenset[str]:
    """Return the catalogs that the configuration makes visible; empty: all."""
    named = {catalog for catalog, _ in _places_of(database)}
    return frozenset() if None in named else frozenset(name for name in named if name)


def _places_of(database: Database) -> Iterator[tuple[str | None, str]]:
    """Yield catalog and name of each schema that the configuration makes visible."""
    for schema in database.schemas:
        catalog, _, name = schema.rpartition(".")
        yield catalog.strip('"').lower() or database.database, name.strip('"').lower()


def _make_inspection(facts: Facts) -> Inspection:
    tables = build(facts)
    return Inspection(tuple(tables), (*without_columns(tables), *_without_kept(facts)))


def _without_kept(facts: Facts) -> Iterator[str]:
    """Yield a notice if it is not known which relations are materialized views."""
    if facts.materialized_views is None:
        yield (
            f"Every table of the catalog {mention(facts.catalog)} counts as a materialized view: the server does not"
            " tell which are. Let the user read system.metadata.materialized_views."
        )


def _texts(rows: list[Row] | DragomanError) -> list[str]:
    return [] if isinstance(rows, DragomanError) else sorted(map(str, rows))


def _choose_estimated(tables: Iterable[Table], home: tuple[str | None, str | None]) -> list[Relation]:
    """Return the tables whose rows are estimated in bulk.

    These are all tables if they are few, or those of the default schema, or none.
    """
    own = [table.relation for table in tables if _is_stored(table)]
    if len(own) > MOST_ESTIMATED:
        own = [relation for relation in own if (relation.catalog, relation.schema) == home]
    return own if len(own) <= MOST_ESTIMATED else []


def _with_all_rows(seen: Inspection, rows: Mapping[Relation, int]) -> Inspection:
    return replace(seen, tables=tuple(_with_rows(table, rows) for table in seen.tables))


def _is_stored(table: Table) -> bool:
    """Return whether a relation is a table, or may be one: nothing is known of the query behind it."""
    unknown = table.type == "materialized view" and table.definition is None
    return not table.system and (unknown or table.type in ("table", "partitioned table"))


def _with_rows(table: Table, rows: Mapping[Relation, int]) -> Table:
    found = rows.get(table.relation)
    return table if found is None else replace(table, row_estimate=found)


def _with_partitions(table: Table, parts: Mapping[Relation, tuple[str, ...]]) -> Table:
    found = parts.get(table.relation)
    if found is None:
        return table
    return replace(table, type="partitioned table" if table.type == "table" else table.type, partitioned_by=found)


def _together(parts: Iterable[Inspection]) -> Inspection:
    parts = list(parts)
    tables = tuple(table for part in parts for table in part.tables)
    return Inspection(tables, tuple(notice for part in parts for notice in part.notices))
