"""A database as the holders of some roles see it. What they may not read does not exist for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from dragoman.access import DatabaseAccess, Misfit, Permission, ReadGrant, misfits
from dragoman.catalog import GrantedCatalog, Snapshot
from dragoman.config import Configuration
from dragoman.dialect import Dialect
from dragoman.errors import ColumnNotFound, ConfigurationError, PermissionDenied, Unsupported
from dragoman.gateway.failures import not_there
from dragoman.gateway.resolving import Resolver
from dragoman.gateway.visible import unknown_type
from dragoman.model import ConfinedRelation, Database, Relation, Table
from dragoman.parsed import ParsedStatement
from dragoman.sql import Statement
from dragoman.words import quote_foreign

TryOut = Callable[[Sequence[Sequence[ReadGrant]], Snapshot, set[ConfinedRelation]], Awaitable[Sequence[Misfit]]]
"""Returns, for the grants of each role, the filters and masks that the database cannot compile.

Records those that it can.
"""
FEW = 20
"""The most columns that an error names."""
_log = logging.getLogger(__name__)


def limit(database: Database, access: DatabaseAccess) -> Database:
    """Return a database with the limits of roles, where those are stricter than its own."""
    rows = min(database.max_rows, access.max_rows or database.max_rows)
    return replace(
        database,
        max_rows=rows,
        default_rows=min(database.default_rows, rows),
        timeout=min(database.timeout, access.timeout or database.timeout),
    )


class RolesFit:
    """Whether every role matches its database. Checked once, at the start or when the catalog is known."""

    def __init__(self, grants: Sequence[ReadGrant], dialect: Dialect, database: Database, try_out: TryOut) -> None:
        self.grants = tuple(grants)
        self._dialect = dialect
        self._database = database
        self._try_out = try_out
        self._fits = False
        self._compiled: set[ConfinedRelation] = set()
        self._compiled_of: Snapshot | None = None
        self._checking = asyncio.Lock()

    @property
    def fits(self) -> bool:
        """Whether they are known to match."""
        return self._fits

    async def problems(self, snapshot: Snapshot) -> list[Misfit]:
        """Return the names in the grants that the database does not have, or else the parts that it cannot compile."""
        found = await asyncio.to_thread(
            lambda: list(misfits(self.grants, snapshot.tables, self._dialect, self._database))
        )
        if snapshot is not self._compiled_of:  # with another catalog, a part may no longer compile
            self._compiled_of, self._compiled = snapshot, set()
        if found and snapshot.told:  # what is missing may be in what was not read
            unread = f" The database told: {' '.join(snapshot.told)}"
            found = [each._replace(remedy=each.remedy + unread) for each in found]
        if not found:
            found += await self._try_out(self._confining_roles(), snapshot, self._compiled)
        self._fits = not found
        return found

    def _confining_roles(self) -> list[list[ReadGrant]]:
        """Return the grants of each role that filters or masks anything."""
        roles: dict[str, list[ReadGrant]] = {}
        for grant in self.grants:
            roles.setdefault(grant.role, []).append(grant)
        return [grants for grants in roles.values() if any(grant.confines for grant in grants)]

    async def check(self, snapshot: Snapshot) -> None:
        """Raise `PermissionDenied` if a role does not match: a mistaken `deny` would leave something open."""
        if not self._fits:
            async with self._checking:  # callers of all roles come at once, and one check is enough for them
                await self._check(snapshot)

    async def _check(self, snapshot: Snapshot) -> None:
        problems = () if self._fits else await self.problems(snapshot)
        for each in problems:
            _log.error("the database %s is closed: %s: %s. %s", self._database.name, *each)
        if problems:
            raise PermissionDenied(
                f"The roles of this server do not match the database {self._database.name}, so it is closed.",
                suggestion="Tell the server's administrator: the log says what is wrong.",
            )


def misfitting(problems: Sequence[Misfit], configuration: Configuration) -> ConfigurationError:
    """Return the error of roles that do not match, with the file of each."""

    def describe(problem: Misfit) -> str:
        whole, section = problem.key, ".".join(problem.key.split(".")[:3])
        file = configuration.sources.get(whole) or configuration.sources.get(section)
        return f"{f'{file}: ' if file else ''}{problem.key}: {problem.message}."

    if len(problems) == 1:
        return ConfigurationError(describe(problems[0]), suggestion=problems[0].remedy)
    lines = [f"- {describe(each)} {each.remedy}" for each in problems]
    return ConfigurationError("\n".join([f"The roles have {len(lines)} problems:", *lines]))


class Granting:
    """Refuses statements that read what is not granted. Its messages never depend on whether that exists.

    `whole`: resolves names as the database does, including names that are not granted.
    """

    def __init__(self, dialect: Dialect, catalog: GrantedCatalog, whole: Resolver) -> None:
        self._dialect = dialect
        self._catalog = catalog
        self._whole = whole

    async def check(self, statement: Statement, parsed: ParsedStatement) -> None:
        """Raise `NotFound` for a relation that is not granted, `ColumnNotFound` for columns that are not."""
        partly = False
        await self._check_types(parsed)
        tables = await self._whole.find_tables(parsed.names)
        permissions = await self._catalog.permissions()  # only now: looking for a new name reads the catalog again
        for written, table in tables.items():
            permission = permissions.get(await self._resolve(written, table))
            if permission is None:
                raise await not_there(written, statement, self._catalog)
            partly = partly or not permission.whole
        await self._check_versions(parsed)
        if partly and self._dialect.confine is None:
            await self._check_columns(statement, parsed)

    async def _check_versions(self, parsed: ParsedStatement) -> None:
        """Raise `Unsupported` for an older version of a relation that may have had columns which are not granted."""
        versions = tuple(each.relation for each in parsed.versions)
        if not versions:
            return
        permissions = await self._catalog.permissions()
        for written, table in (await self._whole.find_tables(versions)).items():
            permission = permissions.get(table.relation) if table else None
            if permission is None or not permission.always:
                raise Unsupported(
                    f"Versions of {quote_foreign(written.name)} cannot be read: they may have columns that you do not"
                    " see.",
                    suggestion="Read the table as it is now.",
                )

    async def _check_types(self, parsed: ParsedStatement) -> None:
        """Check names of types: a relation's name is also the type of its rows, which has all of its columns."""
        names = await self._catalog.all_names()
        typed = {Relation(each.name, each.schema): each for each in parsed.types if each.name in names}
        permissions = await self._catalog.permissions()
        granted = {relation.name for relation in permissions}
        for written, table in (await self._whole.find_tables(tuple(typed))).items() if typed else ():
            permission = permissions.get(table.relation if table else written)
            if table is None and written.name not in granted:
                continue  # a visible type that has the name of a hidden relation elsewhere
            if permission is None:
                raise unknown_type(typed[written])
            if not permission.whole:
                raise _not_all(written, permission)

    async def _resolve(self, written: Relation, table: Table | None) -> Relation:
        """Return the relation that a name means. For a fact such as `orders$files`, return the relation `orders`."""
        whole = self._dialect.loaded_rules.find_whole(written)
        if table is None and whole is not None:
            table = (await self._whole.find_tables((whole,)))[whole]
            permissions = await self._catalog.permissions()
            if table and table.relation in permissions and not permissions[table.relation].always:
                return written  # facts about a part are facts about the whole, and about columns that it had
        return table.relation if table else written

    async def _check_columns(self, statement: Statement, parsed: ParsedStatement) -> None:
        permissions = await self._catalog.permissions()
        resolution = await self._whole.resolution(statement, parsed)
        for relation, column in resolution.columns:
            permission = permissions.get(relation)
            if permission and not permission.whole and column not in permission.columns:
                raise _not_all(relation, permission)


def _not_all(relation: Relation, permission: Permission) -> ColumnNotFound:
    named = ", ".join(map(quote_foreign, permission.columns[:FEW]))
    return ColumnNotFound(
        f"The statement reads columns that {quote_foreign(relation.name)} does not have, or all of them.",
        suggestion=f"Name them one by one; its columns are: {named}.",
    )
