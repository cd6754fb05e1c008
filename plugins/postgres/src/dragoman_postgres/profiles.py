"""What the server's statistics say about columns: from `pg_stats`, which shows a role only what it may read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from dragoman import ColumnProfile, ProfileBudget, Relation, Table

if TYPE_CHECKING:
    from dragoman_postgres.driver import Connection

STATISTICS = """
SELECT stats.schemaname::text, stats.tablename::text, stats.attname::text, stats.null_frac, stats.n_distinct,
  CASE WHEN stats.avg_width <= 64 AND told.listed THEN stats.most_common_vals::text::text[] END,
  CASE WHEN stats.avg_width <= 64 AND told.listed THEN stats.most_common_freqs END,
  CASE WHEN told.whole OR bounds.held IS NULL THEN bounds.held
    ELSE ARRAY[bounds.held[1], bounds.held[pg_catalog.array_upper(bounds.held, 1)]] END
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[]),
    pg_catalog.unnest($4::boolean[]), pg_catalog.unnest($5::boolean[]), pg_catalog.unnest($6::boolean[])
  ) AS told(schema, name, column_, listed, ranged, whole)
JOIN pg_catalog.pg_stats AS stats
  ON stats.schemaname = told.schema::name AND stats.tablename = told.name::name AND stats.attname = told.column_::name
CROSS JOIN LATERAL (
  SELECT CASE WHEN told.ranged OR told.whole THEN stats.histogram_bounds::text::text[] END) AS bounds(held)
WHERE stats.schemaname = ANY($7::name[]) AND stats.tablename = ANY($8::name[])
ORDER BY stats.inherited
"""
"""Columns by schema, table and name, and for each whether its values, its range and its whole histogram are wanted.

Also the schemas and the tables. Only the ends of a histogram give a range: 1,000 tables have a million bounds. Rows
that include the children of a relation come last, and so replace those of the relation itself.
"""

AGES = """
SELECT n.nspname::text, c.relname::text, greatest(
    pg_stat_get_last_analyze_time(c.oid), pg_stat_get_last_autoanalyze_time(c.oid))::date::text
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = ANY($1::name[]) AND c.relname = ANY($2::name[])
"""

AT_ONCE = 200
"""The number of relations in one query."""
_RANGED = ("smallint", "integer", "bigint", "numeric", "real", "double precision", "date", "timestamp", "timestamptz")
_UNLISTED = ("json", "bytea", "xml", "tsvector")
SMALL = 100
"""The rows up to which the histogram of a column without a common value contains every value."""

Row = Any
Columns = dict[str, ColumnProfile]


async def profiles(
    connection: Connection, tables: Sequence[Table], budget: ProfileBudget
) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
    """Return what the statistics say about stored relations. Raises the driver's errors."""
    stored = [table for table in tables if "view" != table.type]
    found: dict[Relation, tuple[ColumnProfile, ...]] = {}
    # The driver encodes and decodes on the event loop, a million columns at once.
    for start in range(0, len(stored), AT_ONCE):
        found |= await _read(connection, stored[start : start + AT_ONCE], budget)
    return found


async def _read(
    connection: Connection, tables: Sequence[Table], budget: ProfileBudget
) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
    stored = {(table.relation.schema, table.relation.name): table for table in tables}
    schemas, names = sorted({schema or "" for schema, _ in stored}), sorted({name for _, name in stored})
    rows = await connection.fetch(STATISTICS, *_list_columns(stored.values()), schemas, names)
    ages = {(schema, name): day for schema, name, day in await connection.fetch(AGES, schemas, names)}
    found: dict[Relation, Columns] = {}
    for schema, name, *facts in rows:
        table = stored[schema, name]
        profile = _profile(table, ages.get((schema, name)), budget, *facts)
        found.setdefault(table.relation, {})[profile.name] = profile
    return {relation: tuple(columns.values()) for relation, columns in found.items()}


def _list_columns(tables: Iterable[Table]) -> list[list[Any]]:
    """Return the columns of tables, and for each which statistics are useful.

    These are its common values, its range and its whole histogram.
    """
    wanted: list[tuple[Any, ...]] = []
    for table in tables:
        small = table.row_estimate is not None and table.row_estimate <= SMALL
        for column in table.columns:
            ranged, listed = column.type.startswith(_RANGED), not column.type.startswith(_UNLISTED)
            place = (table.relation.schema or "", table.relation.name, column.name)
            wanted.append((*place, listed, ranged, small and (ranged or listed)))
    return [list(values) for values in zip(*wanted, strict=True)] or [[], [], [], [], [], []]


def _profile(
    table: Table,
    day: str | None,
    budget: ProfileBudget,
    column: str,
    null_fraction: float,
    n_distinct: float,
    common: Sequence[str] | None,
    fractions: Sequence[float] | None,
    bounds: Sequence[str] | None,
) -> ColumnProfile:
    distinct = _distinct(n_distinct, table.row_estimate)
    type_ = next(each.type for each in table.columns if each.name == column)
    told = dict(zip(common or (), fractions or (), strict=True))
    values = _values(told, bounds or (), distinct)
    few = len(values) <= budget.values and (distinct or 0) <= budget.values
    ends = (*(common or ()), *(bounds or ())[:1], *(bounds or ())[-1:])
    low, high = _range(ends) if type_.startswith(_RANGED) else (None, None)
    return ColumnProfile(
        name=column,
        null_fraction=round(null_fraction, 6),
        blank_fraction=round(told[""], 6) if "" in told else None,
        distinct=distinct,
        minimum=low,
        maximum=high,
        values=values if few else (),
        fractions=tuple(round(told.get(value, 1 / table.row_estimate), 6) for value in values)
        if few and table.row_estimate
        else (),
        rows=table.row_estimate,
        as_of=day,
    )


def _values(told: Mapping[str, float], bounds: Sequence[str], distinct: int | None) -> tuple[str, ...]:
    """Return the common values; of a small relation also values that occur once, if the bounds contain them all."""
    all_of_them = dict.fromkeys((*told, *bounds))
    return tuple(all_of_them) if distinct == len(all_of_them) else tuple(told)


def _distinct(told: float, rows: int | None) -> int | None:
    """Return the number of different values. A negative one is a share of the rows."""
    if told >= 0:
        return round(told) or None
    return None if rows is None else max(round(-told * rows), 1)


def _range(values: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the minimum and the maximum of numbers, or of dates in the years 1 to 9999."""
    try:
        ordered = sorted(values, key=_number)
    except InvalidOperation:
        ordered = sorted(values) if all(len(value) >= 10 and value[4] == "-" for value in values) else []
    return (ordered[0], ordered[-1]) if ordered else (None, None)


def _number(text: str) -> Decimal:
    number = Decimal(text)
    if number.is_nan():
        raise InvalidOperation
    return number
