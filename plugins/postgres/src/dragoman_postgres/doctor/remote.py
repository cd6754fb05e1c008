"""Access to other servers: foreign servers that the role may use, and foreign tables that it may read."""

from __future__ import annotations

import asyncpg
from dragoman import Finding

from dragoman_postgres.doctor.grants import some
from dragoman_postgres.doctor.roles import Examined, Severity
from dragoman_postgres.spelling import quote

_SERVERS = """
SELECT 'FOREIGN SERVER' AS kind, s.srvname::text AS name, a.grantee
FROM pg_foreign_server s CROSS JOIN LATERAL aclexplode(s.srvacl) a
WHERE a.grantee = ANY ($1) AND a.grantee <> s.srvowner
UNION ALL SELECT 'FOREIGN DATA WRAPPER', w.fdwname, a.grantee
FROM pg_foreign_data_wrapper w CROSS JOIN LATERAL aclexplode(w.fdwacl) a
WHERE a.grantee = ANY ($1) AND a.grantee <> w.fdwowner
ORDER BY 1, 2
"""
_TABLES = """
SELECT format('%I.%I', n.nspname, c.relname) AS name, a.grantee,
  EXISTS (SELECT FROM unnest(f.ftoptions) o WHERE o LIKE 'program=%') AS program
FROM pg_foreign_table f JOIN pg_class c ON c.oid = f.ftrelid JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
  SELECT grantee, privilege_type FROM aclexplode(c.relacl)
  UNION ALL SELECT x.grantee, x.privilege_type FROM pg_attribute t CROSS JOIN LATERAL aclexplode(t.attacl) x
  WHERE t.attrelid = c.oid AND NOT t.attisdropped) a
WHERE a.grantee = ANY ($1) AND a.grantee <> c.relowner AND a.privilege_type = 'SELECT'
ORDER BY 1
"""


async def foreign_servers(examined: Examined) -> list[Finding]:
    """Return servers for which it may create user mappings, and wrappers for which it may create servers."""
    findings: list[Finding] = []
    for row in await examined.connection.fetch(_SERVERS, examined.roles.grantees):
        kind, name = row["kind"], row["name"]
        of_server = kind == "FOREIGN SERVER"
        does = "log in to" if of_server else "make servers of"
        findings.append(
            Finding(
                severity="warning" if of_server else "danger",
                subject="foreign_servers" if of_server else "foreign_data_wrappers",
                message=f"The role {examined.roles.me.name} may {does} the {kind.lower()} {name}.",
                remedy=examined.roles.closing([(f"USAGE ON {kind} {quote(name)}", row["grantee"])]),
            )
        )
    return findings


async def foreign_tables(examined: Examined) -> list[Finding]:
    """Return tables whose reading acts on another server, or runs a program on this one."""
    rows = await examined.connection.fetch(_TABLES, examined.roles.grantees)
    programs = [row for row in rows if row["program"]]
    others = [row for row in rows if not row["program"]]
    return [
        *_readable(examined, programs, "danger", "run a program on the server's machine when they are read"),
        *_readable(examined, others, "warning", "read other servers, which may act on it"),
    ]


def _readable(examined: Examined, rows: list[asyncpg.Record], severity: Severity, does: str) -> list[Finding]:
    if not rows:
        return []
    message = (
        f"The role {examined.roles.me.name} may read foreign tables, which {does}: {some(r['name'] for r in rows)}."
    )
    remedy = examined.roles.closing((f"SELECT ON {row['name']}", row["grantee"]) for row in rows)
    return [Finding(severity=severity, subject="foreign_tables", message=message, remedy=remedy)]
