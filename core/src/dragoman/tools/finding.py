"""The tools that find things: databases, names, keys, join paths."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from dragoman.catalog import Catalog, Listing, Match, MatchKind, Snapshot, drop_empty
from dragoman.catalog.full import foreign_key, step
from dragoman.cooperative import begin_each
from dragoman.errors import DragomanError, PathNotFound
from dragoman.gateway.opened import OpenDatabase
from dragoman.model import Database
from dragoman.tools.answer import Body
from dragoman.tools.budget import ENVELOPE, Budget
from dragoman.tools.context import ToolCall
from dragoman.tools.describing import by_schema
from dragoman.tools.overview import PROBE, describe_small, find_description, find_notes, find_values

Known = TypeVar("Known", Snapshot, Listing)
PATIENCE = 5.0
"""Seconds that the catalog of one database among several gets to load before a search goes on without it."""
SHOWN_SCHEMAS = 20
INFERRED = "No declared keys join them: steps marked inferred come from names and a look at values."
KINDS: tuple[MatchKind, ...] = ("table", "view", "column", "value")


async def list_databases(call: ToolCall) -> Body:
    """Return every configured database and whether it answers. Those not known to be ready are asked concurrently."""
    known = call.gateway.configuration.databases  # a reload may change them meanwhile
    rows = await asyncio.gather(*await begin_each([_database(call, known[name]) for name in call.gateway.names]))
    budget = _common_budget(list(known.values()))
    shown = budget.fitting(rows)
    if len(shown) < len(rows):
        shown += budget.fitting({"name": row["name"]} for row in rows[len(shown) :])
    left_out = len(rows) - len(shown)
    return Body({"databases": shown, **({"omitted": left_out} if left_out else {})})


async def _database(call: ToolCall, config: Database) -> dict[str, Any]:
    facts = {"name": config.name, "dialect": config.dialect, "description": config.description}
    try:
        opened = call.gateway.database(config.name)
        status = await opened.status(wait=PROBE)
    except DragomanError as error:
        return {**drop_empty(facts), "status": "unreachable", "error": error.message, "schemas": list(config.schemas)}
    schemas = await _schemas(opened, config) if status.state == "ready" else list(config.schemas)
    facts |= {
        "description": await find_description(opened),
        "version": status.version,
        "status": status.state,
        "error": status.error,
    }
    told = {**drop_empty(facts), "placeholder": opened.dialect.placeholder, "schemas": schemas[:SHOWN_SCHEMAS]}
    return {**told, **drop_empty({"omitted_schemas": len(schemas[SHOWN_SCHEMAS:]) or None})}


async def _schemas(opened: OpenDatabase, config: Database) -> list[str]:
    """Return the visible schemas, or the configured ones if the catalog takes long to load."""
    try:
        async with asyncio.timeout(PROBE):
            schemas = await opened.catalog.schemas()
    except (TimeoutError, DragomanError):
        return list(config.schemas)
    join = opened.catalog.namespace.join
    return [join(schema.catalog, schema.name) for schema in schemas if not schema.system]


async def search_catalog(call: ToolCall) -> Body:
    """Return the best matches in one or all databases; with an empty query, the names of all relations."""
    names = [call.gateway.database(call["database"]).config.name] if call["database"] else list(call.gateway.names)
    configured = [call.gateway.configuration.databases[name] for name in names]  # a reload may change them meanwhile
    if not call["query"].strip():
        listings, notices = await _load(call, names, lambda catalog: catalog.listing())
        budget, told = _notify(configured, notices)
        if len(listings) == 1 and not call["kinds"]:
            opened, listing = listings[0]
            told |= await _notes(call, [opened], budget)
            if (described := await describe_small(opened, listing)) is not None:
                return Body({"tables": described, **told})
        return Body({**_everything(listings, _kinds(call), budget), **told})
    snapshots, notices = await _load(call, names, lambda catalog: catalog.snapshot())
    budget, told = _notify(configured, notices)
    if not call["kinds"]:
        told |= await _notes(call, [opened for opened, _ in snapshots], budget)
    return Body({"results": budget.fitting(await _rank(call, snapshots)), **told})


async def _notes(call: ToolCall, databases: Sequence[OpenDatabase], budget: Budget) -> dict[str, Any]:
    """Return matching text from files about databases, with the database's name if several were searched."""
    found: list[str] = []
    for opened in databases:
        notes = await find_notes(opened, call["query"])
        found += notes if len(databases) == 1 else [f"{opened.config.name}: {note}" for note in notes]
    return drop_empty({"notes": budget.fitting(found)})


def _notify(databases: Sequence[Database], notices: Sequence[str]) -> tuple[Budget, dict[str, Any]]:
    """Return the remaining budget of an answer about these databases, and its notices."""
    budget = _common_budget(databases)
    told = budget.fitting(notices)
    return budget, {"notices": told} if told else {}


async def _load(
    call: ToolCall, names: Sequence[str], look: Callable[[Catalog], Awaitable[Known]]
) -> tuple[list[tuple[OpenDatabase, Known]], list[str]]:
    """Return the databases whose catalogs could be read, with these, and why the others could not.

    If there is only one, its error is raised.
    """
    if len(names) == 1:
        opened = call.gateway.database(names[0])
        only = await look(opened.catalog)
        return [(opened, only)], list(only.notices)
    loaded: list[tuple[OpenDatabase, Known]] = []
    notices: list[str] = []
    answers = await begin_each([_attempt(call, name, look) for name in names])
    try:
        for number, (name, answer) in enumerate(zip(names, answers, strict=True)):
            found = await answer
            await call.report(number + 1, len(names), name)
            if isinstance(found, str):
                notices.append(f"{name} was not searched: {found}")
            else:
                loaded.append(found)
                notices += [f"{name}: {notice}" for notice in found[1].notices]
    finally:
        for answer in answers:
            answer.cancel()
    return loaded, notices


async def _attempt(
    call: ToolCall, name: str, look: Callable[[Catalog], Awaitable[Known]]
) -> tuple[OpenDatabase, Known] | str:
    try:
        async with asyncio.timeout(PATIENCE):
            opened = call.gateway.database(name)
            return opened, await look(opened.catalog)
    except TimeoutError:
        return "its catalog is still loading; try again in a moment."
    except DragomanError as error:
        return error.message


def _kinds(call: ToolCall) -> tuple[MatchKind, ...]:
    asked = call["kinds"]
    return tuple(kind for kind in KINDS if not asked or kind == asked or (isinstance(asked, list) and kind in asked))


async def _rank(call: ToolCall, loaded: Sequence[tuple[OpenDatabase, Snapshot]]) -> list[dict[str, Any]]:
    found: list[tuple[Match, str, Snapshot]] = []
    for opened, snapshot in loaded:
        name = opened.config.name
        matches, _ = await opened.catalog.search(call["query"], _kinds(call), call["limit"])
        found += [(match, name, snapshot) for match in matches]
        if "value" in _kinds(call):
            values = await find_values(opened, snapshot, call["query"], learn=bool(call["kinds"]))
            found += [(match, name, snapshot) for match in values]
    found.sort(key=lambda one: one[0].rank)
    return [_result(*one) for one in found[: call["limit"]]]


def _result(match: Match, database: str, snapshot: Snapshot) -> dict[str, Any]:
    quote = snapshot.dialect.quote
    return drop_empty(
        {
            "database": database,
            "schema_name": snapshot.namespace.schema_name(match.table.relation),
            "table": quote(match.table.relation.name),
            "column": None if match.column is None else quote(match.column.name),
            "kind": match.kind,
            "value": match.value,
            "description": match.comment,
        }
    )


def _everything(
    loaded: Sequence[tuple[OpenDatabase, Listing]], kinds: Sequence[MatchKind], budget: Budget
) -> dict[str, Any]:
    """Return the names of all relations by database and schema, tables and views together."""
    relations: dict[str, dict[str, list[str]]] = {}
    left_out = 0
    for opened, listing in loaded:
        name = opened.config.name
        wanted = {
            key: [each for each in entries if each.is_listed and _is_wanted(kinds, each.kind == "view")]
            for key, entries in listing.schemas.items()
        }
        shown = 0
        if budget.take({name: {}}):
            groups, shown = by_schema(wanted, listing.namespace, budget)
            relations[name] = _join(groups)
        left_out += sum(map(len, wanted.values())) - shown
    hint = {"omitted": left_out, "hint": "Search for a word, or list_tables of one schema."} if left_out else {}
    return {"relations": relations, **hint}


def _is_wanted(kinds: Sequence[MatchKind], view: bool) -> bool:
    return ("view" if view else "table") in kinds or tuple(kinds) == ("column",)


def _join(groups: dict[str, dict[str, list[str]]]) -> dict[str, list[str]]:
    joined: dict[str, list[str]] = {}
    for group in groups.values():
        for schema, names in group.items():
            joined.setdefault(schema, []).extend(names)
    return {schema: sorted(names) for schema, names in joined.items()}


async def get_foreign_keys(call: ToolCall) -> Body:
    """Return the keys that leave a table and those that reference it."""
    catalog = call.database.catalog
    table = await catalog.find(call["table_name"], call["schema_name"])
    outgoing, incoming = await catalog.foreign_keys(table, call["direction"])
    budget = call.budget()
    answer = {
        "outgoing": budget.fitting(foreign_key(key, catalog.namespace) for key in outgoing),
        "incoming": budget.fitting(foreign_key(key, catalog.namespace) for key in incoming),
    }
    left_out = len(outgoing) + len(incoming) - len(answer["outgoing"]) - len(answer["incoming"])
    hint = {"omitted": left_out, "hint": "Ask for one direction."} if left_out else {}
    return Body({**answer, **hint})


async def find_join_path(call: ToolCall) -> Body:
    """Return the shortest ways to join two tables, each with a SELECT that runs."""
    catalog = call.database.catalog
    source = await catalog.find(call["from_table"], call["from_schema"])
    target = await catalog.find(call["to_table"], call["to_schema"])
    notices: list[str] = []
    try:
        paths = await catalog.join_paths(source, target, call["max_depth"])
    except PathNotFound:
        paths = await call.database.suggest_joins(source, target, call["max_depth"])
        if not paths:
            raise
        notices.append(INFERRED)
    objects = (
        {
            "depth": len(path),
            "steps": [step(taken, catalog.namespace) for taken in path],
            "sql": catalog.join_sql(path),
        }
        for path in paths
    )
    shown = call.budget().fitting(objects)
    left_out = len(paths) - len(shown)
    return Body({"paths": shown, **drop_empty({"omitted": left_out or None, "notices": notices})})


def _common_budget(configs: Sequence[Database]) -> Budget:
    """Return the budget of an answer about several databases: the strictest of theirs."""
    return Budget(min((config.max_bytes for config in configs), default=100_000) - ENVELOPE)
