"""Runs callers' SQL: each statement in a read-only transaction of its own, read until a limit and then ended."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from dragoman import (
    Column,
    Database,
    Encoded,
    Executor,
    ExplainOptions,
    Finding,
    InvalidSql,
    Limits,
    ParameterError,
    Plan,
    Request,
    RowStream,
)
from dragoman.slots import Slot

from dragoman_trino import parameters, plans
from dragoman_trino.client import Client, Sent
from dragoman_trino.connecting import STATISTICS
from dragoman_trino.failures import UnknownTransaction
from dragoman_trino.reading import Reader
from dragoman_trino.transactions import HEADER, UsersTransactions
from dragoman_trino.types import type_text

REMEMBERED: Final = 200
"""The number of statements whose parameter types are remembered. The least recently used is dropped first."""
SLACK: Final = 4 * 1024 * 1024
"""The bytes of one answer that are read beyond what the caller may get. The server's answers are usually smaller."""
MOST_ROWS: Final = 100_000
"""The most bytes of a plan."""
MOST_OF_A_PLAN: Final = 8 * 1024 * 1024
"""The most bytes of an answer that is not expected to be large."""
_TAG = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in ',%"')


class TrinoExecutor(Executor):
    """Reads one database; connects at the first statement."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._client = Client(database, database.pool_size)
        self._transactions = UsersTransactions(self._client, database.pool_size)
        self._inputs: OrderedDict[tuple[str | None, str], Sequence[str] | None] = OrderedDict()

    def open(self, request: Request) -> AbstractAsyncContextManager[RowStream]:
        """Run a statement; leaving ends it in the server."""
        return self._open(request, request.statement)

    @asynccontextmanager
    async def _open(self, request: Request, about: str) -> AsyncGenerator[RowStream]:
        """Run a statement of which `about` is the caller's part."""
        async with self._client.slot(request.limits.timeout) as slot, AsyncExitStack() as opened:
            sent = _statement(request, about, slot)
            reader = await (self._fill if request.parameters else self._start)(opened, sent, request)
            yield RowStream(reader.columns, reader.batches())

    async def _fill(self, opened: AsyncExitStack, sent: Sent, request: Request) -> Reader:
        """Run a statement prepared and with its parameters, as literals of the types that the server expects.

        To ask for the types takes a statement of its own. A text is the same literal for every type of texts, so if
        there are only texts, they are first sent as such, unless types of this statement are remembered.
        """
        before, statement = plans.split_statement(request.statement, sent.about)
        sent = replace(sent, statement=statement, headers=parameters.prepare_header(statement))

        def execution(types: Sequence[str] | None) -> Sent:
            return replace(sent, sql=before + parameters.execution(statement, request.parameters, types))

        key = sent.user, statement
        if key not in self._inputs and parameters.are_texts(request.parameters):
            with suppress(InvalidSql, ParameterError):
                return await self._start(opened, execution(None), request)
            await opened.aclose()
        try:
            types = await self._input(key, replace(sent, sql=parameters.DESCRIBE_INPUT))
            return await self._start(opened, execution(types), request)
        except (InvalidSql, ParameterError):
            # The remembered types may have changed with the tables.
            self._inputs.pop(key, None)
            raise

    async def _start(self, opened: AsyncExitStack, sent: Sent, request: Request) -> Reader:
        try:
            return await self._begin(opened, sent, request.limits)
        except UnknownTransaction:
            # The server was restarted since the transaction began.
            self._transactions.of(sent.user).forget()
            await opened.aclose()
            return await self._begin(opened, sent, request.limits)

    async def _begin(self, opened: AsyncExitStack, sent: Sent, limits: Limits) -> Reader:
        headers = dict(sent.headers or {})
        if self._client.connector.options.transactions:
            headers[HEADER] = await opened.enter_async_context(self._transactions.of(sent.user).lend(sent.timeout))
        running = await opened.enter_async_context(self._client.run(replace(sent, headers=headers)))
        reader = Reader(running, limits)
        await reader.start()
        return reader

    async def _input(self, key: tuple[str | None, str], sent: Sent) -> Sequence[str] | None:
        """Return the types of a statement's parameters; None if the server cannot determine them without values."""
        if key in self._inputs:
            self._inputs.move_to_end(key)
            return self._inputs[key]
        try:
            types = [row[1] for row in await self._client.all_rows(sent)]
        except InvalidSql:
            types = None
        self._inputs[key] = types
        if len(self._inputs) > REMEMBERED:
            self._inputs.popitem(last=False)
        return types

    async def describe(self, request: Request) -> Sequence[Column]:
        """Return a query's columns. The server analyses the query and does not run it."""
        sent = Sent(
            sql=parameters.DESCRIBE_OUTPUT,
            statement=request.statement,
            about=request.statement,
            timeout=request.limits.timeout,
            headers=parameters.prepare_header(request.statement),
            tags=_tags(request),
            user=_user(request),
        )
        async with self._client.slot(request.limits.timeout) as slot:
            rows = await self._client.all_rows(replace(sent, slot=slot))
        return [Column(row[0], type_text(row[4])) for row in rows]

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """Return the plan of a judged query."""
        return await plans.explain(self, request, options)

    async def estimate_cost(self, request: Request) -> float | None:
        """Return the CPU cost of the plan, if Trino has the statistics for it."""
        return await plans.estimate_cost(self, request)

    async def run(self, statement: str, request: Request) -> list[list[Any]]:
        """Run an internal statement around the caller's, with the request's parameters and deadline; return its rows.

        It runs in the read-only transaction, as everything does. Values are JSON values.
        """
        most = max(4 * request.limits.max_bytes, MOST_OF_A_PLAN)
        limits = Limits(max_rows=MOST_ROWS, max_bytes=most, timeout=request.limits.timeout)
        around = replace(request, statement=statement, limits=limits)
        async with self._open(around, request.statement) as stream:
            return [row async for batch in stream.batches if isinstance(batch, Encoded) for row in batch.values]

    async def doctor(self) -> Sequence[Finding]:
        """Return what the configured user could do if all protections failed."""
        from dragoman_trino import doctor

        return await doctor.examine(self._client, self._database)

    async def aclose(self) -> None:
        """End the transactions that were begun ahead, and close the connections."""
        await self._transactions.aclose()
        await self._client.aclose()


def _statement(request: Request, about: str, slot: Slot) -> Sent:
    """Return how a request is sent. `about` is the caller's part of its statement."""
    limits = request.limits
    return Sent(
        sql=request.statement,
        statement=request.statement,
        about=about,
        timeout=limits.timeout,
        most=2 * limits.max_bytes + SLACK,
        tags=_tags(request),
        slot=slot,
        user=_user(request),
        # Whether a caller's condition fails may depend on the plan, and so on rows that the caller does not see.
        off=() if request.confinement is None else (STATISTICS,),
    )


def _user(request: Request) -> str | None:
    return request.acting.user if request.acting else None


def _tags(request: Request) -> tuple[str, ...]:
    """Return the caller and the tool, for the server's own log of queries."""
    tags: Mapping[str, str] = {"principal": request.principal.name, **request.tags}
    if request.call_id:
        tags = {**tags, "call": request.call_id}
    return tuple(quote(f"{name}={value}", safe=_TAG) for name, value in tags.items())
