"""Limits of the role on the server, and the encryption of the connection."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from dragoman import Database, Finding

from dragoman_postgres.doctor.roles import Examined
from dragoman_postgres.options import Options
from dragoman_postgres.spelling import quote

MUCH_MEMORY = 64 * 1024
"""The kB of work_mem, for each step of each query, from which it is no limit."""

# The value that RESET would set: from the role, the database and the server, not from our transaction.
_SETTINGS = "SELECT name::text, reset_val::text AS value FROM pg_settings WHERE name = ANY ($1::text[])"
_OF_ROLE = """
SELECT EXISTS (SELECT FROM pg_db_role_setting s CROSS JOIN LATERAL unnest(s.setconfig) c
               WHERE s.setrole = $1 AND c = 'default_transaction_read_only=on')
"""
_ENCRYPTED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
_NEAR = "SELECT coalesce(inet_client_addr() << '127.0.0.0/8' OR inet_client_addr() = '::1', true)"


@dataclass(frozen=True, slots=True)
class Bound:
    """A setting that limits what a query takes: what a missing limit means, and the value to set."""

    name: str
    is_missing: Callable[[str], bool]
    means: str
    value: Callable[[Database], str]


_BOUNDS = (
    Bound(
        "statement_timeout",
        lambda value: value == "0",
        "no statement of its own ever ends by time",
        lambda database: f"{round(database.timeout * 1000) + 1000}ms",
    ),
    Bound(
        "idle_in_transaction_session_timeout",
        lambda value: value == "0",
        "an idle transaction is never ended",
        lambda database: f"{round(database.timeout * 1000) + 10_000}ms",
    ),
    Bound(
        "temp_file_limit",
        lambda value: value == "-1",
        "one query may fill the server's disk with temporary files",
        lambda _: "1GB",
    ),
    Bound(
        "work_mem",
        lambda value: int(value) > MUCH_MEMORY,
        "each step of a query may take much memory",
        lambda _: "16MB",
    ),
    Bound("row_security", lambda value: value == "off", "row-level security is an error, not a filter", lambda _: "on"),
)
_LOGS = ("log_statement", "log_min_duration_statement")


async def missing_bounds(examined: Examined) -> list[Finding]:
    """Return missing limits, with the SQL that sets them for this role alone."""
    me = examined.roles.me
    names = [*(bound.name for bound in _BOUNDS), *_LOGS]
    values = {row["name"]: row["value"] for row in await examined.connection.fetch(_SETTINGS, names)}
    findings = [
        Finding(
            severity="warning",
            subject=bound.name,
            message=f"{bound.name} does not bound the role {me.name}: {bound.means}.",
            remedy=f"ALTER ROLE {quote(me.name)} SET {bound.name} = '{bound.value(examined.database)}';",
        )
        for bound in _BOUNDS
        if bound.name in values and bound.is_missing(values[bound.name])
    ]
    if not await examined.connection.fetchval(_OF_ROLE, me.oid):
        findings.append(
            Finding(
                severity="note",
                subject="default_read_only",
                message=f"Transactions of the role {me.name} that others open write by default.",
                remedy=f"ALTER ROLE {quote(me.name)} SET default_transaction_read_only = on;",
            )
        )
    if [values.get(name) for name in _LOGS] == ["none", "-1"]:
        findings.append(
            Finding(
                severity="note",
                subject="no_log",
                message="The server logs no statements: only the gateway's log shows what agents ran, as hashes.",
                remedy=f"ALTER ROLE {quote(me.name)} SET log_statement = 'all';",
            )
        )
    return findings


async def connection_limit(examined: Examined) -> list[Finding]:
    """Return whether the role could take every connection of the server."""
    me = examined.roles.me
    if me.connections >= 0:
        return []
    message = f"The role {me.name} may take every connection the server has."
    limit = 2 * examined.database.pool_size + 4
    remedy = f"ALTER ROLE {quote(me.name)} CONNECTION LIMIT {limit};"
    return [Finding(severity="note", subject="connection_limit", message=message, remedy=remedy)]


async def encryption(examined: Examined) -> list[Finding]:
    """Return whether others on the network could read or answer, if the server is not on this machine."""
    database = examined.database
    if await _is_near(examined):
        return []
    mode = Options(**database.options).sslmode
    key = f"databases.{database.name}"
    # A pooler's answer about encryption is about its own connection to the server.
    if not examined.pooled and not await examined.connection.fetchval(_ENCRYPTED):
        return [
            Finding(
                severity="danger",
                subject="not_encrypted",
                message="The connection is not encrypted: password and rows can be read and changed on the way.",
                remedy=f"Append ?sslmode=verify-full to {key}.url, and enable TLS in the server.",
            )
        ]
    if mode in ("verify-ca", "verify-full"):
        return []
    return [
        Finding(
            severity="warning",
            subject="not_verified",
            message=f"Any host that answers is accepted as the server (sslmode {mode or 'prefer'}).",
            remedy=f"Append ?sslmode=verify-full to {key}.url, and sslrootcert when the certificate is your own.",
        )
    ]


async def _is_near(examined: Examined) -> bool:
    """Return whether nothing leaves this machine: by the configured hosts, or by the address that the server sees."""
    host = examined.database.host
    if host:
        return all(map(is_local, host.split(",")))
    return bool(await examined.connection.fetchval(_NEAR))


def is_local(host: str) -> bool:
    """Return whether a host, perhaps with its port, is this machine: a socket, localhost or a loopback address."""
    bare = host.count(":") > 1 and not host.startswith("[")  # an IPv6 address without port
    name = host if bare else urlsplit(f"//{host}").hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return host.startswith("/") or name == "localhost"
