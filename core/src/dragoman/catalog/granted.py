"""The catalog for callers who have a part of it, computed from the whole one without asking the database."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from dragoman.access import Decider, Permission, intersect
from dragoman.catalog.behind import VIEWS as DEFINED
from dragoman.catalog.catalog import Catalog, Parts
from dragoman.catalog.listing import Listing
from dragoman.catalog.mentions import Comments
from dragoman.catalog.names import parse_name
from dragoman.catalog.places import HIDDEN, Places
from dragoman.catalog.snapshot import Snapshot
from dragoman.catalog.texts import Texts
from dragoman.catalog.updating import update
from dragoman.catalog.whole import WholeCatalog
from dragoman.collection import pause_collection
from dragoman.cooperative import in_thread_if_many, without_blocking
from dragoman.dialect import Dialect
from dragoman.errors import DragomanError
from dragoman.model import Constraint, Database, ForeignKey, Index, Plan, Relation, Scope, Table, TableColumn

VIEWS = DEFINED | {"virtual table"}
"""Types of relations that may show rows of others.

For a virtual table its module decides, and it may be an index of another's words.
"""
_TYPE = r'(?:"[^"]+"|[\w$]+)'
_TYPES = re.compile(
    rf"\btypes? {_TYPE}(?: (?:and|to) {_TYPE})?|(?P<called>\bfunction [^(]*)\([^)]*\)|\boperator [a-z ]+: .*"
)
"""The parts of a message in which the names of types stand, one of them after the name of a function."""
Permissions = Mapping[Relation, Permission]
FindSources = Callable[[Table], Awaitable[Collection[Relation] | None]]
"""Returns the relations that a view reads, directly or through other views. None: they cannot be determined."""


class GrantedPlaces(Places):
    """Those schemas of the configuration in which something may be granted."""

    def __init__(self, database: Database, dialect: Dialect, deciders: Sequence[Decider]) -> None:
        self._deciders = deciders
        self._rows: frozenset[tuple[str | None, str]] = frozenset()
        self._row_names: frozenset[str] = frozenset()
        super().__init__(database, dialect, hides=True)

    def hide(self, seen: Snapshot, granted: Collection[Relation]) -> None:
        """Record which relations are hidden, where each has a type of its own name.

        Such a type is written without its schema where names are looked up in that schema. The same name may then be
        that of a visible type.
        """
        types = self._dialect.loaded_rules.types
        own = (table.relation for table in seen.tables if types and not table.system)
        hidden = [relation for relation in own if relation not in granted]
        self._rows = frozenset((row.schema, row.name) for row in hidden)
        searched = {schema.name for schema in seen.known_schemas if schema.search_order is not None}
        visible = types.union(relation.name for relation in granted)
        self._row_names = frozenset(row.name for row in hidden if row.schema in searched) - visible

    def _is_of_hidden_rows(self, text: str) -> bool:
        parts = parse_name(text.rstrip("[]"), self._dialect.lexicon) if self._rows else None
        if not parts:
            return False
        name = parts[-1].text
        if len(parts) == 1:
            return name in self._row_names
        return (parts[-2].text, name) in self._rows

    def clean(self, error: DragomanError, written: str) -> DragomanError:
        """Return an error of the database without names from outside, among them types of hidden relations' rows."""
        told = super().clean(error, written)
        names = {name for name in self._row_names if name in told.message}
        if not names:
            return told
        return told.replace(message=_TYPES.sub(lambda found: _without_types(found, names), told.message))

    def visible(self, schema: str | None, catalog: str | None) -> bool:
        """Return whether a schema, by its stored names, exists for the callers."""
        return super().visible(schema, catalog) and all(decider.reaches(schema, catalog) for decider in self._deciders)


class GrantedCatalog(Catalog):
    """The part of a catalog that grants and policies leave; it has at least one decider.

    `check`: raises if the roles do not match what `whole` knows.
    """

    places: GrantedPlaces

    def __init__(
        self,
        whole: WholeCatalog,
        places: GrantedPlaces,
        dialect: Dialect,
        database: Database,
        *,
        deciders: Sequence[Decider],
        find_sources: FindSources,
        check: Callable[[Snapshot], Awaitable[None]],
    ) -> None:
        super().__init__(dialect, database, places)
        self._whole = whole
        self._deciders = deciders
        self._find_sources = find_sources
        self._check = check
        self._seen: Snapshot | None = None
        self._permissions: Permissions = {}
        self._comments = Comments((), {})
        self._texts = Texts(dialect, hides=False)
        self._names: frozenset[str] = frozenset()

    @property
    def cost(self) -> float:
        """Seconds that the last reading by the whole catalog took."""
        return self._whole.cost

    def watch(self) -> None:
        """Have the whole catalog check from now on that it is current."""
        self._whole.watch()

    async def snapshot(self) -> Snapshot:
        """Return the granted part of the whole catalog's snapshot."""
        return await self._restrict(await self._whole.snapshot())

    async def listing(self) -> Listing:
        """Return the names of what is granted. Only the whole catalog knows this."""
        return (await self.snapshot()).listing

    async def permissions(self) -> Permissions:
        """Return what may be read of each relation that exists for the callers."""
        await self.snapshot()
        return self._permissions

    async def parts(self) -> Parts:
        """Return the parts of relations that the callers have."""
        await self.snapshot()
        return self._parts

    async def all_names(self) -> frozenset[str]:
        """Return the names of all relations, granted or not."""
        await self.snapshot()
        return self._names

    async def is_whole(self) -> bool:
        """Return whether everything but the system's relations is granted, with every row and column."""
        permissions = await self.permissions()
        relations = [table.relation for table in (await self._whole.snapshot()).visible]
        return all(relation in permissions and permissions[relation].whole for relation in relations)

    async def reaches_outside(self, plan: Plan, relations: Iterable[Relation]) -> bool:
        """Return whether a plan may name something that is not granted.

        A plan names columns and indexes that its statement does not.
        """
        permissions = await self.permissions()
        relations = tuple(relations)
        if any(each in permissions and not permissions[each].whole for each in (*plan.reads, *relations)):
            return True
        return await super().reaches_outside(plan, relations)

    async def redact(self, tables: Sequence[Table]) -> list[Table]:
        """Return relations as `Catalog` does. A definition is shown only if all that its view reads is granted whole.

        The whole catalog tells that: names in the definition may mean relations that are hidden.
        """
        told: list[Table] = []
        async for table in without_blocking(await super().redact(tables)):
            shown = table.definition is None or table.type not in DEFINED or await self._reads_whole(table.relation)
            told.append(table if shown else replace(table, definition=None))
        return told

    async def show_more(self, relations: Iterable[Relation]) -> bool:
        """Return whether one of the relations is a view of something that callers do not see as a whole."""
        snapshot = await self.snapshot()
        known = [snapshot.by_relation[each] for each in relations if each in snapshot.by_relation]
        views = [table.relation for table in known if table.type in DEFINED and not table.system]
        return not all([await self._reads_whole(each) for each in views]) or await super().show_more(views)

    async def _reads_whole(self, view: Relation) -> bool:
        permissions = await self.permissions()
        table = self._seen.by_relation.get(view) if self._seen else None
        read = await self._find_sources(table) if table else None
        return read is not None and all(each in permissions and permissions[each].whole for each in read)

    async def look(self, scope: Scope) -> Snapshot:
        """Have the whole catalog read the database again."""
        return await self._restrict(await self._whole.look(scope))

    async def refresh(self) -> Snapshot:
        """Have the whole catalog read everything again."""
        return await self._restrict(await self._whole.refresh())

    async def add_details(self, tables: Sequence[Table]) -> list[Table]:
        """Return relations with the facts that are read for single relations only, as far as they are granted."""
        permissions = await self.permissions()
        seen = self._seen
        assert seen is not None  # set by permissions()
        known = [seen.by_relation[table.relation] for table in tables]
        told = await self._whole.add_details(known)
        return await self.redact(await in_thread_if_many(len(told), self._prune, told, permissions))

    def _prune(self, tables: Iterable[Table], permissions: Permissions) -> list[Table]:
        """Return the granted part of each relation."""
        return [_reduce(self._texts.prune(self._comments.prune(table)), permissions) for table in tables]

    async def _restrict(self, seen: Snapshot) -> Snapshot:
        """Return the granted part of a snapshot. Concurrent callers share the work, which goes on when they leave.

        It would never be done otherwise, if all callers had less time than it takes.
        """
        while self._snapshot is None or self._seen is None or self._seen.version < seen.version:
            await self._whole.flights.run(self, partial(self._restrict_anew, seen))
        return self._snapshot

    async def _restrict_anew(self, seen: Snapshot) -> None:
        await self._check(seen)
        permissions = await self._decide(seen)
        self.places.settle_as(self._whole.places)  # the snapshot has the configured schemas alone
        with pause_collection():
            left = await in_thread_if_many(len(seen.tables), self._reduce_all, seen, permissions)
        self._namespace = seen.namespace
        self._homes = seen.homes
        self._snapshot, self._comments, self._texts, self._names = left
        self._seen, self._permissions = seen, permissions
        self._parts = {each: permission.confined for each, permission in permissions.items() if permission.confined}
        self._partly = frozenset(each for each, permission in permissions.items() if not permission.whole)

    def _reduce_all(self, seen: Snapshot, permissions: Permissions) -> tuple[Snapshot, Comments, Texts, frozenset[str]]:
        """Return the granted part of a whole snapshot, and what else is computed with it.

        These are the filters of comments and of texts, and the names of all relations.
        """
        self.places.hide(seen, permissions)
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
            known_schemas=tuple(
                comments.prune_schema(each) for each in seen.known_schemas if (each.name, each.catalog) in holding
            ),
        )
        return left.prepare(), comments, texts, frozenset(table.relation.name for table in seen.tables)

    async def _decide(self, seen: Snapshot) -> Permissions:
        """Return what may be read of each relation, after all deciders."""
        first, *others = [await self._decide_for(decider, seen) for decider in self._deciders]
        for other in others:
            both = {name: intersect(first[name], other[name]) for name in first if name in other}
            first = {name: each for name, each in both.items() if each.columns or first[name].columns == ()}
        return first

    async def _decide_for(self, decider: Decider, seen: Snapshot) -> dict[Relation, Permission]:
        """Return what one decider leaves of each relation.

        A view stays only if it is granted by its own name, or if everything it reads is granted as a whole. The same
        holds for a part of another relation.
        """
        tables = seen.tables
        with pause_collection():  # not while the database tells what views read, which may take long
            found = {table.relation: each async for table in without_blocking(tables) if (each := decider.on(table))}
        if decider.is_open(found, seen.tables):
            return found
        async for table in without_blocking(seen.tables):
            permission = found.get(table.relation)
            if permission and not permission.named:
                behind = await sources_of(table, self._find_sources)
                if behind is None or not all(each in found and found[each].whole for each in behind):
                    del found[table.relation]
        _leave_out_shown(seen.tables, found)
        return found


async def sources_of(table: Table, find_sources: FindSources) -> Collection[Relation] | None:
    """Return the relations whose rows another one shows. None: they cannot be determined."""
    if table.type in VIEWS:
        return await find_sources(table)
    return () if table.partition_of is None else (table.partition_of,)


def _without_types(found: re.Match[str], names: Iterable[str]) -> str:
    """Return a part of a message in which types stand without some names. A function's name is the statement's."""
    called = found["called"] or ""
    return called + _without(found[0].removeprefix(called), names)


def _without(text: str, names: Iterable[str]) -> str:
    """Return a part of a message without some names."""
    for name in names:
        text = re.sub(rf'"{re.escape(name)}"|(?<![\w$"]){re.escape(name)}(?![\w$"])', HIDDEN, text)
    return text


def _leave_out_shown(tables: Sequence[Table], found: dict[Relation, Permission]) -> None:
    """Remove relations that show rows or words of a relation that is not granted as a whole.

    It does not matter by which name they were granted.
    """
    showing = [(table.relation, table.shows) for table in tables if table.shows is not None]
    for _ in showing:
        for relation, shown in showing:
            if shown not in found or not found[shown].whole:
                found.pop(relation, None)


def _hides(tables: Sequence[Table], permissions: Permissions) -> bool:
    """Return whether anything but the system's own is hidden from the callers."""
    own = [table.relation for table in tables if not table.system]
    return not all(relation in permissions and permissions[relation].whole for relation in own)


def _reduce(table: Table, permissions: Permissions) -> Table:
    """Return a relation without columns that are not granted, and without facts that reveal hidden rows or values."""
    permission = permissions[table.relation]
    keys = tuple([key for key in table.foreign_keys if _joins(key, permissions)])
    if permission.whole:
        return update(table, foreign_keys=keys)
    columns = frozenset(permission.columns)
    return replace(
        table,
        columns=tuple(
            _mask(column) if column.name in permission.changed else _alone(column)
            for column in table.columns
            if column.name in columns
        ),
        constraints=tuple(_keys(table, columns)),
        foreign_keys=keys,
        indexes=tuple(_indexes(table.indexes, columns)),
        row_estimate=table.row_estimate if _tells_estimate(table, permission) else None,
        size_bytes=None,
        definition=None,
        partitioned_by=tuple(part for part in table.partitioned_by if part in columns),
    )


def _tells_estimate(table: Table, permission: Permission) -> bool:
    """Return whether the estimate of rows may be shown. SQLite's may be the greatest key, which reveals hidden rows."""
    shown = set(permission.columns) - permission.changed
    return not permission.filtered and shown.issuperset(table.primary_key)


def _joins(key: ForeignKey, permissions: Permissions) -> bool:
    """Return whether both ends of a foreign key may be read."""
    ends = ((key.relation, key.columns), (key.references, key.referenced_columns))
    return all(of in permissions and set(columns) <= set(permissions[of].columns) for of, columns in ends)


def _alone(column: TableColumn) -> TableColumn:
    """Return a column without facts that may be computed from other columns."""
    return replace(column, generated=None) if column.generated else column


def _mask(column: TableColumn) -> TableColumn:
    """Return a column without facts about its values."""
    return replace(_alone(column), default=None, enum=())


def _keys(table: Table, columns: frozenset[str]) -> Iterable[Constraint]:
    """Yield the keys over visible columns. A key may have its name of a hidden column that only its index holds."""
    telling = {index.name for index in table.indexes if not columns.issuperset(index.included)}
    for each in table.constraints:
        if each.type not in ("PRIMARY KEY", "UNIQUE") or each.name in telling:
            continue
        if each.columns and columns.issuperset(each.columns):
            yield replace(each, definition=None)


def _indexes(indexes: Iterable[Index], columns: frozenset[str]) -> Iterable[Index]:
    return (each for each in indexes if columns.issuperset(each.parts + each.included) and each.predicate is None)
