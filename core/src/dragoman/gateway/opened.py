"""A configured database with everything that serves it. Opening does no I/O: the first use connects."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from dragoman.catalog import Catalog
from dragoman.dialect import Dialect, Executor, Inspector
from dragoman.errors import ConnectionFailed, DragomanError, ParameterError
from dragoman.gateway.judge import Judge
from dragoman.model import Database, Limits
from dragoman.plugins import Plugins
from dragoman.validators import ReadOnly


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a database answers, as far as is known; `error` says why not, without its address."""

    state: Literal["ready", "unknown", "unreachable"] = "unknown"
    version: str = ""
    error: str = ""


class OpenDatabase:
    """A database, its dialect, executor, catalog and judge. Raises `DialectError` or `ConfigurationError` when made."""

    config: Database
    dialect: Dialect
    executor: Executor
    inspector: Inspector
    catalog: Catalog
    judge: Judge

    def __init__(self, plugins: Plugins, database: Database) -> None:
        self.config = plugins.prepare(database)
        self.dialect = plugins.load(database.dialect).dialect
        self.executor = plugins.executor(self.config)
        self.inspector = plugins.inspector(self.config, self.executor)
        self.catalog = Catalog(self.inspector, self.dialect, self.config)
        validators = [ReadOnly(self.dialect, self.config), *plugins.validators(self.config)]
        self.judge = Judge(self.dialect, self.config, self.catalog, validators)
        self._status = Status()
        self._probe: asyncio.Task[None] | None = None

    async def status(self, wait: float = 0.0) -> Status:
        """Return what is known; ask a database that is not known to be ready, for at most `wait` seconds."""
        if self._status.state != "ready" and wait > 0:
            self._probe = self._probe or asyncio.get_running_loop().create_task(self._ask())
            await asyncio.wait({self._probe}, timeout=wait)
        return self._status

    async def _ask(self) -> None:
        try:
            version = await self.inspector.version()
        except DragomanError as error:
            self._status = Status("unreachable", error=error.message)
        else:
            self._status = Status("ready", version)
        finally:
            self._probe = None

    def translate(self, sql: str, params: Sequence[Any], source: str) -> tuple[str, Sequence[Any], tuple[str, ...]]:
        """Return `sql`, written in the SQL named `source`, and its parameters, for this database, with notices.

        Raises `ParameterError` for an unknown name, `InvalidSql`, and `Unsupported` rather than translate wrongly.
        """
        from dragoman.sql.translate import translate  # sqlglot is slow to import

        done = translate(sql, source=source, target=self.dialect.sqlglot, rewrite=self.dialect.rewrite)
        ordered = params if done.order is None else [params[number - 1] for number in done.order]
        return done.sql, ordered, done.notices

    def noticed(self, error: DragomanError) -> None:
        """Take note of an error: a database that cannot be reached is asked again when its status is wanted."""
        if isinstance(error, ConnectionFailed):
            self._status = replace(self._status, state="unreachable", error=error.message)

    def limits(self, rows: int | None, timeout: float | None, max_bytes: int | None) -> tuple[Limits, tuple[str, ...]]:
        """Return the limits of one call within the configured ones, and notices of what was lowered.

        Raises `ParameterError` for what is not positive.
        """
        config = self.config
        for name, value in (("limit", rows), ("timeout", timeout)):
            if value is not None and value <= 0:
                raise ParameterError(
                    f"{name} must be greater than zero.", suggestion=f"Leave {name} out for the default."
                )
        notices: list[str] = []
        if rows is not None and rows > config.max_rows:
            notices.append(f"limit was lowered to {config.max_rows}, the most this database gives.")
        if timeout is not None and timeout > config.timeout:
            notices.append(f"The timeout was lowered to {config.timeout:g} seconds, the most this database gives.")
        limits = Limits(
            max_rows=min(rows or config.default_rows, config.max_rows),
            max_bytes=max_bytes or config.max_bytes,
            timeout=min(timeout or config.timeout, config.timeout),
        )
        return limits, tuple(notices)

    async def aclose(self) -> None:
        """Release everything; errors of one part do not keep the others open."""
        if self._probe is not None:
            self._probe.cancel()
        for part in (self.catalog, self.inspector, self.executor):
            with contextlib.suppress(DragomanError):
                await part.aclose()
