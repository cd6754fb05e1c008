"""EXPLAIN, built around the judged query. Returns the plan with what it reads and advice."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from dragoman import DragomanError, ExplainOptions, Plan, Request

from dragoman_trino.advice import Partitioned, reads, warnings
from dragoman_trino.nodes import from_json, sum_costs
from dragoman_trino.partitions import partitioning
from dragoman_trino.tables import Row, Scan, finite, scans

MOST_LOOKED_AT = 10
"""The number of scanned tables whose partitioning is looked up."""
ONLY_TEXT = "Trino returns the figures of a run only as text."

_ANALYZE = "EXPLAIN ANALYZE"
_LOGICAL = "EXPLAIN (TYPE LOGICAL, FORMAT JSON)"
_IO = "EXPLAIN (TYPE IO, FORMAT JSON)"
_LAYOUT = re.compile(r"^[ │]*Layout: \[.*\]\n", re.MULTILINE)
_EXECUTION = re.compile(r"Queued: .*, Execution: (?P<amount>[\d.]+)(?P<unit>ns|us|ms|s|m|h|d)")
_MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3600e3, "d": 86_400e3}


class Runner(Protocol):
    """Runs internal statements in the read-only transaction."""

    async def run(self, statement: str, request: Request) -> Sequence[Row]:
        """Return a statement's rows. The request has the parameters and limits."""
        ...


async def explain(runner: Runner, request: Request, options: ExplainOptions) -> Plan:
    """Return the plan of a judged query. With `analyze` the query runs to its end and its rows are dropped.

    `plan` is text, or for any other format the server's JSON. `estimated_cost` is the server's CPU cost: about the
    bytes that its operators handle.
    """
    logical = await _one(runner, _LOGICAL, request)
    io = await _one(runner, _IO, request)
    read = await asyncio.to_thread(scans, io)
    text = await _one(runner, _form(options), request) if options.analyze or options.format == "text" else ""
    partitioned = await _find_partitions(runner, request, read)
    # In a thread: the plan of a long statement has millions of characters.
    return await asyncio.to_thread(_plan, options, logical, io, text, read, partitioned)


def _plan(options: ExplainOptions, answer: str, io: str, text: str, read: Sequence[Scan], parts: Partitioned) -> Plan:
    logical = json.loads(answer)
    rows = finite(json.loads(io)["estimate"]["outputRowCount"])
    return Plan(
        plan=_shorten(text, options) if text else logical,
        format="text" if text else options.format,
        estimated_cost=sum_costs(logical),
        estimated_rows=None if rows is None else round(rows),
        actual_time_ms=_read_elapsed(text) if options.analyze else None,
        warnings=warnings(from_json(logical), read, parts),
        notices=(*reads(read), *([ONLY_TEXT] if text and options.format != "text" else [])),
    )


async def estimate_cost(runner: Runner, request: Request) -> float | None:
    """Return the server's CPU cost, about the bytes that its operators handle; None if it is unknown."""
    logical = await _one(runner, _LOGICAL, request)
    return await asyncio.to_thread(lambda: sum_costs(json.loads(logical)))


def _form(options: ExplainOptions) -> str:
    """Return the EXPLAIN that answers in text. With `verbose` it shows the fragments, as they are spread over nodes."""
    if options.analyze:
        return f"{_ANALYZE}{' VERBOSE' if options.verbose else ''}"
    return f"EXPLAIN (TYPE {'DISTRIBUTED' if options.verbose else 'LOGICAL'}, FORMAT TEXT)"


def split_statement(statement: str, about: str) -> tuple[str, str]:
    """Return the text before EXECUTE, and the text to prepare, of an internal statement around the caller's.

    EXPLAIN takes no parameters if it is prepared itself; EXPLAIN ANALYZE takes them only then.
    """
    before = statement.removesuffix(about)
    return ("", statement) if before.startswith(_ANALYZE) else (before.replace("\n", " "), about)


async def _one(runner: Runner, form: str, request: Request) -> str:
    rows = await runner.run(f"{form}\n{request.statement}", request)
    return str(rows[0][0])


def _shorten(text: str, options: ExplainOptions) -> str:
    """Return the plan without lines that say little and take half of it."""
    return text if options.verbose else _LAYOUT.sub("", text)


def _read_elapsed(text: str) -> float | None:
    """Return milliseconds. The server prints them in the first lines, before any text of the query."""
    head = "\n".join(text.split("\n", 2)[:2])
    found = _EXECUTION.search(head)
    return float(found["amount"]) * _MILLISECONDS[found["unit"]] if found else None


async def _find_partitions(runner: Runner, request: Request, read: Sequence[Scan]) -> Partitioned:
    async def ask(sql: str) -> Sequence[Row]:
        try:
            return await runner.run(sql, replace(request, statement=sql, parameters=()))
        except DragomanError:
            return ()

    relations = list(dict.fromkeys(scan.relation for scan in read))[:MOST_LOOKED_AT]
    return await partitioning(relations, ask)
