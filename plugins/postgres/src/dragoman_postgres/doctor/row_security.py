"""Gaps in row-level security: owners, and views that read with their owner's rights."""

from __future__ import annotations

from collections.abc import Iterator

import asyncpg
from dragoman import Finding

from dragoman_postgres.doctor.grants import some
from dragoman_postgres.doctor.roles import Examined, lines

_OWNED = """
SELECT format('%I.%I', n.nspname, c.relname) AS name
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relrowsecurity AND NOT c.relforcerowsecurity AND c.relowner = ANY ($1)
ORDER BY 1
"""
# A view depends on the tables it reads by its rule. Before version 15 there is no security_invoker.
_VIEWS = """
WITH RECURSIVE reads(view, relation) AS (
  SELECT r.ev_class, d.refobjid
  FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
  WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class
  UNION SELECT reads.view, further.relation FROM reads JOIN (
    SELECT r.ev_class AS view, d.refobjid AS relation
    FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class) further ON further.view = reads.relation)
SELECT format('%I.%I', n.nspname, c.relname) AS name, c.relkind = 'm' AS materialized, a.grantee
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL (
  SELECT grantee, privilege_type FROM aclexplode(c.relacl)
  UNION SELECT x.grantee, x.privilege_type FROM pg_attribute t CROSS JOIN LATERAL aclexplode(t.attacl) x
  WHERE t.attrelid = c.oid AND NOT t.attisdropped) a
WHERE c.relkind IN ('v', 'm') AND a.grantee = ANY ($1) AND a.privilege_type = 'SELECT'
  AND EXISTS (SELECT FROM reads JOIN pg_class t ON t.oid = reads.relation WHERE reads.view = c.oid AND t.relrowsecurity)
  AND NOT EXISTS (SELECT FROM pg_options_to_table(c.reloptions) o
    WHERE o.option_name = 'security_invoker' AND o.option_value::boolean)
ORDER BY 1
"""
INVOKER = 15
"""The first major version of the server in which a view may read with the rights of the user who queries it."""


async def row_security(examined: Examined) -> list[Finding]:
    """Return ways around the policies of tables."""
    views = await examined.connection.fetch(_VIEWS, examined.roles.grantees)
    owned = await examined.connection.fetch(_OWNED, examined.roles.grantees)
    return [
        *_tell_owners(examined, owned),
        *_tell_views(examined, [row for row in views if not row["materialized"]]),
        *_tell_materialized(examined, [row for row in views if row["materialized"]]),
    ]


def _tell_owners(examined: Examined, rows: list[asyncpg.Record]) -> Iterator[Finding]:
    if rows:
        message = "owns tables whose row-level security does not bind their owner"
        remedy = lines(f"ALTER TABLE {row['name']} FORCE ROW LEVEL SECURITY;" for row in rows)
        yield _make_finding(examined, "row_security_owner", message, rows, remedy)


def _tell_views(examined: Examined, rows: list[asyncpg.Record]) -> Iterator[Finding]:
    if rows:
        message = "may read views that read tables with row-level security by the rights of the views' owners"
        if examined.connection.get_server_version().major < INVOKER:
            remedy = _revoke_reading(examined, rows)
        else:
            remedy = lines(f"ALTER VIEW {row['name']} SET (security_invoker = true);" for row in rows)
        yield _make_finding(examined, "row_security_views", message, rows, remedy)


def _tell_materialized(examined: Examined, rows: list[asyncpg.Record]) -> Iterator[Finding]:
    if rows:
        message = "may read materialized views of tables with row-level security, which keep all that their owners saw"
        yield _make_finding(examined, "row_security_materialized", message, rows, _revoke_reading(examined, rows))


def _revoke_reading(examined: Examined, rows: list[asyncpg.Record]) -> str:
    return examined.roles.closing((f"SELECT ON {row['name']}", row["grantee"]) for row in rows)


def _make_finding(examined: Examined, subject: str, does: str, rows: list[asyncpg.Record], remedy: str) -> Finding:
    message = f"The role {examined.roles.me.name} {does}: {some(row['name'] for row in rows)}."
    return Finding(severity="warning", subject=subject, message=message, remedy=remedy)
