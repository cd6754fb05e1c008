"""What the configured user could do if all protections failed, according to the server's own access control.

The checks change nothing. Statements that would write are only validated: the server checks the user's rights and runs
nothing. The other statements have no effect: a catalog that exists already, a query that never ran, or SET, which is
left to the client (the server answers with settings to send from then on, which ours ignores).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dragoman import ConnectionFailed, Database, DragomanError, Finding, Relation, Scope

from dragoman_trino import queries
from dragoman_trino.concurrency import together
from dragoman_trino.rules import load_allowed, read_policy, sort_out
from dragoman_trino.tables import SYSTEM_SCHEMA

if TYPE_CHECKING:
    from dragoman_trino.client import Client

MOST_TRIED = 20
"""The number of schemas, and of tables, that are tried: a lake has thousands, and their rights seldom differ."""
AT_ONCE = 2
"""The number of statements at once: callers wait for the same slots while the doctor works."""
SHOWN = 5
PROBE = "dragoman_probe"
"""A name that no table and no user has."""
READ_ONLY_CONNECTORS = frozenset({"system", "tpch", "tpcds", "jmx", "prometheus", "loki", "example_http"})
"""Statements that cannot write, whatever the server's access control allows."""
UNKNOWN_QUERY = "CALL system.runtime.kill_query('20010101_000000_00000_aaaaa', 'dragoman doctor')"

_GRAVITY = {"danger": 0, "warning": 1, "note": 2}


async def examine(client: Client, database: Database) -> list[Finding]:
    """Return the findings, worst first. Raises `ConnectionFailed`."""
    user = str((await client.rows("SELECT current_user"))[0][0])
    doctor = _Doctor(client, database, user, asyncio.Semaphore(AT_ONCE))
    found = await together(
        doctor.writing(),
        doctor.catalogs(),
        doctor.impersonation(),
        doctor.killing(),
        doctor.watching(),
        doctor.properties(),
        doctor.signing_in(),
        doctor.functions(),
    )
    return sorted((each for some in found for each in some), key=lambda each: _GRAVITY[each.severity])


@dataclass(frozen=True, slots=True)
class _Doctor:
    """Makes the checks. Each returns its findings."""

    client: Client
    database: Database
    user: str
    turns: asyncio.Semaphore

    async def writing(self) -> Sequence[Finding]:
        """Check whether tables could be created or filled."""
        schemas = await self._schemas()
        tables = await self._tables(schemas)
        made, filled = await together(self._list_allowed(schemas, _creation), self._list_allowed(tables, _insertion))
        may = [f"create tables in {_list(made)}"] if made else []
        may += [f"insert into {_list(filled)}"] if filled else []
        if not may:
            return ()
        catalogs = "|".join(sorted({relation.catalog or "" for relation in (*made, *filled)}))
        rule = {"catalogs": [{"user": self.user, "catalog": catalogs, "allow": "read-only"}]}
        return (
            Finding(
                severity="danger",
                subject="write_access",
                message=f"The user {self.user} may {' and '.join(may)}.",
                remedy=f"{_rules(rule)} Or access-control.name=read-only, when nobody writes by this server.",
            ),
        )

    async def catalogs(self) -> Sequence[Finding]:
        """Check whether catalogs could be added. `system` exists already."""
        if not await self._succeeds("CREATE CATALOG IF NOT EXISTS system USING system"):
            return ()
        return (
            Finding(
                severity="danger",
                subject="create_catalogs",
                message=f"The user {self.user} may create and drop catalogs: whatever host or file the server reaches.",
                remedy="Any access control but the default one refuses it: file rules without the catalog privilege"
                ' "owner", or read-only; or set catalog.management=static.',
            ),
        )

    async def impersonation(self) -> Sequence[Finding]:
        """Check whether other users could be impersonated."""
        if not await self._succeeds(f"SET SESSION AUTHORIZATION {PROBE}"):
            return ()
        rule = {"impersonation": [{"original_user": self.user, "new_user": ".*", "allow": False}]}
        delegated = self.database.identity == "user"  # then only callers are
        if delegated:
            rule = {"impersonation": [{"original_user": self.user, "new_user": "CALLERS", "allow": True}]}
        return (
            Finding(
                severity="warning" if delegated else "danger",
                subject="impersonation",
                message=f"The user {self.user} may act as any other user.",
                remedy=_rules(rule),
            ),
        )

    async def killing(self) -> Sequence[Finding]:
        """Check whether the procedure that ends others' queries could be called.

        No query has the identifier that is used.
        """
        error = await self._outcome(UNKNOWN_QUERY)
        if error is None or error.context.get("error_name") != "NOT_FOUND":
            return ()
        rule: dict[str, Any] = {"procedures": [{"user": self.user, "privileges": []}]}
        rule["queries"] = [{"user": self.user, "allow": ["execute"]}]
        return (
            Finding(
                severity="warning",
                subject="kill_queries",
                message=f"The user {self.user} may call the procedure that ends other users' queries.",
                remedy=_rules(rule),
            ),
        )

    async def watching(self) -> Sequence[Finding]:
        """Check whether others' statements can be read. This shows only while there are some."""
        rows = await self._rows('SELECT count(*) FROM system.runtime.queries WHERE "user" <> current_user')
        if not rows or not rows[0][0]:
            return ()
        rule = {"queries": [{"user": self.user, "allow": ["execute"]}]}
        return (
            Finding(
                severity="warning",
                subject="other_users_queries",
                message=f"The user {self.user} sees the statements of other users, with the values in them.",
                remedy=_rules(rule),
            ),
        )

    async def properties(self) -> Sequence[Finding]:
        """Check whether a statement could change the settings it runs with."""
        if not await self._succeeds("SET SESSION join_distribution_type = 'AUTOMATIC'"):
            return ()
        rules = [{"user": self.user, "property": "query_max_.*", "allow": True}, {"user": self.user, "allow": False}]
        return (
            Finding(
                severity="warning",
                subject="session_properties",
                message=f"The user {self.user} may set any session property: limits of time and memory can be raised.",
                remedy=f"{_rules({'system_session_properties': rules})} Limits that nobody may raise are those of the"
                " server's config.properties and its resource groups.",
            ),
        )

    async def signing_in(self) -> Sequence[Finding]:
        """Check whether the server accepts a user's name without proof."""
        options = self.client.connector.options
        if self.database.password or options.token or options.cert or options.auth:
            return ()
        return (
            Finding(
                severity="warning",
                subject="no_authentication",
                message=f"The server takes the name {self.user} without a password: whoever reaches its port may use"
                " any user's.",
                remedy="Let it authenticate (http-server.authentication.type, over https), or keep its port to hosts"
                " that are trusted.",
            ),
        )

    async def functions(self) -> Sequence[Finding]:
        """Check for functions that the shipped lists do not know, and for allowed ones that change something."""
        rows = await self._rows("SHOW FUNCTIONS")
        passing = sort_out(read_policy(), [(row[0], row[3], row[4]) for row in rows])
        here, shipped = frozenset[str]().union(*passing.values()), load_allowed().functions
        findings: list[Finding] = []
        if unknown := sorted(here - shipped - self.database.allow_functions):
            findings.append(
                Finding(
                    severity="note",
                    subject="unlisted_functions",
                    message="This server has functions that were not reviewed yet, and they are "
                    f"refused: {_some(unknown)}.",
                    remedy="Upgrade dragoman-trino; until then allow those that are needed by"
                    f" databases.{self.database.name}.allow_functions.",
                )
            )
        if changed := sorted(shipped & {row[0].lower() for row in rows} - here):
            findings.append(
                Finding(
                    severity="warning",
                    subject="changed_functions",
                    message="The lists allow functions that this server declares as changing "
                    f"something: {_some(changed)}.",
                    remedy="Report it to dragoman-trino: a later server changed what they do.",
                )
            )
        return findings

    # Queries

    async def _schemas(self) -> list[Relation]:
        """Return schemas of catalogs that may be written to, the default one first, as names of missing tables."""
        catalogs = [row[0] for row in await self._rows(queries.CATALOGS[0]) if row[1] not in READ_ONLY_CONNECTORS]
        told = await together(*(self._rows(queries.schemas(catalog)) for catalog in catalogs))
        places = [(catalog, name) for catalog, rows in zip(catalogs, told, strict=True) for (name,) in rows]
        home = (self.database.database, self.database.schema)
        own = sorted((place for place in places if place[1] != SYSTEM_SCHEMA), key=lambda place: place != home)
        return [Relation(PROBE, schema, catalog) for catalog, schema in own][:MOST_TRIED]

    async def _tables(self, schemas: Iterable[Relation]) -> list[Relation]:
        found: list[Relation] = []
        for place in schemas:
            catalog, schema = place.catalog or "", place.schema or ""
            rows = await self._rows(queries.relations(catalog, Scope(schemas=frozenset({schema}))))
            found += [Relation(name, schema, catalog) for _, name, kind in rows if kind != "VIEW"]
            if len(found) >= MOST_TRIED:
                break
        return found[:MOST_TRIED]

    async def _list_allowed(self, relations: Sequence[Relation], probe: Callable[[Relation], str]) -> list[Relation]:
        """Those for which a statement that would write passes the server's analysis, rights included."""
        passed = await together(*(self._succeeds(probe(relation)) for relation in relations))
        return [relation for relation, allowed in zip(relations, passed, strict=True) if allowed]

    async def _succeeds(self, sql: str) -> bool:
        return await self._outcome(sql) is None

    async def _rows(self, sql: str) -> list[list[Any]]:
        """Return rows; none if the server does not show them to this user."""
        try:
            return await self._ask(sql)
        except ConnectionFailed:
            raise
        except DragomanError:
            return []

    async def _outcome(self, sql: str) -> DragomanError | None:
        """Return the error of a statement; None if it succeeds."""
        try:
            await self._ask(sql)
        except ConnectionFailed:
            raise
        except DragomanError as error:
            return error
        return None

    async def _ask(self, sql: str) -> list[list[Any]]:
        async with self.turns:
            return await self.client.rows(sql)


def _creation(place: Relation) -> str:
    return f"EXPLAIN (TYPE VALIDATE) CREATE TABLE {queries.qualify(place)} AS SELECT 1 AS a"


def _insertion(table: Relation) -> str:
    name = queries.qualify(table)
    return f"EXPLAIN (TYPE VALIDATE) INSERT INTO {name} SELECT * FROM {name} WHERE false"


def _list(relations: Sequence[Relation]) -> str:
    """Return tables as text, or the schemas of missing ones, each once."""
    names = dict.fromkeys(f"{each.catalog}.{each.schema}" if each.name == PROBE else str(each) for each in relations)
    return _some(list(names))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _rules(told: dict[str, Any]) -> str:
    return (
        "With access-control.name=file in the server's etc/access-control.properties, its rules should begin with"
        f" {json.dumps(told)}, before what they say of others: a list refuses whatever none of its rules is about."
    )
