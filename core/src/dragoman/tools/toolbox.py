"""`Toolbox`: every tool call passes through it, whatever the protocol."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from dragoman.errors import Busy, DragomanError, InternalError, PermissionDenied, QuotaExceeded
from dragoman.gateway import Gateway
from dragoman.gateway.calls import CallRecord
from dragoman.gateway.gateway import SETS_OF_ROLES
from dragoman.model import LOCAL, Principal
from dragoman.tools import (
    administering,
    asking,
    describing,
    finding,
    keeping,
    knowing,
    offering,
    querying,
    saved_queries,
    saving,
)
from dragoman.tools.administration import Administration
from dragoman.tools.answer import Answer, Body, encode, failure
from dragoman.tools.arguments import check
from dragoman.tools.context import Handler, Progress, ToolCall
from dragoman.tools.history import History
from dragoman.tools.registry import Shown, check_roles, instructions, show
from dragoman.tools.spec import Spec, Tool
from dragoman.tools.surfaces import Change, Surfaces

if TYPE_CHECKING:
    from dragoman.config import Configuration

UNKNOWN: Final = "unknown"
"""The name under which calls of unknown tools are recorded."""
_log = logging.getLogger(__name__)
ResultFormat = Literal["both", "structured", "text"]

HANDLERS: dict[str, Handler] = {
    "list_databases": finding.list_databases,
    "search_catalog": finding.search_catalog,
    "describe_table": describing.describe_table,
    "execute_query": querying.execute_query,
    "list_schemas": describing.list_schemas,
    "list_tables": describing.list_tables,
    "get_sample_rows": querying.get_sample_rows,
    "get_foreign_keys": finding.get_foreign_keys,
    "find_join_path": finding.find_join_path,
    "explain_query": querying.explain_query,
    "get_result": keeping.get_result,
    "export_result": keeping.export_result,
    "drop_result": keeping.drop_result,
    "read_schema": knowing.read_schema,
    "get_row": knowing.get_row,
    "server_info": knowing.server_info,
    "list_queries": saving.list_queries,
    "run_query": saving.run_query,
    "save_query": saving.save_query,
    "run_tool": saving.run_tool,
    "ask": asking.ask,
    "rate_answer": asking.rate_answer,
    "add_database": administering.add_database,
    "edit_database": administering.edit_database,
    "remove_database": administering.remove_database,
    "reload": administering.reload,
}

Part = Callable[["Configuration"], Callable[[], None]]
"""Checks one part of a new configuration, and returns the function that applies it.

Raises `ConfigurationError`.
"""


def _is_being_cancelled() -> bool:
    """Whether it is this call that was cancelled, and not something that a plugin waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _nothing() -> None:
    """Do nothing: nothing has to be kept."""


class UnknownTool(LookupError):
    """There is no such tool. This is an error of the protocol, not of a database."""


class Toolbox:
    """The tools of a gateway. `surfaces`: the resources, prompts and completions beside them.

    - `profile`: a profile, a toolset, a tool's name, or a list of them. Raises `ConfigurationError` for any other word.
    - `result_format`: which halves of an answer are made.
    - `parts`: other parts that a new configuration is applied to, such as the sign-in.
    - `reread`: reads the configuration again, for the tools of administrators.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        profile: str | Sequence[str] = "standard",
        result_format: ResultFormat = "both",
        reread: Callable[[], Configuration] | None = None,
    ) -> None:
        self._gateway = gateway
        self._format = result_format
        self._profile = profile
        self.parts: list[Part] = []
        self._reloads = asyncio.Lock()
        self._administration = Administration(gateway, reread, self.reload_from) if reread else None
        self.surfaces = Surfaces(gateway)  # lists the files that exist, before they are read
        self._handlers: dict[str, Handler] = {"read_resource": partial(offering.read_resource, self.surfaces)}
        self.refresh()
        self.surfaces.changes.take_queries = self._take_queries
        self._history = History() if "list_queries" in self._specs else None

    def refresh(self) -> None:
        """Apply the gateway's current configuration: descriptions of tools name its databases."""
        self._shown = show(self._gateway.configuration, self._profile, self._format)
        self._specs = {spec.name: spec for spec in self._shown.specs}
        self._taken = {spec.name: spec.all_arguments for spec in self._shown.specs}
        self._names = {name: frozenset(each.name for each in taken) for name, taken in self._taken.items()}
        self._seen: dict[tuple[tuple[str, ...] | None, frozenset[str]], Shown] = {}
        check_roles(self._gateway.configuration)

    async def reload(self, configuration: Configuration) -> tuple[str, ...]:
        """Apply another configuration while calls run, and notify listeners.

        Returns the databases added, changed or removed. If it raises `ConfigurationError` or `DialectError`, nothing
        has changed.
        """
        async with self._reloads:
            return await self._apply(configuration)

    async def reload_from(
        self, read: Callable[[], Configuration], keep: Callable[[], Awaitable[None]] = _nothing
    ) -> tuple[str, ...]:
        """Read the configuration in a thread and apply it, as `reload` does.

        It is read in its turn: no reload applies what was read before an earlier one. `keep` is called when it was
        checked, and before it is applied.
        """
        async with self._reloads:
            return await self._apply(await asyncio.to_thread(read), keep)

    async def _apply(
        self, configuration: Configuration, keep: Callable[[], Awaitable[None]] = _nothing
    ) -> tuple[str, ...]:
        show(configuration, self._profile, self._format)
        check_roles(configuration)
        takes = [prepare(configuration) for prepare in self.parts]
        changed = await self._gateway.reload(configuration, keep)
        for take in takes:
            take()
        self.refresh()
        for kind in ("tools", "resources", "prompts"):
            self.surfaces.changes.tell(Change(kind))
        return changed

    def _take_queries(self) -> None:
        """Offer the saved queries as their files are now, and notify listeners."""
        try:
            self.refresh()
        except DragomanError as error:  # a tool that the configuration names no longer exists
            _log.warning("the saved queries were not applied: %s %s", error.message, error.suggestion)
            return
        self.surfaces.changes.tell(Change("tools"))

    @property
    def gateway(self) -> Gateway:
        """The gateway that answers the calls."""
        return self._gateway

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools as clients list them."""
        return self._shown.tools

    @property
    def instructions(self) -> str:
        """The instructions for every model before any call. If callers see different databases, none is named."""
        return instructions(self._shown.specs, ()) if self._gateway.differs else self._shown.instructions

    def show_to(self, principal: Principal) -> Shown:
        """Return what a principal sees: the tools it may use, and the databases it may read something of."""
        seen = self._gateway.for_principal(principal)
        if seen.access is None and not seen.acting:
            return self._shown
        roles = seen.access.names if seen.access else None
        names = roles, frozenset(name for name, acting in seen.acting.items() if acting)
        if names not in self._seen:
            if len(self._seen) >= SETS_OF_ROLES:
                self._seen.clear()
            self._seen[names] = show(seen.configuration, self._profile, self._format, seen.access)
        return self._seen[names]

    async def hidden_tools(self, principal: Principal) -> frozenset[str]:
        """Return the tools that a principal may use but not see: saved queries that read more than it may."""
        if not self._gateway.for_principal(principal).is_restricted:
            return frozenset()
        saved = [spec.name for spec in self.show_to(principal).specs if spec.handler == "run_tool"]
        return await saved_queries.hidden_tools(self._gateway, saved, principal)

    def offers(self, name: str, principal: Principal) -> bool:
        """Return whether a principal may use a tool. A tool that it may not use does not exist for it."""
        if not self._gateway.has_roles:
            return name in self._specs
        return any(spec.name == name for spec in self.show_to(principal).specs)

    def is_plain(self, name: str, principal: Principal) -> bool:
        """Return whether a principal may use a tool that is never hidden from it for what it reads."""
        return self.offers(name, principal) and not self._may_hide(name, principal)

    async def knows(self, name: str, principal: Principal) -> bool:
        """Return whether a tool exists for a principal."""
        if not self._may_hide(name, principal):
            return self.offers(name, principal)
        gateway = self._gateway.for_principal(principal)
        return self.offers(name, principal) and await saved_queries.is_known(gateway, name, principal)

    def _may_hide(self, name: str, principal: Principal) -> bool:
        spec = self._specs.get(name)
        return spec is not None and spec.handler == "run_tool" and self._gateway.for_principal(principal).is_restricted

    async def refuse(self, name: str, principal: Principal) -> None:
        """Record a call of a tool that does not exist for a principal. No record shows a name that a caller made up.

        Raises `InternalError` if the audit requires a record that cannot be written.
        """
        with suppress(PermissionDenied, QuotaExceeded, Busy):
            async with self._gateway.call(name if name in self._specs else UNKNOWN, principal):
                raise PermissionDenied("There is no such tool.")

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: Progress | None = None,
        principal: Principal = LOCAL,
    ) -> Answer:
        """Answer a call. Errors are answers too. Raises only `UnknownTool` and cancellation.

        Tools that use several databases await `progress` with (done, total, message).
        """
        spec = self._specs.get(name)
        if spec is None or (self._gateway.has_roles and not self.offers(name, principal)):
            raise UnknownTool(name)
        record: CallRecord | None = None
        try:
            named = arguments.get("database") if isinstance(arguments, Mapping) else None
            async with self._gateway.call(name, principal, named if isinstance(named, str) else None) as record:
                record.arguments = {"params": arguments} if spec.binds else arguments
                record.known = None if spec.binds else self._names[name]
                body = await self._answer(spec, arguments, progress, principal)
                encoded = encode(body.facts)
                record.bytes = record.bytes or len(encoded)
                return Answer(
                    "" if self._format == "structured" else encoded.decode(),
                    body.meta,
                    body=None if self._format == "text" else encoded,
                    links=body.links,
                )
        except DragomanError as error:
            return failure(name, error, asking.describe_use(record.model_use if record else None))
        except (GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # of a library in Rust that panics, too: a caller would wait for ever
            if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                raise
            reference = secrets.token_hex(4)
            _log.exception("internal error %s in tool %s", reference, name)
            return failure(
                name,
                InternalError(
                    f"The gateway failed; the reference is {reference}.",
                    suggestion="Try another way, and give the reference to the server's administrator.",
                ),
            )

    async def _answer(
        self, spec: Spec, arguments: Mapping[str, Any] | None, progress: Progress | None, principal: Principal
    ) -> Body:
        checked = check(arguments, self._taken[spec.name])
        named = checked.get("database")
        gateway = self._gateway.for_principal(principal) if self._gateway.varies else self._gateway
        opened = gateway.database(named) if spec.reach == "one" else None
        call = ToolCall(
            gateway=gateway,
            tool=spec.name,
            arguments=checked,
            principal=principal,
            progress=progress,
            opened=opened,
            history=self._history,
            administration=self._administration,
        )
        name = spec.handler or spec.name
        try:
            body = await (self._handlers.get(name) or HANDLERS[name])(call)
        except querying.MISSING as error:
            raise querying.point_elsewhere(error, call) from None
        if opened is not None and named is None and len(gateway.names) > 1:
            body.facts["database"] = opened.config.name
        return body
