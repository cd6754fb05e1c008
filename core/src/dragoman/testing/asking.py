"""Runs statements on an executor without the gateway, for the tests of plugins."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from dragoman.dialect import Executor
from dragoman.errors import DragomanError, QueryTimeout
from dragoman.model import Column, Encoded, Limits, Request, Result, RowStream
from dragoman.results import encode

if TYPE_CHECKING:
    from dragoman.gateway import Gateway


async def rows_of(stream: RowStream) -> list[list[Any]]:
    """Return the rows of a stream as JSON values."""
    rows: list[list[Any]] = []
    async for batch in stream.batches:
        encoded = batch if isinstance(batch, Encoded) else encode(stream.columns, batch)
        rows += encoded.values
    return rows


async def ask(executor: Executor, sql: str, *parameters: Any, **limits: Any) -> tuple[list[Column], list[list[Any]]]:
    """Return the columns and the rows of a statement; `limits` are fields of `Limits`."""
    request = Request(statement=sql, parameters=parameters, limits=Limits(**limits))
    async with executor.open(request) as stream:
        return list(stream.columns), await rows_of(stream)


async def value_of(executor: Executor, sql: str, *parameters: Any, **limits: Any) -> Any:
    """Return the first value of the one row of a statement."""
    _, rows = await ask(executor, sql, *parameters, **limits)
    assert len(rows) == 1
    return rows[0][0]


async def failure_of(executor: Executor, sql: str, *parameters: Any, **limits: Any) -> DragomanError:
    """Return the error of a statement that must fail."""
    try:
        await ask(executor, sql, *parameters, **limits)
    except DragomanError as error:
        return error
    raise AssertionError(f"{sql!r} must fail")


async def part_of(gateway: Gateway, sql: str, *, limit: int | None = None, max_bytes: int | None = None) -> Result:
    """Return the rows of a query that came before its deadline.

    The deadline is extended until some rows come in time.
    """
    for timeout in (1.0, 5.0, 25.0):
        with contextlib.suppress(QueryTimeout):
            return await gateway.query(None, sql, timeout=timeout, limit=limit, max_bytes=max_bytes)
    raise AssertionError("No row came before the deadline.")
