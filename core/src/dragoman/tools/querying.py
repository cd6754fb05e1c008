"""The tools that run SQL."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.errors import DragomanError, InvalidSql, ResultTooLarge, SchemaNotFound, TableNotFound
from dragoman.gateway.kept_database import NAME as RESULTS
from dragoman.gateway.recording import hash_statement
from dragoman.kept import Kept
from dragoman.model import Database, ExplainOptions, Plan, Result, Truncation
from dragoman.tools.answer import Body, size
from dragoman.tools.budget import ENVELOPE
from dragoman.tools.context import ToolCall
from dragoman.tools.history import Entry

ONE_DAY = 86_400_000
"""Milliseconds. No database allows as much, and a larger number may not even be a float."""
CUT = "\n..."
MISSING = (SchemaNotFound, TableNotFound, InvalidSql)
"""The errors of a statement that names a relation of another database."""
_QUALIFIER = re.compile(r"""(?:\bfrom|\bjoin|,)\s*["`\[]?([\w-]+)["`\]]?\s*\.""", re.IGNORECASE)
"""The first part of a dotted name at a place where a relation may stand."""


async def execute_query(call: ToolCall) -> Body:
    """Return the rows of one query."""
    given = call.arguments
    if given["keep"] is not None:
        return await keep_query(call)
    milliseconds: int | None = given["timeout_ms"]
    result = await call.gateway.query(
        given["database"],
        given["sql"],
        given["params"],
        limit=given["limit"],
        timeout=None if milliseconds is None else min(milliseconds, ONE_DAY) / 1000,
        from_dialect=given["from_dialect"],
        principal=call.principal,
    )
    if call.history is not None:
        call.history.add(call.principal, Entry(call.name, given["sql"], result.row_count))
    return rows_body(result)


async def keep_query(call: ToolCall) -> Body:
    """Keep the whole answer of a query; return its first rows and what is kept."""
    began = time.perf_counter()
    kept = await call.gateway.kept.keep(
        call["keep"],
        call.name,
        call["sql"],
        call["params"],
        from_dialect=call["from_dialect"],
        principal=call.principal,
        tool=call.tool,
        timeout=None if call["timeout_ms"] is None else call["timeout_ms"] / 1000,
    )
    body = await page(kept, 0, call["limit"], call.database.config)
    if call.history is not None:
        call.history.add(call.principal, Entry(call.name, call["sql"], kept.pages.rows))
    body.facts["kept"] = {
        "name": kept.name,
        "rows": kept.pages.rows,
        "bytes": kept.pages.size,
        "expires": round(call.gateway.kept.expires_in(kept)),
    }
    elapsed = (time.perf_counter() - began) * 1000
    body.meta.update({"dragoman/elapsed_ms": round(elapsed, 2), "dragoman/query_hash": hash_statement(call["sql"])})
    return body


def point_elsewhere(error: DragomanError, call: ToolCall) -> DragomanError:
    """Return the error about a statement that names a relation of another database of its caller with a way out."""
    names = call.gateway.names
    own = call.arguments.get("database") or call.gateway.default
    others = {name.lower(): name for name in names if name != own}
    found = (others.get(name.lower()) for name in _QUALIFIER.findall(call.arguments.get("sql") or ""))
    other = next(filter(None, found), None)
    if other is None:
        return error
    joined = " Answers that you `keep` can be joined in the database results." if RESULTS in names else ""
    return error.replace(
        suggestion=f'A statement reads one database. Query {other} by itself: pass `database` "{other}".{joined}'
    )


async def get_sample_rows(call: ToolCall) -> Body:
    """Return a few rows of a table."""
    result = await call.gateway.sample(
        call.name,
        call["table_name"],
        schema=call["schema_name"],
        limit=call["limit"],
        columns=call["columns"],
        where=call["where_clause"],
        randomize=call["randomize"],
        principal=call.principal,
    )
    return rows_body(result)


async def explain_query(call: ToolCall) -> Body:
    """Return the plan of a query, with its cost and warnings."""
    options = ExplainOptions(
        format=call["format"], analyze=call["analyze"], verbose=call["verbose"], buffers=call["buffers"]
    )
    plan = await call.gateway.explain(
        call.name,
        call["sql"],
        call["params"],
        options=options,
        from_dialect=call["from_dialect"],
        principal=call.principal,
    )
    # In a thread: before it is cut, the plan of a long statement has millions of characters.
    return Body(await asyncio.to_thread(_plan_facts, plan, call.database.config.max_bytes))


def rows_body(result: Result) -> Body:
    """Return a result as agents get it. Rows are passed on encoded, and never decoded here."""
    facts: dict[str, Any] = {
        "columns": [column.name for column in result.columns],
        "types": [column.type for column in result.columns],
        "rows": msgspec.Raw(result.rows_json),
        "row_count": result.row_count,
    }
    if result.truncated is not None:
        facts["truncated"] = truncation_facts(result.truncated)
    if result.notices:
        facts["notices"] = list(result.notices)
    if result.sql is not None:
        facts["sql"] = result.sql
    if not result.query_hash:  # a page of a kept result ran no statement
        return Body(facts)
    return Body(facts, {"dragoman/elapsed_ms": round(result.elapsed_ms, 2), "dragoman/query_hash": result.query_hash})


def truncation_facts(cut: Truncation) -> dict[str, Any]:
    """Return what cut a result, as agents get it."""
    return {"reason": cut.reason, "limit": cut.limit, "hint": cut.hint}


async def page(kept: Kept, offset: int, asked: int | None, database: Database) -> Body:
    """Return rows of a kept result, with its state and the number of its rows."""
    limit = min(asked or database.default_rows, database.max_rows)
    # Read before the rows: the next page has the rows that arrive meanwhile.
    status, total = kept.status, kept.pages.rows
    rows = await asyncio.to_thread(kept.pages.read, offset, limit, database.max_bytes)
    result = Result(
        columns=kept.columns,
        rows_json=b"[%b]" % rows.json,
        row_count=rows.count,
        truncated=kept.truncated if status != "running" else None,
        notices=kept.notices,
    )
    body = rows_body(result)
    body.facts.update(status=status, total_rows=total)
    if offset + rows.count < total or status == "running":
        body.facts["next_offset"] = offset + rows.count
    if kept.error is not None:
        body.facts["error"] = kept.error.as_dict()
    return body


def _plan_facts(plan: Plan, max_bytes: int) -> dict[str, Any]:
    numbers = {
        "estimated_cost": plan.estimated_cost,
        "estimated_rows": plan.estimated_rows,
        "actual_time_ms": None if plan.actual_time_ms is None else round(plan.actual_time_ms, 3),
    }
    facts: dict[str, Any] = {"format": plan.format, "warnings": _first(plan.warnings, max_bytes // 4)}
    facts |= {key: value for key, value in numbers.items() if value is not None}
    notices = _first(plan.notices, max_bytes // 4)
    if plan.sql is not None:
        facts["sql"] = plan.sql
    room = max_bytes - size(facts) - size(notices) - ENVELOPE
    shown, cut = _cut(plan.plan, room)
    if cut:
        notices.append(f"The plan was cut to fit {max_bytes} bytes.")
    return {"plan": shown, **facts, **({"notices": notices} if notices else {})}


def _first(texts: Sequence[str], room: int) -> list[str]:
    """Return the texts that fit, and the number of the others."""
    shown = list(texts)
    while shown and size(shown) > room:
        shown = shown[: len(shown) * 9 // 10]
    left = len(texts) - len(shown)
    return [*shown, f"{left} more."] if left else shown


def _cut(plan: Any, room: int) -> tuple[Any, bool]:
    """Return the plan, or the part of a text that fits. Raises `ResultTooLarge` for JSON, which cannot be cut."""
    if size(plan) <= room:
        return plan, False
    if not isinstance(plan, str):
        raise ResultTooLarge("The plan is too large as JSON.", suggestion='Ask for format "text".')
    text = plan.encode()[: max(room - len(CUT), 0)].decode(errors="ignore")
    while text and size(text) > room:
        text = text[: len(text) * 9 // 10]
    return text + CUT, True
