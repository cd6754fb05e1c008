"""The tool that reads resources, for clients that have none."""

from __future__ import annotations

from dragoman.errors import ParameterError
from dragoman.tools.answer import Body
from dragoman.tools.context import Budget, ToolCall
from dragoman.tools.surfaces import UnknownResource

MAX_BYTES = 100_000
"""Of a list of resources."""


async def read_resource(call: ToolCall) -> Body:
    """Answer what a resource holds; without an address, which there are."""
    surfaces = call.surfaces
    assert surfaces is not None  # the toolbox gives it to every call
    uri: str | None = call["uri"]
    if uri is not None:
        try:
            content = await surfaces.read(uri, call.principal)
        except UnknownResource:
            raise ParameterError(
                f"There is no resource {uri[:100]!r}.", suggestion="Call read_resource without uri to list them."
            ) from None
        return Body({"text": content.text if isinstance(content.text, str) else content.text.decode(errors="replace")})
    budget = Budget(MAX_BYTES)
    templates = [{"uri": each.uri, "description": each.description} for each in surfaces.templates(call.principal)]
    budget.take(templates)
    listed = [{"uri": each.uri, "description": each.description} for each in await surfaces.resources(call.principal)]
    return Body({"resources": budget.fitting(listed), "templates": templates})
