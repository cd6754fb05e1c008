"""Types of columns: their names, and whether their values arrive unchanged or as the server's text."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import asyncpg
from dragoman import Kind

from dragoman_postgres.driver import Connection
from dragoman_postgres.spelling import short_type

TEXT = Kind("text")
INTEGER = Kind("integer")
FLOAT = Kind("float")
BOOLEAN = Kind("boolean")
BINARY = Kind("binary")
JSON = Kind("json")
JSONB = Kind("json", unique_keys=True)
NATIVE = Kind("native")

NAMES = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "bpchar": "char",
    "int2vector[]": "int2vector",
    "oidvector[]": "oidvector",
    "char": '"char"',
}
"""PostgreSQL's internal names of types that people write differently."""


AS_IT_IS = "{}"


@dataclass(frozen=True, slots=True)
class Scalar:
    """How a type without parts arrives. `pick`: what is selected instead, with `{}` for the column.

    `fixed`: no value of it takes more than a few dozen bytes, as text too.
    """

    kind: Kind = TEXT
    pick: str = "{}::pg_catalog.text"
    fixed: bool = True


_LONG = Scalar(fixed=False)
# Rows without a type of their own: only their binary form shows the types of their fields.
RECORD, RECORDS = 2249, 2287
_ANONYMOUS = {
    oid: Scalar(
        NATIVE, f"pg_catalog.encode(pg_catalog.{send}({{0}}), 'hex') || ' ' || {{0}}::pg_catalog.text", fixed=False
    )
    for oid, send in ((RECORD, "record_send"), (RECORDS, "array_send"))
}
# int2vector, oidvector: the driver treats them as arrays of numbers, the server writes them as texts.
VECTORS = (22, 30)

# By OID: pg_type.dat never changes one. The catalog names any other type, which arrives as the server's text.
SCALARS: Mapping[int, Scalar] = {
    16: Scalar(BOOLEAN, AS_IT_IS),
    17: Scalar(BINARY, AS_IT_IS, fixed=False),
    18: Scalar(),
    19: Scalar(TEXT, AS_IT_IS),
    20: Scalar(INTEGER, AS_IT_IS),
    21: Scalar(INTEGER, AS_IT_IS),
    23: Scalar(INTEGER, AS_IT_IS),
    25: Scalar(TEXT, AS_IT_IS, fixed=False),
    26: Scalar(INTEGER, AS_IT_IS),
    114: Scalar(JSON, fixed=False),
    142: _LONG,
    # The shortest digits that mean this float, converted back to a float: 0.1 and not 0.10000000149.
    700: Scalar(FLOAT, "{}::pg_catalog.text::pg_catalog.float8"),
    701: Scalar(FLOAT, AS_IT_IS),
    705: _LONG,
    # Its cast to text adds the length of the network, which its output leaves out for a host.
    869: Scalar(TEXT, "pg_catalog.abbrev({})"),
    # A cast to text would strip its blanks.
    1042: Scalar(TEXT, "pg_catalog.textin(pg_catalog.bpcharout({}))", fixed=False),
    1043: Scalar(TEXT, AS_IT_IS, fixed=False),
    3802: Scalar(JSONB, fixed=False),
    # and numeric, bit, varbit, path, polygon, tsvector, tsquery
    **dict.fromkeys((*VECTORS, 1700, 1560, 1562, 602, 604, 3614, 3615), _LONG),
    **dict.fromkeys(
        # regs, xid, cid, tid, circle, point, line, lseg, box, cidr, macaddr8, money, macaddr, date, time, timestamp,
        # timestamptz, interval, timetz, uuid, pg_lsn, xid8
        map(
            int,
            "24 2202 2203 2204 2205 2206 3734 3769 4089 4096 4191 28 29 27 718 600 628 601 603 650 774 790 829"
            " 1082 1083 1114 1184 1186 1266 2950 3220 5069".split(),
        ),
        Scalar(),
    ),
}

# Types that every driver decodes by itself: booleans, numbers, texts, bytes, JSON.
_KNOWN_TO_DRIVER = frozenset({16, 17, 18, 19, 20, 21, 23, 25, 26, 114, 142, 700, 701, 1042, 1043, 3802, *VECTORS})

Form = Literal["scalar", "array", "composite", "domain", "enum", "range"]


@dataclass(frozen=True, slots=True)
class Type:
    """A type according to the catalog.

    `internal`: schema and name in pg_type. `of`: the element, the base of a domain, or the fields' types.
    """

    name: str
    internal: tuple[str, str] = ("", "")
    form: Form = "scalar"
    of: tuple[int, ...] = ()
    fields: tuple[str, ...] = ()
    delimiter: str = ","


_KNOWN = """
SELECT t.oid::int8 AS oid, pg_catalog.format_type(t.oid, NULL) AS name, t.typname::text AS internal,
       n.nspname::text AS schema,
       CASE WHEN t.typtype = 'd' THEN 'domain'
            WHEN t.typtype = 'c' THEN 'composite'
            WHEN t.typtype = 'e' THEN 'enum'
            WHEN t.typtype IN ('r', 'm') THEN 'range'
            WHEN e.oid IS NOT NULL THEN 'array' ELSE 'scalar' END AS form,
       CASE WHEN t.typtype = 'd' THEN ARRAY[t.typbasetype::int8]
            WHEN t.typtype = 'c' THEN a.types
            WHEN e.oid IS NOT NULL THEN ARRAY[e.oid::int8] END AS parts,
       a.names AS fields, e.typdelim::text AS delimiter
  FROM pg_catalog.pg_type t
  JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
  LEFT JOIN pg_catalog.pg_type e ON e.typarray = t.oid
  LEFT JOIN LATERAL (
       SELECT pg_catalog.array_agg(atttypid::int8 ORDER BY attnum) AS types,
              pg_catalog.array_agg(attname::text ORDER BY attnum) AS names
         FROM pg_catalog.pg_attribute
        WHERE attrelid = t.typrelid AND t.typtype = 'c' AND attnum > 0 AND NOT attisdropped
       ) a ON true
 WHERE t.oid = ANY($1::oid[])
"""


_SPELLED = """
SELECT used.type::int8, used.modifier::int8, pg_catalog.format_type(used.type, used.modifier::int4)
  FROM ROWS FROM (pg_catalog.unnest($1::oid[]), pg_catalog.unnest($2::text[])) AS used(type, modifier)
"""
_LENGTHS = frozenset({1042, 1043, 1014, 1015})
"""char, varchar and their arrays: results do not show the length of texts."""
NO_MODIFIER = -1
_FIRST_OWN = 10_000
"""OIDs below are the same types in every server, for good. Others are given by each cluster."""


class Types:
    """What is known of a database's types. The catalog is asked once for each, and again after `lifetime` seconds.

    What was learned stays until it is learned again: a caller may still use it after others made it be forgotten. Types
    that every server has are asked for only once.
    """

    def __init__(self, lifetime: float) -> None:
        self._lifetime = lifetime
        self._known: dict[int, Type] = {}
        self._spelled: dict[tuple[int, int], str] = {}
        self._fresh: set[int | tuple[int, int]] = set()
        self.until = 0.0

    def __getitem__(self, oid: int) -> Type:
        return self._known.get(oid) or Type("unknown")

    def knows(self, oid: int) -> bool:
        """Return whether a type needs no question to the catalog."""
        return oid in SCALARS or oid in self._fresh

    async def learn(self, connection: Connection, oids: Iterable[int]) -> None:
        """Ask the catalog for unknown types among `oids`, and for all types they consist of.

        Those with fields are asked for each time: a field may get another name, and the values do not show it.
        """
        if self.until < time.monotonic():
            self.forget()
        asked: set[int] = set()
        missing = [oid for oid in set(oids) if oid not in self._fresh]
        while missing:
            rows = await connection.fetch(_KNOWN, missing)
            self._known |= dict.fromkeys(missing, Type("unknown"))
            self._known |= {row["oid"]: _type(row) for row in rows}
            asked.update(missing)
            parts = {oid for row in rows for oid in row["parts"] or ()}
            missing = [oid for oid in parts if oid not in self._fresh | asked]
        self._fresh.update(oid for oid in asked if not self.has_fields(oid))

    def has_fields(self, oid: int) -> bool:
        """Return whether values of this type hold fields with names."""
        return self[oid].form == "composite" or any(map(self.has_fields, self[oid].of))

    async def spell(self, connection: Connection, used: Iterable[tuple[int, int]]) -> None:
        """Ask the server for the spelling of types with modifiers, such as numeric(12,2), if it is unknown."""
        missing = {
            (oid, modifier)
            for oid, modifier in used
            if modifier != NO_MODIFIER and oid not in _LENGTHS and (oid, modifier) not in self._fresh
        }
        if missing:
            rows = await connection.fetch(
                _SPELLED, [oid for oid, _ in missing], [str(modifier) for _, modifier in missing]
            )
            self._spelled |= {(oid, modifier): short_type(name) for oid, modifier, name in rows}
            self._fresh.update(missing)

    async def leaves(self, connection: Connection, name: str) -> list[tuple[str, str]]:
        """Return the scalar types that a type consists of, by schema and name, except those that every driver knows."""
        oid: int = await connection.fetchval("SELECT $1::text::regtype::oid::int8", name)
        await self.learn(connection, [oid])
        found, todo = set[int](), [oid]
        while todo:
            each = todo.pop()
            todo += self[each].of
            if self[each].form == "scalar" and each not in _KNOWN_TO_DRIVER:
                found.add(each)
        return [self[each].internal for each in found]

    def forget(self) -> None:
        """Ask again from now on: something was altered."""
        self._fresh = {each for each in self._fresh if (each if isinstance(each, int) else each[0]) < _FIRST_OWN}
        self.until = time.monotonic() + self._lifetime

    def base(self, oid: int) -> int:
        """Return the base type of a domain, or the type itself."""
        while self[oid].form == "domain":
            oid = self[oid].of[0]
        return oid

    def type_name(self, oid: int, modifier: int, internal: str) -> str:
        """Return the name of a type in results. `internal` is the driver's name for it."""
        if spelled := self._spelled.get((oid, modifier)):
            return spelled
        return NAMES.get(internal, internal) if oid in SCALARS else self[oid].name

    def scalar(self, oid: int) -> Scalar:
        """Return how a column of this type arrives. Arrays and composites arrive as text that `values` splits."""
        if oid in SCALARS:
            return SCALARS[oid]
        form = self[oid].form
        if oid in _ANONYMOUS:
            return _ANONYMOUS[oid]
        if form in ("array", "composite"):
            return Scalar(NATIVE, fixed=False)
        return Scalar() if form == "enum" else _LONG


def _type(row: asyncpg.Record) -> Type:
    return Type(
        name=short_type(row["name"]),
        internal=(row["schema"], row["internal"]),
        form=row["form"],
        of=tuple(row["parts"] or ()),
        fields=tuple(row["fields"] or ()),
        delimiter=row["delimiter"] or ",",
    )
