"""What is known of one database, kept for a while. Only what has passed the gate is kept."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from dragoman.catalog import Catalog, Insight, Snapshot, Step
from dragoman.catalog.flight import SingleFlight
from dragoman.catalog.joins import Graph
from dragoman.cooperative import without_blocking
from dragoman.dialect import Capability, Dialect, Inspector
from dragoman.errors import DragomanError
from dragoman.knowledge.gate import Gate
from dragoman.knowledge.joins import Suggestions, comparison_sql, judge
from dragoman.knowledge.search import Held, ValueIndex
from dragoman.knowledge.store import KnowledgeFile, Learned, make_learned, mark
from dragoman.model import Database, ForeignKey, ProfileBudget, Relation, Table, TableColumn

PATIENCE = 2.0
"""Seconds that a description waits for facts about values."""
PAUSE = 60.0
"""Seconds for which a database is not asked again after an error, or after learning in the background took too long."""
SHARE = 0.9
"""The part of these seconds after which an inspector is to return what it has."""
BEHIND = 60.0
"""Seconds that learning in the background may take."""
AT_ONCE = 20
"""The number of suggested joins that one statement checks."""
ROUNDS = 3
"""How often a join path is searched again if one of its joins turns out wrong."""
NOTHING = Insight()
Read = Callable[[str, float], Awaitable[Sequence[Sequence[int]]]]
"""Runs our SQL for so many seconds at most, and returns rows."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is known of a relation, the relation as the catalog knew it then, and the time."""

    table: Table
    insight: Insight
    born: float


class Knowledge:
    """Knows facts about relations beside their structure. Facts that cannot be learned in time are left out."""

    def __init__(
        self,
        inspector: Inspector,
        dialect: Dialect,
        database: Database,
        catalog: Catalog,
        *,
        vetoed: bool = False,
        read: Read | None = None,
        file: KnowledgeFile | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inspector = inspector
        self._settings = database.knowledge
        self._tells = Capability.STATISTICS in dialect.capabilities and self._settings.values != "off" and not vetoed
        self._catalog = catalog
        self._gate = Gate(self._settings, vetoed)
        self._read = read if dialect.probes and not vetoed else None
        self._suggested: tuple[int, Suggestions] = (0, Suggestions(()))
        self._flights = SingleFlight()
        self._compared: dict[ForeignKey, tuple[float, ForeignKey | None]] = {}
        self._clock = clock
        self._kept: dict[Relation, _Kept] = {}
        self._values = ValueIndex()
        self._listed: tuple[int, ValueIndex] = (0, ValueIndex())
        self._asking = asyncio.Lock()
        self._quiet_until = float("-inf")
        self._file = file if self._tells else None
        self._warm: dict[Relation, Learned] | None = None if self._file else {}
        self._behind: asyncio.Task[None] | None = None
        self._unwritten = False

    async def of(self, tables: Sequence[Table], patience: float = PATIENCE) -> Mapping[Relation, Insight]:
        """Return what is known of these relations.

        Missing facts are learned now, in at most `patience` seconds. What takes longer, and what is old, is learned in
        the background.
        """
        await self._take_warm(tables)
        if missing := self._missing(tables):
            try:
                async with asyncio.timeout(patience):
                    await self.learn(missing, self.budget(SHARE * patience))
            except TimeoutError:
                _log.info("values were left out of an answer: the database takes longer to tell them")
            except DragomanError as error:
                self._pause(error)
        self._learn_behind([*self._missing(missing), *filter(self._is_old, tables)])
        joins = await self._joins(tables, patience)
        parts = (await self._catalog.snapshot()).parts if tables else {}
        return {
            table.relation: replace(
                self.get_known(table),
                suggested=tuple(joins.get(table.relation, ())),
                parts=tuple(part.relation.name for part in parts.get(table.relation, ())),
            )
            async for table in without_blocking(tables)
        }

    def get_known(self, table: Table) -> Insight:
        """Return what is known already, without asking the database."""
        kept = self._kept.get(table.relation)
        return kept.insight if kept is not None and kept.table.columns == table.columns else NOTHING

    def judge_again(self, table: Table, insight: Insight, snapshot: Snapshot) -> Insight:
        """Return an insight without facts that were shown only because of keys outside `snapshot`."""
        profiles = self._gate.filter(table, insight.profiles.values(), table.relation in snapshot.graph.incoming)
        return Insight(MappingProxyType(profiles))

    def _keep(self, table: Table, insight: Insight, born: float) -> None:
        self._kept[table.relation] = _Kept(table, insight, born)
        self._values.replace(table.relation, insight.profiles)

    async def find_values(self, query: str) -> set[Held]:
        """Return the values that equal `query` or contain a word of it, as they were when they were learned."""
        snapshot = await self._catalog.snapshot()
        if self._listed[0] != snapshot.version:
            self._listed = (snapshot.version, await asyncio.to_thread(ValueIndex, snapshot.listed))
        return self._values.find(query) | self._listed[1].find(query)

    def hides_values(self, table: Table, column: TableColumn) -> bool:
        """Return whether single values of a column may not be shown."""
        return self._gate.hides(table, column)

    async def learn(self, tables: Sequence[Table], budget: ProfileBudget) -> bool:
        """Ask the database about facts that are missing or old. Raises what the inspector raises.

        Returns whether the time was enough. Nothing changes for relations that were left out because it was not.
        """
        async with self._asking:
            wanted = [table for table in tables if self._is_missing(table) or self._is_old(table)]
            if not wanted:
                return True
            snapshot = await self._catalog.snapshot()
            incoming = snapshot.graph.incoming
            began = self._clock()
            told = await self._inspector.profiles(wanted, budget)
            now = self._clock()
            learned = [table for table in wanted if table.relation in told or now - began < budget.seconds]
            async for table in without_blocking(learned):
                profiles = self._gate.filter(table, told.get(table.relation, ()), table.relation in incoming)
                self._keep(table, Insight(MappingProxyType(profiles)), now)
            self._drop_all_but(snapshot)
            self._unwritten = True
            return len(learned) == len(wanted)

    def _drop_all_but(self, snapshot: Snapshot) -> None:
        """Drop what is known of missing relations. Where tables come and go, it would pile up."""
        for relation in self._kept.keys() - snapshot.by_relation.keys():
            del self._kept[relation]
            self._values.drop(relation)

    def budget(self, seconds: float) -> ProfileBudget:
        """Return the budget of learning."""
        return ProfileBudget(seconds=seconds, sample=self._settings.values == "sample")

    def _missing(self, tables: Sequence[Table]) -> list[Table]:
        """Return the relations to ask about now: none while the database is left alone, or is being asked behind."""
        quiet = not self._tells or self._clock() < self._quiet_until or self._is_learning
        return [] if quiet else [table for table in tables if self._is_missing(table)]

    @property
    def _is_learning(self) -> bool:
        """Return whether facts are learned in the background."""
        return self._behind is not None and not self._behind.done()

    def _pause(self, reason: object) -> None:
        """Leave the database alone for a while."""
        self._quiet_until = self._clock() + PAUSE
        _log.info("values were not learned: %s", reason)

    def _is_missing(self, table: Table) -> bool:
        """Return whether nothing is known of a relation in its present form."""
        kept = self._kept.get(table.relation)
        return self._tells and not table.system and (kept is None or kept.table.columns != table.columns)

    def _is_old(self, table: Table) -> bool:
        """Return whether the facts about a relation should be learned again. They are still used until then."""
        kept = self._kept.get(table.relation)
        return kept is not None and self._clock() - kept.born >= self._settings.refresh_interval

    def _learn_behind(self, tables: Sequence[Table]) -> None:
        """Learn missing and old facts in the background, one round at a time."""
        if tables and not self._is_learning and self._clock() >= self._quiet_until:
            self._behind = asyncio.create_task(self._learn_slowly(tables), context=contextvars.Context())

    async def _learn_slowly(self, tables: Sequence[Table]) -> None:
        try:
            if not await self.learn(tables, self.budget(BEHIND)):
                self._pause(f"{BEHIND:g} seconds were not enough")
        except DragomanError as error:
            self._pause(error)

    # Kept over restarts

    async def _take_warm(self, tables: Sequence[Table]) -> None:
        """Load what was learned before the restart, for relations that have not changed."""
        if self._warm is None:
            assert self._file is not None  # without a file there is nothing to load
            self._warm = await asyncio.to_thread(self._file.read)
        async for table in without_blocking(tables if self._warm else ()):
            found = self._warm.pop(table.relation, None)
            # Meanwhile it may have been learned anew.
            if found is not None and table.relation not in self._kept and found.mark == mark(table):
                age = max(time.time() - found.at, 0.0)
                profiles = MappingProxyType({profile.name: profile for profile in found.decode()})
                self._keep(table, Insight(profiles), self._clock() - age)

    async def save(self) -> None:
        """Keep what is known over a restart, if a folder for it is configured."""
        if self._file is None or not self._unwritten:
            return
        now, snapshot = self._clock(), self._catalog.loaded
        known = [make_learned(kept.table, kept.insight.profiles, now - kept.born) for kept in self._kept.values()]
        warm = self._warm or {}
        unasked = [each for name, each in warm.items() if snapshot is None or name in snapshot.by_relation]
        await asyncio.to_thread(self._file.write, [*known, *unasked])
        self._unwritten = False

    async def aclose(self) -> None:
        """End learning in the background, and keep what is known."""
        if self._behind is not None:
            self._behind.cancel()
            await asyncio.wait({self._behind})
        await self._flights.aclose()
        await self.save()

    # Joins that nobody declared

    async def join_paths(self, source: Table, target: Table, max_depth: int) -> list[tuple[Step, ...]]:
        """Return ways to join two relations by keys of which some are only suggested; none if there are none."""
        if not self._settings.infer_joins:
            return []
        snapshot = await self._catalog.snapshot()
        suggestions = await self._suggestions(snapshot)
        candidates = [key async for table in without_blocking(snapshot.listed) for key in suggestions.of(table)]
        wrong: set[ForeignKey] = set()
        for _ in range(ROUNDS):
            left = [key for key in candidates if key not in wrong]
            graph = await asyncio.to_thread(_graph, snapshot, left)
            paths = graph.paths(source.relation, target.relation, max_depth)
            used = [step.key for path in paths for step in path if step.key.suggested]
            await self._compare(used)
            told = {key: self._add_evidence(key) for key in used}
            wrong |= {key for key, found in told.items() if found is None}
            if not wrong & set(used):
                return [tuple(replace(step, key=told.get(step.key) or step.key) for step in path) for path in paths]
        return []

    async def _joins(self, tables: Sequence[Table], patience: float) -> dict[Relation, list[ForeignKey]]:
        """Return the suggested joins of relations; none if their values could not be checked in time."""
        if not self._settings.infer_joins:
            return {}
        try:
            async with asyncio.timeout(patience):
                suggestions = await self._suggestions(await self._catalog.snapshot())
                keys = [key async for table in without_blocking(tables) for key in suggestions.of(table)]
                await self._compare(keys)
        except (TimeoutError, DragomanError) as error:
            _log.info("inferred joins were left out of an answer: %s", error)
            return {}
        return _by_relation(found for key in keys if (found := self._add_evidence(key)))

    async def _suggestions(self, snapshot: Snapshot) -> Suggestions:
        if self._suggested[0] != snapshot.version:
            # Only once for concurrent callers: if one stops waiting, the next must not start it anew.
            await self._flights.run(snapshot.version, lambda: self._suggest(snapshot))
        return self._suggested[1]

    async def _suggest(self, snapshot: Snapshot) -> None:
        # In a thread: the names of 10,000 tables take a while.
        self._suggested = (snapshot.version, await asyncio.to_thread(Suggestions, snapshot.listed))

    async def _compare(self, keys: Iterable[ForeignKey]) -> None:
        """Check some values of keys that were not checked recently."""
        if self._read is None:
            return
        now = self._clock()
        old = [key for key in dict.fromkeys(keys) if self._compared.get(key, (float("-inf"),))[0] <= now]
        if old:  # entries of removed columns would pile up
            self._compared = {key: each for key, each in self._compared.items() if each[0] > now}
        for start in range(0, len(old), AT_ONCE):
            few = old[start : start + AT_ONCE]
            for number, looked_at, found in await self._read(comparison_sql(few, self._catalog.namespace), PATIENCE):
                until = now + self._settings.refresh_interval
                self._compared[few[number]] = (until, judge(few[number], looked_at, found))

    def _add_evidence(self, key: ForeignKey) -> ForeignKey | None:
        """Return a suggested key with its evidence; None if its values contradict it."""
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
