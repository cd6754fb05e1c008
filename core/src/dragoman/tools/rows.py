"""Rows as agents get them: of a query, and of a page of a kept result."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from dragoman.kept import Kept
from dragoman.model import Database, Result, Truncation
from dragoman.tools.answer import Body


def rows_body(result: Result) -> Body:
    """Return a result as agents get it; rows are passed on as they were encoded, never decoded here."""
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
    return Body(facts, {"dragoman/elapsed_ms": round(result.elapsed_ms, 2), "dragoman/query_hash": result.query_hash})


def truncation_facts(cut: Truncation) -> dict[str, Any]:
    """Return what cut a result, as agents get it."""
    return {"reason": cut.reason, "limit": cut.limit, "hint": cut.hint}


async def page(kept: Kept, offset: int, asked: int | None, database: Database) -> Body:
    """Return rows of a kept result, with its state and how many there are."""
    limit = min(asked or database.default_rows, database.max_rows)
    # Read before the rows: the next page has the rows that come meanwhile.
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
