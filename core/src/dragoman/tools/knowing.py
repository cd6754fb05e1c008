"""The toolset `knowledge`: a schema as one text, a row with the rows it refers to, facts about a database."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.catalog import Insight, drop_empty, full
from dragoman.catalog.as_text import as_mermaid, as_sql
from dragoman.cooperative import in_thread_if_many
from dragoman.errors import ParameterError
from dragoman.gateway.sampling import find_column
from dragoman.model import ForeignKey, Relation, Result, Table
from dragoman.tools.answer import Body
from dragoman.tools.budget import Budget
from dragoman.tools.context import ToolCall
from dragoman.tools.overview import PROBE, find_description, find_notes

FULL = "Rows that it refers to are left out, since the answer has no room for them. Ask with a smaller `follow`."

_BINARY = re.compile(r"\b(blob|binary|varbinary|bytea)\b", re.IGNORECASE)


async def read_schema(call: ToolCall) -> Body:
    """Return relations as annotated SQL, as a Mermaid diagram, or as objects; as many as fit."""
    tables = await _tables(call)
    known = await call.database.insights(tables)
    if call["format"] == "sql":
        notes = [] if call["tables"] else [f"-- {note}" for note in await find_notes(call.database, "")]
        return await in_thread_if_many(len(tables), _texts, call, tables, known, notes)
    if call["format"] == "json":
        tables = await call.database.catalog.redact(tables)
    written = _diagram if call["format"] == "mermaid" else _objects
    return await in_thread_if_many(len(tables), written, call, tables, known)


def _objects(call: ToolCall, tables: Sequence[Table], known: Mapping[Relation, Insight]) -> Body:
    namespace = call.database.catalog.namespace
    objects = call.budget().fitting(
        full(table, namespace, indexes=False, insight=known[table.relation]) for table in tables
    )
    return Body({"schema": objects, **drop_empty({"omitted": len(tables) - len(objects) or None})})


def _texts(call: ToolCall, tables: Sequence[Table], known: Mapping[Relation, Insight], notes: Sequence[str]) -> Body:
    namespace, budget = call.database.catalog.namespace, call.budget()
    head = budget.fitting(notes)
    texts = budget.fitting(as_sql(table, namespace, known[table.relation]) for table in tables)
    return Body({"schema": "\n".join([*head, *texts]), **drop_empty({"omitted": len(tables) - len(texts) or None})})


def _diagram(call: ToolCall, tables: Sequence[Table], known: Mapping[Relation, Insight]) -> Body:
    shown, namespace = list(tables), call.database.catalog.namespace
    while not call.budget().take(schema := as_mermaid(shown, namespace, known)) and shown:
        shown = shown[: len(shown) * 3 // 4]
    return Body({"schema": schema, **drop_empty({"omitted": len(tables) - len(shown) or None})})


async def _tables(call: ToolCall) -> list[Table]:
    catalog = call.database.catalog
    if call["tables"]:
        found, missing = await catalog.find_all(call["tables"], call["schema_name"])
        for error in missing.values():
            raise await catalog.with_near_names(error)
        return list({table.relation: table for table in found.values()}.values())
    snapshot = await catalog.snapshot()
    if call["schema_name"] is None:
        return list(snapshot.listed)
    there = snapshot.schemas.get(await catalog.find_schema(call["schema_name"]), ())
    return [table for table in there if table.system or snapshot.lists(table)]


@dataclass(slots=True)
class _Room:
    """The room of an answer for further rows. `full`: one did not fit, so no other is read."""

    budget: Budget
    rows: int
    full: bool = False

    def take(self, entry: Mapping[str, Any]) -> bool:
        """Return whether a row fits, and use its room."""
        self.full = self.full or self.rows < 1 or not self.budget.take(entry)
        self.rows -= 1
        return not self.full


async def get_row(call: ToolCall) -> Body:
    """Return one row by its key, and the rows that it refers to by its foreign keys, as many as fit."""
    table = await call.database.catalog.find(call["table_name"], call["schema_name"])
    key = _key(call, table)
    row = await _row(call, table, key)
    if row is None:
        raise ParameterError("There is no row with this key.", suggestion="Look for it with execute_query.")
    room = _Room(call.budget(), call.database.config.max_rows)
    room.take(row)
    found = await _follow(call, table, row, call["follow"], room)
    notices = [FULL] if room.full and call["follow"] else []
    return Body({"row": row, **drop_empty({"refers_to": found, "notices": notices})})


def _key(call: ToolCall, table: Table) -> dict[str, Any]:
    """Return the columns of a key, as they are stored, with their values."""
    given, dialect = call["key"], call.database.dialect
    if isinstance(given, Mapping):
        if not given:
            raise ParameterError("key names no columns of the table.", suggestion='Send {"column": value, ...}.')
        named: dict[str, Any] = {str(name): value for name, value in given.items()}  # pyright: ignore
        return {find_column(name, table, dialect): value for name, value in named.items()}
    if len(table.primary_key) != 1:
        columns = ", ".join(table.primary_key) or "columns that identify a row"
        raise ParameterError("The table has no key with a single column.", suggestion=f"Send an object with {columns}.")
    return {table.primary_key[0]: given}


async def _row(call: ToolCall, table: Table, key: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the row with a key, or None. Binary values of the key are base64, as answers give them."""
    decoded = _decode(call, table, key)
    found = await _find_row(call, table, key, decoded) if decoded else None
    return found or await _find_row(call, table, key, {})


def _decode(call: ToolCall, table: Table, key: Mapping[str, Any]) -> dict[str, str]:
    """Return as hexadecimal digits what may be base64, where the dialect has `unhex` and no types of parameters."""
    if "unhex" not in call.database.dialect.loaded_rules.functions:
        return {}
    binary = {column.name for column in table.columns if _BINARY.search(column.type)}
    decoded: dict[str, str] = {}
    for column in binary & key.keys():
        with contextlib.suppress(TypeError, ValueError):
            decoded[column] = base64.b64decode(key[column], validate=True).hex()
    return decoded


async def _find_row(
    call: ToolCall, table: Table, key: Mapping[str, Any], decoded: Mapping[str, str]
) -> dict[str, Any] | None:
    dialect = call.database.dialect
    marks = [f"${number + 1}" if dialect.placeholder == "$1" else "?" for number in range(len(key))]
    marks = [f"unhex({mark})" if column in decoded else mark for column, mark in zip(key, marks, strict=True)]
    where = " AND ".join(f"{dialect.quote(column)} = {mark}" for column, mark in zip(key, marks, strict=True))
    columns = ["*"]
    if await call.database.is_reduced(table.relation):  # a dialect without `confine` has no `*` without hidden columns
        columns = [dialect.quote(column.name) for column in table.columns]
    sql = f"SELECT {', '.join(columns)} FROM {call.database.catalog.namespace.name(table.relation)} WHERE {where}"
    result: Result = await call.gateway.query(
        call.name, sql, [*{**key, **decoded}.values()], limit=1, principal=call.principal, tool="get_row"
    )
    if not result.rows:
        return None
    return dict(zip((column.name for column in result.columns), result.rows[0], strict=True))


async def _follow(call: ToolCall, table: Table, row: Mapping[str, Any], depth: int, room: _Room) -> dict[str, Any]:
    """Return the rows that a row refers to, by the referring columns; what these refer to comes last."""
    if depth == 0 or room.full:
        return {}
    snapshot = await call.database.catalog.snapshot()
    found: dict[str, Any] = {}
    further: list[tuple[str, Table, dict[str, Any]]] = []
    outgoing, _ = await call.database.catalog.foreign_keys(table, "outgoing")
    for key in outgoing:
        target = snapshot.by_relation.get(key.references)
        if target is None or not _is_filled(key, row):
            continue
        values = [row[column] for column in key.columns]
        other = await _row(call, target, dict(zip(key.referenced_columns, values, strict=True)))
        if other is None:
            continue
        columns = ", ".join(key.columns)
        entry = {"table": call.database.catalog.namespace.name(target.relation), "row": other}
        if not room.take({columns: entry}):
            break
        found[columns] = entry
        further.append((columns, target, other))
    for columns, target, other in further:
        found[columns] |= drop_empty({"refers_to": await _follow(call, target, other, depth - 1, room)})
    return found


def _is_filled(key: ForeignKey, row: Mapping[str, Any]) -> bool:
    whole = len(key.columns) == len(key.referenced_columns)
    return whole and all(row.get(column) is not None for column in key.columns)


async def server_info(call: ToolCall) -> Body:
    """Return what is known of a database, and what may be asked of it."""
    opened = call.database
    config, dialect = opened.config, opened.dialect
    status = await opened.status(wait=PROBE)
    facts = {
        "name": config.name,
        "dialect": dialect.name,
        "version": status.version,
        "status": status.state,
        "error": status.error,
        "description": await find_description(opened),
        "placeholder": dialect.placeholder,
        "abilities": sorted(ability.name.lower() for ability in dialect.capabilities),
        "max_rows": config.max_rows,
        "default_rows": config.default_rows,
        "max_bytes": config.max_bytes,
        "timeout": config.timeout,
        "instructions": dialect.instructions,
    }
    return Body(drop_empty(facts))
