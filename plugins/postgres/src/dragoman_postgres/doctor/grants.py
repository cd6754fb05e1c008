"""What the role owns, and what it was granted besides reading, including rights on columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import asyncpg
from dragoman import Finding

from dragoman_postgres.doctor.roles import PUBLIC, Examined, lines
from dragoman_postgres.spelling import quote

SHOWN = 5
"""The number of names shown with each finding. The SQL of its remedy covers all of them."""

_OWNED = """
SELECT d.refobjid AS owner, o.type || ' ' || o.identity AS name
FROM pg_shdepend d CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) o
WHERE d.deptype = 'o' AND d.refclassid = 'pg_authid'::regclass AND d.refobjid = ANY ($1)
  AND d.dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
ORDER BY 2
"""
# Everybody may "update" pg_settings, which is SET in SQL. The rules of each setting apply.
_RELATIONS = """
SELECT n.nspname::text AS schema, c.relname::text AS name, c.relkind = 'S' AS sequence, a.grantee,
  array_agg(DISTINCT a.privilege_type ORDER BY a.privilege_type) AS privileges
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL (
  SELECT grantee, privilege_type FROM aclexplode(c.relacl)
  UNION ALL SELECT x.grantee, x.privilege_type FROM pg_attribute t CROSS JOIN LATERAL aclexplode(t.attacl) x
  WHERE t.attrelid = c.oid AND NOT t.attisdropped) a
WHERE a.grantee = ANY ($1) AND a.grantee <> c.relowner AND a.privilege_type <> 'SELECT'
  AND c.oid <> 'pg_settings'::regclass
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2
"""
_CONTAINERS = """
SELECT 'SCHEMA' AS kind, n.nspname::text AS name, a.grantee, a.privilege_type AS privilege
FROM pg_namespace n CROSS JOIN LATERAL aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
WHERE a.grantee = ANY ($1) AND a.grantee <> n.nspowner AND a.privilege_type = 'CREATE'
  AND n.nspname !~ '^pg_(toast|temp)'
UNION ALL SELECT 'DATABASE', d.datname, a.grantee, a.privilege_type
FROM pg_database d CROSS JOIN LATERAL aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
WHERE d.datname = current_database() AND a.grantee = ANY ($1) AND a.grantee <> d.datdba
  AND a.privilege_type IN ('CREATE', 'TEMPORARY')
UNION ALL SELECT 'TABLESPACE', t.spcname, a.grantee, a.privilege_type
FROM pg_tablespace t CROSS JOIN LATERAL aclexplode(t.spcacl) a
WHERE a.grantee = ANY ($1) AND a.grantee <> t.spcowner
ORDER BY 1, 2
"""
_TO_COME = """
SELECT pg_get_userbyid(d.defaclrole)::text AS maker, n.nspname::text AS schema, d.defaclobjtype = 'S' AS sequence,
  a.grantee, array_agg(DISTINCT a.privilege_type ORDER BY a.privilege_type) AS privileges
FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace CROSS JOIN LATERAL aclexplode(d.defaclacl) a
WHERE d.defaclobjtype IN ('r', 'S') AND a.grantee = ANY ($1) AND a.grantee <> d.defaclrole
  AND a.privilege_type <> 'SELECT'
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2
"""


def some(names: Iterable[str]) -> str:
    """Return the first few of some names as text, and the number of the others."""
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more


async def ownership(examined: Examined) -> list[Finding]:
    """Return objects that the role owns, and so may alter, drop and grant."""
    roles = examined.roles
    owned: dict[int, list[str]] = defaultdict(list)
    for row in await examined.connection.fetch(_OWNED, roles.grantees):
        owned[row["owner"]].append(row["name"])
    findings: list[Finding] = []
    for role in roles.all:
        if role.oid not in owned:
            continue
        given = [f"REASSIGN OWNED BY {quote(role.name)} TO CURRENT_USER;"]
        remedy = lines(given if roles.keeps(role) else roles.leave(role))
        words = "owns" if role.own else f"is a member of {role.name}, which owns"
        message = f"The role {roles.me.name} {words} objects that it may alter and drop: {some(owned[role.oid])}."
        findings.append(Finding(severity="danger", subject="ownership", message=message, remedy=remedy))
    return findings


async def rights_on_relations(examined: Examined) -> list[Finding]:
    """Return rights on tables, views and sequences, or on columns of them, besides reading."""
    rows = await examined.connection.fetch(_RELATIONS, examined.roles.grantees)
    return [
        finding
        for subject, of_sequences in (("write_grants", False), ("sequence_grants", True))
        if (found := [row for row in rows if row["sequence"] == of_sequences])
        for finding in [_relations_finding(examined, subject, found)]
    ]


def _relations_finding(examined: Examined, subject: str, rows: list[asyncpg.Record]) -> Finding:
    privileges = sorted({privilege for row in rows for privilege in row["privileges"]})
    names = (f"{row['schema']}.{row['name']}" for row in rows)
    message = f"The role {examined.roles.me.name} may {', '.join(privileges)} on {some(names)}."
    return Finding(severity="danger", subject=subject, message=message, remedy=examined.roles.closing(_rights(rows)))


def _rights(rows: list[asyncpg.Record]) -> Iterator[tuple[str, int]]:
    """Yield the rights by schema and grantee: on single relations, or on all if there are many."""
    groups: dict[tuple[str, int, bool], list[asyncpg.Record]] = defaultdict(list)
    for row in rows:
        groups[row["schema"], row["grantee"], row["sequence"]].append(row)
    for (schema, grantee, sequence), group in groups.items():
        privileges = ", ".join(sorted({privilege for row in group for privilege in row["privileges"]}))
        kind = "SEQUENCE" if sequence else "TABLE"
        if len(group) > SHOWN:
            where = f"ALL {kind}S IN SCHEMA {quote(schema)}"
        else:
            where = f"{kind} " + ", ".join(f"{quote(schema)}.{quote(row['name'])}" for row in group)
        yield f"{privileges} ON {where}", grantee


async def rights_on_containers(examined: Examined) -> list[Finding]:
    """Return rights to create in schemas, the database and tablespaces."""
    me, findings = examined.roles.me.name, list[Finding]()
    for row in await examined.connection.fetch(_CONTAINERS, examined.roles.grantees):
        kind, privilege = row["kind"], row["privilege"]
        where = f"{kind.lower()} {row['name']}"
        temporary = privilege == "TEMPORARY"
        findings.append(
            Finding(
                severity="warning" if temporary else "danger",
                subject="temporary_tables" if temporary else f"{kind.lower()}_create",
                message=f"The role {me} may create {'temporary tables' if temporary else 'objects'} in the {where}"
                f"{', as everybody may' if row['grantee'] == PUBLIC else ''}.",
                remedy=examined.roles.closing([(f"{privilege} ON {kind} {quote(row['name'])}", row["grantee"])]),
            )
        )
    return findings


async def rights_to_come(examined: Examined) -> list[Finding]:
    """Return rights on tables that will be created later."""
    rows = await examined.connection.fetch(_TO_COME, examined.roles.grantees)
    if not rows:
        return []
    message = (
        f"By default privileges, the role {examined.roles.me.name} may write to what"
        f" {some(row['maker'] for row in rows)} will create."
    )
    return [
        Finding(
            severity="warning", subject="default_privileges", message=message, remedy=lines(_no_longer(examined, rows))
        )
    ]


def _no_longer(examined: Examined, rows: list[asyncpg.Record]) -> Iterator[str]:
    for row in rows:
        right = f"{', '.join(row['privileges'])} ON {'SEQUENCES' if row['sequence'] else 'TABLES'}"
        within = f" IN SCHEMA {quote(row['schema'])}" if row["schema"] else ""
        for statement in examined.roles.closing([(right, row["grantee"])]).splitlines():
            # A comment, or the end of a membership, is complete.
            whole = f"REVOKE {right}" not in statement
            yield (
                statement if whole else f"ALTER DEFAULT PRIVILEGES FOR ROLE {quote(row['maker'])}{within} {statement}"
            )
