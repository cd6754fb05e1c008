"""What the users of a database have made of its names: only its catalog tells what a harmless name really runs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

from dragoman import Relation

from dragoman_postgres.pool import Connections
from dragoman_postgres.rules.policy import read_policy

# Everything is qualified or of the system's own types: whoever may create functions must not take these calls.
_MADE = """
WITH RECURSIVE trusted AS (
  SELECT d.classid, d.objid FROM pg_catalog.pg_depend d
  JOIN pg_catalog.pg_extension e ON d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.refobjid = e.oid
  WHERE d.deptype = 'e' AND e.extname = ANY ($1)
), made AS (
  SELECT p.oid, p.proname, p.provolatile, p.pronargs, p.pronargdefaults, p.proargtypes[0] AS first
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND NOT EXISTS (
    SELECT FROM trusted t WHERE t.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND t.objid = p.oid)
), uses AS (
  SELECT r.ev_class AS reader, d.refclassid AS kind, d.refobjid AS used FROM pg_catalog.pg_rewrite r
  JOIN pg_catalog.pg_class c ON c.oid = r.ev_class AND c.relkind = 'v'
  JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
  WHERE d.refobjid <> r.ev_class
  UNION ALL SELECT inhparent, 'pg_catalog.pg_class'::pg_catalog.regclass, inhrelid FROM pg_catalog.pg_inherits
), active AS (
  SELECT oid FROM pg_catalog.pg_class WHERE relkind = 'f' AND NOT $2
  UNION SELECT u.reader FROM uses u JOIN made m ON m.oid = u.used AND m.provolatile = 'v'
    WHERE u.kind = 'pg_catalog.pg_proc'::pg_catalog.regclass
  UNION SELECT u.reader FROM uses u JOIN active a ON a.oid = u.used
    WHERE u.kind = 'pg_catalog.pg_class'::pg_catalog.regclass
)
SELECT 'function' AS kind, proname::pg_catalog.text AS name, NULL::pg_catalog.text AS schema FROM made
UNION SELECT 'single', proname, NULL FROM made WHERE pronargs > 0 AND pronargs - pronargdefaults <= 1
UNION SELECT 'attribute', m.proname, NULL FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.first
  WHERE m.pronargs > 0 AND m.pronargs - m.pronargdefaults <= 1 AND t.typtype IN ('c', 'p')
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid AND a.attname = m.proname)
UNION SELECT 'operator', o.oprname, NULL FROM pg_catalog.pg_operator o
  JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
  WHERE n.nspname <> 'pg_catalog' AND NOT EXISTS (
    SELECT FROM trusted t WHERE t.classid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND t.objid = o.oid)
UNION SELECT 'type', t.typname, NULL FROM pg_catalog.pg_cast c JOIN made m ON m.oid = c.castfunc
  JOIN pg_catalog.pg_type t ON t.oid = c.casttarget
UNION SELECT 'type', t.typname, NULL FROM pg_catalog.pg_constraint c
  JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND d.objid = c.oid
  JOIN made m ON d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND m.oid = d.refobjid
  JOIN pg_catalog.pg_type t ON t.oid = c.contypid
UNION SELECT 'relation', c.relname, n.nspname FROM active a
  JOIN pg_catalog.pg_class c ON c.oid = a.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
"""
_KINDS = ("function", "single", "attribute", "operator", "type")


@dataclass(frozen=True, slots=True)
class Userland:
    """What a database's users made.

    `functions`: names of theirs, which may be overloads of the system's. `singles`: those of them that (value).name
    calls; `attributes`: those that row.name calls. `operators`: likewise. `types`: a cast to them runs a function of
    theirs. `relations`: foreign tables, and what reads them or calls volatile functions of
    theirs, through whatever other views.
    """

    functions: frozenset[str]
    singles: frozenset[str]
    attributes: frozenset[str]
    operators: frozenset[str]
    types: frozenset[str]
    relations: frozenset[Relation]


class Reader(Protocol):
    """Whoever has connections for trusted reads."""

    @property
    def connections(self) -> Connections:
        """The connections."""
        ...


MOST_SECONDS = 5.0
"""How long after it was made a function may stay unnoticed; a read takes a few milliseconds."""


class Remembered:
    """The users' names of one database, read when needed and again after `seconds`, or after `MOST_SECONDS`."""

    def __init__(self, reader: Reader, seconds: float, *, foreign: bool) -> None:
        self._reader = reader
        self._seconds = min(seconds, MOST_SECONDS)
        self._foreign = foreign
        self._known: Userland | None = None
        self._until = 0.0
        self._reading = asyncio.Lock()

    async def get(self) -> Userland:
        """Return what is known, or ask: the same object as long as nothing changed. Raises what connecting raises."""
        if self._known is not None and time.monotonic() < self._until:
            return self._known
        async with self._reading:
            if self._known is None or time.monotonic() >= self._until:
                begun = time.monotonic()
                found = await self._read()
                self._known = self._known if found == self._known else found
                self._until = begun + self._seconds
            return self._known

    async def _read(self) -> Userland:
        trusted = [*read_policy()["extensions"]["names"].split(), "postgis"]
        async with self._reader.connections.borrow() as connection:
            rows = await connection.fetch(_MADE, trusted, self._foreign)
        relations = frozenset(Relation(name, schema) for kind, name, schema in rows if kind == "relation")
        functions, singles, attributes, operators, types = (
            frozenset(name for kind, name, _ in rows if kind == wanted) for wanted in _KINDS
        )
        return Userland(functions, singles, attributes, operators, types, relations)
