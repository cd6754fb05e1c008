"""What a server knows of the values of columns: its statistics, and partitions, whose values are complete."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dragoman import ColumnProfile, ProfileBudget, Relation, Table, TableColumn

from dragoman_trino import queries
from dragoman_trino.concurrency import together
from dragoman_trino.tables import Row

Ask = Callable[[str], Awaitable[Sequence[Row]]]
"""Returns the rows of a statement; none if it fails."""
Profiles = dict[str, ColumnProfile]
LISTED = ("varchar", "char")
_NUMBER = re.compile(r"_\d+$")
_NO_LETTER = re.compile(r"\W")


async def profile(
    table: Table,
    parts: Sequence[str],
    budget: ProfileBudget,
    ask: Ask,
    *,
    counted: bool,
    whole: Coroutine[Any, Any, bool],
) -> tuple[ColumnProfile, ...]:
    """Return what is known of a stored table's columns; nothing if the source keeps no statistics.

    - `parts`: how it is partitioned.
    - `counted`: its partitions know their number of rows.
    - `whole`: tells whether the user sees every row and value. Statistics and partitions tell of hidden ones, too.

    With `budget.sample`, rows are read too.
    """
    found, is_whole = await together(_read_statistics(table, parts, budget, ask, counted=counted), whole)
    if not is_whole:
        found = {}
    if budget.sample:
        for name, listed in (await _sample(table, found, budget, ask)).items():
            found[name] = _with(found.get(name), listed)
    return tuple(found.values())


def shows_whole(plan: str, *, pushed: bool) -> bool:
    """Return whether a plan reads a table's columns as they are: the server's rules leave out and change nothing.

    `pushed`: a connector may have taken over conditions, which then show only where it describes its table.
    """
    output = json.loads(plan)
    if output["name"] != "Output" or [each["name"] for each in output["children"]] != ["TableScan"]:
        return False
    (scan,) = output["children"]
    limited = " constraint" in scan["descriptor"].get("table", "") or any("::" in each for each in scan["details"])
    return _are_own(output["details"], scan["details"]) and not (scan["children"] or (pushed and limited))


def _are_own(outputs: Sequence[str], read: Sequence[str]) -> bool:
    """Return whether every output is the column of its name: a mask may show another column instead.

    `outputs`: those that the plan calls otherwise, such as "line_2 := line". `read`: what its names stand for, such as
    "line := 3:line_2:varchar".
    """
    handles = {symbol: handle.split(":") for symbol, _, handle in (each.partition(" := ") for each in read)}
    pairs = [(name, symbol) for name, _, symbol in (each.rpartition(" := ") for each in outputs)]
    return all(_is_short_for(symbol, name) and name in handles.get(symbol, ()) for name, symbol in pairs)


def _is_short_for(symbol: str, name: str) -> bool:
    """Return whether a plan may call a column so: without a number at its end, or with another one."""
    return _NO_LETTER.sub("_", name).startswith(_NUMBER.sub("", symbol))


async def _read_statistics(
    table: Table, parts: Sequence[str], budget: ProfileBudget, ask: Ask, *, counted: bool
) -> Profiles:
    """Return what the server keeps of a table's values."""
    own = {column.name: column for column in table.columns}
    found = _statistics(own, await ask(f"SHOW STATS FOR {queries.qualify(table.relation)}"))
    listed = [part for part in parts if part in own]
    told = await together(*(_partition(table.relation, part, budget, ask, counted=counted) for part in listed))
    for name, values in zip(listed, told, strict=True):
        if values is not None:
            found[name] = _with(found.get(name), values)
    return found


def _statistics(own: Mapping[str, TableColumn], rows: Sequence[Row]) -> Profiles:
    """Return the profiles in the answer of SHOW STATS: a row for each column, and one without a name for the table."""
    count = next((row[4] for row in rows if row[0] is None), None)
    total = None if count is None or not math.isfinite(float(count)) else round(float(count))
    return {
        name: ColumnProfile(
            name=name,
            null_fraction=_finite(nulls),
            distinct=None if (number := _finite(distinct)) is None else round(number),
            minimum=None if low is None else str(low),
            maximum=None if high is None else str(high),
            rows=total,
        )
        for name, _, distinct, nulls, _, low, high in rows
        if name in own and not distinct == nulls == low == high is None
    }


def _finite(told: Any) -> float | None:
    number = math.nan if told is None else float(told)
    return number if math.isfinite(number) else None


def _with(known: ColumnProfile | None, listed: ColumnProfile) -> ColumnProfile:
    """Return the statistics of a column, with its values."""
    if known is None:
        return listed
    values, distinct = listed.values, listed.distinct if listed.kind == "all" else known.distinct
    return replace(
        known, values=values, fractions=listed.fractions, kind=listed.kind, distinct=distinct, source=listed.source
    )


async def _partition(
    relation: Relation, part: str, budget: ProfileBudget, ask: Ask, *, counted: bool
) -> ColumnProfile | None:
    """Return the values of a partition's column; None if there are too many."""
    hidden = queries.qualify(replace(relation, name=relation.name + queries.PARTITIONS))
    column = f"partition.{queries.quote(part)}" if counted else queries.quote(part)
    weight = "sum(record_count)" if counted else "0"
    order = f"ORDER BY 2 DESC, 1 LIMIT {budget.values + 2}"
    rows = await ask(f"SELECT CAST({column} AS varchar), {weight} FROM {hidden} GROUP BY 1 {order}")
    values = [(str(value), int(weight)) for value, weight in rows if value is not None]
    if not values or len(values) > budget.values:
        return None
    # Files that were written before a table was partitioned in this way have no value there, whatever their rows hold.
    whole = len(values) == len(rows)
    return _list_values(part, values, "all" if whole else "common", "statistics")


async def _sample(table: Table, found: Profiles, budget: ProfileBudget, ask: Ask) -> Profiles:
    """Return common values of text columns, from the first rows that the server reads."""
    wanted = [column.name for column in table.columns if _is_listed(column, found.get(column.name), budget)]
    if not wanted:
        return {}
    names = ", ".join(map(queries.quote, wanted))
    most = budget.values + 1
    texts = [f"CAST({queries.quote(name)} AS varchar)" for name in wanted]
    lists = ", ".join(
        f"json_format(CAST(approx_most_frequent({most}, {text}, {budget.rows}) AS json))" for text in texts
    )
    rows = await ask(
        f"SELECT count(*), {lists} FROM (SELECT {names} FROM {queries.qualify(table.relation)} LIMIT {budget.rows})"
    )
    profiles: Profiles = {}
    for read, *told in rows:
        kind = "all" if read < budget.rows else "common"
        for name, text in zip(wanted, told, strict=True):
            counts: dict[str, int] = json.loads(text) if text else {}
            values = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
            if 0 < len(values) < most:
                profiles[name] = replace(_list_values(name, values, kind, "sample", total=read), rows=read)
    return profiles


def _is_listed(column: TableColumn, known: ColumnProfile | None, budget: ProfileBudget) -> bool:
    if not column.type.startswith(LISTED) or (known and known.values):
        return False
    return known is None or known.distinct is None or known.distinct <= budget.values


def _list_values(
    name: str, values: Iterable[tuple[str, int]], kind: Any, source: Any, total: int | None = None
) -> ColumnProfile:
    pairs = tuple(values)
    total = total or sum(count for _, count in pairs)
    return ColumnProfile(
        name=name,
        values=tuple(value for value, _ in pairs),
        fractions=tuple(round(count / total, 6) for _, count in pairs) if total else (),
        distinct=len(pairs) if kind == "all" else None,
        kind=kind,
        source=source,
    )
