"""Explains an answer without rows: first from what is known, then by one bounded statement through the same judge."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dragoman.catalog import Insight
from dragoman.gateway.calls import CallRecord
from dragoman.gateway.opened import OpenDatabase
from dragoman.gateway.queries import Query
from dragoman.knowledge.emptiness import impossible, known_cause, near_values, there_are
from dragoman.knowledge.gate import is_telling
from dragoman.knowledge.types import family
from dragoman.model import Result, Table, TableColumn
from dragoman.results import Collected
from dragoman.sql import Statement
from dragoman.words import mention

if TYPE_CHECKING:
    from dragoman.sql.selection import Comparison, Condition, Selection

SHARE = 0.25
"""The share of the caller's timeout that the search for a reason may take."""
MOST_SECONDS = 1.0
MOST_BYTES = 400
READ_ROWS, READ_VALUES = 10_000, 200

Run = Callable[[str, Sequence[Any]], Awaitable[list[list[Any]]]]
"""Runs SQL with parameters and returns rows, judged and limited as the caller's own statement was."""
_log = logging.getLogger(__name__)


NOTHING: Final = (b"[[0]]", b"[[null]]")
"""Rows whose single value says that there is nothing, as an answer without rows does."""


def is_empty(found: Result) -> bool:
    """Return whether a query found no rows, or a single value that says that there is nothing."""
    return found.row_count == 0 or found.rows_json in NOTHING


async def why_empty(query: Query, rows: Collected, record: CallRecord) -> tuple[str, ...]:
    """Return a notice with the reason why a query found nothing; none if it is not found in time."""
    seconds = query.request.limits.timeout * SHARE
    found: list[str] = []
    try:
        async with asyncio.timeout(seconds):
            await asyncio.to_thread(_import_sqlglot)
            async with asyncio.timeout(MOST_SECONDS):
                await _find_cause(query, rows, record, found)
    except Exception as error:  # the answer itself is right, and no error here may spoil it
        _log.debug("could not find out why an answer is empty", exc_info=error)
    return (_cut(found[-1]),) if found else ()


async def _find_cause(query: Query, rows: Collected, record: CallRecord, found: list[str]) -> None:
    """Add reasons to `found` as they are found, the better one last."""
    seconds = query.request.limits.timeout * SHARE

    async def run(sql: str, params: Sequence[Any]) -> list[list[Any]]:
        async with record.admission.statement(query.opened.limiter, seconds):
            probe = await Query.prepare(
                query.opened,
                sql,
                params,
                limit=READ_VALUES,
                timeout=min(MOST_SECONDS, seconds),
                principal=query.request.principal,
                tool=record.tool,
            )
            read = await probe.rows(record)
        if read.truncated is not None and read.truncated.reason == "timeout":
            raise TimeoutError
        answer: list[list[Any]] = json.loads(read.rows_json)
        return answer

    parameters = query.parameters
    selection = await asyncio.to_thread(_selection, query.statement, parameters)
    if rows.row_count and not _says_nothing(rows, selection):
        return
    tables = await _tables(query.opened, selection)
    await _Doctor(query.opened, selection, tables, parameters, run, found).find()


def _says_nothing(rows: Collected, selection: Selection) -> bool:
    """Return whether a single value says that nothing was found: NULL, or a count of zero. A least of zero does not."""
    return selection.aggregate and (rows.rows_json == NOTHING[1] or selection.aggregated == "COUNT")


def _import_sqlglot() -> None:
    """Import the module that takes queries apart. This is slow the first time."""
    import dragoman.sql.selection  # noqa: F401  # pyright: ignore[reportUnusedImport]


def _selection(statement: Statement, parameters: Sequence[Any]) -> Selection:
    from dragoman.sql.selection import selection_of  # sqlglot is slow to import

    return selection_of(statement, parameters)


def _cut(text: str) -> str:
    encoded = text.encode()
    return text if len(encoded) <= MOST_BYTES else encoded[: MOST_BYTES - 3].decode(errors="ignore") + "..."


async def _tables(opened: OpenDatabase, selection: Selection) -> Mapping[str, Table]:
    """Return what the catalog knows of the sources, by their names in the query."""
    written = {source.name: source.relation for source in selection.sources if source.relation}
    known = await opened.judge.tables(tuple(dict.fromkeys(written.values())))
    return {name: table for name, relation in written.items() if (table := known.get(relation))}


@dataclass(frozen=True, slots=True)
class _Doctor:
    """Finds the reason for one empty answer."""

    opened: OpenDatabase
    selection: Selection
    tables: Mapping[str, Table]
    parameters: Sequence[Any]
    run: Run
    found: list[str]

    async def find(self) -> None:
        """Find the reason, the cheapest way first."""
        if cause := await self._cause():
            self.found.append(cause)

    async def _cause(self) -> str:
        selection = self.selection
        found = impossible(selection, self._column_of)
        if found or not selection.sources:
            return found
        cached = {str(table.relation): await self.opened.get_known(table) for table in self.tables.values()}
        found = known_cause(selection.conditions, self._column_of, cached, certain=True)
        if not self.opened.dialect.probes:
            return found or known_cause(selection.conditions, self._column_of, cached, certain=False)
        if found:
            self.found.append(found)  # for the case that the database does not answer in time
        return await self._diagnose(cached)

    # The columns of conditions

    def _home(self, source: str | None, column: str) -> str | None:
        """Return the source of a column."""
        same = self.opened.dialect.same
        if source is not None:
            return next((each.name for each in self.selection.sources if each.name.lower() == source.lower()), None)
        if len(self.selection.sources) == 1:
            return self.selection.sources[0].name
        owners = [name for name, table in self.tables.items() if any(same(column, c.name) for c in table.columns)]
        return owners[0] if len(owners) == 1 and len(self.tables) == len(self.selection.sources) else None

    def _own_rows(self, source: str | None, column: str) -> str | None:
        """Return the source whose own rows decide about a column. None if an outer join has a say, too."""
        home = self._home(source, column)
        return None if any(each.optional for each in self.selection.sources if each.name == home) else home

    def _column_of(self, comparison: Comparison) -> tuple[Table, TableColumn] | None:
        table = self.tables.get(self._home(comparison.source, comparison.column) or "")
        same = self.opened.dialect.same
        found = (
            [c for c in table.columns if c.name == comparison.column or same(comparison.column, c.name)]
            if table
            else []
        )
        return (table, found[0]) if table and found else None

    # Queries

    async def _diagnose(self, cached: Mapping[str, Insight]) -> str:
        """Ask in one statement which of the conditions and joins any row meets."""
        from dragoman.sql.selection import home_of

        selection = self.selection
        conditions = selection.conditions
        homes = [home_of(each, self._own_rows) for each in conditions]
        questions = [selection.exists(only=source.name) for source in selection.sources]
        questions += [
            selection.exists([each], only=home) if home else selection.exists([each])
            for each, home in zip(conditions, homes, strict=True)
        ]
        steps = range(2, len(selection.sources) + 1)
        questions += [selection.exists(sources=count) for count in steps] if len(selection.sources) > 1 else []
        questions += [selection.exists()] if selection.kept else []
        others = [[c for c in conditions if c is not each] for each in conditions] if len(conditions) > 1 else []
        questions += [selection.exists(each) for each in others]
        questions.append(selection.exists(conditions))
        answers = iter(await self._ask(questions))
        self.found.clear()  # what was known may have changed since
        filled = [next(answers) for _ in selection.sources]
        met = [next(answers) for _ in conditions]
        joined = [next(answers) for _ in steps] if len(selection.sources) > 1 else []
        kept = next(answers) if selection.kept else True
        without = [next(answers) for _ in others]
        if next(answers):
            return self._all_met()
        return await self._name_cause(cached, homes, filled, met, joined, kept, without)

    def _all_met(self) -> str:
        """Return the reason when rows meet the conditions: something after the conditions removes them all."""
        selection = self.selection
        if selection.having:
            return "Rows meet the conditions; no group meets HAVING."
        if selection.offset:
            return f"OFFSET {selection.offset} lies beyond the last row."
        return "Rows meet the conditions; what is aggregated is null in all of them." if selection.aggregated else ""

    async def _name_cause(
        self,
        cached: Mapping[str, Insight],
        homes: Sequence[str | None],
        filled: Sequence[bool],
        met: Sequence[bool],
        joined: Sequence[bool],
        kept: bool,
        without: Sequence[bool],
    ) -> str:
        selection = self.selection
        for source, any_row in zip(selection.sources, filled, strict=True):
            if not any_row and not source.optional:
                return f"{mention(source.name)} has no rows."
        for condition, home, is_met in zip(selection.conditions, homes, met, strict=True):
            if not is_met and (home or (all(joined) and kept)):
                return await self._explain_unmet(condition, home, cached)
        for number, any_row in enumerate(joined):
            if not any_row:
                names = " and ".join(mention(source.name) for source in selection.sources[: number + 2])
                on = f" ON {selection.joins[number]}" if selection.joins[number] else ""
                return f"No row of {names} has a partner{on}." if on else f"{names} have no rows together."
        if not kept:
            return f"No rows of {' and '.join(mention(source.name) for source in selection.sources)} fit together."
        return self._not_together(without)

    def _not_together(self, without: Sequence[bool]) -> str:
        """Return the reason when each condition is met by some row, and no row meets all."""
        conditions = self.selection.conditions
        guilty = [each.text for each, found in zip(conditions, without, strict=False) if found]
        if len(conditions) == 2:
            return f"Some rows meet {conditions[0].text}, others {conditions[1].text}; none meets both."
        if guilty:
            return f"No row meets all conditions; there are rows without {' or without '.join(guilty[:2])}."
        return "Every condition is met by some rows, and no row meets all of them." if len(conditions) > 1 else ""

    async def _explain_unmet(self, condition: Condition, home: str | None, cached: Mapping[str, Insight]) -> str:
        """Return which values exist instead of the one in a condition."""
        plain = f"{condition.text}: no row meets it."
        comparison = condition.comparison
        known = comparison and self._column_of(comparison)
        if not comparison or not known or not home:
            return plain
        table, column = known
        insight = cached.get(str(table.relation), Insight())
        told = known_cause([condition], self._column_of, {str(table.relation): insight}, certain=False)
        if told or comparison.operator not in ("=", "IN", "LIKE", "ILIKE"):
            return told or plain
        self.found.append(plain)
        return await self._instead(condition, comparison, home, table, column)

    async def _instead(
        self, condition: Condition, comparison: Comparison, home: str, table: Table, column: TableColumn
    ) -> str:
        """Read some of the column's values: whether there are any, and which may have been meant."""
        from dragoman.sql.selection import column_in

        found = column_in(condition)
        text = family(column.type) == "text"
        if found is None or not text:
            return ""
        query = self.selection.some_values(found, home, READ_ROWS, READ_VALUES)
        values = [str(value) for (value,) in await self._rows(query)]
        if not [value for value in values if value.strip()]:
            return f"{condition.text}: the column is always {'blank' if values else 'null'}."
        hidden = self.opened.knowledge.hides_values(table, column)
        if hidden or any(map(is_telling, values)):
            return ""
        wanted = [str(value).strip("%") for value in comparison.values if value is not None]
        if len(values) <= 12:
            return f"{condition.text}: {there_are(wanted, values)}"
        near = near_values(wanted, values)[:3]
        return f"{condition.text}: no such value; near ones are {', '.join(map(mention, near))}." if near else ""

    async def _ask(self, questions: Sequence[Any]) -> list[bool]:
        sql, order = await asyncio.to_thread(self.selection.ask, questions, self.opened.dialect.placeholder)
        (row,) = await self.run(sql, self._values(order))
        return [bool(answer) for answer in row]

    async def _rows(self, query: Any) -> list[list[Any]]:
        sql, order = await asyncio.to_thread(self.selection.write, query, self.opened.dialect.placeholder)
        return await self.run(sql, self._values(order))

    def _values(self, order: Sequence[int]) -> list[Any]:
        return [self.parameters[number - 1] for number in order]
