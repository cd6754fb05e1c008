"""For `dragoman config check`: finds what `serve` would refuse, and what no query could use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from dragoman.config import Configuration
from dragoman.config.positions import Lines, line_of, read_lines
from dragoman.config.sources import Problem
from dragoman.errors import ConfigurationError, ConnectionFailed, DragomanError

if TYPE_CHECKING:
    from dragoman.gateway import Gateway
    from dragoman.gateway.opened import OpenDatabase

PATIENCE = 10
"""Seconds that a database gets to answer."""


@dataclass(frozen=True)
class Check:
    """Checks a configuration that could be read. `warnings`: what could not be checked."""

    configuration: Configuration
    warnings: list[str]

    async def problems(self) -> list[Problem]:
        """Return every problem: of the server, of the plugins, and of the databases that answer."""
        plugins = list(self._plugins())
        databases = [] if plugins else await self._databases()  # without its plugin, no database can be opened
        return [*self._server(), *plugins, *databases]

    def _server(self) -> Iterable[Problem]:
        from dragoman.tools.registry import choose

        server = self.configuration.server
        roles = {f"roles.{role.name}.tools": role.tools or () for role in self.configuration.roles.values()}
        for key, words in {"server.tools": server.tools, **roles}.items():
            try:
                choose(words, self.configuration, key)
            except ConfigurationError as error:
                yield self._problem(key, error)
        try:
            server.check_exposure()
        except ConfigurationError as error:
            yield self._problem("server.host", error)

    def _plugins(self) -> Iterable[Problem]:
        """Yield the problems that need the plugin: it is missing, or its options do not match."""
        from dragoman.plugins import Plugins

        plugins = Plugins.discover()
        try:
            plugins.enforce(self.configuration.policies)
        except DragomanError as error:
            yield self._problem("policies", error)
        for name, database in self.configuration.databases.items():
            try:
                plugins.prepare(database)
            except DragomanError as error:
                yield self._problem(f"databases.{name}", error)

    async def _databases(self) -> list[Problem]:
        """Check all databases concurrently."""
        from dragoman.gateway import Gateway

        quiet = replace(self.configuration, audit=type(self.configuration.audit)())  # a check is not a call
        async with Gateway.open(quiet) as gateway:
            found = await asyncio.gather(*(self._database(gateway, name) for name in gateway.names))
        return [problem for problems in found for problem in problems]

    async def _database(self, gateway: Gateway, name: str) -> list[Problem]:
        try:
            async with asyncio.timeout(PATIENCE):
                found = [problem async for problem in self._contents(gateway.database(name))]
            await self._note_roles(gateway, name)
            return found
        except (DragomanError, TimeoutError) as error:
            database = self.configuration.databases[name]
            if isinstance(error, ConnectionFailed) and not database.host:  # a file; a server may be up later
                return [self._problem(f"databases.{name}.{'url' if database.url else 'database'}", error)]
            why = error.message if isinstance(error, DragomanError) else f"no answer within {PATIENCE} seconds."
            self.warnings.append(f"databases.{name}: schemas and keys were not checked: {why}")
            return []

    async def _note_roles(self, gateway: Gateway, name: str) -> None:
        """Note roles that opening the gateway could not check. Those that do not fit would have kept it closed."""
        grants = gateway.roles.everything(name)
        faces = gateway.database(name).identity_views() if grants else ()
        unchecked = next((face for face in faces if not face.fitting(grants).fits), None)
        if unchecked is not None:
            self.warnings.append(f"databases.{name}: roles were not checked: {await _find_hindrance(unchecked)}")

    async def _contents(self, opened: OpenDatabase) -> AsyncIterator[Problem]:
        from dragoman.catalog import Places

        key = f"databases.{opened.config.name}"
        there = await opened.inspector.schemas()
        for place, written in enumerate(opened.config.schemas):
            places = Places(replace(opened.config, schemas=(written,)), opened.dialect)
            if not any(places.visible(schema.name, schema.catalog) for schema in there):
                names = ", ".join(schema.name for schema in there if not schema.system)
                remedy = f"There are: {names}." if names else "The database has no schema, or its role sees none."
                yield self._problem(
                    f"{key}.schemas.{place}", ConfigurationError(f"there is no schema {written}", suggestion=remedy)
                )
        if opened.config.keys:
            for unused in (await opened.catalog.snapshot()).unused_keys:
                yield self._problem(
                    f"{key}.keys", ConfigurationError(unused, suggestion="Compare it with `dragoman describe`.")
                )

    @cached_property
    def _lines(self) -> Lines:
        return read_lines(self.configuration.source) if self.configuration.source else {}

    def _problem(self, key: str, error: DragomanError) -> Problem:
        """Return a problem of a key, with the source and the line of the key."""
        sources, file = self.configuration.sources, self.configuration.source
        near = [origin for path, origin in sources.items() if path == key or path.startswith(f"{key}.")]
        parent = key.rpartition(".")[0]
        near += [origin for path, origin in sources.items() if parent and path.startswith(parent)]
        origin = near[0] if near else "configuration"
        line = line_of(self._lines, key.split(".")) if file and origin.endswith(file.name) else None
        message = error.message.removeprefix(f"{key}: ").rstrip(".")
        return Problem(origin, key, message, error.suggestion, line)


async def _find_hindrance(opened: OpenDatabase) -> str:
    """Return why roles could not be checked."""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            try:
                await opened.catalog.snapshot()
            except DragomanError as error:
                return error.message
    return "that takes too long on this database."
