"""Functions whose bodies are texts: those in SQL that only compute, and members of extensions that are misled.

The gate's own lists judge a body that computes like a caller's statement. A body has names without schemas, and the
function or the session decides where they are looked up. So no user-defined function, operator or type, in any schema,
may have a name that the body uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from dragoman import Database, DragomanError, FunctionCall, Named, ParsedStatement, Statement
from dragoman.validators import ReadOnly, find_telling, read

from dragoman_postgres.dialect import DIALECT

BODIES = """
SELECT p.oid, p.prosrc AS body FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.oid >= 16384 AND l.lanname = 'sql' AND p.prokind = 'f' AND NOT p.prosecdef AND length(p.prosrc) <= 4000
  AND to_jsonb(p) ->> 'prosqlbody' IS NULL AND p.provariadic = 0
  AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS setting WHERE setting NOT LIKE 'search\\_path=%')
  AND NOT EXISTS (
    SELECT FROM unnest(p.prorettype || p.proargtypes::oid[] || p.proallargtypes) AS used (oid)
    WHERE used.oid >= 16384 OR (SELECT typtype NOT IN ('b', 'r', 'm') FROM pg_type t WHERE t.oid = used.oid))
ORDER BY p.oid LIMIT 2000
"""
"""User-defined functions whose arguments and results have the system's types, and their bodies."""
_TYPES = """
part AS MATERIALIZED (
  SELECT t.oid, d.refobjid AS extension FROM pg_depend d JOIN pg_type t ON t.oid = d.objid
  WHERE d.classid = 'pg_type'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  UNION ALL SELECT c.reltype, d.refobjid FROM pg_depend d JOIN pg_class c ON c.oid = d.objid
  WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
)
"""
"""The types of extensions."""
MEMBERS = f"""
WITH {_TYPES}
SELECT p.oid, p.proname::text AS name, p.prosrc AS body,
  EXISTS (SELECT FROM unnest(p.proargtypes::oid[]) AS a (oid) JOIN pg_type t ON t.oid = a.oid WHERE t.typtype = 'p')
    AS polymorphic, d.refobjid AS extension,
  EXISTS (SELECT FROM part WHERE part.extension = d.refobjid AND part.oid = ANY (p.proargtypes::oid[])) AS inward
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE p.oid >= 16384 AND l.lanname NOT IN ('internal', 'c') AND to_jsonb(p) ->> 'prosqlbody' IS NULL
ORDER BY p.oid
"""
"""Functions of extensions whose bodies are texts."""
TAKEN = f"""
WITH {_TYPES}, own AS MATERIALIZED (
  SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
  WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
    AND (p.oid IS NULL OR p.provolatile <> 'v' OR e.extname = ANY ($2))
  UNION ALL SELECT 'pg_type'::regclass, t.oid FROM pg_type t
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = t.typrelid
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
), own_type AS MATERIALIZED (
  SELECT t.oid FROM own JOIN pg_type t ON own.classid = 'pg_type'::regclass AND t.oid = own.objid
  JOIN pg_roles r ON r.oid = t.typowner AND r.rolsuper
), inert AS MATERIALIZED (
  SELECT c.oid FROM pg_class c
  WHERE c.oid >= 16384 AND relkind = 'r' AND NOT (relrowsecurity OR relhasrules OR relhassubclass)
    AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
      AND (attgenerated = 'v' OR atttypid >= 16384 AND atttypid NOT IN (SELECT oid FROM own_type)))
    -- The planner evaluates expressions of these.
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype = 'c')
    AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND COALESCE(indexprs, indpred) IS NOT NULL)
    AND NOT EXISTS (SELECT FROM pg_statistic_ext WHERE stxrelid = c.oid)
), named AS (
  SELECT 'pg_proc'::regclass AS class, oid, proname::text AS name, proowner AS owner, proargtypes::oid[] AS types
    FROM pg_proc WHERE oid >= 16384
  UNION ALL SELECT 'pg_operator'::regclass, oid, oprname, oprowner, ARRAY[oprleft, oprright]
    FROM pg_operator WHERE oid >= 16384
  UNION ALL SELECT 'pg_type'::regclass, oid, typname, typowner, '{{}}'
    FROM pg_type WHERE oid >= 16384 AND typrelid NOT IN (SELECT oid FROM inert)
), made AS (
  SELECT name, types, d.refobjid AS extension FROM named
  LEFT JOIN pg_depend d ON d.classid = named.class AND d.objid = named.oid AND d.deptype = 'e'
    AND owner IN (SELECT oid FROM pg_roles WHERE rolsuper)
  WHERE name IN (SELECT unnest($1::text[])) AND NOT (
    (class::oid, named.oid) IN (SELECT classid, objid FROM own)
    AND owner IN (SELECT oid FROM pg_roles WHERE rolsuper))
), meant AS (
  SELECT name, NOT EXISTS (
      SELECT FROM unnest(types) AS t (oid) WHERE oid >= 16384 AND oid NOT IN (SELECT oid FROM own_type)) AS near,
    CASE WHEN EXISTS (SELECT FROM part WHERE part.extension = made.extension AND part.oid = ANY (types))
      THEN extension ELSE 0 END AS whose
  FROM made
)
SELECT name, array_remove(array_agg(DISTINCT CASE WHEN near THEN whose END), NULL)::int8[] AS near
FROM meant GROUP BY name
"""
"""Which of the names ($1) a user-defined object has.

Objects of trusted extensions ($2: trusted with volatile functions) that a superuser owns do not count, nor do tables
that run nothing when they are read. `near`: for whom one of the objects takes no argument of a type that users made: an
extension by its number, if the object is its own and takes a type of its own, else 0, for everybody.
"""


# Row security reads settings to find out whose rows they are.
OPEN = frozenset({"current_setting"})
"""What a body may call, though it tells callers too much."""
_SETTINGS = Database(name="body", dialect="postgres", allow_functions=OPEN)


_SYSTEM = "pg_catalog"
_WORD = re.compile(r"\w+|[-+*/<>=~!@#%^&|`?]+")


_EVERYBODY = 0
Taken = Mapping[str, frozenset[int]]
"""Names that user-defined objects have, each with `near` as `TAKEN` says."""


class Body(NamedTuple):
    """A function by its number, and the names that its body uses."""

    oid: int
    names: frozenset[str]


class Member(NamedTuple):
    """A function of an extension by its number, its name, and the names that its body uses.

    - `polymorphic`: it takes values of any type.
    - `extension`: the number of its extension.
    - `inward`: it takes a type of its extension's own.
    """

    oid: int
    name: str
    names: frozenset[str]
    polymorphic: bool
    extension: int
    inward: bool

    def is_misled(self, taken: Taken) -> bool:
        """Whether a user-defined object may be what a name of the body means.

        Objects that take only types that users made fit values of such types alone, and so do those that take types of
        another extension.
        """
        return any(self.polymorphic or taken[name] & {_EVERYBODY, self.extension} for name in self.names & taken.keys())


def judge(rows: Iterable[tuple[int, str]]) -> list[Body]:
    """Return, from the rows of `BODIES`, those that could act only through the names they use."""
    judged = ((oid, _names(body)) for oid, body in rows)
    return [Body(oid, names) for oid, names in judged if names is not None]


def find_members(rows: Iterable[tuple[int, str, str, bool, int, bool]]) -> list[Member]:
    """Return the functions of extensions from the rows of `MEMBERS`."""
    return [Member(row[0], row[1], _foreign_names(row[2]), *row[3:]) for row in rows]


def find_misled(members: Iterable[Member], taken: Taken) -> list[Member]:
    """Return those that may run what users made, themselves or by one that they call."""
    left, misled, known = list(members), list[Member](), dict(taken)
    while found := [member for member in left if member.is_misled(known)]:
        misled += found
        for member in found:
            whose = member.extension if member.inward and not member.polymorphic else _EVERYBODY
            known[member.name] = known.get(member.name, frozenset()) | {whose}
        left = [member for member in left if member not in found]
    return misled


@lru_cache(maxsize=4_000)
def _names(body: str) -> frozenset[str] | None:
    """Return the names that a body uses; None if it may do more than compute."""
    try:
        parsed = _read(body)
        ReadOnly(DIALECT, _SETTINGS).judge(parsed)
    except DragomanError:
        return None
    own = DIALECT.loaded_rules.types
    if parsed.relations or any(each.name not in own for each in parsed.types):
        return None
    if find_telling(DIALECT.loaded_rules, parsed.calls, OPEN) is not None:
        return None
    return frozenset(each.name for each in _all_names(parsed))


@lru_cache(maxsize=4_000)
def _foreign_names(body: str) -> frozenset[str]:
    """Return the names that a body uses beside the system's own; every word of it if it is no query."""
    try:
        parsed = _read(body)
    except DragomanError:
        return _words(body)
    if parsed.refusal is not None:
        return _words(body)
    relations = (named.relation for named in parsed.relations)
    return frozenset(each.name for each in (*_all_names(parsed), *relations) if each.schema != _SYSTEM)


def _all_names(parsed: ParsedStatement) -> tuple[Named | FunctionCall, ...]:
    return *parsed.operators, *parsed.types, *parsed.calls


def _read(body: str) -> ParsedStatement:
    return read(DIALECT, Statement.parse(body, sqlglot=DIALECT.sqlglot, lexicon=DIALECT.lexicon))


def _words(body: str) -> frozenset[str]:
    words = _WORD.findall(body)
    return frozenset((*words, *(word.lower() for word in words)))
