"""What could happen if all protections failed: findings of the dialect and of the core, and one warning."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from dragoman.dialect import Capability, Dialect
from dragoman.errors import DragomanError
from dragoman.model import Database, Finding, Schema, Severity

SEVERITIES: tuple[Severity, ...] = ("danger", "warning", "note")
DELAY = 0.25
"""Seconds after the first answer until the database is examined. Calls at the start come first."""
SHOWN = 3
MOST_NAMES = 8
_log = logging.getLogger(__name__)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings ordered by severity, otherwise in their order."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def find_openings(database: Database, dialect: Dialect, schemas: Sequence[Schema]) -> Iterator[Finding]:
    """Yield what the dialect lacks and what the configuration allows, whatever the role may do.

    `schemas`: all it sees.
    """
    key = f"databases.{database.name}"
    if Capability.READ_ONLY_SESSION not in dialect.capabilities:
        yield Finding(
            severity="danger",
            subject="no_read_only_session",
            message=f"The engine refuses no write ({key}.accept_unenforced is set): only our own checks do.",
            remedy="Use a role that may only SELECT.",
        )
    if database.allow_foreign_tables:
        yield Finding(
            severity="warning",
            subject="allow_foreign_tables",
            message="Foreign tables may be queried: reading one may act on another server, or run a program.",
            remedy=f"Set {key}.allow_foreign_tables = false, and copy what is needed into tables.",
        )
    for setting, words in (
        ("allow_functions", "functions may be called that nobody has reviewed for dragoman"),
        ("allow_relations", "relations may be read that are normally closed"),
    ):
        if names := sorted(getattr(database, setting)):
            yield Finding(
                severity="note",
                subject=setting,
                message=f"These {words}: {', '.join(names)}.",
                remedy=f"Keep only reviewed and needed names in {key}.{setting}.",
            )
    open_ones = [schema.name for schema in schemas if not schema.system]
    if not database.schemas and len(open_ones) > 1:
        yield Finding(
            severity="note",
            subject="no_schemas",
            message=f"Agents may query all {len(open_ones)} schemas: {list_names(open_ones)}.",
            remedy=f"Name those they need in {key}.schemas.",
        )


def list_names(names: Sequence[str]) -> str:
    """Return the first few names as text, and the number of the others."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


class Watch:
    """Examines a database once, in the background after its first answer, and logs one warning about its dangers."""

    def __init__(self, name: str, examine: Callable[[], Awaitable[Sequence[Finding]]]) -> None:
        self._name = name
        self._examine = examine
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Record that the database has answered. Examine it soon, unless that was done."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        await asyncio.sleep(DELAY)
        try:
            findings = await self._examine()
        except DragomanError as error:
            _log.info("the database %s could not be examined: %s", self._name, error.message)
            self._task = None  # it is examined when it answers the next time
            return
        dangers = [finding for finding in findings if finding.severity == "danger"]
        if dangers:
            more = f" (and {len(dangers) - SHOWN} more)" if len(dangers) > SHOWN else ""
            _log.warning(
                "the database %s is open to more than reading, if all protections failed: %s%s"
                " `dragoman doctor %s` shows how to close it.",
                self._name,
                " ".join(finding.message for finding in dangers[:SHOWN]),
                more,
                self._name,
            )

    async def aclose(self) -> None:
        """Stop examining."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
