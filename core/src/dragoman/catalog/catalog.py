"""What agents ask about a database. `whole` reads all of it, and `granted` has the part that a caller's roles give."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeVar

from dragoman.catalog.behind import Behind
from dragoman.catalog.join_sql import join_sql
from dragoman.catalog.joins import Step
from dragoman.catalog.listing import Listing, SchemaKey
from dragoman.catalog.names import Namespace, Part, parse_name
from dragoman.catalog.places import Places
from dragoman.catalog.search import Match, MatchKind
from dragoman.catalog.snapshot import Snapshot
from dragoman.catalog.watch import Clock
from dragoman.cooperative import without_blocking
from dragoman.dialect import Capability, Dialect
from dragoman.errors import NotFound, PathNotFound, SchemaNotFound
from dragoman.model import (
    ConfinedRelation,
    Database,
    ForeignKey,
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


class Catalog(ABC):
    """What agents may know about a database, by its last snapshot. Methods raise what reading it raises."""

    def __init__(self, dialect: Dialect, database: Database, places: Places, clock: Clock = time.monotonic) -> None:
        self._dialect = dialect
        self._database = database
        self.places = places
        catalog = database.database if Capability.CATALOGS in dialect.capabilities else None
        self._homes = _homes(database, dialect)
        self._namespace = Namespace(dialect, self._homes[0] if self._homes else None, catalog)
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._misses: dict[_Key, float] = {}
        self._partly: frozenset[Relation] = frozenset()
        self._parts: Parts = NO_PARTS

    @property
    def namespace(self) -> Namespace:
        """The rules for writing names of relations in this database."""
        return self._namespace

    @property
    def version(self) -> int:
        """Increases whenever a reading of the database found something new; 0 before the first."""
        return 0 if self._snapshot is None else self._snapshot.version

    @property
    @abstractmethod
    def cost(self) -> float:
        """Seconds that the last reading of the database took."""

    @property
    def loaded(self) -> Snapshot | None:
        """The last snapshot, however old, without asking the database."""
        return self._snapshot

    @abstractmethod
    def watch(self) -> None:
        """Check from now on that the catalog is current. What callers may read depends on what views read."""

    @abstractmethod
    async def snapshot(self) -> Snapshot:
        """Return everything visible, at most `catalog_ttl` seconds old. Concurrent callers share one load."""

    @abstractmethod
    async def listing(self) -> Listing:
        """Return the names of everything visible. If names are available alone, the rest is read in the background."""

    @abstractmethod
    async def parts(self) -> Parts:
        """Return what statements read in place of relations. `NO_PARTS`: all statements read what is stored.

        The mapping stays the same object as long as nothing changes.
        """

    @abstractmethod
    async def look(self, scope: Scope) -> Snapshot:
        """Read `scope` again, unless all of it was read and the database says that it has not changed.

        Returns everything visible. Raises `QueryTimeout`; the load then goes on.
        """

    @abstractmethod
    async def refresh(self) -> Snapshot:
        """Read everything again and return it."""

    @abstractmethod
    async def add_details(self, tables: Sequence[Table]) -> list[Table]:
        """Return relations with the facts that are read one relation at a time; unchanged where they cannot be read."""

    async def schemas(self) -> tuple[Schema, ...]:
        """Return the visible schemas, including system schemas, which are marked."""
        return (await self.listing()).known

    async def list_schema(self, written: str) -> tuple[Listing, SchemaKey]:
        """Return a listing and the schema that a name means in it. Reads again once; raises `SchemaNotFound`."""
        listing = await self.listing()
        try:
            return listing, listing.find_schema(written)
        except NotFound:
            key = await self.find_schema(written)
            return (await self.snapshot()).listing, key

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
        return last is None or self.cost < _CHEAP or self._clock() - last > self.cost * _PATIENCE

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

    def _scope(self) -> Scope:
        """Return the scope of everything that the configuration makes visible, or a little more.

        The surplus is dropped later.
        """
        catalogs = {parts[-2].text if len(parts) > 1 else self._namespace.catalog for parts in self.places.configured}
        return Scope(
            catalogs=frozenset() if None in catalogs else frozenset(name for name in catalogs if name is not None),
            schemas=frozenset(
                text for parts in self.places.configured for text in _spellings(parts[-1], self._dialect)
            ),
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


def _scope_of(relations: Iterable[Relation]) -> Scope:
    some = tuple(relations)
    return Scope(
        catalogs=frozenset(each.catalog for each in some if each.catalog),
        schemas=frozenset(each.schema for each in some if each.schema),
        names=frozenset(each.name for each in some),
    )


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
