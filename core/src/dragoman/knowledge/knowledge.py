"""What is known of one database, kept for a while. Only what has passed the gate is kept."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from dragoman.catalog import Catalog, Insight, Snapshot, Step
from dragoman.catalog.joins import Graph
from dragoman.dialect import Capability, Dialect, Inspector
from dragoman.errors import DragomanError
from dragoman.knowledge.gate import Gate
from dragoman.knowledge.joins import comparison_sql, judge, suggest
from dragoman.model import Database, ForeignKey, ProfileBudget, Relation, Table, TableColumn

PATIENCE = 2.0
"""Seconds that a description waits for what is known of values."""
PAUSE = 60.0
"""Seconds for which a database that failed to tell is not asked again."""
AT_ONCE = 20
"""Suggested joins that are compared by one statement."""
ROUNDS = 3
"""How often a path of joins is looked for again when one of them turns out wrong."""
NOTHING = Insight()
Read = Callable[[str, float], Awaitable[Sequence[Sequence[int]]]]
"""(SQL of ours, seconds) -> rows."""
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
        read: Read | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inspector = inspector
        self._settings = database.knowledge
        self._tells = Capability.STATISTICS in dialect.capabilities and self._settings.values != "off" and not vetoed
        self._catalog = catalog
        self._gate = Gate(self._settings, vetoed)
        self._read = read if dialect.probes and not vetoed else None
        self._suggested: tuple[int, dict[Relation, list[ForeignKey]]] = (0, {})
        self._compared: dict[ForeignKey, tuple[float, ForeignKey | None]] = {}
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
        joins = await self._joins(tables, patience)
        parts = (await self._catalog.snapshot()).parts if tables else {}
        return {
            table.relation: replace(
                self.known(table),
                suggested=tuple(joins.get(table.relation, ())),
                parts=tuple(part.relation.name for part in parts.get(table.relation, ())),
            )
            for table in tables
        }

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

    # Joins that nobody declared

    async def join_paths(self, source: Table, target: Table, max_depth: int) -> list[tuple[Step, ...]]:
        """Return ways to join two relations by keys of which some are only suggested; none where there are none."""
        if not self._settings.infer_joins:
            return []
        snapshot = await self._catalog.snapshot()
        candidates = [key for keys in (await self._candidates(snapshot)).values() for key in keys]
        wrong: set[ForeignKey] = set()
        for _ in range(ROUNDS):
            left = [key for key in candidates if key not in wrong]
            graph = await asyncio.to_thread(_graph, snapshot, left)
            paths = graph.paths(source.relation, target.relation, max_depth)
            used = [step.key for path in paths for step in path if step.key.suggested]
            await self._compare(used)
            told = {key: self._told(key) for key in used}
            wrong |= {key for key, found in told.items() if found is None}
            if not wrong & set(used):
                return [tuple(replace(step, key=told.get(step.key) or step.key) for step in path) for path in paths]
        return []

    async def _joins(self, tables: Sequence[Table], patience: float) -> dict[Relation, list[ForeignKey]]:
        """The suggested joins of relations; none where their values could not be compared in time."""
        if not self._settings.infer_joins:
            return {}
        try:
            async with asyncio.timeout(patience):
                candidates = await self._candidates(await self._catalog.snapshot())
                keys = [key for table in tables for key in candidates.get(table.relation, ())]
                await self._compare(keys)
        except (TimeoutError, DragomanError) as error:
            _log.info("joins that nobody declared were not told: %s", error)
            return {}
        return _by_relation(found for key in keys if (found := self._told(key)))

    async def _candidates(self, snapshot: Snapshot) -> dict[Relation, list[ForeignKey]]:
        if self._suggested[0] != snapshot.version:
            # In a thread: the names of 10,000 tables take a while.
            found = await asyncio.to_thread(lambda: _by_relation(suggest(snapshot.listed)))
            self._suggested = (snapshot.version, found)
        return self._suggested[1]

    async def _compare(self, keys: Iterable[ForeignKey]) -> None:
        """Compare some values of those that were not compared lately."""
        if self._read is None:
            return
        now = self._clock()
        old = [key for key in dict.fromkeys(keys) if self._compared.get(key, (float("-inf"),))[0] <= now]
        for start in range(0, len(old), AT_ONCE):
            few = old[start : start + AT_ONCE]
            for number, looked_at, found in await self._read(comparison_sql(few, self._catalog.namespace), PATIENCE):
                until = now + self._settings.refresh_interval
                self._compared[few[number]] = (until, judge(few[number], looked_at, found))

    def _told(self, key: ForeignKey) -> ForeignKey | None:
        """A suggested key with its evidence; None for one that its values speak against."""
        if self._read is None:
            return replace(key, suggested="by name; values were not compared")
        return self._compared.get(key, (0.0, None))[1]


def _by_relation(keys: Iterable[ForeignKey]) -> dict[Relation, list[ForeignKey]]:
    found: dict[Relation, list[ForeignKey]] = {}
    for key in keys:
        found.setdefault(key.relation, []).append(key)
    return found


def _graph(snapshot: Snapshot, suggested: Iterable[ForeignKey]) -> Graph:
    keys = _by_relation(suggested)
    return Graph(
        [replace(table, foreign_keys=(*table.foreign_keys, *keys.get(table.relation, ()))) for table in snapshot.tables]
    )
