"""The tools of kept results."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from dragoman.cleanup import finish
from dragoman.errors import ParameterError, QueryTimeout, ResultNotFound
from dragoman.exports import MEDIA_TYPES
from dragoman.gateway.exporting import MOST_READ, SECONDS
from dragoman.kept import Kept
from dragoman.tools.answer import Body, Link
from dragoman.tools.context import ToolCall
from dragoman.tools.querying import page, truncation_facts
from dragoman.tools.surfaces import uris


async def get_result(call: ToolCall) -> Body:
    """Return a page of a kept result."""
    kept = await _find(call)
    return await page(kept, call["offset"], call["limit"], call.gateway.database(kept.database).config)


async def drop_result(call: ToolCall) -> Body:
    """End and remove a kept result."""
    await call.gateway.kept.drop(call["result"], call.principal)
    return Body({"dropped": call["result"]})


async def export_result(call: ToolCall) -> Body:
    """Write a kept result, or the whole answer of a query, to a file."""
    if (call["result"] is None) == (call["sql"] is None):
        raise ParameterError(
            "export_result takes either result or sql.", suggestion="Name a kept result, or send sql and database."
        )
    is_made = call["sql"] is not None
    kept = await (_keep_for_export(call) if is_made else _find(call))
    exports = call.gateway.kept.exports
    async with _dropping(call, kept, is_made=is_made):
        exported = await exports.write(kept, call["format"], call.principal, call.gateway.kept.timeout, call["chart"])
    facts: dict[str, Any] = {"format": exported.form, "rows": kept.pages.rows, "bytes": exported.path.stat().st_size}
    if call.gateway.configuration.server.transport == "stdio":
        facts = {"file": str(exported.path), **facts}
        address = exported.path.as_uri()
    else:
        address = exports.address(exported)
        facts = {"url": address, "expires": SECONDS, **facts}
    if kept.truncated is not None:
        facts["truncated"] = truncation_facts(kept.truncated)
    if notices := (*kept.notices, *exported.notices):
        facts["notices"] = list(notices)
    return Body(facts, links=(_link(kept, exported.form, address, facts["bytes"]),))


def _link(kept: Kept, form: str, address: str, size: int) -> Link:
    """Return a link that a client reads with `resources/read`.

    For a file that is too large for that, return the file's own address.
    """
    uri = uris.expand(uris.EXPORT, name=kept.name, format=form) if size <= MOST_READ else address
    return Link(uri, f"{kept.name}.{form}", MEDIA_TYPES[form], size)


@asynccontextmanager
async def _dropping(call: ToolCall, kept: Kept, *, is_made: bool) -> AsyncGenerator[None]:
    """Drop a result that was made only for a file, if there is no file. Its caller does not know its name."""
    try:
        yield
    except BaseException as error:
        is_told = isinstance(error, QueryTimeout) and kept.status != "failed"  # the error says how to go on
        if is_made and not is_told:
            with suppress(ResultNotFound):
                await finish(call.gateway.kept.drop(kept.name, call.principal))
        raise


async def _keep_for_export(call: ToolCall) -> Kept:
    name = f"export_{secrets.token_hex(4)}"  # so that a second export leaves the address of the first one valid
    return await call.gateway.kept.keep(
        name, call["database"], call["sql"], principal=call.principal, tool=call.tool, is_for_file=True
    )


async def _find(call: ToolCall) -> Kept:
    return await call.gateway.kept.find(call["result"], call.principal)
