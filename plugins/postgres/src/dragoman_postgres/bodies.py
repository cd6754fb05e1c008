"""Functions in SQL that only compute. The gate's own lists judge their bodies like callers' statements.

A body has names without schemas, and the function decides where they are looked up. So no user-defined function,
operator or type, in any schema, may have a name that the body uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from dragoman import Database, DragomanError, Statement
from dragoman.validators import ReadOnly, read

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
TAKEN = """
WITH own AS (
  SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
  WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
    AND (p.oid IS NULL OR p.provolatile <> 'v' OR e.extname = ANY ($2))
), named AS (
  SELECT 'pg_proc'::regclass AS class, oid, proname AS name FROM pg_proc
  UNION ALL SELECT 'pg_operator'::regclass, oid, oprname FROM pg_operator
  UNION ALL SELECT 'pg_type'::regclass, oid, typname FROM pg_type
)
SELECT DISTINCT name::text FROM named WHERE oid >= 16384 AND name::text = ANY ($1)
  AND NOT EXISTS (SELECT FROM own WHERE own.classid = named.class AND own.objid = named.oid)
"""
"""Which of the names ($1) a user-defined object has.

Objects of trusted extensions ($2: trusted with volatile functions) do not count.
"""


# Row security reads settings to find out whose rows they are.
_SETTINGS = Database(name="body", dialect="postgres", allow_functions=frozenset({"current_setting"}))


class Body(NamedTuple):
    """A function by its number, and the names that its body uses."""

    oid: int
    names: frozenset[str]


def judge(rows: Iterable[tuple[int, str]]) -> list[Body]:
    """Return, from the rows of `BODIES`, those that could act only through the names they use."""
    judged = ((oid, _names(body)) for oid, body in rows)
    return [Body(oid, names) for oid, names in judged if names is not None]


@lru_cache(maxsize=4_000)
def _names(body: str) -> frozenset[str] | None:
    """Return the names that a body uses; None if it may do more than compute."""
    try:
        statement = Statement.parse(body, sqlglot=DIALECT.sqlglot, lexicon=DIALECT.lexicon)
        parsed = read(DIALECT, statement)
        ReadOnly(DIALECT, _SETTINGS).judge(parsed)
    except DragomanError:
        return None
    own = DIALECT.loaded_rules.types
    if parsed.relations or any(each.name not in own for each in parsed.types):
        return None
    operators_and_types = {each.name for each in (*parsed.operators, *parsed.types)}
    return frozenset(operators_and_types | {call.name for call in parsed.calls})
