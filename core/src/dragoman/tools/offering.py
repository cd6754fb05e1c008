"""The tool that reads resources, for clients without support for resources."""

from __future__ import annotations

from dragoman.errors import ParameterError, ResultTooLarge
from dragoman.exports import MEDIA_TYPES
from dragoman.tools.answer import Body
from dragoman.tools.budget import Budget
from dragoman.tools.context import ToolCall
from dragoman.tools.surfaces import Surfaces, UnknownResource

MAX_BYTES = 100_000
"""The most resources in a list, and the most characters of a file."""


async def read_resource(surfaces: Surfaces, call: ToolCall) -> Body:
    """Return the content of a resource; without an address, the list of resources."""
    uri: str | None = call["uri"]
    if uri is not None:
        try:
            content = await surfaces.read(uri, call.principal)
        except UnknownResource:
            raise ParameterError(
                f"There is no resource {uri[:100]!r}.", suggestion="Call read_resource without uri to list them."
            ) from None
        if isinstance(content.text, bytes):
            raise ParameterError("This resource is not a text.", suggestion="Export it as csv or jsonl.")
        if len(content.text) > MAX_BYTES and content.mime in MEDIA_TYPES.values():
            raise ResultTooLarge("The resource is too large to read here.", suggestion="Page it with get_result.")
        return Body({"text": content.text})
    budget = Budget(MAX_BYTES)
    templates = [{"uri": each.uri, "description": each.description} for each in surfaces.templates(call.principal)]
    budget.take(templates)
    listed = [{"uri": each.uri, "description": each.description} for each in await surfaces.resources(call.principal)]
    return Body({"resources": budget.fitting(listed), "templates": templates})
