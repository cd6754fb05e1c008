"""The contents of each kind of resource."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from dragoman.catalog import drop_empty, full
from dragoman.catalog.as_text import as_sql, indexes_sql
from dragoman.catalog.compact import one_line
from dragoman.cooperative import begin_each, in_thread_if_many
from dragoman.dialect import Report
from dragoman.errors import DragomanError, NotFound, ParameterError, ResultNotFound, ResultTooLarge, UnknownDatabase
from dragoman.exports import MEDIA_TYPES, TEXTS
from dragoman.gateway import Gateway
from dragoman.gateway.opened import OpenDatabase
from dragoman.model import Database, Principal, Table
from dragoman.saved.queries import front_matter
from dragoman.tools import saved_queries
from dragoman.tools.answer import encode, size
from dragoman.tools.budget import ENVELOPE, Budget
from dragoman.tools.overview import find_notes
from dragoman.tools.querying import page
from dragoman.tools.surfaces import uris
from dragoman.tools.surfaces.items import Resource, Template, UnknownResource

PROBE = 1.0
"""Seconds that a database gets to list its contents when all databases are listed."""

Reader = Callable[[Gateway, Principal, Mapping[str, str]], Awaitable[str | bytes]]
"""Takes the gateway as the caller sees it, the caller, and the values in the address. Returns text, or other bytes."""


async def databases(gateway: Gateway, principal: Principal, values: Mapping[str, str]) -> str:
    """Return every database with the numbers of its tables and views, without them if it does not answer in time."""
    known = gateway.configuration.databases  # a reload may change them meanwhile
    rows = await asyncio.gather(*await begin_each([_database(gateway, known[name]) for name in gateway.names]))
    return _json({"databases": rows})


async def _database(gateway: Gateway, config: Database) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": config.name, "dialect": config.dialect, "description": config.description}
    facts["schema"] = uris.expand(uris.SCHEMA, database=config.name)
    try:
        async with asyncio.timeout(PROBE):
            opened = gateway.database(config.name)
            facts["description"] = await opened.describe()
            listing = await opened.catalog.listing()
    except (TimeoutError, DragomanError) as error:
        reason = error.message if isinstance(error, DragomanError) else "It did not answer in time."
        return drop_empty(facts | {"status": "unreachable", "error": reason})
    kinds = [entry.kind for entry in listing.list_shown()]
    return drop_empty(facts | {"status": "ready", "tables": kinds.count("table"), "views": kinds.count("view")})


async def schema(gateway: Gateway, principal: Principal, values: Mapping[str, str]) -> str:
    """Return a whole database as annotated SQL, as many tables as fit."""
    opened = _find_database(gateway, values["database"])
    tables = list((await opened.catalog.snapshot()).listed)
    known = await opened.insights(tables)
    namespace = opened.catalog.namespace
    budget = Budget(opened.config.max_bytes - ENVELOPE)
    about = [one_line(text)] if (text := await opened.describe()) else []
    notes = budget.fitting(f"-- {note}" for note in (*about, *await find_notes(opened, "")))
    texts = await in_thread_if_many(
        len(tables),
        lambda: budget.fitting(
            "\n".join([as_sql(each, namespace, known[each.relation]), *indexes_sql(each, namespace)]) for each in tables
        ),
    )
    left = len(tables) - len(texts)
    head = [f"-- {opened.config.name} ({opened.dialect.name})", *notes]
    tail = [f"-- {left} more do not fit here: read schema://{opened.config.name}/SCHEMA/TABLE."] if left else []
    return "\n".join([*head, *texts, *tail])


async def table(gateway: Gateway, principal: Principal, values: Mapping[str, str]) -> str:
    """Return everything known of one relation."""
    opened = _find_database(gateway, values["database"])
    try:
        found = await _find(opened, values["schema"], values["table"])
    except (NotFound, ParameterError):
        raise UnknownResource from None
    (detailed,) = await opened.catalog.add_details([found])
    insight = (await opened.insights([detailed]))[detailed.relation]
    facts = full(detailed, opened.catalog.namespace, insight=insight)
    if size(facts) > opened.config.max_bytes:
        raise ResultTooLarge(
            "The description of this relation does not fit max_bytes.", suggestion="Use describe_table."
        )
    return _json(facts)


async def _find(opened: OpenDatabase, schema: str, name: str) -> Table:
    """Return the relation with these names: as the catalog writes them, else as SQL would read them."""
    catalog = opened.catalog
    for known in (await catalog.snapshot()).tables:
        if known.relation.name == name and catalog.namespace.schema_name(known.relation) == schema:
            return known
    return await catalog.find(name, schema)


async def result(gateway: Gateway, principal: Principal, values: Mapping[str, str]) -> str:
    """Return the first rows of a kept result, and the number of its rows."""
    try:
        kept = await gateway.kept.find(values["name"], principal)
    except (ResultNotFound, NotFound):  # the caller may no longer see what it was made from
        raise UnknownResource from None
    body = await page(kept, 0, None, gateway.database(kept.database).config)
    return encode(body.facts).decode()


async def export(gateway: Gateway, principal: Principal, values: Mapping[str, str]) -> str | bytes:
    """Return a file with a result."""
    form = values["format"]
    try:
        content = await gateway.kept.exports.read(values["name"], form, principal)
    except (ResultNotFound, NotFound):  # the caller may no longer see what it was made from
        raise UnknownResource from None
    return content.decode() if form in TEXTS else content


async def query(gateway: Gateway, principal: Principal, values: Mapping[str, str]) -> str:
    """Return a saved query as in its file."""
    if gateway.configuration.server.queries_dir is None:
        raise UnknownResource
    found = await saved_queries.look_up(gateway, values["name"], principal)
    if found is None:
        raise UnknownResource
    return f"{front_matter(found)}\n{found.sql}\n"


async def report(gateway: Gateway, principal: Principal, values: Mapping[str, str]) -> str:
    """Return a report of a database's server about itself."""
    opened = _find_database(gateway, values["database"])
    if values["what"] not in opened.reports:
        raise UnknownResource
    rows = await opened.report(values["what"])
    shown = Budget(opened.config.max_bytes - ENVELOPE).fitting(rows)
    return _json({"rows": shown, **drop_empty({"omitted": len(rows) - len(shown) or None})})


def reports_of(gateway: Gateway, name: str) -> Mapping[str, Report]:
    """Return the reports of a database's server about itself; none if its dialect cannot be loaded."""
    try:
        return gateway.database(name).reports
    except DragomanError:
        return {}


def _find_database(gateway: Gateway, name: str) -> OpenDatabase:
    try:
        return gateway.database(name)
    except UnknownDatabase:
        raise UnknownResource from None


def _json(facts: Any) -> str:
    return encode(facts).decode()


READERS: dict[str, Reader] = {
    uris.DATABASES.name: databases,
    uris.SCHEMA.name: schema,
    uris.TABLE.name: table,
    uris.RESULT.name: result,
    uris.EXPORT.name: export,
    uris.QUERY.name: query,
    uris.REPORT.name: report,
}


async def read(
    gateway: Gateway, principal: Principal, kind: Template | Resource, values: Mapping[str, str]
) -> str | bytes:
    """Return the content of a resource. Raises `UnknownResource`, and `DragomanError` if it cannot be read now."""
    return await READERS[kind.name](gateway, principal, values)


def mime_of(kind: Template | Resource, values: Mapping[str, str]) -> str:
    """Return the media type of a resource. For a file, its format decides."""
    return MEDIA_TYPES.get(values.get("format", ""), kind.mime)
