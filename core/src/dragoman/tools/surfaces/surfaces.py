"""`Surfaces`: what a caller finds beside the tools. What its roles do not grant does not exist."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from dragoman.exports import FORMATS
from dragoman.gateway import Gateway
from dragoman.model import Principal
from dragoman.tools import saved_queries
from dragoman.tools.registry import allows
from dragoman.tools.surfaces import uris
from dragoman.tools.surfaces.changes import Changes
from dragoman.tools.surfaces.items import Content, Prompt, Resource, Template, UnknownPrompt, UnknownResource
from dragoman.tools.surfaces.prompts import Prompts
from dragoman.tools.surfaces.reading import mime_of, read, reports_of

READ: Final = "read_resource"
PROMPT: Final = "get_prompt"
COMPLETE: Final = "complete"
"""The names under which resources, prompts and completions are recorded."""
STANDS_FOR: Mapping[str, str] = {
    uris.DATABASES.name: "list_databases",
    uris.SCHEMA.name: "describe_table",
    uris.TABLE.name: "describe_table",
    uris.RESULT.name: "get_result",
    uris.EXPORT.name: "export_result",
    uris.QUERY.name: "list_queries",
    uris.REPORT.name: "server_info",
}
"""The tool that shows the same as a resource of a kind. Callers who may not use it may not read those resources."""


class Surfaces:
    """The resources and prompts of a gateway. `changes`: notifies listeners of changes."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.changes = Changes(gateway)
        self._prompts = Prompts(gateway.configuration.server.prompts_dir)

    @property
    def gateway(self) -> Gateway:
        """The gateway that provides the contents."""
        return self._gateway

    # Resources

    async def resources(self, principal: Principal) -> list[Resource]:
        """Return the resources that a caller may read, if there are few of their kind; tables have a template.

        Asks no database. It is recorded as the tool that lists them is.
        """
        gateway = self._gateway.for_principal(principal)
        async with self._gateway.call(READ, principal) as record:
            kinds = {kind for kind in STANDS_FOR if self._offers(gateway, kind)}
            found = [each for each in await self._all(gateway, principal) if _kind(each) in kinds]
            record.bytes = sum(len(f"{each.uri}{each.name}{each.description}".encode()) for each in found)
            return found

    async def _all(self, gateway: Gateway, principal: Principal) -> list[Resource]:
        queries = await saved_queries.visible(gateway, principal)
        return [
            uris.DATABASES,
            *(
                _one(uris.SCHEMA, config.description or f"The tables of {name} as annotated SQL.", database=name)
                for name, config in gateway.configuration.databases.items()
            ),
            *(_one(uris.QUERY, query.description, name=name) for name, query in queries.items()),
            *(_one(uris.RESULT, "A kept result.", name=kept.name) for kept in gateway.kept.of(principal)),
            *(
                _one(uris.EXPORT, "A file of a kept result.", name=kept.name, format=form)
                for kept in gateway.kept.of(principal)
                for form in kept.exports
                if form in FORMATS
            ),
            *self._reports(gateway),
        ]

    def _reports(self, gateway: Gateway) -> Iterable[Resource]:
        for name in gateway.names:
            for what, report in reports_of(gateway, name).items():
                yield _one(uris.REPORT, report.description, database=name, what=what)

    def templates(self, principal: Principal) -> list[Template]:
        """Return the templates of resources that a caller may read."""
        gateway = self._gateway.for_principal(principal)
        return [template for template in uris.TEMPLATES if self._offers(gateway, template.name)]

    async def read(self, uri: str, principal: Principal) -> Content:
        """Return the content of a resource. Raises `UnknownResource`, and `DragomanError` if it cannot be read now."""
        found = uris.match(uri)
        gateway = self._gateway.for_principal(principal)
        async with self._gateway.call(READ, principal, found[1].get("database") if found else None) as record:
            record.arguments = record.arguments or {"uri": uri}
            if found is None or not self._offers(gateway, found[0].name):
                raise UnknownResource
            kind, values = found
            held = await read(gateway, principal, kind, values)
            record.bytes = len(held.encode() if isinstance(held, str) else held)
        return Content(uri, mime_of(kind, values), held)

    def may_read(self, uri: str, principal: Principal) -> bool:
        """Return whether a caller may read what an address could mean. Asks no database."""
        found = uris.match(uri)
        gateway = self._gateway.for_principal(principal)
        if found is None or not self._offers(gateway, found[0].name):
            return False
        return "database" not in found[1] or found[1]["database"] in gateway.names

    def databases(self, principal: Principal) -> frozenset[str]:
        """Return the names of the databases that exist for a caller."""
        return frozenset(self._gateway.for_principal(principal).names)

    def _offers(self, gateway: Gateway, kind: str) -> bool:
        return allows(gateway.access, gateway.configuration, STANDS_FOR[kind]) and _is_there(gateway, kind)

    # Prompts

    def prompts(self) -> list[Prompt]:
        """Return every prompt. Reads files."""
        return list(self._prompts.read().values())

    def prompt(self, name: str) -> Prompt:
        """Return a prompt. Reads files. Raises `UnknownPrompt`."""
        try:
            return self._prompts.read()[name]
        except KeyError:
            raise UnknownPrompt from None

    async def fill_prompt(self, name: str, given: Mapping[str, str], principal: Principal) -> tuple[Prompt, str]:
        """Return a prompt, and its text with a caller's arguments. Raises `UnknownPrompt`, `ParameterError`."""
        async with self._gateway.call(PROMPT, principal, "") as record:
            record.arguments = {"name": name}
            prompt = await asyncio.to_thread(self.prompt, name)
            text = prompt.fill(given)
            record.bytes = len(text.encode())
            return prompt, text


def _one(template: Template, description: str, **values: str) -> Resource:
    uri = uris.expand(template, **values)
    name = ".".join((template.name, *values.values()))
    return Resource(uri=uri, name=name, description=description, mime=mime_of(template, values), tags=template.tags)


def _kind(resource: Resource) -> str:
    return resource.name.partition(".")[0]


def _is_there(gateway: Gateway, kind: str) -> bool:
    server = gateway.configuration.server
    if kind == uris.QUERY.name:
        return server.queries_dir is not None
    if kind == uris.REPORT.name:
        return any(reports_of(gateway, name) for name in gateway.names)
    return server.results or kind not in (uris.RESULT.name, uris.EXPORT.name)
