"""Applies policy.toml to a live server's catalog. The shipped lists are written with it, and compared with it."""

from __future__ import annotations

from collections.abc import Iterable

import asyncpg

from dragoman_postgres.rules.policy import Policy, fits, patterns

Lists = dict[str, set[str]]

# Every function by name. The worst overload decides. `steady`: immutable or stable. `callable`: some overload can be
# called from SQL and without C strings. `single`: one of those takes a single argument.
_FUNCTIONS = """
SELECT p.proname AS name, e.extname AS extension,
       bool_and(p.provolatile <> 'v' AND p.prokind <> 'p') AS steady,
       bool_or(p.prokind <> 'p' AND p.prorettype <> ALL (internals) AND NOT p.proargtypes::oid[] && internals)
         AS callable,
       bool_or(p.pronargs - p.pronargdefaults <= 1 AND p.pronargs > 0
               AND p.prorettype <> ALL (internals) AND NOT p.proargtypes::oid[] && internals) AS single
FROM pg_proc AS p
LEFT JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
LEFT JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
CROSS JOIN (SELECT array_agg(oid) AS internals FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace
            AND typname IN ('internal', 'cstring', 'trigger', 'event_trigger', 'language_handler', 'fdw_handler',
                            'index_am_handler', 'table_am_handler', 'tsm_handler')) AS i
WHERE p.pronamespace = 'pg_catalog'::regnamespace OR e.extname = ANY ($1)
GROUP BY p.proname, e.extname
"""
_OPERATORS = """
SELECT DISTINCT o.oprname AS name, e.extname AS extension
FROM pg_operator AS o
LEFT JOIN pg_depend AS d ON d.classid = 'pg_operator'::regclass AND d.objid = o.oid AND d.deptype = 'e'
LEFT JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
WHERE o.oprnamespace = 'pg_catalog'::regnamespace OR e.extname = ANY ($1)
"""
_RELATIONS = """
SELECT n.nspname || '.' || c.relname AS name FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v')
"""
_TYPES = """
SELECT typname AS name FROM pg_type
WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype IN ('b', 'r', 'm') AND typelem = 0
"""


async def own(connection: asyncpg.Connection[asyncpg.Record], policy: Policy) -> Lists:
    """Return what a query may use of PostgreSQL itself, on this server."""
    allowed, refused = _sort_out(
        await connection.fetch(_FUNCTIONS, []), patterns(policy["refused"]), patterns(policy["volatile"])
    )
    secret = patterns(policy["secret"])
    relations = {row["name"] for row in await connection.fetch(_RELATIONS)}
    return {
        "functions": allowed,
        "refused": refused,
        "operators": {row["name"] for row in await connection.fetch(_OPERATORS, []) if not row["extension"]},
        "relations": {name for name in relations if not fits(name, secret)},
        "types": {row["name"] for row in await connection.fetch(_TYPES)},
    }


async def extensions(connection: asyncpg.Connection[asyncpg.Record], policy: Policy) -> Lists:
    """Return what a query may use of the well-known extensions of this server."""
    names = policy["extensions"]["names"].split()
    rows = [row for row in await connection.fetch(_FUNCTIONS, names) if row["extension"]]
    allowed, refused = _sort_out(rows, patterns(policy["extension-refused"]), patterns(policy["extension-volatile"]))
    operators = {row["name"] for row in await connection.fetch(_OPERATORS, names) if row["extension"]}
    return {"functions": allowed, "refused": refused, "operators": operators}


def _sort_out(
    rows: Iterable[asyncpg.Record], refused: tuple[str, ...], volatile: tuple[str, ...]
) -> tuple[set[str], set[str]]:
    allowed, others = set[str](), set[str]()
    for row in rows:
        name = row["name"]
        if fits(name, volatile) or (row["steady"] and row["callable"] and not fits(name, refused)):
            allowed.add(name)
        elif row["single"]:
            others.add(name)
    return allowed - others, others
