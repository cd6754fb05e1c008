"""User-defined objects behind names: only the database's catalog shows what a harmless name really runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dragoman import Database, Relation, Validator

from dragoman_postgres.bodies import BODIES, MEMBERS, OPEN, TAKEN, find_members, find_misled, judge
from dragoman_postgres.closure import ANYTHING, CALLING, REACHED, STAMP
from dragoman_postgres.encodings import SAME
from dragoman_postgres.options import Options
from dragoman_postgres.pool import Connections
from dragoman_postgres.rasters import find_open_rasters
from dragoman_postgres.rules import load_allowed
from dragoman_postgres.rules.policy import patterns, read_policy

# Users who may create functions and operators must not be able to intercept the following calls.
_SAFE_PATH = "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL jit = off"
# The schemas where unqualified names are looked up: objects elsewhere cannot intercept calls. And the encoding of
# names.
_SESSION = "SELECT pg_catalog.current_schemas(true), pg_catalog.getdatabaseencoding()"
Types = frozenset[int]
# Their functions are judged by hand. Some that only compute are called volatile.
_MAPS = ("postgis", "postgis_raster")


@dataclass(frozen=True, slots=True)
class UserDefined:
    """The objects of a database that may run its users' code, by their names.

    - `function`: names of user-defined functions, which may overload the system's; plain where the search path finds
      them, and dotted.
    - `single`: those that (value).name calls, and types that it casts to.
    - `attribute`: those that row.name means.
    - `operator`: as `function`.
    - `type`: a cast to them, or from them, runs such code.
    - `bound_function`, `bound_operator`, `bound_type` (a cast to it): those that only values of certain types reach, by
      number. The type `record`: any row.
    - `binding`: the relations with such values.
    - `binding_type`: the types that create such values by a cast.
    - `relation`: reading them runs code; as written, and fully qualified.
    - `checked`: relations with columns whose values such code checks once a literal takes their type.
    - `everything`: what any query may reach.
    - `rasters`: the types that hold rasters, where a raster's text may name any picture of the server.
    - `encoding`: the database's.
    """

    function: frozenset[str] = frozenset()
    single: frozenset[str] = frozenset()
    attribute: frozenset[str] = frozenset()
    operator: frozenset[str] = frozenset()
    type: frozenset[str] = frozenset()
    everything: frozenset[str] = frozenset()
    bound_function: Mapping[str, Types] = field(default_factory=dict[str, Types])
    bound_operator: Mapping[str, Types] = field(default_factory=dict[str, Types])
    bound_type: Mapping[str, Types] = field(default_factory=dict[str, Types])
    binding: Mapping[Relation, Types] = field(default_factory=dict[Relation, Types])
    binding_type: Mapping[str, Types] = field(default_factory=dict[str, Types])
    relation: Mapping[Relation, Relation] = field(default_factory=dict[Relation, Relation])
    checked: Mapping[Relation, Relation] = field(default_factory=dict[Relation, Relation])
    rasters: frozenset[str] = frozenset()
    encoding: str = SAME

    def functions(self, names: Iterable[str], types: Types | None) -> frozenset[str]:
        """Return those of the names by which a query that reads values of these types may call a function of users.

        None: any types.
        """
        return _find(names, self.function, self.bound_function, types)

    def operators(self, names: Iterable[str], types: Types | None) -> frozenset[str]:
        """Return those of the names by which a query that reads values of these types may use an operator of users."""
        return _find(names, self.operator, self.bound_operator, types)

    def types(self, names: Iterable[str], types: Types | None) -> frozenset[str]:
        """Return those of the names to which a cast of values of these types may run code of users."""
        return _find(names, self.type, self.bound_type, types)


def _find(
    names: Iterable[str], any_type: frozenset[str], bound: Mapping[str, Types], types: Types | None
) -> frozenset[str]:
    """Return the names that run code of users with any type, or with one of these."""
    return frozenset(
        name for name in names if name in any_type or (name in bound and (types is None or bound[name] & types))
    )


_NAMES = ("function", "single", "attribute", "operator", "type", "everything")
_TYPED = ("bound_function", "bound_operator", "bound_type", "binding", "binding_type")
_RELATIONS = ("relation", "checked")


class Reader(Protocol):
    """An object with connections for trusted reads."""

    @property
    def connections(self) -> Connections:
        """The connections."""
        ...


MOST_SECONDS = 5.0
"""Seconds for which a new function may stay unnoticed. A read takes a few milliseconds."""


class Remembered(Validator):
    """Knows the users' names of one database.

    Reads them when needed, and again after `catalog_ttl` or `MOST_SECONDS`.
    """

    def __init__(self, reader: Reader, database: Database) -> None:
        self._reader = reader
        self._database = database
        self._seconds = min(database.catalog_ttl, MOST_SECONDS)
        self._policy = read_policy()
        self._trusted = [*self._policy["extensions"]["names"].split(), *_MAPS]
        self._calling: tuple[Any, list[Any]] | None = None
        self._known: UserDefined | None = None
        self._until = 0.0
        self._reading = asyncio.Lock()

    async def state(self) -> UserDefined:
        """Return what is known, or read it. It is the same object as long as nothing changed.

        Raises connection errors.
        """
        if self._known is not None and time.monotonic() < self._until:
            return self._known
        async with self._reading:
            known, begun = self._known, time.monotonic()
            if known is None or begun >= self._until:
                found = await self._read()
                known = found if known is None or found != known else known
                self._known, self._until = known, begun + self._seconds
            return known

    async def _read(self) -> UserDefined:
        await self._reader.connections.renew_path()
        harmless = patterns(self._policy["volatile"])
        acting = [_like(pattern) for pattern in patterns(self._policy["transitive"])]
        async with self._reader.connections.borrow() as connection:
            ((path, encoding),) = await connection.fetch(_SESSION)
            await connection.execute(_SAFE_PATH)
            stamp = await connection.fetchrow(STAMP)
            if self._calling is None or self._calling[0] != stamp:
                self._calling = stamp, await connection.fetch(CALLING, harmless, acting)
            trees = self._calling[1]
            if not trees and not await connection.fetchval(ANYTHING):
                return UserDefined(encoding=encoding)
            found = await connection.fetch(
                REACHED,
                self._trusted,
                self._database.allow_foreign_tables,
                path,
                harmless,
                acting,
                [row["class"] for row in trees if row["acts"]],
                [row["oid"] for row in trees if row["acts"]],
                sorted(name.lower() for name in self._database.allow_functions),
                [row["oid"] for row in trees if row["populates"]],
                *await self._judge_bodies(connection),
                [_like(pattern) for pattern in sorted(load_allowed().telling - OPEN)],
            )
            accepted = Options(**self._database.options).outdb_rasters
            rasters = frozenset[str]() if accepted else await find_open_rasters(connection)
        return _user_defined(found, encoding, rasters)

    async def _judge_bodies(self, connection: Any) -> tuple[list[int], list[int]]:
        """Return the functions in SQL that only compute, and those of extensions that are misled, by number."""
        bodies = await asyncio.to_thread(judge, await connection.fetch(BODIES))
        members = await asyncio.to_thread(find_members, await connection.fetch(MEMBERS))
        names = frozenset[str]().union(*(body.names for body in bodies), *(member.names for member in members))
        rows = await connection.fetch(TAKEN, sorted(names), self._trusted) if names else ()
        taken = {row["name"]: frozenset[int](row["near"]) for row in rows}
        misled = find_misled(members, taken)
        unsafe = taken.keys() | {member.name for member in misled}
        computing = [body.oid for body in bodies if body.names.isdisjoint(unsafe)]
        return computing, [member.oid for member in misled]


def _like(pattern: str) -> str:
    return pattern.replace("_", r"\_").replace("*", "%")


def _user_defined(rows: Iterable[Any], encoding: str, rasters: frozenset[str]) -> UserDefined:
    names: dict[str, set[str]] = {kind: set() for kind in _NAMES}
    found: dict[str, Any] = {kind: {} for kind in (*_TYPED, *_RELATIONS)}
    for kind, name, schema, types in rows:
        if kind == "bound_type" and types is None:
            names["type"].add(name)
        elif kind in names:
            names[kind].add(name)
        elif kind in _RELATIONS:
            known = Relation(name, schema)
            found[kind] |= dict.fromkeys((known, *_spellings(known, visible=bool(types))), known)
        else:
            key = Relation(name, schema) if kind == "binding" else name
            found[kind][key] = found[kind].get(key, frozenset()) | frozenset(types)
    found |= {"encoding": encoding, "rasters": rasters, **{kind: frozenset(names[kind]) for kind in _NAMES}}
    return UserDefined(**found)


def _spellings(relation: Relation, *, visible: bool) -> Iterator[Relation]:
    """Yield the ways to write it without its schema. A name like the system's own is read as the system's."""
    if visible:
        yield Relation(relation.name)
        if relation.name.startswith("pg_"):
            yield Relation(relation.name, "pg_catalog")
