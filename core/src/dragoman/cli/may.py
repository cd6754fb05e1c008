"""`dragoman may`: show what a caller may do, and which grant allows it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dragoman.cli.common import (
    add_json_argument,
    add_source_arguments,
    load_configuration,
    principal,
    run_async,
    start_logging,
)
from dragoman.config import Configuration
from dragoman.errors import DragomanError
from dragoman.model import LOCAL, Claims, Principal

if TYPE_CHECKING:
    from dragoman.access import Permission
    from dragoman.catalog import GrantedCatalog
    from dragoman.gateway import Gateway, OpenDatabase
    from dragoman.model import Expression

EXAMPLES = """\
examples:
  dragoman may ann:analysts
  dragoman may ann:analysts shop
  dragoman may ann:analysts shop 'select * from customers'
  dragoman may ci --token ci
  dragoman may ann:sellers shop --claim tenant=acme
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("who", metavar="USER[:GROUP,...]", type=principal, help="a user, a member of these groups")
    parser.add_argument("database", metavar="DATABASE", nargs="?", help="a configured name")
    parser.add_argument("sql", metavar="SQL", nargs="?", help="a statement: show whether it may run")
    parser.add_argument("--token", metavar="NAME", default="", help="the caller came with this static token")
    parser.add_argument(
        "--scope", metavar="SCOPE", action="append", default=[], help="the token has this scope; repeatable"
    )
    parser.add_argument(
        "--claim",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_claim,
        help="the token has this claim; repeatable",
    )
    parser.add_argument("--issuer", metavar="URL", default="", help="this issuer signed the caller in")
    add_json_argument(parser)
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what the caller may do. Return 1 if it may not run the statement, or may do nothing."""
    from dragoman.cli.output import put

    configuration = load_configuration(arguments)
    start_logging(configuration)
    told = run_async(_ask(configuration, _caller(arguments), arguments.database, arguments.sql))
    if arguments.json:
        import json

        put(json.dumps(told, ensure_ascii=False))
    else:
        put("\n".join(_lines(told)))
    return 0 if told.get("allowed", bool(told.get("databases", True))) else 1


def _caller(arguments: argparse.Namespace) -> Principal:
    from dataclasses import replace

    who: Principal = arguments.who
    scopes = frozenset(arguments.scope)
    claims = Claims(dict(arguments.claim))
    return replace(who, token=arguments.token, scopes=scopes, issuer=arguments.issuer, claims=claims)


def _claim(text: str) -> tuple[str, str]:
    """Return a claim from the command line. Raises `argparse.ArgumentTypeError`."""
    name, mark, value = text.partition("=")
    if not (name and mark):
        raise argparse.ArgumentTypeError("expected NAME=VALUE")
    return name, value


async def _ask(
    configuration: Configuration, caller: Principal, database: str | None, sql: str | None
) -> dict[str, Any]:
    from dragoman.gateway import Gateway

    async with Gateway.open(configuration) as gateway:
        seen = gateway.for_principal(caller)
        if seen.access is None:
            rest = "policies restrict each caller" if gateway.plugins.restrict else "everybody may do all that is"
            told: dict[str, Any] = {"roles": [], "note": f"No roles are configured: {rest}."}
        else:
            tools = seen.access.tools
            told = {"roles": list(seen.access.names), "tools": "all" if tools is None else list(tools)}
        names = seen.names if database is None else (gateway.resolve_name(database),)
        if sql is not None and database is not None:
            judged = await _judge(seen, caller, names[0], sql)
            withheld = {} if judged["allowed"] else await _find_withheld(gateway, seen, names[0], sql)
            return {**told, **judged, **({"tables": withheld} if withheld else {})}
        names = tuple(name for name in names if name in seen.names or name not in gateway.names)
        return {**told, "databases": {name: await _describe_grants(seen, name, caller) for name in names}}


async def _judge(seen: Gateway, caller: Principal, database: str, sql: str) -> dict[str, Any]:
    """Return whether a statement may run: why not, or what it reads and the grants that allow it."""
    from dragoman.catalog import GrantedCatalog

    try:
        opened = seen.database(database)
        opened.acting(caller)
        statement = await opened.judge.judge(sql, "execute_query", caller)
        if opened.confiner is not None:
            await opened.confiner.confine(statement)
    except DragomanError as error:
        return {"allowed": False, "code": error.code, "reason": f"{error.message} {error.suggestion}".strip()}
    if not isinstance(opened.catalog, GrantedCatalog):
        return {"allowed": True}
    read = set(map(str, await opened.judge.relations(statement)))
    granted = await _tables(opened.catalog)
    return {"allowed": True, "tables": {name: facts for name, facts in granted.items() if name in read}}


async def _find_withheld(gateway: Gateway, seen: Gateway, database: str, sql: str) -> dict[str, Any]:
    """Return the tables of a refused statement that the caller does not have, with the keys that deny each."""
    from dragoman.access import Grants
    from dragoman.catalog import GrantedCatalog

    if seen.access is None or database not in seen.names:
        return {}
    catalog, whole = seen.database(database).catalog, gateway.database(database)
    if not isinstance(catalog, GrantedCatalog):
        return {}
    try:
        statement = await whole.judge.judge(sql, "execute_query", LOCAL)
        read = await whole.judge.relations(statement)
        known = (await whole.catalog.snapshot()).by_relation
        permissions = await catalog.permissions()
    except DragomanError:
        return {}  # it is refused whatever the roles say
    grants = Grants(seen.access.databases[database].grants, whole.dialect, whole.config)
    return {
        str(relation): {"by": [], "denied_by": grants.find_denials(relation)}
        for relation in read
        if relation in known and relation not in permissions
    }


def _describe_acting(opened: OpenDatabase, caller: Principal) -> dict[str, Any]:
    """Return the identity and settings with which the engine acts for the caller, or what its sign-in lacks."""
    if opened.config.acting is None:
        return {}
    acting = opened.config.acting
    told = {name: value for name, value in (("user", acting.user), ("role", acting.role)) if value is not None}
    try:
        complete = opened.acting(caller)
    except DragomanError as error:
        return {"acts_as": {**told, "lacks": error.message}}
    return {"acts_as": {**told, **(dict(complete.settings) if complete else {})}}


async def _describe_grants(seen: Gateway, name: str, caller: Principal) -> dict[str, Any]:
    """Return what may be read of a database: the columns of each relation, and the keys of the grants that allow it."""
    from dragoman.catalog import GrantedCatalog

    opened = seen.database(name)
    limits: dict[str, Any] = {"max_rows": opened.config.max_rows, "timeout": opened.config.timeout}
    limits |= _describe_acting(opened, caller)
    if not isinstance(opened.catalog, GrantedCatalog):
        return {"tables": "all", **limits}
    return {"tables": await _tables(opened.catalog), **limits}


async def _tables(catalog: GrantedCatalog) -> dict[str, Any]:
    snapshot = await catalog.snapshot()
    permissions = await catalog.permissions()
    return {str(table.relation): _describe(permissions[table.relation]) for table in snapshot.visible}


def _describe(permission: Permission) -> dict[str, Any]:
    """Return what the caller has of a relation, with filter and masks as written, and names for values."""
    facts: dict[str, Any] = {"columns": "all" if permission.whole else list(permission.columns)}
    part = permission.confined
    if part is not None and part.filter is not None:
        facts["filter"] = _spell(part.filter)
    masks = {each.name: _spell(each.mask) for each in (part.columns if part else ()) if each.mask}
    return {**facts, **({"masks": masks} if masks else {}), "by": list(permission.keys)}


def _spell(expression: Expression) -> str:
    return " ".join(expression.write(lambda name: f"${name}").split())


def _lines(told: dict[str, Any]) -> Iterator[str]:
    if "note" in told:
        yield told["note"]
    else:
        tools = told["tools"]
        yield f"roles: {', '.join(told['roles']) or 'none'}"
        yield f"tools: {tools if isinstance(tools, str) else ', '.join(tools) or 'none'}"
    if "allowed" in told:
        yield "allowed" if told["allowed"] else f"refused: {told['code']}: {told['reason']}"
        yield from _table_lines(told.get("tables", {}))
    if told.get("databases") == {}:
        yield "databases: none"
    for name, granted in told.get("databases", {}).items():
        yield f"{name}: at most {granted['max_rows']} rows and {granted['timeout']:g} seconds"
        if "acts_as" in granted:
            as_whom = [f"{name} {value}" for name, value in granted["acts_as"].items() if name != "lacks"]
            yield f"  acts as {', '.join(as_whom) or 'the role that signs in'}"
            if "lacks" in granted["acts_as"]:
                yield f"  reads nothing: {granted['acts_as']['lacks']}"
        if granted["tables"] == "all":
            yield "  every table"
            continue
        yield from _table_lines(granted["tables"])


def _table_lines(tables: dict[str, Any]) -> Iterator[str]:
    for table, facts in tables.items():
        if not facts["by"]:
            yield f"  {table}  {'denied by ' + ', '.join(facts['denied_by']) if facts['denied_by'] else 'by no grant'}"
            continue
        columns = facts["columns"]
        shown = "" if columns == "all" else f" ({', '.join(columns)})"
        yield f"  {table}{shown}  by {', '.join(facts['by'])}"
        if "filter" in facts:
            yield f"    rows where {facts['filter']}"
        for column, mask in facts.get("masks", {}).items():
            yield f"    {column} as {mask}"
