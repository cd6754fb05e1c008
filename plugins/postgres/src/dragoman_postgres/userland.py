"""What the users of a database have made of its names: only its catalog tells what a harmless name really runs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, fields
from typing import Any, Protocol

from dragoman import Relation

from dragoman_postgres.pool import Connections
from dragoman_postgres.rules.policy import patterns, read_policy

# Whoever may create functions and operators must not take the calls of what follows.
_SAFE_PATH = "SET LOCAL search_path = pg_catalog, pg_temp"
# Where names without schema are looked for: what lies elsewhere takes nobody's calls.
_PATH = "SELECT pg_catalog.current_schemas(true)"
# What the system brings has numbers below 16384, wherever it lies.
_MADE = """
WITH RECURSIVE trusted AS (
  SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
  WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = ANY ($1)
), path AS (
  SELECT oid FROM pg_namespace WHERE nspname = ANY ($4::name[])
), base AS (
  SELECT t.oid FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem
  WHERE t.oid >= 16384 AND t.typtype = 'b' AND coalesce(e.oid >= 16384 AND e.typtype = 'b', true)
    AND coalesce(e.oid, t.oid) NOT IN (SELECT objid FROM trusted WHERE classid = 'pg_type'::regclass)
), made AS (
  SELECT oid, proname, provolatile, pronargs > 0 AND pronargs - pronargdefaults <= 1 AS single, proargtypes[0] AS first,
    (proargtypes::oid[])[0:pronargs - pronargdefaults - 1] && ARRAY(SELECT oid FROM base) AS bound,
    pronamespace IN (SELECT oid FROM path) AS reachable
  FROM pg_proc
  WHERE oid >= 16384 AND oid NOT IN (SELECT objid FROM trusted WHERE classid = 'pg_proc'::regclass)
), operators AS (
  SELECT oprname, ARRAY[oprleft, oprright] && ARRAY(SELECT oid FROM base) AS bound FROM pg_operator
  WHERE oid >= 16384 AND oprnamespace IN (SELECT oid FROM path)
    AND oid NOT IN (SELECT objid FROM trusted WHERE classid = 'pg_operator'::regclass)
), casts AS (
  SELECT castsource, casttarget FROM pg_cast
  WHERE oid >= 16384 AND castfunc <> 0 AND oid NOT IN (
    SELECT objid FROM pg_depend WHERE classid = 'pg_cast'::regclass AND deptype = 'e')
), checked AS (
  SELECT c.contypid AS oid FROM pg_constraint c
  JOIN pg_depend d ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid
  JOIN made ON d.refclassid = 'pg_proc'::regclass AND made.oid = d.refobjid
  WHERE c.contypid <> 0
), holding AS (
  SELECT 'base' AS why, 'pg_type'::regclass::oid AS class, oid FROM base
  UNION SELECT 'cast', 'pg_type'::regclass, castsource FROM casts WHERE castsource >= 16384
  UNION SELECT 'check', 'pg_type'::regclass, oid FROM checked
  UNION SELECT h.why, larger.class, larger.oid FROM holding h CROSS JOIN LATERAL (
    SELECT d.classid AS class, d.objid AS oid FROM pg_depend d
    WHERE d.refclassid = h.class AND d.refobjid = h.oid
      AND d.classid IN ('pg_type'::regclass, 'pg_class'::regclass)
    UNION ALL SELECT 'pg_type'::regclass, c.reltype FROM pg_class c
    WHERE h.class = 'pg_class'::regclass AND c.oid = h.oid AND c.reltype <> 0
  ) AS larger
), uses AS (
  SELECT r.ev_class AS reader, d.refclassid AS kind, d.refobjid AS used FROM pg_rewrite r
  JOIN pg_class c ON c.oid = r.ev_class AND c.relkind = 'v'
  JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
  WHERE d.refobjid <> r.ev_class AND r.oid >= 16384
  UNION ALL SELECT p.polrelid, d.refclassid, d.refobjid FROM pg_policy p
  JOIN pg_depend d ON d.classid = 'pg_policy'::regclass AND d.objid = p.oid
  WHERE d.refobjid <> p.polrelid AND row_security_active(p.polrelid)
  UNION ALL SELECT inhparent, 'pg_class'::regclass, inhrelid FROM pg_inherits
), active AS (
  SELECT oid FROM pg_class WHERE relkind = 'f' AND NOT $2
  UNION SELECT unnest($3::oid[])
  UNION SELECT oid FROM holding WHERE why = 'cast' AND class = 'pg_class'::regclass
  UNION SELECT u.reader FROM uses u JOIN made ON made.oid = u.used AND made.provolatile = 'v'
    WHERE u.kind = 'pg_proc'::regclass
  UNION SELECT u.reader FROM uses u JOIN active a ON a.oid = u.used WHERE u.kind = 'pg_class'::regclass
)
SELECT CASE WHEN bound THEN 'bound' ELSE 'function' END AS kind, proname::text AS name, NULL::text AS schema FROM made
  WHERE reachable
UNION SELECT 'single', proname, NULL FROM made WHERE single AND reachable
UNION SELECT 'attribute', proname, NULL FROM made JOIN pg_type t ON t.oid = made.first
  WHERE single AND reachable AND t.typtype IN ('c', 'p')
    AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attname = proname)
UNION SELECT CASE WHEN bound THEN 'bound' ELSE 'operator' END, oprname, NULL FROM operators
UNION SELECT 'type', typname, NULL FROM pg_type WHERE oid IN (
  SELECT castsource FROM casts WHERE castsource >= 16384
  UNION SELECT casttarget FROM casts WHERE casttarget >= 16384 OR castsource < 16384
  UNION SELECT oid FROM holding WHERE why = 'check' AND class = 'pg_type'::regclass)
UNION SELECT 'binding_type', t.typname, NULL FROM holding h
  JOIN pg_type t ON h.oid = t.oid AND h.class = 'pg_type'::regclass WHERE h.why = 'base'
UNION SELECT 'binding', c.relname, n.nspname FROM holding h
  JOIN pg_class c ON c.oid = h.oid AND h.class = 'pg_class'::regclass
  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE h.why = 'base'
UNION SELECT 'relation', c.relname, n.nspname FROM active JOIN pg_class c USING (oid)
  JOIN pg_namespace n ON n.oid = c.relnamespace
"""
# A view's own tree alone tells which of the system's functions it calls: they are in no list of dependencies.
_TREES = """
SELECT r.oid, r.xmin, r.ev_class AS relation, r.ev_action::text AS tree FROM pg_rewrite r
JOIN pg_class c ON c.oid = r.ev_class AND c.relkind = 'v' WHERE r.oid >= 16384
UNION ALL SELECT oid, xmin, polrelid, polqual::text FROM pg_policy WHERE row_security_active(polrelid)
"""
_STAMP = f"SELECT count(*), sum(hashint8extended(oid::int8, xmin::text::int8)) FROM ({_TREES}) AS t"
_CALLING = f"""
SELECT t.relation FROM ({_TREES}) AS t WHERE EXISTS (
  SELECT FROM regexp_matches(t.tree, ':funcid ([0-9]+)', 'g') AS f (id) JOIN pg_proc p ON p.oid = f.id[1]::oid
  WHERE p.oid < 16384 AND p.provolatile = 'v' AND p.proname <> ALL ($1::name[]))
"""


@dataclass(frozen=True, slots=True)
class Userland:
    """What a database's users made, by what it is called.

    `function`: names of theirs, which may be overloads of the system's. `single`: those of them that (value).name
    calls; `attribute`: those that row.name calls. `operator`: likewise. `type`: a cast to them, or from them, runs a
    function of theirs. `bound`: functions and operators that only values of base types from elsewhere can reach, which
    are read from the relations `binding` or cast to a `binding_type`. `relation`: foreign tables, and what reads them
    or calls volatile functions or casts of theirs, through whatever other views.
    """

    function: frozenset[str] = frozenset()
    single: frozenset[str] = frozenset()
    attribute: frozenset[str] = frozenset()
    operator: frozenset[str] = frozenset()
    type: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    binding_type: frozenset[str] = frozenset()
    binding: frozenset[Relation] = frozenset()
    relation: frozenset[Relation] = frozenset()


NOTHING = Userland()


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
        self._policy = read_policy()
        self._calling: tuple[Any, list[int]] | None = None
        self._known: Userland | None = None
        self._until = 0.0
        self._reading = asyncio.Lock()

    async def get(self) -> Userland:
        """Return what is known, or ask: the same object as long as nothing changed. Raises what connecting raises."""
        if self._known is not None and time.monotonic() < self._until:
            return self._known
        async with self._reading:
            known, begun = self._known, time.monotonic()
            if known is None or begun >= self._until:
                found = await self._read()
                known = found if known is None or found != known else known
                self._known, self._until = known, begun + self._seconds
            return known

    async def _read(self) -> Userland:
        async with self._reader.connections.borrow() as connection:
            path = await connection.fetchval(_PATH)
            await connection.execute(_SAFE_PATH)
            stamp = await connection.fetchrow(_STAMP)
            if self._calling is None or self._calling[0] != stamp:
                rows = await connection.fetch(_CALLING, patterns(self._policy["volatile"]))
                self._calling = stamp, [row[0] for row in rows]
            trusted = [*self._policy["extensions"]["names"].split(), "postgis"]
            made = await connection.fetch(_MADE, trusted, self._foreign, self._calling[1], path)
        found: dict[str, set[Any]] = {field.name: set() for field in fields(Userland)}
        for kind, name, schema in made:
            found[kind].add(Relation(name, schema) if schema else name)
        return Userland(**{kind: frozenset(names) for kind, names in found.items()})
