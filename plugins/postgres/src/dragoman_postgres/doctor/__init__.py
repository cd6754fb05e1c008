"""What the configured role could do if all protections failed, according to the server's catalog and settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import asyncpg
from dragoman import Database, Finding

from dragoman_postgres.doctor.calls import functions_that_act, functions_with_others_rights, lists_that_differ
from dragoman_postgres.doctor.delegation import delegation
from dragoman_postgres.doctor.grants import ownership, rights_on_containers, rights_on_relations, rights_to_come
from dragoman_postgres.doctor.remote import foreign_servers, foreign_tables
from dragoman_postgres.doctor.roles import Examined, attributes, memberships, read_roles
from dragoman_postgres.doctor.row_security import row_security
from dragoman_postgres.doctor.settings import connection_limit, encryption, missing_bounds
from dragoman_postgres.failures import LOST
from dragoman_postgres.pool import Connections

# Unqualified names mean the system's own, whoever may create functions elsewhere.
_PATH = "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL jit = off; SET LOCAL lock_timeout = '1s'"

Check = Callable[[Examined], Awaitable[Iterable[Finding]]]

OF_ANY_ROLE: tuple[Check, ...] = (attributes, encryption, lists_that_differ)
OF_LESSER_ROLES: tuple[Check, ...] = (
    memberships,
    ownership,
    rights_on_relations,
    rights_on_containers,
    rights_to_come,
    functions_that_act,
    functions_with_others_rights,
    foreign_servers,
    foreign_tables,
    row_security,
    delegation,
    missing_bounds,
    connection_limit,
)
"""Checks that say nothing about a superuser, who may do everything anyway."""


async def examine(database: Database) -> list[Finding]:
    """Return the findings, over a connection of its own. Raises `ConnectionFailed`."""
    connections = Connections(database, 1, bounded=False)
    try:
        async with connections.borrow() as connection:
            await connection.execute(_PATH)
            roles = await read_roles(connection, database)
            examined = Examined(connection, database, roles, pooled=bool(connections.connector.pooled))
            checks = OF_ANY_ROLE if roles.me.superuser else (*OF_ANY_ROLE, *OF_LESSER_ROLES)
            return [finding for check in checks for finding in await _run_check(check, examined)]
    finally:
        await connections.aclose()


async def _run_check(check: Check, examined: Examined) -> list[Finding]:
    """Return the findings of one check.

    A check that the role may not make, or that this server does not know, spoils no other.
    """
    await examined.connection.execute("SAVEPOINT examined")
    try:
        return list(await check(examined))
    except LOST:
        raise
    except asyncpg.PostgresError as error:
        await examined.connection.execute("ROLLBACK TO SAVEPOINT examined")
        what = check.__name__.replace("_", " ")
        return [
            Finding(
                severity="note",
                subject="not_checked",
                message=f"Not checked, since the server refused it: {what} (SQLSTATE {error.sqlstate}).",
                remedy="Run the doctor as the role's administrator, or check by hand.",
            )
        ]
