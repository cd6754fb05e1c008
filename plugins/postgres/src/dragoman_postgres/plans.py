"""EXPLAIN, built around the judged query. Returns the plan with advice."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from dragoman import ExplainOptions, Plan, Request, ResultTooLarge

from dragoman_postgres.advice import Scanned, Tables, sequential_scans, warnings
from dragoman_postgres.confining import find_members
from dragoman_postgres.nodes import Node, from_json, from_text, list_collations, list_schemas, relations_read

SCANNED = """
SELECT n.nspname::text, c.relname::text,
  CASE WHEN c.reltuples > 0::real THEN c.reltuples::bigint ELSE pg_stat_get_live_tuples(c.oid) END,
  array(SELECT a.attname::text FROM pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
  array(SELECT a.attname::text FROM pg_index AS i
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
        WHERE i.indrelid = c.oid AND i.indisvalid)
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) AS wanted(schema, name)
JOIN pg_namespace AS n ON n.nspname = wanted.schema
JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = wanted.name
"""
"""$1 and $2: schemas and names of tables. Returns rows, columns, and the first columns of indexes."""

COLLATIONS = """
SELECT n.nspname::text FROM pg_collation AS c JOIN pg_namespace AS n ON n.oid = c.collnamespace
WHERE c.collname = ANY ($1::name[]) AND NOT EXISTS (
  SELECT FROM pg_collation AS s WHERE s.collname = c.collname AND s.collnamespace = 'pg_catalog'::regnamespace)
"""
"""$1: names. Returns the schemas of the collations with these names that the system has not."""
_JSON = ExplainOptions(format="json")
_VERBOSE = ExplainOptions(format="json", verbose=True)
_EXECUTION = re.compile(r"Execution Time: ([\d.]+) ms")


class Runner(Protocol):
    """Runs internal statements in the read-only transaction."""

    async def run(self, statement: str, request: Request) -> Sequence[Any]:
        """Return a statement's rows. The request has the parameters and limits."""
        ...


async def explain(runner: Runner, request: Request, options: ExplainOptions) -> Plan:
    """Return the plan of a judged query. With `analyze` the query runs to its end and its rows are dropped.

    `plan` is text, or for any other format the object of FORMAT JSON.
    """
    rows = await runner.run(statement(request, options), request)
    # In a thread, like everything that reads a whole plan: that of a long statement has hundreds of thousands of
    # characters.
    told = await asyncio.to_thread(_read, [row[0] for row in rows], options)
    # Only a verbose plan shows schemas.
    verbose: Mapping[str, Any] = {}
    if options.reads or told.scans:
        verbose = await _verbose(runner, request, needed=options.reads)
    tables = await _tables(runner, request, verbose)
    plan = await asyncio.to_thread(_plan, options, told, verbose, tables)
    return replace(plan, schemas=plan.schemas | await _schemas_of_collations(runner, request, verbose, options))


@dataclass(frozen=True, slots=True)
class _Told:
    """The answer of EXPLAIN. `scans`: whether it reads a table as a whole."""

    plan: Any
    root: Node
    elapsed: float | None
    scans: bool


def _read(lines: Sequence[str], options: ExplainOptions) -> _Told:
    if options.format == "text":
        root = from_text(lines)
        return _Told("\n".join(lines), root, _read_elapsed(lines), bool(sequential_scans(root)))
    (plan,) = json.loads(lines[0])
    root = from_json(plan["Plan"])
    return _Told(plan, root, plan.get("Execution Time"), bool(sequential_scans(root)))


def _plan(options: ExplainOptions, told: _Told, verbose: Mapping[str, Any], tables: Tables) -> Plan:
    return Plan(
        plan=told.plan,
        format=options.format,
        estimated_cost=told.root.cost,
        estimated_rows=round(told.root.rows),
        actual_time_ms=told.elapsed,
        warnings=warnings(told.root, tables),
        reads=relations_read(verbose) if options.reads else (),
        schemas=list_schemas(verbose) if options.reads else frozenset(),
    )


async def estimate_cost(runner: Runner, request: Request) -> float | None:
    """Return the total cost of the plan of a judged query, in whole units of the planner.

    The rows that a filter leaves are read first, at a cost that would reveal hidden rows, so it is not counted.
    """
    rows = await runner.run(statement(request, _JSON), request)
    members = find_members(request.statement, request.confinement.lead) if request.confinement else None
    return await asyncio.to_thread(lambda: _cost(json.loads(rows[0][0])[0]["Plan"], members))


def _cost(plan: Mapping[str, Any], members: str | None) -> float:
    begins = None if members is None else f"CTE {members}"
    read = [node["Total Cost"] for node in plan.get("Plans", ()) if begins and _name(node).startswith(begins)]
    return float(round(plan["Total Cost"] - sum(read)))


def _name(node: Mapping[str, Any]) -> str:
    return str(node.get("Subplan Name", ""))


def statement(request: Request, options: ExplainOptions) -> str:
    """Return the EXPLAIN statement. It sets every option, since defaults changed between servers."""
    said = {"ANALYZE": options.analyze, "VERBOSE": options.verbose, "BUFFERS": options.buffers}
    flags = ", ".join(f"{name} {'on' if value else 'off'}" for name, value in said.items())
    return f"EXPLAIN (FORMAT {'TEXT' if options.format == 'text' else 'JSON'}, {flags})\n{request.statement}"


def _read_elapsed(lines: Sequence[str]) -> float | None:
    found = [match for line in lines[-2:] if (match := _EXECUTION.fullmatch(line.strip()))]
    return float(found[0][1]) if found else None


async def _verbose(runner: Runner, request: Request, *, needed: bool) -> Mapping[str, Any]:
    try:
        ((verbose, *_), *_) = await runner.run(statement(request, _VERBOSE), request)
    except ResultTooLarge:  # the requested plan is not too large: it is returned without advice
        if needed:
            raise
        return {}
    plan: Mapping[str, Any] = (await asyncio.to_thread(json.loads, verbose))[0]["Plan"]
    return plan


async def _schemas_of_collations(
    runner: Runner, request: Request, verbose: Mapping[str, Any], options: ExplainOptions
) -> frozenset[str]:
    """Return the schemas of the collations by which a plan sorts, of which it shows the names alone."""
    names = await asyncio.to_thread(list_collations, verbose) if options.reads else ()
    if not names:
        return frozenset()
    rows = await runner.run(COLLATIONS, replace(request, statement=COLLATIONS, parameters=[sorted(names)]))
    return frozenset(schema for (schema,) in rows)


async def _tables(runner: Runner, request: Request, verbose: Mapping[str, Any]) -> Tables:
    """Return what the catalog knows of the scanned tables."""
    scans = await asyncio.to_thread(lambda: sequential_scans(from_json(verbose))) if verbose else []
    if not scans:
        return {}
    wanted = sorted({(node.schema or "", node.relation or "") for node in scans})
    parameters = ([schema for schema, _ in wanted], [name for _, name in wanted])
    rows = await runner.run(SCANNED, replace(request, statement=SCANNED, parameters=parameters))
    found: dict[str, list[Scanned]] = {}
    for _, name, count, columns, leading in rows:
        found.setdefault(name, []).append(Scanned(count, tuple(columns), frozenset(leading)))
    # Two tables of the same name cannot be distinguished.
    return {name: tables[0] for name, tables in found.items() if len(tables) == 1}
