"""The database `results`: a caller's kept results, as tables for SQL.

A folder of the caller holds a Parquet file for each kept result, and the DuckDB dialect reads that folder as a
database. So statements on it are judged, limited and recorded like any other.
"""

from __future__ import annotations

import asyncio
import copy
import importlib.util
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from dragoman.errors import Busy, DragomanError, TableNotFound
from dragoman.gateway.calls import CallRecord
from dragoman.gateway.exporting import check_room, full, write
from dragoman.kept import SOON, Kept, Owner, Store
from dragoman.model import Database, Principal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from dragoman.gateway.gateway import Gateway
    from dragoman.gateway.opened import OpenDatabase

NAME: Final = "results"
CALLERS: Final = 16
"""The number of callers whose database stays open. The least recently used is closed first."""
_TABLE: Final = "table"
"""The key of the Parquet file among the files of a result."""
_PROCESSES: Final = 2
_OF_SQL: Final = ("execute_query", "explain_query")
"""Tools that name their statement when they run it. Other tools may read every table."""
_LISTS: Final = re.compile(r"show|describe|information_schema|duckdb_|pg_|sqlite_", re.IGNORECASE)
"""Texts in statements that may list tables without naming them."""
_log = logging.getLogger(__name__)


class ResultsDatabases:
    """The database `results` of each caller who keeps something. `check` raises if a result may not be read now."""

    def __init__(self, gateway: Gateway, store: Store, check: Callable[[Kept, Principal], Awaitable[None]]) -> None:
        self._gateway = gateway
        self._store = store
        self._check = check
        self._opened: OrderedDict[Owner, OpenDatabase] = OrderedDict()
        self._locks = WeakValueDictionary[Owner, asyncio.Lock]()  # each lives as long as a call holds it
        self._closing: set[asyncio.Task[None]] = set()
        self.offered = self._is_offered()

    def _is_offered(self) -> bool:
        configuration = self._gateway.configuration
        if NAME in configuration.databases:
            _log.warning("the configured database %s hides callers' kept results", NAME)
            return False
        installed = "duckdb" in self._gateway.plugins.names and importlib.util.find_spec("pyarrow") is not None
        return installed and configuration.server.results

    def serves(self, principal: Principal) -> bool:
        """Return whether the caller has the database, which is the case once something is kept."""
        return self.offered and self._store.has(principal)

    def add_to(self, seen: Gateway, principal: Principal) -> Gateway:
        """Return a gateway as a caller sees it, with the database `results` added."""
        opened = self.database(principal)
        shown = copy.copy(seen)
        databases = {**seen.configuration.databases, NAME: opened.config}
        shown.configuration = replace(seen.configuration, databases=databases)
        shown.names = (*seen.names, NAME)
        shown.own = {NAME: opened}
        return shown

    def database(self, principal: Principal) -> OpenDatabase:
        """Return a caller's database, without reading anything for it."""
        owner, folder = principal.identity, self._store.folder_of(principal)
        if owner in self._opened and self._opened[owner].config.database != str(folder):
            self._retire(self._opened.pop(owner))  # its folder was removed with the caller's last result
        if owner not in self._opened:
            words = "Your kept results, each a table; DuckDB's SQL."
            config = Database(
                name=NAME, dialect="duckdb", database=str(folder), description=words, pool_size=_PROCESSES
            )
            self._opened[owner] = self._gateway.make(config, self._gateway.roles)
            if len(self._opened) > CALLERS:
                self._retire(self._opened.popitem(last=False)[1])
        self._opened.move_to_end(owner)
        return self._opened[owner]

    def _retire(self, opened: OpenDatabase) -> None:
        task = asyncio.create_task(opened.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    @asynccontextmanager
    async def call(
        self, call: AbstractAsyncContextManager[CallRecord], principal: Principal, tool: str, sql: str | None
    ) -> AsyncGenerator[CallRecord]:
        """Run a call on a caller's database, whose tables are the results that the caller may read now.

        `sql`: its statement. None: it has none of its own, or none yet if the `tool` runs SQL.
        """
        async with call as record:
            if sql is not None or tool not in _OF_SQL:
                await self._wait(principal, sql or "")
                async with self._locks.setdefault(principal.identity, asyncio.Lock()):
                    await self._prepare(principal, sql)
            try:
                yield record
            except TableNotFound as missing:
                raise self._late(principal, sql or missing.message) or missing from None

    def _coming(self, principal: Principal, text: str) -> list[Kept]:
        """Return the results that a text names and whose rows are still arriving. They are not tables yet."""
        words = {word.lower() for word in re.findall(r"\w+", text)}
        return [kept for kept in self._store.of(principal) if kept.running and kept.name.lower() in words]

    async def _wait(self, principal: Principal, sql: str) -> None:
        """Wait briefly until the results that a statement names are tables."""
        tasks = {kept.task for kept in self._coming(principal, sql) if kept.task is not None}
        if tasks:
            await asyncio.wait(tasks, timeout=SOON)

    def _late(self, principal: Principal, text: str) -> Busy | None:
        coming = self._coming(principal, text)
        if not coming:
            return None
        named = ", ".join(f"{kept.name} ({kept.pages.rows} so far)" for kept in coming)
        return Busy(
            f"Rows are still coming, so that there is no table yet: {named}.",
            suggestion="Ask get_result until its status is complete; then send this again.",
        )

    async def _prepare(self, principal: Principal, sql: str | None) -> None:
        """Make a table of every complete result that `sql` may name, and hide those that today's policy refuses."""
        changed = False
        text = None if sql is None or _LISTS.search(sql) else sql.lower()
        for kept in self._store.of(principal):
            named = text is None or kept.name.lower() in text
            if kept.status == "complete" and (named or _TABLE in kept.exports):
                changed = await self._show(kept, principal) or changed
        catalog = self.database(principal).catalog
        there = {path.stem for path in self._store.folder_of(principal).iterdir()}
        if changed or (catalog.loaded and there != {table.relation.name for table in catalog.loaded.visible}):
            await catalog.refresh()

    async def _show(self, kept: Kept, principal: Principal) -> bool:
        """Show or hide a table. Return whether anything changed."""
        try:
            await self._check(kept, principal)
        except DragomanError:
            path = kept.exports.pop(_TABLE, None)
            if path is not None:
                await asyncio.to_thread(path.unlink, True)
            return path is not None
        if _TABLE in kept.exports or not kept.columns:  # no table is without columns
            return False
        await self._write(kept, self._store.folder_of(principal) / f"{kept.name}.parquet")
        return True

    async def _write(self, kept: Kept, path: Path) -> None:
        """Write the table beside the folder first, so that no query sees half of it."""
        part = kept.pages.path.with_suffix(".part")
        kept.exports["part"] = part
        try:
            await asyncio.to_thread(write, kept, part, "parquet", partial(check_room, kept, self._store.has_room))
            part.replace(path)
        except OSError:
            raise full() from None
        finally:
            kept.exports.pop("part", None)
            part.unlink(missing_ok=True)
        kept.exports[_TABLE] = path
        if kept.is_dropped:  # it was dropped while the table was written
            path.unlink(missing_ok=True)

    async def aclose(self) -> None:
        """Close the databases of all callers."""
        for opened in self._opened.values():
            self._retire(opened)
        self._opened.clear()
        await asyncio.gather(*self._closing)
