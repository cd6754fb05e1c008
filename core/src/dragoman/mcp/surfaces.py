"""Resources, prompts and completions for the SDK's server: handlers over `tools.surfaces`."""

from __future__ import annotations

import asyncio
import logging
import secrets
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, cast

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError

from dragoman.errors import DragomanError, ParameterError
from dragoman.mcp.handshake import MODERN_VERSION
from dragoman.tools.surfaces import UnknownPrompt, UnknownResource, complete

if TYPE_CHECKING:
    from dragoman.model import Principal
    from dragoman.tools.surfaces import Content, Prompt, Resource, Surfaces, Template

LOGGER = logging.getLogger("dragoman.mcp")
NOT_FOUND = -32002
"""The error code for a missing resource in versions before 2026-07-28. Later ones use -32602."""
MAX_TAGS = 50

Context = ServerRequestContext[Any, Any]


class Tagged(Protocol):
    """Something that lists can filter by its tags."""

    @property
    def tags(self) -> tuple[str, ...]: ...


T = TypeVar("T", bound=Tagged)


class SurfaceHandlers:
    """The handlers of one server. `who`: returns the sender of a request."""

    def __init__(self, surfaces: Surfaces, who: Callable[[Context], Principal]) -> None:
        self._surfaces = surfaces
        self._who = who

    async def list_resources(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answer `resources/list`."""
        with translate_errors("resources/list"):
            found = filter_by_tags(await self._surfaces.resources(self._who(context)), context)
        return types.ListResourcesResult(resources=[_resource(each) for each in found])

    async def list_templates(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer `resources/templates/list`."""
        with translate_errors("resources/templates/list"):
            found = filter_by_tags(self._surfaces.templates(self._who(context)), context)
        return types.ListResourceTemplatesResult(resource_templates=[_template(each) for each in found])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer `resources/read`."""
        uri = str(params.uri)
        try:
            with translate_errors("resources/read"):
                content = await self._surfaces.read(uri, self._who(context))
        except UnknownResource:
            code = types.INVALID_PARAMS if context.protocol_version == MODERN_VERSION else NOT_FOUND
            raise MCPError(code, "Resource not found", {"uri": uri[:2000]}) from None
        return types.ReadResourceResult(contents=[_content(content)])

    async def list_prompts(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """Answer `prompts/list`."""
        with translate_errors("prompts/list"):
            found = filter_by_tags(await asyncio.to_thread(self._surfaces.prompts), context)
        return types.ListPromptsResult(prompts=[_prompt(each) for each in found])

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """Answer `prompts/get`."""
        try:
            with translate_errors("prompts/get"):
                who = self._who(context)
                prompt, text = await self._surfaces.fill_prompt(params.name, params.arguments or {}, who)
        except UnknownPrompt:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}") from None
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=prompt.description or None, messages=[message])

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Answer `completion/complete`."""
        given = params.context.arguments if params.context is not None else None
        uri = params.ref.uri if isinstance(params.ref, types.ResourceTemplateReference) else None
        with translate_errors("completion/complete"):
            found = await complete(
                self._surfaces, self._who(context), params.argument.name, params.argument.value, given or {}, uri
            )
        values = list(found.values)
        completion = types.Completion(values=values, total=found.total, has_more=found.total > len(values))
        return types.CompleteResult(completion=completion)


def filter_by_tags(items: Sequence[T], context: Context) -> Sequence[T]:
    """Return the items with one of the tags that a request names in `_meta.tags`; all items if it names none."""
    wanted: Any = cast("Mapping[str, Any]", context.meta or {}).get("tags")
    if not isinstance(wanted, list) or not wanted:
        return items
    given: list[Any] = wanted  # pyright: ignore[reportUnknownVariableType]
    tags = {tag for tag in given[:MAX_TAGS] if isinstance(tag, str)}
    return [item for item in items if not tags.isdisjoint(item.tags)]


def _meta(item: Tagged) -> dict[str, Any] | None:
    return {"tags": list(item.tags)} if item.tags else None


def _resource(item: Resource) -> types.Resource:
    return types.Resource(
        uri=item.uri, name=item.name, description=item.description or None, mime_type=item.mime, _meta=_meta(item)
    )


def _template(item: Template) -> types.ResourceTemplate:
    return types.ResourceTemplate(
        uri_template=item.uri, name=item.name, description=item.description, mime_type=item.mime, _meta=_meta(item)
    )


def _prompt(item: Prompt) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=each.name, description=each.description or None, required=each.required)
        for each in item.arguments
    ]
    return types.Prompt(
        name=item.name, description=item.description or None, arguments=arguments or None, _meta=_meta(item)
    )


def _content(item: Content) -> types.TextResourceContents | types.BlobResourceContents:
    if isinstance(item.text, str):
        return types.TextResourceContents(uri=item.uri, mime_type=item.mime, text=item.text)
    return types.BlobResourceContents(uri=item.uri, mime_type=item.mime, blob=b64encode(item.text).decode())


@contextmanager
def translate_errors(method: str) -> Generator[None]:
    """Raise errors as errors of the protocol: on 2025 connections the SDK would send any exception's text."""
    try:
        yield
    except (UnknownResource, UnknownPrompt, MCPError):
        raise
    except DragomanError as error:
        _refuse(error)
    except Exception:
        reference = secrets.token_hex(4)
        LOGGER.exception("%s failed; the reference is %s", method, reference)
        raise MCPError(types.INTERNAL_ERROR, f"The gateway failed; the reference is {reference}.") from None


def _refuse(error: DragomanError) -> NoReturn:
    code = types.INVALID_PARAMS if isinstance(error, ParameterError) else types.INTERNAL_ERROR
    raise MCPError(code, error.message, {"code": error.code, "suggestion": error.suggestion}) from None
