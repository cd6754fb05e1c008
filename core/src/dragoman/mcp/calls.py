"""The function in which every call of a tool ends, whichever way it came."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from dragoman.errors import InternalError, QueryCancelled
from dragoman.telemetry import coming_from
from dragoman.tools.answer import Answer, failure

if TYPE_CHECKING:
    from dragoman.model import Principal
    from dragoman.telemetry import Origin
    from dragoman.tools import Toolbox
    from dragoman.tools.context import Progress

LOGGER = logging.getLogger("dragoman.mcp")
WITHOUT_LINKS: Final = ("2024-11-05", "2025-03-26")
"""Versions of the protocol whose answers have no links."""


class Calls:
    """The running calls of a toolbox, so that a server that is told to stop can end and still answer them."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._scopes: set[anyio.CancelScope] = set()
        self._stopped = False
        self._streams: list[Callable[[], None]] = []

    def takes(self, name: str, principal: Principal) -> bool:
        """Return whether `call` accepts a tool, without further questions about the principal."""
        return self._toolbox.is_plain(name, principal)

    async def refuse(self, name: str, principal: Principal, origin: Origin | None = None) -> None:
        """Record a call of a tool that does not exist for a principal. Raises as `Toolbox.refuse`."""
        with coming_from(origin):
            await self._toolbox.refuse(name, principal)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress,
        principal: Principal,
        origin: Origin | None = None,
    ) -> Answer:
        """Answer a call of an existing tool. Raises only cancellation: errors are answers too."""
        if not self._stopped:
            with self._enter(), coming_from(origin):
                answer = await self._call(name, arguments, progress, principal)
                known = origin is None or origin.version not in WITHOUT_LINKS
                return answer if known or not answer.links else replace(answer, links=())
        return failure(name, QueryCancelled("The server is stopping.", suggestion="Connect again and retry."))

    async def _call(self, name: str, arguments: Mapping[str, Any], progress: Progress, principal: Principal) -> Answer:
        try:
            return await self._toolbox.call(name, arguments, progress=progress, principal=principal)
        except Exception:
            # On 2025 connections the SDK would send the exception's own text to the client.
            LOGGER.exception("the toolbox failed on %s", name)
            words = "The gateway failed on this call."
            return failure(name, InternalError(words, suggestion="Try again; the server's log has details."))

    @contextmanager
    def _enter(self) -> Generator[None]:
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)

    def add_stream(self, end: Callable[[], None]) -> None:
        """Register the function that ends answers which last until the client leaves."""
        self._streams.append(end)

    def end_streams(self) -> None:
        """End every answer that would last until the client leaves."""
        for end in self._streams:
            end()

    def stop(self) -> None:
        """End and answer every running call. No call starts after this."""
        self._stopped = True
        self.end_streams()
        for scope in self._scopes:
            scope.cancel()
