"""The catalog of one database: loaded in bulk, kept for a while, and read again when a name is not found."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeVar

from dragoman.access import spell_names
from dragoman.catalog.behind import Behind
from dragoman.catalog.declared import merge
from dragoman.catalog.flight import SingleFlight
from dragoman.catalog.join_sql import join_sql
from dragoman.catalog.joins import Step
from dragoman.catalog.listing import Listing, SchemaKey, list_groups
from dragoman.catalog.names import Namespace, Part, parse_name
from dragoman.catalog.places import Places
from dragoman.catalog.search import Match, MatchKind
from dragoman.catalog.snapshot import Snapshot
from dragoman.catalog.watch import Clock, Watch
from dragoman.collection import pause_collection
from dragoman.cooperative import consume_in_thread, in_thread_if_many, without_blocking
from dragoman.dialect import Capability, Dialect, Inspector
from dragoman.errors import DragomanError, NotFound, PathNotFound, QueryTimeout, SchemaNotFound
from dragoman.model import (
    ConfinedRelation,
    Database,
    ForeignKey,
    Inspection,
    Names,
    Plan,
    Relation,
    Schema,
    Scope,
    Table,
)
from dragoman.words import display

Direction = Literal["outgoing", "incoming", "both"]
Found = TypeVar("Found")
Parts = Mapping[Relation, ConfinedRelation]
"""What statements read in place of relations."""
NO_PARTS: Parts = MappingProxyType({})
"""Those of a database of which every caller sees all that is stored."""
_Key = tuple[str, str | None]
ALL_KINDS: tuple[MatchKind, ...] = ("table", "view", "column")

_REMEMBERED_MISSES = 1000
_CHEAP = 0.05
"""Seconds. A reading of the database that takes less may be repeated at any time."""
_PATIENCE = 10
"""A longer reading is repeated for the same missing name only after this many times its own duration."""


@dataclass(frozen=True, slots=True)
class _Detailed:
    """The details of one relation, the time of their reading, and the relation as the catalog knew it then."""

    table: Table
    told: Table
    born: float


class Catalog:
    """What agents may know about a database. Methods raise what the inspector raises, besides what they name."""

    def __init__(
        self,
        inspector: Inspector,
        dialect: Dialect,
        database: Database,
        *,
        places: Places | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._inspector = inspector
        self._dialect = dialect
        self._database = database
        self.places = places or Places(database, dialect)
        self._allowed = self.places.configured
        catalog = database.database if Capability.CATALOGS in dialect.capabilities else None
        self._homes = _homes(database, dialect)
        self._namespace = Namespace(dialect, self._homes[0] if self._homes else None, catalog)
        self._clock = clock
        self.flights = SingleFlight()
        self._watch: Watch | None = None
        self._begun = self._merged = 0
        self._merging = asyncio.Lock()
        self._snapshot: Snapshot | None = None
        self._early: tuple[Listing, float] | None = None
        self._born = self._cost = 0.0
        self._misses: dict[_Key, float] = {}
        self._details: dict[Relation, _Detailed] = {}
        self._partly: frozenset[Relation] = frozenset()
        self._parts: Parts = NO_PARTS
        self._parts_of: Snapshot | None = None

    @property
    def namespace(self) -> Namespace:
        """The rules for writing names of relations in this database."""
        return self._namespace

    @property
    def version(self) -> int:
        """Increases whenever a reading of the database found something new; 0 before the first."""
        return 0 if self._snapshot is None else self._snapshot.version

    @property
    def cost(self) -> float:
        """Seconds that the last reading of the database took."""
        return self._cost

    @property
    def loaded(self) -> Snapshot | None:
        """The last snapshot, however old, without asking the database."""
        return self._snapshot

    def watch(self) -> None:
        """Check from now on that the catalog is current. What callers may read depends on what views read."""
        self._watch = self._watch or Watch(self._inspector, self._clock)

    async def snapshot(self) -> Snapshot:
        """Return everything visible, at most `catalog_ttl` seconds old. Concurrent callers share one load."""
        young = self._is_young(self._born)
        if self._snapshot is not None and young and (self._watch is None or not self._watch.is_due):
            return self._snapshot
        if self._watch is None:
            return await self.look(self._scope())
        confirm = partial(self._watch.confirm, partial(self._take, self._scope()), stale=not young)
        return await self._load("confirmed", confirm)

    async def parts(self) -> Parts:
        """Return what statements read in place of relations. `NO_PARTS`: all statements read what is stored.

        Where a part of the database is hidden, names of objects are read as text. The mapping stays the same object as
        long as nothing changes.
        """
        if not self.places.narrowed or self._dialect.confine is None:
            return NO_PARTS
        while (snapshot := await self.snapshot()) is not self._parts_of:
            spelled = await in_thread_if_many(len(snapshot.tables), spell_names, snapshot.visible, self._dialect)
            self._parts, self._parts_of = spelled or NO_PARTS, snapshot
        return self._parts  # of what is `loaded` now

    async def refresh(self) -> Snapshot:
        """Read everything again and return it."""
        return await self._load("everything", partial(self._take, self._scope()))

    def _is_young(self, born: float) -> bool:
        return self._clock() - born < self._database.catalog_ttl

    async def schemas(self) -> tuple[Schema, ...]:
        """Return the visible schemas, including system schemas, which are marked."""
        return (await self.listing()).known

    async def listing(self) -> Listing:
        """Return the names of everything visible. If names are available alone, the rest is read in the background."""
        if self._snapshot is None or not self._is_young(self._born):
            await self.flights.run("names", self._take_names)
            if self._early is not None:
                scope = self._scope()
                self.flights.start(scope, lambda: self._take(scope))
                return self._early[0]
        return (await self.snapshot()).listing

    async def list_schema(self, written: str) -> tuple[Listing, SchemaKey]:
        """Return a listing and the schema that a name means in it. Reads again once; raises `SchemaNotFound`."""
        listing = await self.listing()
        try:
            return listing, listing.find_schema(written)
        except NotFound:
            key = await self.find_schema(written)
            return (await self.snapshot()).listing, key

    async def _take_names(self) -> None:
        """Read the names, unless they were read a while ago and everything else is still being read."""
        if self._early is not None and self._is_young(self._early[1]):
            return
        self._early = None
        # The first list must report a wrong declared key, and only its columns show that it is wrong.
        groups = None if self._database.keys else await self._inspector.names(self._scope())
        if groups is None:
            return
        schemas = tuple(await self._inspector.schemas())
        self._settle(schemas)
        listing = await in_thread_if_many(sum(map(_count, groups)), self._list_names, groups, schemas)
        self._early = listing, self._clock()

    def _list_names(self, groups: Iterable[Names], schemas: Iterable[Schema]) -> Listing:
        shown = [group for group in groups if self.places.visible(group.schema, group.catalog)]
        return list_groups(shown, self._namespace, self._visible(schemas))

    def _visible(self, schemas: Iterable[Schema]) -> tuple[Schema, ...]:
        return tuple(schema for schema in schemas if self.places.visible(schema.name, schema.catalog))

    async def find(self, name: str, schema: str | None = None, *, near: bool = True) -> Table:
        """Return the relation that `name` means: plain, quoted or dotted as in SQL, or exactly as stored.

        `schema` may be dotted (catalog.schema). Without it the name resolves as the database would resolve it. If the
        name is not found, its schema is read again before `TableNotFound` or `SchemaNotFound` is raised. They suggest
        similar names unless `near` is false. Raises `ParameterError`, listing the candidates, if several match.
        """
        try:
            return await self._find_or_refresh(name, schema, lambda snapshot: snapshot.find(name, schema))
        except NotFound as error:
            raise (await self.with_near_names(error) if near else error) from None

    async def find_all(
        self, names: Iterable[str], schema: str | None = None
    ) -> tuple[dict[str, Table], dict[str, NotFound]]:
        """Return the relations that many names mean, as `find` does, and the errors of the other names.

        The errors suggest no similar names. All missing names share one reading of the database. Raises
        `ParameterError` if several relations match a name.
        """
        wanted = [(name, schema) for name in names]
        found, missed = await self._find_each(wanted, lambda snapshot, key: snapshot.find(*key))
        return {name: table for (name, _), table in found.items()}, {name: error for (name, _), error in missed.items()}

    async def candidates(self, keys: Iterable[_Key]) -> dict[_Key, Sequence[Table]]:
        """Return the relations that names with a schema each may mean: several if nothing says which."""
        found, _ = await self._find_each(keys, lambda snapshot, key: snapshot.candidates(*key))
        return found

    async def _find_each(
        self, keys: Iterable[_Key], find: Callable[[Snapshot, _Key], Found]
    ) -> tuple[dict[_Key, Found], dict[_Key, NotFound]]:
        snapshot = await self.snapshot()
        found, missed = await _find_each(snapshot, keys, find)
        scopes: set[Scope] = set()
        async for key, error in without_blocking(missed.items()):
            if self._may_look_again(key):
                scopes.add(self._scope_of_miss(snapshot, error, *key))
                self._misses[key] = self._clock()
        if not scopes:
            return found, missed
        fresh = await self.look(scopes.pop() if len(scopes) == 1 else self._scope())
        after, missed = await _find_each(fresh, missed, find)
        return found | after, missed

    async def add_details(self, tables: Sequence[Table]) -> list[Table]:
        """Return relations with the facts that are read one relation at a time; unchanged where they cannot be read."""
        now = self._clock()
        wanted = [table for table in tables if not self._is_detailed(table, now)]
        try:
            told = await self._inspector.details(wanted) if wanted else ()
        except DragomanError:
            return await self.redact(tables)
        told = await self.redact(told)
        self._details |= {table.relation: _Detailed(table, more, now) for table, more in zip(wanted, told, strict=True)}
        known = self._details  # without those that another reading has meanwhile found to be gone
        return [known[table.relation].told if table.relation in known else table for table in tables]

    async def redact(self, tables: Sequence[Table]) -> list[Table]:
        """Return visible relations with only what may be shown, including of their definitions.

        A snapshot has all of them.
        """
        if not tables or not self.places.narrowed:
            return list(tables)
        snapshot = await self.snapshot()
        behind = Behind(snapshot, self.places, self._partly)

        def redact() -> list[Table]:
            return [behind.redact(table) for table in self.places.filter_tables(tables, snapshot.by_relation)]

        return await asyncio.to_thread(redact)

    async def reaches_outside(self, plan: Plan, relations: Iterable[Relation]) -> bool:
        """Return whether the plan of a statement over `relations` may name something outside."""
        if not self.places.narrowed:
            return False
        snapshot = await self.snapshot()
        if any(relation not in snapshot.by_relation for relation in plan.reads):
            return True
        if not all(map(self.places.knows, plan.schemas)):
            return True
        return await self.show_more(relations)

    async def show_more(self, relations: Iterable[Relation]) -> bool:
        """Return whether one of the relations is a view of something that callers do not see as a whole."""
        snapshot = await self.snapshot()
        return await asyncio.to_thread(Behind(snapshot, self.places, self._partly).reaches_outside, relations)

    def _is_detailed(self, table: Table, now: float) -> bool:
        known = self._details.get(table.relation)
        return known is not None and known.table is table and now - known.born < self._database.catalog_ttl

    async def find_schema(self, written: str) -> SchemaKey:
        """Return the schema that a plain or dotted name means. Reads again once; raises `SchemaNotFound`."""
        try:
            return await self._find_or_refresh("", written, lambda snapshot: snapshot.find_schema(written))
        except NotFound as error:
            raise await self.with_near_names(error) from None

    async def with_near_names(self, error: NotFound) -> NotFound:
        """Return an error of `find` with suggestions of similar names."""
        # In a thread, like everything that compares a name with all others: there may be 10,000 tables.
        return error if self._snapshot is None else await asyncio.to_thread(self._snapshot.with_near_names, error)

    async def near_relations(self, name: str) -> list[str]:
        """Return relations with a name similar to `name`, as in SQL, best first."""
        return await asyncio.to_thread((await self.snapshot()).near_relations, name)

    async def near_columns(self, name: str, relations: Iterable[Relation] = ()) -> list[str]:
        """Return columns with a name similar to `name`, of `relations`, or of any if there are none, best first."""
        return await asyncio.to_thread((await self.snapshot()).near_columns, name, relations)

    async def search(
        self, query: str, kinds: Collection[MatchKind] = ALL_KINDS, limit: int = 20
    ) -> tuple[list[Match], tuple[str, ...]]:
        """Return relations and columns by name and comment, best first, and notices about what could not be read."""
        snapshot = await self.snapshot()
        # In a thread: the first search of 10,000 tables takes a quarter of a second, and no other call should wait for
        # it.
        return await asyncio.to_thread(lambda: snapshot.index.search(query, kinds, limit)), snapshot.notices

    async def foreign_keys(
        self, table: Table, direction: Direction = "both"
    ) -> tuple[list[ForeignKey], list[ForeignKey]]:
        """Return the keys that leave a relation and those that reference it. A self reference is in both."""
        graph = (await self.snapshot()).graph
        outgoing = graph.outgoing.get(table.relation, []) if direction != "incoming" else []
        incoming = graph.incoming.get(table.relation, []) if direction != "outgoing" else []
        return outgoing, incoming

    async def join_paths(self, source: Table, target: Table, max_depth: int = 4) -> list[tuple[Step, ...]]:
        """Return up to five shortest ways to join two relations in at most `max_depth` joins.

        Raises `PathNotFound`, which names the joins of both sides.
        """
        snapshot = await self.snapshot()
        # In a thread: around a relation that everything references, there are thousands of paths to try.
        paths = await asyncio.to_thread(snapshot.graph.paths, source.relation, target.relation, max_depth)
        if not paths:
            raise _no_path(snapshot, source.relation, target.relation, max_depth)
        return paths

    def join_sql(self, path: tuple[Step, ...]) -> str:
        """Return a whole SELECT along a join path, in the database's dialect."""
        return join_sql(path, self._namespace)

    async def aclose(self) -> None:
        """End a running load."""
        await self.flights.aclose()

    async def _find_or_refresh(self, name: str, schema: str | None, look: Callable[[Snapshot], Found]) -> Found:
        """Call `look`.

        If it finds nothing, read the schema again, unless that was just done for this name, and call it once more.
        """
        snapshot = await self.snapshot()
        try:
            return look(snapshot)
        except NotFound as error:
            if not self._may_look_again((name, schema)):
                raise
            scope = self._scope_of_miss(snapshot, error, name, schema)
        fresh = await self.look(scope)
        self._misses[name, schema] = self._clock()
        return look(fresh)

    def _may_look_again(self, key: _Key) -> bool:
        if len(self._misses) >= _REMEMBERED_MISSES:
            self._misses.clear()
        last = self._misses.get(key)
        return last is None or self._cost < _CHEAP or self._clock() - last > self._cost * _PATIENCE

    async def have_lost(self, relations: Sequence[Relation], column: str) -> bool:
        """Return whether a relation no longer has a column.

        Reads them again, unless that was just done for such a column.
        """
        missed = (f".{column}", None)  # which is not the name of a relation
        if self._may_look_again(missed):
            await self.look(_scope_of(relations))
            self._misses[missed] = self._clock()
        known = (await self.snapshot()).by_relation
        tables = [known.get(each) for each in relations]
        return not all(table and column in {each.name for each in table.columns} for table in tables)

    async def look(self, scope: Scope) -> Snapshot:
        """Read `scope` again and return everything visible. Raises `QueryTimeout`; the load then goes on.

        A watched database that says that it has not changed is not read: 40,000 relations take seconds.
        """
        return await self._load(scope, partial(self._take_changed, scope))

    async def _take_changed(self, scope: Scope) -> None:
        if self._watch is None or not await self._watch.holds():
            await self._take(scope)

    async def _load(self, key: Scope | str, work: Callable[[], Awaitable[None]]) -> Snapshot:
        try:
            async with asyncio.timeout(self._database.timeout):
                await self.flights.run(key, work)
        except TimeoutError:
            raise QueryTimeout(
                f"The catalog of {self._database.name} was not read within {self._database.timeout:g} seconds.",
                suggestion="It goes on loading: try again in a moment.",
            ) from None
        assert self._snapshot is not None  # _take sets it or raises
        return self._snapshot

    async def _take(self, scope: Scope) -> None:
        """Read `scope` and replace what was known of it."""
        start = self._clock()
        whole = scope == self._scope()
        schemas = tuple(await self._inspector.schemas()) if whole or self._snapshot is None else None
        self._settle(schemas or ())
        await self._read(scope, schemas)
        fresh = self._snapshot
        assert fresh is not None  # _read has just replaced it
        self._details = {name: each for name, each in self._details.items() if name in fresh.by_relation}
        if schemas is not None:
            self._born, self._early = self._clock(), None
        self._cost = self._clock() - start

    async def _read(self, scope: Scope, schemas: tuple[Schema, ...] | None) -> None:
        """Read `scope`. Read it again if a later reading finished earlier: that one was more current."""
        while True:
            self._begun = begun = self._begun + 1
            held = [await self._inspector.tables(scope)]
            async with self._merging:
                if begun > self._merged:
                    # In a thread: there may be 10,000 tables, and every text of each is searched.
                    await consume_in_thread(held, partial(self._renew, scope, schemas))
                    self._merged = begun
                    return

    def _renew(self, scope: Scope, schemas: tuple[Schema, ...] | None, seen: Inspection) -> None:
        """Replace what was known by what was read. The old data is freed here, not in the event loop's thread."""
        with pause_collection():
            self._snapshot = self._add(self._snapshot, scope, schemas, seen)

    def _add(
        self, before: Snapshot | None, scope: Scope, schemas: tuple[Schema, ...] | None, seen: Inspection
    ) -> Snapshot:
        """Return what was read if it is everything, else what was known with the part in `scope` replaced."""
        if before is None or schemas is not None:
            return self._merge(self._show(seen.tables), schemas or (), seen.notices, before)
        kept = (table for table in before.tables if table.relation not in scope)
        told = tuple(dict.fromkeys((*before.told, *seen.notices)))
        return self._merge(self._show((*kept, *seen.tables)), before.known_schemas, told, before)

    def _show(self, tables: Iterable[Table]) -> Iterable[Table]:
        return self.places.filter_tables(tables) if self.places.narrowed else tables

    def _settle(self, schemas: Collection[Schema]) -> None:
        """Set the schemas in which names without a schema are looked up, if the database reports them."""
        if schemas:
            self.places.settle(schema.name for schema in schemas if schema.system)
        path = sorted((schema.search_order, schema.name) for schema in schemas if schema.search_order is not None)
        if path:
            self._homes = tuple(name for _, name in path)
            self._namespace = replace(self._namespace, schema=self._homes[0])

    def _scope(self) -> Scope:
        """Return the scope of everything that the configuration makes visible, or a little more.

        The surplus is dropped later.
        """
        catalogs = {parts[-2].text if len(parts) > 1 else self._namespace.catalog for parts in self._allowed}
        return Scope(
            catalogs=frozenset() if None in catalogs else frozenset(name for name in catalogs if name is not None),
            schemas=frozenset(text for parts in self._allowed for text in _spellings(parts[-1], self._dialect)),
        )

    def _scope_of_miss(self, snapshot: Snapshot, error: NotFound, name: str, schema: str | None) -> Scope:
        """Return the schemas that a missing name must be in, usually one, else everything."""
        if isinstance(error, SchemaNotFound):
            return self._scope()
        parts = parse_name(name, self._dialect.lexicon) or ()
        written = schema or self._namespace.join(*(part.text for part in parts[:-1])) or None
        home = SchemaKey(self._namespace.schema, self._namespace.catalog)
        keys = [home] if written is None else snapshot.find_schemas(written)
        schemas = frozenset(key.name for key in keys if key.name is not None)
        if not schemas:
            return self._scope()
        return Scope(catalogs=frozenset(key.catalog for key in keys if key.catalog is not None), schemas=schemas)

    def _merge(
        self, tables: Iterable[Table], schemas: Iterable[Schema], told: tuple[str, ...], before: Snapshot | None
    ) -> Snapshot:
        visible = sorted(tables, key=_order)
        plain = Snapshot(tuple(visible), self._namespace, self._homes, told, (), 1, self._visible(schemas))
        merged, unused = merge(visible, self._database.keys, plain.find, self._dialect)
        after = replace(plain, tables=merged, unused_keys=tuple(unused))
        if before is None:
            return after.prepare()
        after = replace(after, version=before.version)
        return before if after == before else replace(after, version=before.version + 1).prepare()


def _scope_of(relations: Iterable[Relation]) -> Scope:
    some = tuple(relations)
    return Scope(
        catalogs=frozenset(each.catalog for each in some if each.catalog),
        schemas=frozenset(each.schema for each in some if each.schema),
        names=frozenset(each.name for each in some),
    )


def _count(group: Names) -> int:
    return len(group.names)


async def _find_each(
    snapshot: Snapshot, keys: Iterable[_Key], find: Callable[[Snapshot, _Key], Found]
) -> tuple[dict[_Key, Found], dict[_Key, NotFound]]:
    found: dict[_Key, Found] = {}
    missed: dict[_Key, NotFound] = {}
    async for key in without_blocking(dict.fromkeys(keys)):
        try:
            found[key] = find(snapshot, key)
        except NotFound as error:
            missed[key] = error
    return found, missed


def _spellings(part: Part, dialect: Dialect) -> set[str]:
    """Return the ways in which a configured schema may be stored: as written, or as the dialect folds it."""
    if part.quoted and dialect.folding != "insensitive":
        return {part.text}
    return {part.text, dialect.fold(part.text)}


def _homes(database: Database, dialect: Dialect) -> tuple[str, ...]:
    parts = [Part(home) for home in (database.schema, dialect.default_schema) if home]
    return tuple(dict.fromkeys(home for part in parts for home in (part.text, *sorted(_spellings(part, dialect)))))


def _order(table: Table) -> tuple[str, str, str]:
    relation = table.relation
    return (relation.catalog or "", relation.schema or "", relation.name)


def _no_path(snapshot: Snapshot, source: Relation, target: Relation, max_depth: int) -> PathNotFound:
    def name(relation: Relation) -> str:
        return display(snapshot.namespace.name(relation))

    if source == target:
        return PathNotFound(
            f"{name(source)} has no foreign key to itself.",
            suggestion=f"It joins to {_neighbours(snapshot, source)}.",
        )
    return PathNotFound(
        f"No chain of at most {max_depth} foreign keys joins {name(source)} and {name(target)}.",
        suggestion=f"{name(source)} joins to {_neighbours(snapshot, source)}; "
        f"{name(target)} joins to {_neighbours(snapshot, target)}. "
        "Compare columns of like names with search_catalog, or raise max_depth (up to 6).",
    )


def _neighbours(snapshot: Snapshot, relation: Relation) -> str:
    names = [display(snapshot.namespace.name(other)) for other in snapshot.graph.neighbours(relation)]
    few = [*names[:5], *([f"{len(names) - 5} more"] if len(names) > 5 else [])]
    return ", ".join(few) or "nothing"
