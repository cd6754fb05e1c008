"""The catalog as those see it who have a part of it: made of what the whole one knows, without asking the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from dragoman.access import Decider, Permission, intersect
from dragoman.catalog.catalog import Catalog
from dragoman.catalog.listing import Listing
from dragoman.catalog.mentions import Comments
from dragoman.catalog.places import Places
from dragoman.catalog.snapshot import Snapshot
from dragoman.catalog.texts import Texts
from dragoman.cooperative import in_thread_if_many, without_blocking
from dragoman.dialect import Dialect, Inspector
from dragoman.model import Constraint, Database, ForeignKey, Index, Plan, Relation, Scope, Table, TableColumn

VIEWS = frozenset({"view", "materialized view", "virtual table"})
"""What may show rows of others. What a virtual table shows is its module's to say: an index of another's words, too."""
Permissions = Mapping[Relation, Permission]
Behind = Callable[[Table], Awaitable[Collection[Relation] | None]]
"""Tells what a view reads, through further views too; None: that cannot be determined."""


class GrantedPlaces(Places):
    """Of what the configuration opens, the schemas of which something may be granted."""

    def __init__(self, database: Database, dialect: Dialect, deciders: Sequence[Decider]) -> None:
        self._deciders = deciders
        super().__init__(database, dialect, hides=True)

    def visible(self, schema: str | None, catalog: str | None) -> bool:
        """Whether a schema, by its stored names, exists for the callers."""
        return super().visible(schema, catalog) and all(decider.reaches(schema, catalog) for decider in self._deciders)


class GrantedCatalog(Catalog):
    """What grants and policies leave of a catalog, at least one decider.

    `check`: raises when the roles do not fit what `whole` knows.
    """

    places: GrantedPlaces

    def __init__(
        self,
        whole: Catalog,
        inspector: Inspector,
        places: GrantedPlaces,
        dialect: Dialect,
        database: Database,
        *,
        deciders: Sequence[Decider],
        behind: Behind,
        check: Callable[[Snapshot], Awaitable[None]],
    ) -> None:
        super().__init__(inspector, dialect, database, places=places)
        self._whole = whole
        self._deciders = deciders
        self._behind = behind
        self._check = check
        self._restricting = asyncio.Lock()
        self._seen: Snapshot | None = None
        self._permissions: Permissions = {}
        self._comments = Comments((), {})
        self._texts = Texts(dialect, hides=False)
        self._names: frozenset[str] = frozenset()

    async def snapshot(self) -> Snapshot:
        """Return what is granted of what the whole catalog knows."""
        return await self._restrict(await self._whole.snapshot())

    async def listing(self) -> Listing:
        """Return the names of what is granted, which only the whole catalog tells."""
        return (await self.snapshot()).listing

    async def permissions(self) -> Permissions:
        """Return what may be read of each relation that exists for the callers."""
        await self.snapshot()
        return self._permissions

    async def all_names(self) -> frozenset[str]:
        """Return the names of all relations, granted or not."""
        await self.snapshot()
        return self._names

    async def is_whole(self) -> bool:
        """Whether everything but the system's is granted, every row and column of it."""
        permissions = await self.permissions()
        relations = [table.relation for table in (await self._whole.snapshot()).visible]
        return all(relation in permissions and permissions[relation].whole for relation in relations)

    async def reaches_outside(self, plan: Plan, relations: Iterable[Relation]) -> bool:
        """Whether a plan may name what is not granted: it names columns and indexes that the statement does not."""
        permissions = await self.permissions()
        relations = tuple(relations)
        if any(each in permissions and not permissions[each].whole for each in (*plan.reads, *relations)):
            return True
        return await super().reaches_outside(plan, relations)

    async def look(self, scope: Scope) -> Snapshot:
        """Have the whole catalog look at the database again."""
        found = await self._restrict(await self._whole.look(scope))
        self._cost = self._whole.cost
        return found

    async def add_details(self, tables: Sequence[Table]) -> list[Table]:
        """Return relations with the facts that are read for single relations only, as far as granted."""
        permissions = await self.permissions()
        seen = self._seen
        assert seen is not None  # permissions sets it
        known = [seen.by_relation[table.relation] for table in tables]
        told = await self._whole.add_details(known)
        pruned = [self._texts.prune(self._comments.prune(table)) for table in told]
        return await self.redact([_reduce(table, permissions) for table in pruned])

    async def _restrict(self, seen: Snapshot) -> Snapshot:
        """Return what is granted of a snapshot; of those who come at once, one finds it out."""
        if self._snapshot is not None and seen is self._seen:
            return self._snapshot
        async with self._restricting:
            return await self._restrict_anew(seen)

    async def _restrict_anew(self, seen: Snapshot) -> Snapshot:
        if self._snapshot is not None and seen is self._seen:
            return self._snapshot
        await self._check(seen)
        permissions = await self._decide(seen)
        self.places.settle(schema.name for schema in seen.known_schemas if schema.system)
        left = await in_thread_if_many(len(seen.tables), self._reduce_all, seen, permissions)
        self._namespace = seen.namespace
        self._homes = seen.homes
        self._snapshot, self._comments, self._texts, self._names = left
        self._seen, self._permissions = seen, permissions
        return self._snapshot

    def _reduce_all(self, seen: Snapshot, permissions: Permissions) -> tuple[Snapshot, Comments, Texts, frozenset[str]]:
        """What is left of a whole snapshot, what leaves out texts, and the names of all relations."""
        texts = Texts(self._dialect, hides=_hides(seen.tables, permissions))
        comments = Comments(seen.tables, permissions)
        granted = (table for table in seen.tables if table.relation in permissions)
        kept = [_reduce(texts.prune(comments.prune(table)), permissions) for table in granted]
        holding = {(relation.schema, relation.catalog) for relation in permissions}
        left = Snapshot(
            tables=self.places.filter_tables(kept),
            namespace=seen.namespace,
            homes=seen.homes,
            version=seen.version,
            known_schemas=tuple(each for each in seen.known_schemas if (each.name, each.catalog) in holding),
        )
        return left.prepare(), comments, texts, frozenset(table.relation.name for table in seen.tables)

    async def _decide(self, seen: Snapshot) -> Permissions:
        """What may be read of each relation: what every decider leaves."""
        first, *others = [await self._decide_for(decider, seen) for decider in self._deciders]
        for other in others:
            both = {name: intersect(first[name], other[name]) for name in first if name in other}
            first = {name: each for name, each in both.items() if each.columns or first[name].columns == ()}
        return first

    async def _decide_for(self, decider: Decider, seen: Snapshot) -> dict[Relation, Permission]:
        """What one decider leaves of each relation.

        A view must be left by its name, or all that it reads be left whole; so must a part of another relation.
        """
        found = {table.relation: each async for table in without_blocking(seen.tables) if (each := decider.on(table))}
        if decider.is_open(found, seen.tables):
            return found
        async for table in without_blocking(seen.tables):
            permission = found.get(table.relation)
            if permission and not permission.named:
                behind = await self._sources(table)
                if behind is None or not all(each in found and found[each].whole for each in behind):
                    del found[table.relation]
        _leave_out_shown(seen.tables, found)
        return found

    async def _sources(self, table: Table) -> Collection[Relation] | None:
        """The relations whose rows another one shows; None: that cannot be determined."""
        if table.type in VIEWS:
            return await self._behind(table)
        return () if table.partition_of is None else (table.partition_of,)


def _leave_out_shown(tables: Sequence[Table], found: dict[Relation, Permission]) -> None:
    """Leave out what shows rows or words of a relation that is not left whole, by whatever name it was granted."""
    showing = [(table.relation, table.shows) for table in tables if table.shows is not None]
    for _ in showing:
        for relation, shown in showing:
            if shown not in found or not found[shown].whole:
                found.pop(relation, None)


def _hides(tables: Sequence[Table], permissions: Permissions) -> bool:
    """Whether anything but the system's own is kept from the callers."""
    own = [table.relation for table in tables if not table.system]
    return not all(relation in permissions and permissions[relation].whole for relation in own)


def _reduce(table: Table, permissions: Permissions) -> Table:
    """Return a relation without the columns that are not granted, and without what tells of hidden rows or values."""
    permission = permissions[table.relation]
    keys = tuple(key for key in table.foreign_keys if _joins(key, permissions))
    if permission.whole:
        return replace(table, foreign_keys=keys)
    columns = frozenset(permission.columns)
    return replace(
        table,
        columns=tuple(
            _mask(column) if column.name in permission.changed else _alone(column)
            for column in table.columns
            if column.name in columns
        ),
        constraints=tuple(_keys(table.constraints, columns)),
        foreign_keys=keys,
        indexes=tuple(_indexes(table.indexes, columns)),
        row_estimate=table.row_estimate if _tells_estimate(table, permission) else None,
        size_bytes=None,
        definition=None,
        partitioned_by=tuple(part for part in table.partitioned_by if part in columns),
    )


def _tells_estimate(table: Table, permission: Permission) -> bool:
    """Whether the estimate of rows tells nothing hidden: SQLite's may be the greatest key."""
    shown = set(permission.columns) - permission.changed
    return not permission.filtered and shown.issuperset(table.primary_key)


def _joins(key: ForeignKey, permissions: Permissions) -> bool:
    """Whether both ends of a foreign key may be read."""
    ends = ((key.relation, key.columns), (key.references, key.referenced_columns))
    return all(of in permissions and set(columns) <= set(permissions[of].columns) for of, columns in ends)


def _alone(column: TableColumn) -> TableColumn:
    """A column without what may be made of others."""
    return replace(column, generated=None) if column.generated else column


def _mask(column: TableColumn) -> TableColumn:
    """A column without what tells of its values."""
    return replace(_alone(column), default=None, enum=())


def _keys(constraints: Iterable[Constraint], columns: frozenset[str]) -> Iterable[Constraint]:
    for each in constraints:
        if each.columns and columns.issuperset(each.columns) and each.type in ("PRIMARY KEY", "UNIQUE"):
            yield replace(each, definition=None)


def _indexes(indexes: Iterable[Index], columns: frozenset[str]) -> Iterable[Index]:
    return (index for index in indexes if columns.issuperset(index.parts) and index.predicate is None)
