"""The roles of the session: which one signed in, which ones it may become, and what that alone allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from dragoman import Database, Finding

from dragoman_postgres.driver import Connection
from dragoman_postgres.spelling import quote

Severity = Literal["danger", "warning", "note"]
PUBLIC = 0
"""The grantee "everybody" in access lists."""

# Any user can undo SET ROLE. So the role that signed in counts, and every role it may set.
_ROLES = """
SELECT r.oid, r.rolname AS name, r.oid = me.oid AS own, r.rolconnlimit AS connections,
  ARRAY(SELECT d.rolname::text FROM pg_auth_members m JOIN pg_roles d ON d.oid = m.roleid
        WHERE m.member = me.oid AND pg_has_role(d.oid, r.oid, 'MEMBER') ORDER BY 1) AS via,
  r.rolsuper AS superuser, r.rolcreaterole AS createrole, r.rolcreatedb AS createdb,
  r.rolreplication AS replication, r.rolbypassrls AS bypassrls
FROM pg_roles r CROSS JOIN (SELECT oid FROM pg_roles WHERE rolname = session_user) me
WHERE pg_has_role(me.oid, r.oid, 'MEMBER') ORDER BY r.rolname
"""
_ATTRIBUTES = {
    "superuser": "may do everything, and no right of its own matters",
    "createrole": "may create roles and grant them memberships",
    "createdb": "may create databases",
    "replication": "may read everything by replication, and hold the server's log back",
    "bypassrls": "reads rows that row-level security keeps from others",
}

# The system's own roles, and those of well-known hosting services.
_FILES = "reaches the files of the server's machine"
_HOSTED = "may do nearly everything on this host's servers"
_PREDEFINED: dict[str, tuple[Severity, str]] = {
    "pg_read_server_files": ("danger", _FILES),
    "pg_write_server_files": ("danger", _FILES),
    "pg_execute_server_program": ("danger", "runs programs on the server's machine"),
    "pg_write_all_data": ("danger", "writes every table"),
    "pg_maintain": ("danger", "rebuilds and locks every table"),
    "pg_signal_backend": ("danger", "ends the sessions of others"),
    "pg_create_subscription": ("danger", "has other servers write into this one"),
    "rds_superuser": ("danger", _HOSTED),
    "rds_replication": ("danger", "may read everything by replication"),
    "cloudsqlsuperuser": ("danger", _HOSTED),
    "alloydbsuperuser": ("danger", _HOSTED),
    "azure_pg_admin": ("danger", _HOSTED),
    "neon_superuser": ("danger", _HOSTED),
    "supabase_admin": ("danger", _HOSTED),
    "pg_read_all_data": ("warning", "reads every table, those of other schemas and later ones too"),
    "pg_checkpoint": ("warning", "burdens the server with checkpoints"),
    "pg_signal_autovacuum_worker": ("warning", "stops the server's housekeeping"),
    "pg_use_reserved_connections": ("warning", "takes the connections kept for administrators"),
    "pg_monitor": ("warning", "sees other sessions' statements and all settings"),
    "pg_read_all_settings": ("warning", "sees all settings"),
    "pg_read_all_stats": ("warning", "sees other sessions' statements"),
    "pg_stat_scan_tables": ("warning", "locks tables for as long as it scans them"),
}


@dataclass(frozen=True, slots=True)
class Role:
    """A role that the session is or may become. `via`: its own memberships that lead there."""

    oid: int
    name: str
    own: bool
    via: tuple[str, ...]
    has: frozenset[str]
    connections: int

    @property
    def superuser(self) -> bool:
        """Whether it is a superuser."""
        return "superuser" in self.has


@dataclass(frozen=True, slots=True)
class Roles:
    """The role that signed in, and all roles that it may become, including itself.

    `acting`: those that callers act as.
    """

    me: Role
    all: tuple[Role, ...]
    acting: frozenset[str] = frozenset()

    @property
    def grantees(self) -> list[int]:
        """Return the grantees whose rights the session has, including everybody."""
        return [PUBLIC, *(role.oid for role in self.all)]

    def keeps(self, role: Role) -> bool:
        """Return whether the role must stay a member, so that excess rights are revoked from that role itself."""
        return role.own or role.name in self.acting

    def leave(self, role: Role) -> list[str]:
        """Return the SQL that ends the memberships which lead to another role."""
        return [f"REVOKE {quote(name)} FROM {quote(self.me.name)};" for name in role.via]

    def closing(self, rights: Iterable[tuple[str, int]]) -> str:
        """Return the SQL that revokes rights (`INSERT ON TABLE t`) from their grantees, or ends a membership."""
        given = list(rights)
        everybody = ["-- Everybody loses this right: grant it again to the roles that need it."] * any(
            grantee == PUBLIC for _, grantee in given
        )
        return lines(
            [*everybody, *(statement for right, grantee in given for statement in self._revoke(right, grantee))]
        )

    def _revoke(self, right: str, grantee: int) -> list[str]:
        if grantee == PUBLIC:
            return [f"REVOKE {right} FROM PUBLIC;"]
        role = next(role for role in self.all if role.oid == grantee)
        return [f"REVOKE {right} FROM {quote(role.name)};"] if self.keeps(role) else self.leave(role)


@dataclass(frozen=True, slots=True)
class Examined:
    """The input of a check: a connection whose names mean the system's own, the configuration, the session's roles."""

    connection: Connection
    database: Database
    roles: Roles
    pooled: bool


async def read_roles(connection: Connection, database: Database) -> Roles:
    """Return the session's roles."""
    roles = [
        Role(
            row["oid"],
            row["name"],
            row["own"],
            tuple(row["via"]),
            frozenset(name for name in _ATTRIBUTES if row[name]),
            row["connections"],
        )
        for row in await connection.fetch(_ROLES)
    ]
    return Roles(next(role for role in roles if role.own), tuple(roles), frozenset(database.database_roles.values()))


def lines(remedies: Iterable[str]) -> str:
    """Return statements as lines, each once."""
    return "\n".join(dict.fromkeys(remedies))


async def attributes(examined: Examined) -> list[Finding]:
    """Return what the role's attributes allow, or those of roles of which it is a member."""
    me = examined.roles.me
    if me.superuser:
        message = f"The role {me.name} is a superuser: it {_ATTRIBUTES['superuser']}."
        return [
            Finding(severity="danger", subject="superuser", message=message, remedy=minimal_role(examined.database))
        ]
    return [finding for role in examined.roles.all for finding in _attributes_of(role, examined.roles)]


def _attributes_of(role: Role, roles: Roles) -> Iterator[Finding]:
    for name in sorted(role.has):
        words = "" if role.own else f"is a member of {role.name}, which "
        taken = [f"ALTER ROLE {quote(role.name)} NO{name.upper()};"]
        remedy = lines(taken if roles.keeps(role) else roles.leave(role))
        message = f"The role {roles.me.name} {words}{_ATTRIBUTES[name]}."
        yield Finding(severity="danger", subject=name, message=message, remedy=remedy)


async def memberships(examined: Examined) -> list[Finding]:
    """Return what membership in the server's predefined roles allows."""
    return list(_memberships(examined.roles))


def _memberships(roles: Roles) -> Iterator[Finding]:
    for role in roles.all:
        known = _PREDEFINED.get(role.name)
        # A role that is implied by another of these is not reported itself.
        if known is None or not role.via or (role.name not in role.via and _PREDEFINED.keys() & set(role.via)):
            continue
        yield Finding(
            severity=known[0],
            subject=role.name,
            message=f"As a member of {role.name} the role {roles.me.name} {known[1]}.",
            remedy=lines(roles.leave(role)),
        )


def minimal_role(database: Database) -> str:
    """Return the SQL that creates a role which may only read, for the schemas of a configuration."""
    role = "dragoman_reader"
    statements = [
        "-- Create a role that may only read, and configure its name as `user`:",
        f"CREATE ROLE {role} LOGIN PASSWORD '...' CONNECTION LIMIT 20;",
    ]
    for schema in map(quote, database.schemas or (database.schema or "public",)):
        statements += [
            f"GRANT USAGE ON SCHEMA {schema} TO {role};",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role};",
        ]
    return lines(statements)
