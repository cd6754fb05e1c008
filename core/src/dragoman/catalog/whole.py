"""The catalog of a whole database: read in bulk, kept for a while, and read again when the database has changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dragoman.access import spell_names
from dragoman.catalog.catalog import NO_PARTS, Catalog, Parts
from dragoman.catalog.declared import merge
from dragoman.catalog.flight import SingleFlight
from dragoman.catalog.listing import Listing, list_groups
from dragoman.catalog.places import Places
from dragoman.catalog.snapshot import Snapshot
from dragoman.catalog.watch import Clock, Watch
from dragoman.collection import pause_collection
from dragoman.cooperative import consume_in_thread, in_thread_if_many
from dragoman.dialect import Dialect, Inspector
from dragoman.errors import DragomanError, QueryTimeout
from dragoman.model import Database, Inspection, Names, Relation, Schema, Scope, Table


@dataclass(frozen=True, slots=True)
class _Detailed:
    """The details of one relation, the time of their reading, and the relation as the catalog knew it then."""

    table: Table
    told: Table
    born: float


class WholeCatalog(Catalog):
    """What the configuration makes visible of a database. Methods raise what the inspector raises.

    `flights`: work that several callers may want at once, until `aclose`.
    """

    def __init__(
        self,
        inspector: Inspector,
        dialect: Dialect,
        database: Database,
        *,
        places: Places | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        super().__init__(dialect, database, places or Places(database, dialect), clock)
        self._inspector = inspector
        self.flights = SingleFlight()
        self._watch: Watch | None = None
        self._begun = self._merged = 0
        self._merging = asyncio.Lock()
        self._early: tuple[Listing, float] | None = None
        self._born = self._cost = 0.0
        self._details: dict[Relation, _Detailed] = {}
        self._parts_of: Snapshot | None = None

    @property
    def cost(self) -> float:
        """Seconds that the last reading of the database took."""
        return self._cost

    def watch(self) -> None:
        """Check from now on that the catalog is current. What callers may read depends on what views read."""
        self._watch = self._watch or Watch(self._inspector, self._clock)

    async def snapshot(self) -> Snapshot:
        """Return everything visible, at most `catalog_ttl` seconds old. Concurrent callers share one load."""
        young = self._is_young(self._born)
        if self._snapshot is not None and young and (self._watch is None or not self._watch.is_due):
            return self._snapshot
        if self._watch is None:
            scope = self._scope()
            return await self._load(scope, partial(self._take, scope))
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
        return await self._load("everything", partial(self._take, self._scope()), anew=True)

    async def look(self, scope: Scope) -> Snapshot:
        """Read `scope` again and return everything visible. Raises `QueryTimeout`; the load then goes on.

        A watched database that says that it has not changed is not read: 40,000 relations take seconds. It is read if
        something could not be read before.
        """
        return await self._load(scope, partial(self._take_changed, scope), anew=True)

    async def _take_changed(self, scope: Scope) -> None:
        incomplete = self._snapshot is not None and self._snapshot.told
        if self._watch is None or incomplete or not await self._watch.holds():
            await self._take(scope)

    async def listing(self) -> Listing:
        """Return the names of everything visible. If names are available alone, the rest is read in the background."""
        if self._snapshot is None or not self._is_young(self._born):
            await self.flights.run("names", self._take_names)
            if self._early is not None:
                scope = self._scope()
                self.flights.start(scope, lambda: self._take(scope))
                return self._early[0]
        return (await self.snapshot()).listing

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

    def _is_detailed(self, table: Table, now: float) -> bool:
        known = self._details.get(table.relation)
        return known is not None and known.table is table and now - known.born < self._database.catalog_ttl

    def _is_young(self, born: float) -> bool:
        return self._clock() - born < self._database.catalog_ttl

    async def aclose(self) -> None:
        """End a running load."""
        await self.flights.aclose()

    async def _load(self, key: Scope | str, work: Callable[[], Awaitable[None]], *, anew: bool = False) -> Snapshot:
        run = self.flights.run_anew if anew else self.flights.run
        try:
            async with asyncio.timeout(self._database.timeout):
                await run(key, work)
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


def _count(group: Names) -> int:
    return len(group.names)


def _order(table: Table) -> tuple[str, str, str]:
    relation = table.relation
    return (relation.catalog or "", relation.schema or "", relation.name)
