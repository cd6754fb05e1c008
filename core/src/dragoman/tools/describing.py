"""The tools that describe the contents of a database."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.catalog import Entry, Insight, Namespace, SchemaKey, compact, drop_empty, full, summary
from dragoman.catalog.listing import kind_of
from dragoman.cooperative import in_thread_if_many
from dragoman.errors import NotFound, ParameterError, ResultTooLarge
from dragoman.model import Relation, Table
from dragoman.tools.answer import Body, size
from dragoman.tools.budget import ENVELOPE, Budget
from dragoman.tools.context import ToolCall
from dragoman.words import display as line

NARROWER = "Narrow it with schema_name or name_pattern, or raise limit."
EXPLAINED = 10
"""The number of unknown names in one call for which similar names are searched."""


async def list_schemas(call: ToolCall) -> Body:
    """Return the schemas with the number of tables, views not counted."""
    listing = await call.database.catalog.listing()
    known = {(schema.name, schema.catalog): schema for schema in listing.known}
    rows: list[dict[str, Any]] = []
    for key, entries in listing.schemas.items():
        schema = known.get((key.name or "", key.catalog))
        if schema is not None and schema.system and not call["include_system"]:
            continue
        rows.append(
            drop_empty(
                {
                    "name": listing.namespace.join(key.catalog, key.name),
                    "owner": schema and schema.owner,
                    "description": schema and schema.comment,
                    "table_count": _count(entries, system=schema is not None and schema.system),
                }
            )
        )
    shown = call.budget().fitting(rows)
    return Body({"schemas": shown, **_omit(len(rows) - len(shown), "Name a schema with schema_name in list_tables.")})


def _count(entries: Sequence[Entry], *, system: bool) -> int:
    return sum(entry.kind == "table" and entry.system <= system and not entry.part for entry in entries)


async def list_tables(call: ToolCall) -> Body:
    """Return the relations of one or all schemas, compact or full, and exactly how many were left out."""
    if call["detail"] == "full":
        return await _list_facts(call)
    catalog, written = call.database.catalog, call["schema_name"]
    listing, key = (await catalog.listing(), None) if written is None else await catalog.list_schema(written)
    notices = {"notices": list(listing.notices)} if listing.notices else {}
    budget = Budget(call.database.config.max_bytes - ENVELOPE - size(notices))
    wanted = _make_filter(call)
    schemas = {each: entries for each, entries in listing.schemas.items() if key in (None, each)}

    def keep_wanted() -> dict[SchemaKey, list[Entry]]:
        return {
            each: [entry for entry in entries if (key or not entry.system) and wanted(entry)]
            for each, entries in schemas.items()
        }

    found = await in_thread_if_many(sum(map(len, schemas.values())), keep_wanted)
    names, shown = by_schema(found, listing.namespace, budget, call["limit"])
    total = sum(map(len, found.values()))
    return Body({**names, **_omit(total - shown, NARROWER), **notices})


async def _list_facts(call: ToolCall) -> Body:
    tables = await _list(call)
    catalog = call.database.catalog
    snapshot = await catalog.snapshot()
    notices = {"notices": list(snapshot.notices)} if snapshot.notices else {}
    budget = Budget(call.database.config.max_bytes - ENVELOPE - size(notices))
    shown = tables[: call["limit"]]
    told = (summary(table, catalog.namespace) for table in shown)
    rows = await in_thread_if_many(len(shown), budget.fitting, told)
    omitted = _omit(len(tables) - len(rows), NARROWER)
    return Body({"tables": rows, "total_count": len(tables), **omitted, **notices})


def _make_filter(call: ToolCall) -> Callable[[Entry], bool]:
    """Return a filter of relations. Relations that another one represents are returned only if a pattern is given."""
    views: bool = call["include_views"]
    if call["name_pattern"] is None:
        return lambda entry: not entry.part and (views or entry.kind != "view")
    fits = _like(call["name_pattern"]).fullmatch
    return lambda entry: (views or entry.kind != "view") and fits(entry.name) is not None


async def _list(call: ToolCall) -> list[Table]:
    catalog = call.database.catalog
    key = None if call["schema_name"] is None else await catalog.find_schema(call["schema_name"])
    snapshot = await catalog.snapshot()
    tables: Sequence[Table] = snapshot.visible if key is None else snapshot.schemas.get(key, [])
    under = (
        {part.relation for parts in snapshot.parts.values() for part in parts}
        if call["name_pattern"] is None
        else set[Relation]()
    )
    wanted = None if call["name_pattern"] is None else _like(call["name_pattern"])

    def keep_wanted() -> list[Table]:
        return [
            table
            for table in tables
            if table.relation not in under
            and (call["include_views"] or kind_of(table.type) != "view")
            and (wanted is None or wanted.fullmatch(table.relation.name))
        ]

    return await in_thread_if_many(len(tables), keep_wanted)


def by_schema(
    schemas: Mapping[SchemaKey, Sequence[Entry]], namespace: Namespace, budget: Budget, limit: int | None = None
) -> tuple[dict[str, Any], int]:
    """Return names as `{"tables": {schema: [...]}, "views": ...}`, as many as fit the budget, and their number.

    The schemas are ordered by name.
    """
    groups: dict[str, dict[str, list[str]]] = {"tables": {}, "views": {}}
    shown = 0
    for key in sorted(schemas, key=lambda key: (key.catalog or "", key.name or "")):
        taken = _take(schemas[key][: None if limit is None else limit - shown], key, namespace, budget, groups)
        shown += taken
        if taken < len(schemas[key]):
            break
    return {"tables": groups["tables"], **({"views": groups["views"]} if groups["views"] else {})}, shown


def _take(
    entries: Sequence[Entry], key: SchemaKey, namespace: Namespace, budget: Budget, groups: dict[str, Any]
) -> int:
    """Add the names of one schema to the groups while the budget has room. Return their number."""
    schema = namespace.join(key.catalog, key.name)
    for number, entry in enumerate(entries):
        group = groups["views" if entry.kind == "view" else "tables"]
        if (schema not in group and not budget.take({schema: []})) or not budget.spend(entry.cost):
            return number
        group.setdefault(schema, []).append(entry.written)
    return len(entries)


def _like(pattern: str) -> re.Pattern[str]:
    """Return a LIKE pattern as a regular expression. It ignores case; a backslash escapes the next character.

    The text between two % is searched once, from left to right, and never again: the first place where it matches
    leaves the most room for the rest. So a match takes at most the pattern's length times the name's.
    """
    runs = [""]
    for match in re.finditer(r"\\(.)|(%+)|(_)|(.)|\\", pattern, re.DOTALL):
        escaped, many, one, plain = match.groups()
        if many:
            runs.append("")
        else:
            runs[-1] += "." if one else re.escape(escaped or plain or "\\")
    if len(runs) == 1:
        return re.compile(runs[0], re.IGNORECASE | re.DOTALL)
    first, *inner, last = runs
    once = "".join(f"(?>.*?{run})" for run in inner)
    return re.compile(f"{first}{once}.*{last}", re.IGNORECASE | re.DOTALL)


async def describe_table(call: ToolCall) -> Body:
    """Return one table or several. For several, names that are not found are in `not_found`, with suggestions."""
    found, missing = await _find(call)
    found = await call.database.catalog.add_details(found)
    budget = call.budget()
    unknown = await _unknown(missing, budget)
    known = await call.database.insights(found)
    if notices := budget.fitting(await _about_columns(call, found)):
        unknown = {**unknown, "notices": [*unknown.get("notices", ()), *notices]}
    told = _compact if call["detail"] == "compact" else _full
    facts: dict[str, Any] = await in_thread_if_many(len(found), told, call, found, known, budget)
    return Body(facts | unknown)


async def _about_columns(call: ToolCall, tables: Sequence[Table]) -> list[str]:
    """Return the catalog's notices that name a relation without columns: they say why a broken view has none."""
    empty = [table.relation.name for table in tables if not table.columns]
    if not empty:
        return []
    snapshot = await call.database.catalog.snapshot()
    return [
        notice for notice in snapshot.notices if any(re.search(rf"\b{re.escape(name)}\b", notice) for name in empty)
    ]


async def _unknown(missing: Mapping[str, NotFound], budget: Budget) -> dict[str, Any]:
    """Return the names that were not found, with suggestions for the first few of them."""
    if not missing:
        return {}
    told = [f"{line(name)}: {error.suggestion}" for name, error in list(missing.items())[:EXPLAINED]]
    names = await in_thread_if_many(len(missing), lambda: budget.fitting(map(line, missing)))
    return {"not_found": names, "notices": budget.fitting(told)}


async def _find(call: ToolCall) -> tuple[list[Table], dict[str, NotFound]]:
    asked: str | list[str] = call["table_name"]
    names = [asked] if isinstance(asked, str) else asked
    if not names:
        raise ParameterError("table_name is an empty list.", suggestion="Name at least one table.")
    catalog = call.database.catalog
    found, missing = await catalog.find_all(names, call["schema_name"])
    for name in list(missing)[:EXPLAINED]:
        missing[name] = await catalog.with_near_names(missing[name])
    if not found:
        raise next(iter(missing.values()))
    return list({table.relation: table for table in found.values()}.values()), missing


def _compact(
    call: ToolCall, tables: Sequence[Table], known: Mapping[Relation, Insight], budget: Budget
) -> dict[str, Any]:
    namespace = call.database.catalog.namespace
    shown: dict[str, list[str]] = {}
    left_out = 0
    for number, table in enumerate(tables):
        lines = compact(
            table,
            namespace,
            indexes=bool(call["include_indexes"]),
            constraints=bool(call["include_constraints"]),
            insight=known[table.relation],
        )
        name = namespace.name(table.relation)
        if budget.take({name: lines}):
            shown[name] = lines
        elif number == 0:
            budget.take({name: []})
            shown[name] = budget.fitting(lines)
            left_out = len(lines) - len(shown[name])
            break
        else:
            break
    return {"tables": shown, **_cut(len(tables) - len(shown), left_out, "omitted_lines")}


def _full(call: ToolCall, tables: Sequence[Table], known: Mapping[Relation, Insight], budget: Budget) -> dict[str, Any]:
    namespace = call.database.catalog.namespace
    indexes, constraints = call["include_indexes"] is not False, call["include_constraints"] is not False
    objects = (
        full(table, namespace, indexes=indexes, constraints=constraints, insight=known[table.relation])
        for table in tables
    )
    shown = budget.fitting(objects)
    if shown:
        return {"tables": shown, **_cut(len(tables) - len(shown), 0, "omitted_columns")}
    first = full(tables[0], namespace, indexes=False, constraints=False)
    columns, _ = first.pop("columns", []), first.pop("definition", "")
    if not budget.take(first):
        raise ResultTooLarge("Not even the table's name fits max_bytes.", suggestion="Raise max_bytes.")
    first["columns"] = budget.fitting(columns)
    return {"tables": [first], **_cut(len(tables) - 1, len(columns) - len(first["columns"]), "omitted_columns")}


def _cut(tables: int, parts: int, what: str) -> dict[str, Any]:
    hint = "Describe fewer tables at once." if not parts else "Find the other columns with search_catalog."
    return {
        **({what: parts} if parts else {}),
        **({"omitted": tables} if tables else {}),
        **_hint(tables or parts, hint),
    }


def _omit(count: int, hint: str) -> dict[str, Any]:
    return {**({"omitted": count} if count else {}), **_hint(count, hint)}


def _hint(count: int, hint: str) -> dict[str, Any]:
    return {"hint": hint} if count else {}
