"""What is known of one database, kept for a while. Only what has passed the gate is kept."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dragoman.catalog import Catalog, Insight
from dragoman.dialect import Capability, Dialect, Inspector
from dragoman.errors import DragomanError
from dragoman.knowledge.gate import Gate
from dragoman.model import Database, ProfileBudget, Relation, Table, TableColumn

PATIENCE = 2.0
"""Seconds that a description waits for what is known of values."""
PAUSE = 60.0
"""Seconds for which a database that failed to tell is not asked again."""
NOTHING = Insight()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is known of a relation, as what the catalog knew it, and since when."""

    table: Table
    insight: Insight
    born: float


class Knowledge:
    """Tells what is known of relations beside their structure. What cannot be learned in time is left out."""

    def __init__(
        self,
        inspector: Inspector,
        dialect: Dialect,
        database: Database,
        catalog: Catalog,
        *,
        vetoed: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inspector = inspector
        self._settings = database.knowledge
        self._tells = Capability.STATISTICS in dialect.capabilities and self._settings.values != "off" and not vetoed
        self._catalog = catalog
        self._gate = Gate(self._settings, vetoed)
        self._clock = clock
        self._kept: dict[Relation, _Kept] = {}
        self._asking = asyncio.Lock()
        self._quiet_until = float("-inf")

    async def of(self, tables: Sequence[Table], patience: float = PATIENCE) -> Mapping[Relation, Insight]:
        """Return what is known of these relations, learned now where it is not; at most `patience` seconds."""
        if self._missing(tables):
            try:
                async with asyncio.timeout(patience):
                    await self.learn(tables, ProfileBudget(seconds=patience, sample=self._settings.values == "sample"))
            except (TimeoutError, DragomanError) as error:
                self._quiet_until = self._clock() + PAUSE
                _log.info("what is known of values was not told: %s", error)
        return {table.relation: self.known(table) for table in tables}

    def known(self, table: Table) -> Insight:
        """Return what is known already, without asking anybody."""
        kept = self._kept.get(table.relation)
        return kept.insight if kept is not None and kept.table.columns == table.columns else NOTHING

    def hides_values(self, table: Table, column: TableColumn) -> bool:
        """Whether single values of a column may not be told."""
        return self._gate.hides(table, column)

    async def learn(self, tables: Sequence[Table], budget: ProfileBudget) -> None:
        """Ask the database about what is not known or old. Raises what the inspector raises."""
        async with self._asking:
            wanted = self._missing(tables)
            if not wanted:
                return
            incoming = (await self._catalog.snapshot()).graph.incoming
            told = await self._inspector.profiles(wanted, budget)
            now = self._clock()
            for table in wanted:
                profiles = self._gate.passed(table, told.get(table.relation, ()), table.relation in incoming)
                self._kept[table.relation] = _Kept(table, Insight(MappingProxyType(profiles)), now)

    def _missing(self, tables: Sequence[Table]) -> list[Table]:
        if not self._tells or self._clock() < self._quiet_until:
            return []
        return [table for table in tables if not table.system and not self._is_fresh(table)]

    def _is_fresh(self, table: Table) -> bool:
        kept = self._kept.get(table.relation)
        return (
            kept is not None
            and kept.table.columns == table.columns
            and self._clock() - kept.born < self._settings.refresh_interval
        )
