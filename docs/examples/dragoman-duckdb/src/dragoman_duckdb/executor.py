"""Runs statements: one SELECT each, described before it runs, its rows in batches."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import dragoman
import duckdb
from dragoman import Column, Database, ExplainOptions, Plan, Request, RowStream

from dragoman_duckdb.sessions import Engine, Session
from dragoman_duckdb.types import add_casts, column

Row = tuple[Any, ...]
BATCH_ROWS = 500
FIRST_BATCH_ROWS = 32  # rows may be large: dragoman stops at its byte limit after these


class DuckDBExecutor(dragoman.Executor):
    """Runs statements on one DuckDB file, which stays open read-only."""

    def __init__(self, database: Database) -> None:
        self._engine = Engine(database)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncGenerator[RowStream]:
        """As the base class says."""
        async with self._engine.session(request.limits.timeout) as session:
            columns = await session.run(lambda: _execute(session.connection, request))
            yield RowStream(columns, _batches(session))

    async def describe(self, request: Request) -> Sequence[Column]:
        """As the base class says."""
        async with self._engine.session(request.limits.timeout) as session:
            described = await session.run(lambda: _ask(session.connection, "DESCRIBE ", request))
        return [column(name, type_) for name, type_, *_ in described]

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """As the base class says; DuckDB draws its plans, or tells them as JSON."""
        if options.analyze:
            raise dragoman.Unsupported("This dialect tells plans without running them only.")
        kind = "" if options.format == "text" else "(FORMAT JSON) "

        async with self._engine.session(request.limits.timeout) as session:
            plan = await session.run(lambda: _ask(session.connection, f"EXPLAIN {kind}", request)[0][1])
        return Plan(plan=plan if options.format == "text" else json.loads(plan), format=options.format)

    async def aclose(self) -> None:
        """As the base class says."""
        await self._engine.aclose()


async def _batches(session: Session) -> AsyncIterator[Sequence[Row]]:
    fetch = session.connection.fetchmany
    rows = await session.run(lambda: fetch(FIRST_BATCH_ROWS))
    while rows:
        yield rows
        rows = await session.run(lambda: fetch(BATCH_ROWS))


def _execute(connection: duckdb.DuckDBPyConnection, request: Request) -> list[Column]:
    described = _ask(connection, "DESCRIBE ", request)
    connection.execute(add_casts(_single(connection, request), described), list(request.parameters))
    return [column(name, type_) for name, type_, *_ in described]


def _ask(connection: duckdb.DuckDBPyConnection, what: str, request: Request) -> list[Row]:
    """Return all that DuckDB tells about a query without running it."""
    return connection.execute(what + _single(connection, request), list(request.parameters)).fetchall()


def _single(connection: duckdb.DuckDBPyConnection, request: Request) -> str:
    """The statement, if DuckDB's own parser finds one in the text, and that one is a query."""
    found = connection.extract_statements(request.statement)
    if len(found) != 1:
        raise dragoman.UnsafeSql(f"{len(found)} statements were sent.", suggestion="Send one statement per call.")
    if found[0].type is not duckdb.StatementType.SELECT:
        raise dragoman.WriteDenied(f"{found[0].type.name} is not a query.", suggestion="Send a SELECT.")
    return request.statement
