"""Gaps if the server applies the rights of callers: the role that signs in, and tables without policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman import Finding

from dragoman_postgres.doctor.grants import some
from dragoman_postgres.doctor.roles import Examined, lines
from dragoman_postgres.spelling import quote

_KNOWN = "SELECT rolname::text AS name FROM pg_roles WHERE rolname = ANY ($1)"
_READABLE = """
SELECT format('%I.%I', n.nspname, c.relname) AS name
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname !~ '^pg_(toast|temp)' AND has_schema_privilege(session_user, n.oid, 'USAGE')
  AND has_any_column_privilege(session_user, c.oid, 'SELECT')
  AND NOT ($1 AND (c.relrowsecurity OR c.relkind IN ('v', 'm')))
ORDER BY 1
"""


async def delegation(examined: Examined) -> list[Finding]:
    """Return roles that cannot be assumed, and tables that callers read whoever they are."""
    identity = examined.database.identity
    if identity == "gateway":
        return []
    found = list(await _missing(examined))
    readable = [row["name"] for row in await examined.connection.fetch(_READABLE, identity == "session")]
    if readable:
        found.append(_tell_readable(examined, readable))
    return found


async def _missing(examined: Examined) -> Iterator[Finding]:
    wanted = list(dict.fromkeys(examined.database.database_roles.values()))
    known = {row["name"] for row in await examined.connection.fetch(_KNOWN, wanted)}
    return _tell_missing(examined, wanted, known)


def _tell_missing(examined: Examined, wanted: Sequence[str], known: set[str]) -> Iterator[Finding]:
    me, mine = examined.roles.me.name, {role.name for role in examined.roles.all}
    for name in wanted:
        if name not in known:
            message, remedy = (
                f"The role {name}, which database_roles names, does not exist.",
                f"CREATE ROLE {quote(name)};",
            )
        elif name not in mine:
            message = f"The role {me} may not become {name}, which database_roles names: its callers are refused."
            remedy = f"GRANT {quote(name)} TO {quote(me)};"
        else:
            continue
        yield Finding(severity="warning", subject="delegation_role", message=message, remedy=remedy)


def _tell_readable(examined: Examined, names: Sequence[str]) -> Finding:
    me = examined.roles.me.name
    if examined.database.identity == "session":
        message = f"Every caller reads all rows of tables without row-level security: {some(names)}."
        remedy = lines(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;" for name in names)
        return Finding(severity="warning", subject="delegation_open", message=message, remedy=remedy)
    message = f"The role {me} may itself read tables that only the roles it becomes should read: {some(names)}."
    remedy = f"ALTER ROLE {quote(me)} NOINHERIT;\n" + lines(f"REVOKE ALL ON {name} FROM {quote(me)};" for name in names)
    return Finding(severity="warning", subject="delegation_login", message=message, remedy=remedy)
