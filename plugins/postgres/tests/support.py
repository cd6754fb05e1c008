"""Asking an executor, without the gateway."""

import json

from dragoman import DragomanError, Encoded, Limits, Request, encode


async def rows_of(stream):
    rows = []
    async for batch in stream.batches:
        encoded = batch if isinstance(batch, Encoded) else encode(stream.columns, batch)
        rows += json.loads(b"[%b]" % encoded.json)
    return rows


async def ask(executor, sql, *parameters, **limits):
    """Return the columns and the rows as JSON values."""
    request = Request(statement=sql, parameters=parameters, limits=Limits(**limits))
    async with executor.open(request) as stream:
        return list(stream.columns), await rows_of(stream)


async def value_of(executor, sql, *parameters, **limits):
    _, rows = await ask(executor, sql, *parameters, **limits)
    assert len(rows) == 1
    return rows[0][0]


async def failure_of(executor, sql, *parameters, **limits):
    try:
        await ask(executor, sql, *parameters, **limits)
    except DragomanError as error:
        return error
    raise AssertionError(f"{sql!r} must fail")
