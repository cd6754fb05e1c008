"""The tools that tell what a database holds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.catalog import Insight, Namespace, compact, drop_empty, full, kind_of, summary
from dragoman.errors import NotFound, ParameterError, ResultTooLarge
from dragoman.model import Relation, Table
from dragoman.tools.answer import Body, size
from dragoman.tools.context import ENVELOPE, Budget, ToolCall
from dragoman.words import display as line

NARROWER = "Narrow it with schema_name or name_pattern, or raise limit."
EXPLAINED = 10
"""Names of one call for which near ones are looked for."""


async def list_schemas(call: ToolCall) -> Body:
    """Answer the schemas with the number of tables, views not counted."""
    snapshot = await call.database.catalog.snapshot()
    known = {(schema.name, schema.catalog): schema for schema in snapshot.known_schemas}
    rows: list[dict[str, Any]] = []
    for key, tables in snapshot.schemas.items():
        schema = known.get((key.name or "", key.catalog))
        if schema is not None and schema.system and not call["include_system"]:
            continue
        rows.append(
            drop_empty(
                {
                    "name": snapshot.namespace.join(key.catalog, key.name),
                    "owner": schema and schema.owner,
                    "description": schema and schema.comment,
                    "table_count": _count(tables, system=schema is not None and schema.system),
                }
            )
        )
    shown = call.budget().fitting(rows)
    return Body({"schemas": shown, **_omit(len(rows) - len(shown), "Name a schema with schema_name in list_tables.")})


def _count(tables: Sequence[Table], *, system: bool) -> int:
    return sum(kind_of(table) == "table" and table.system <= system for table in tables)


async def list_tables(call: ToolCall) -> Body:
    """Answer the relations of one or all schemas, compact or full, and exactly how many were left out."""
    tables = await _list(call)
    catalog = call.database.catalog
    snapshot = await catalog.snapshot()
    few = tables[: call["limit"]]
    notices = {"notices": list(snapshot.notices)} if snapshot.notices else {}
    budget = Budget(call.database.config.max_bytes - ENVELOPE - size(notices))
    if call["detail"] == "full":
        rows = budget.fitting(summary(table, catalog.namespace) for table in few)
        omitted = _omit(len(tables) - len(rows), NARROWER)
        return Body({"tables": rows, "total_count": len(tables), **omitted, **notices})
    names, shown = by_schema(few, catalog.namespace, budget)
    return Body({**names, **_omit(len(tables) - shown, NARROWER), **notices})


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
    return [
        table
        for table in tables
        if table.relation not in under
        and (call["include_views"] or kind_of(table) != "view")
        and (wanted is None or wanted.fullmatch(table.relation.name))
    ]


def by_schema(tables: Sequence[Table], namespace: Namespace, budget: Budget) -> tuple[dict[str, Any], int]:
    """Return names as `{"tables": {schema: [...]}, "views": ...}`, as many as the budget has room for, and how many."""
    groups: dict[str, dict[str, list[str]]] = {"tables": {}, "views": {}}
    shown = 0
    for table in tables:
        group = groups[f"{kind_of(table)}s"]
        schema = namespace.schema_name(table.relation)
        name = namespace.dialect.quote(table.relation.name)
        if (schema not in group and not budget.take({schema: []})) or not budget.take(name):
            break
        group.setdefault(schema, []).append(name)
        shown += 1
    return {"tables": groups["tables"], **({"views": groups["views"]} if groups["views"] else {})}, shown


def _like(pattern: str) -> re.Pattern[str]:
    """Return a LIKE pattern as a regular expression: without case, a backslash takes what follows as it is.

    What stands between two % is looked for once, from left to right, and never again: the first place it fits leaves
    most room for the rest. So a pattern takes no more than its length times the name's.
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
    """Answer one table or several; of several, those found, with `not_found` and what they may have meant."""
    found, missing = await _find(call)
    found = await call.database.catalog.add_details(found)
    budget = call.budget()
    unknown = _unknown(missing, budget)
    known = await call.database.insights(found)
    told = _compact if call["detail"] == "compact" else _full
    facts: dict[str, Any] = told(call, found, known, budget)
    return Body(facts | unknown)


def _unknown(missing: Mapping[str, NotFound], budget: Budget) -> dict[str, Any]:
    """Return the names that name nothing, and of the first few what they may have meant."""
    if not missing:
        return {}
    told = [f"{line(name)}: {error.suggestion}" for name, error in list(missing.items())[:EXPLAINED]]
    return {"not_found": budget.fitting(map(line, missing)), "notices": budget.fitting(told)}


async def _find(call: ToolCall) -> tuple[list[Table], dict[str, NotFound]]:
    asked: str | list[str] = call["table_name"]
    names = [asked] if isinstance(asked, str) else asked
    if not names:
        raise ParameterError("table_name is an empty list.", suggestion="Name at least one table.")
    # At once, so that misses share one look at the database.
    answers = await asyncio.gather(*(_look(call, name) for name in dict.fromkeys(names)))
    missing = dict([answer for answer in answers if isinstance(answer, tuple)])
    found = {answer.relation: answer for answer in answers if isinstance(answer, Table)}
    near = call.database.catalog.with_near_names
    missing |= {name: near(error) for name, error in list(missing.items())[:EXPLAINED]}
    if not found:
        raise next(iter(missing.values()))
    return list(found.values()), missing


async def _look(call: ToolCall, name: str) -> Table | tuple[str, NotFound]:
    try:
        return await call.database.catalog.find(name, call["schema_name"], near=False)
    except NotFound as error:
        return name, error


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
