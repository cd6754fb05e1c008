"""The schemas in which all sessions of a database look for what a name means."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dragoman import ConnectionFailed, Database
from dragoman.catalog.names import parse_name

from dragoman_postgres.driver import Connection
from dragoman_postgres.lexicon import LEXICON
from dragoman_postgres.spelling import quote

_log = logging.getLogger(__name__)
_PART = re.compile(r'"(?:[^"]|"")*"|[^\s,"]+')
_OURS = frozenset({"pg_catalog", "pg_temp"})
# Not the value of SHOW: behind a pooler that may be another client's.
_ROLE_S_PATH = "SELECT reset_val FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'search_path'"
_SAFELY = "SET LOCAL search_path = pg_catalog, pg_temp"
_EXTENSIONS = """
SELECT n.nspname::text AS schema, NOT EXISTS (
    SELECT FROM pg_depend AS o WHERE o.refclassid = 'pg_namespace'::regclass AND o.refobjid = n.oid AND o.deptype = 'n'
      AND o.classid NOT IN ('pg_extension'::regclass, 'pg_proc'::regclass) AND NOT EXISTS (
        SELECT FROM pg_depend AS m WHERE m.classid = o.classid AND m.objid = o.objid AND m.deptype = 'e')) AS alone
FROM pg_namespace AS n WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND has_schema_privilege(n.oid, 'USAGE') AND EXISTS (
    SELECT FROM pg_depend AS o JOIN pg_depend AS m ON m.classid = o.classid AND m.objid = o.objid AND m.deptype = 'e'
    WHERE o.refclassid = 'pg_namespace'::regclass AND o.refobjid = n.oid AND o.classid = 'pg_operator'::regclass)
ORDER BY n.nspname
"""
"""Schemas with operators of extensions, and whether they hold nothing but extensions and functions."""
_MISREAD = """
WITH RECURSIVE searched AS (
  SELECT oid FROM pg_namespace WHERE nspname = 'pg_catalog' OR nspname = ANY ($1) AND has_schema_privilege(oid, 'USAGE')
), misread AS (
  SELECT t.oid, t.typname FROM pg_cast AS k JOIN pg_type AS t ON t.oid = k.castsource
  WHERE k.castcontext = 'i' AND k.castmethod = 'b' AND t.typnamespace <> 'pg_catalog'::regnamespace AND EXISTS (
    SELECT FROM pg_operator AS o WHERE o.oprleft = t.oid AND o.oprnamespace NOT IN (SELECT oid FROM searched))
  UNION SELECT coalesce(c.reltype, d.objid), m.typname FROM misread AS m
    JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = m.oid
    LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
  WHERE d.classid IN ('pg_type'::regclass, 'pg_class'::regclass))
SELECT format('%I.%I.%I', n.nspname, c.relname, a.attname) AS place, m.typname::text AS type
FROM misread AS m JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = m.oid
JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = d.objsubid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE ($2::text[] IS NULL OR n.nspname = ANY ($2)) AND has_schema_privilege(n.oid, 'USAGE')
  AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 ORDER BY 1 LIMIT 1
"""
"""A column of some schemas, or of all, that is taken for one of another type, as its own operators are not found.

The server casts its type implicitly to the type that has its form: `citext` to `text`. What has values of a type
depends on it, and `pg_depend` has an index for that: databases of many tables are asked every few seconds.
"""


@dataclass(slots=True)
class SearchPath:
    """The search path of all sessions of a database: those that judge names and those that run statements.

    `configured`: the schemas of the configuration; None: there are none. `shown`: those that are not hidden; None: all.
    `found`: these and the schemas of extensions. `text`: the same, or else the role's own path, as it was at the first
    connection to `cluster`. None: it is not known yet.
    """

    configured: tuple[str, ...] | None
    shown: tuple[str, ...] | None = None
    found: tuple[str, ...] = ()
    text: str | None = None
    cluster: str | None = None

    @classmethod
    def of(cls, database: Database) -> SearchPath:
        """Return the path of a configured database."""
        first = (database.schema,) if database.schema else ()
        shown = tuple(name for written in database.schemas for name in _names_of(written))
        path = (*first, *(shown or (("public",) if first else ())))
        return cls(tuple(dict.fromkeys(path)) or None, shown or None)

    async def learn(self, connection: Connection, database: str) -> None:
        """Ask the server for what the configuration does not say of the path.

        Raises `ConnectionFailed` if columns would compare as if they were of another type.
        """
        if self._is_of(connection):
            return
        async with one_process(connection):
            found = await self._find(connection, database, self.configured) if self.configured else ()
            path = _write(found) if found else str(await connection.fetchval(_ROLE_S_PATH))
        if not self._is_of(connection):  # the first one of several connections decides
            self.found, self.text, self.cluster = found, order_path(path), connection.cluster

    async def renew(self, connection: Connection, database: str) -> None:
        """Find the schemas of extensions again if a column compares as another type by now. Raises `ConnectionFailed`.

        `connection`: inside a transaction.
        """
        await connection.execute(_SAFELY)
        if self.configured and await connection.fetchrow(_MISREAD, self.found, self.shown):
            self.found = await self._find(connection, database, self.configured)
            self.text = order_path(_write(self.found))

    def _is_of(self, connection: Connection) -> bool:
        return self.text is not None and self.cluster == connection.cluster

    async def _find(self, connection: Connection, database: str, configured: tuple[str, ...]) -> tuple[str, ...]:
        """Return the configured schemas, and those of extensions that hide nothing."""
        await connection.execute(_SAFELY)
        rows = [row for row in await connection.fetch(_EXTENSIONS) if row["schema"] not in configured]
        added = [row["schema"] for row in rows if row["alone"] or self.shown is None]
        if left_out := [row["schema"] for row in rows if row["schema"] not in added]:
            _tell_left_out(database, ", ".join(left_out))
        path = (*configured, *added)
        if misread := await connection.fetchrow(_MISREAD, path, self.shown):
            raise _is_misread(database, **misread)
        return path


def _write(path: tuple[str, ...]) -> str:
    return ", ".join(map(quote, path))


def _tell_left_out(database: str, schemas: str) -> None:
    _log.warning(
        "database %s: schemas leaves out %s, which holds extensions and other objects, so queries do not find the"
        " operators of these extensions; move them to a schema of their own (ALTER EXTENSION name SET SCHEMA"
        " extensions), or add %s to schemas",
        database, schemas, schemas,
    )  # fmt: skip


def _is_misread(database: str, place: str, type: str) -> ConnectionFailed:
    return ConnectionFailed(
        f"The database {database} is closed: the column {place} would not compare as its type {type} does, since"
        " queries do not find the operators of that type.",
        suggestion="Tell the server's administrator, who can move the extension of that type to a schema of its own"
        " (ALTER EXTENSION ... SET SCHEMA) that the role may use (GRANT USAGE), or add its schema to `schemas`.",
    )


@asynccontextmanager
async def one_process(connection: Connection) -> AsyncGenerator[None]:
    """Have one process of the server take all steps of a question, behind a pooler too."""
    await connection.execute("BEGIN READ ONLY")
    try:
        yield
    finally:
        await connection.execute("ROLLBACK")


def order_path(path: str) -> str:
    """Return a search path with the system's schema first and the one of temporary objects last.

    The system's schema is first if it is not named, and `current_schema()` does not change. The other one would come
    before it, and behind a pooler it may contain anybody's tables. An empty name, which stands for no schema, is left
    out: it cannot be set.
    """
    parts = (part for part in _PART.findall(path) if part.strip('"'))
    others = (part for part in parts if part.strip('"') not in _OURS and part.lower() not in _OURS)
    return ", ".join((*others, "pg_temp"))


def _names_of(written: str) -> tuple[str, ...]:
    """Return the schemas that an entry of `schemas` means."""
    parts = parse_name(written, LEXICON)
    if parts is None or len(parts) != 1:
        return (written,)
    name = parts[0].text
    return (name,) if parts[0].quoted else (name, name.lower())
