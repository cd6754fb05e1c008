"""The partitioning of tables.

Connectors show it in a hidden table beside each, open to everybody who may read the table.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from dragoman import Relation

from dragoman_trino import queries
from dragoman_trino.concurrency import together
from dragoman_trino.tables import Row

CONNECTORS = frozenset({"hive", "iceberg", "delta_lake", "hudi", None})
"""Connectors that partition tables. None: the user may not know the connector."""
COUNTS = "file_count"
"""A column of the hidden table whose fields are the parts; without it the parts are its columns."""

Ask = Callable[[str], Awaitable[Sequence[Row]]]
"""Returns the rows of a statement; none if it fails."""
Columns = Mapping[str, str]
"""Names and types."""

_TRANSFORM = re.compile(r"(?P<column>.+)_(?P<name>year|month|day|hour|bucket|trunc)")
_FIELD = re.compile(r'(?P<name>"(?:[^"]|"")*"|[^\s"(),]+) ')


async def partitioning(relations: Sequence[Relation], ask: Ask) -> dict[Relation, tuple[str, ...]]:
    """Return how relations are partitioned, without those that are not or for which it is unknown."""
    if not relations:
        return {}
    connectors = {row[0]: row[1] for row in await ask(queries.CATALOGS[0])}
    places: dict[tuple[str, str], list[Relation]] = {}
    for relation in relations:
        if connectors.get(relation.catalog) in CONNECTORS:
            places.setdefault((relation.catalog or "", relation.schema or ""), []).append(relation)
    told = await together(*(_list_partitions(*place, group, ask) for place, group in places.items()))
    return {relation: parts for found in told for relation, parts in found if parts}


async def _list_partitions(
    catalog: str, schema: str, relations: Sequence[Relation], ask: Ask
) -> list[tuple[Relation, tuple[str, ...]]]:
    rows = await ask(queries.partition_columns(catalog, schema, (relation.name for relation in relations)))
    columns: dict[str, dict[str, str]] = {}
    for table, column, type_ in rows:
        columns.setdefault(table, {})[column] = type_
    return [(relation, _parts(relation.name, columns)) for relation in relations]


def _parts(name: str, columns: Mapping[str, Columns]) -> tuple[str, ...]:
    own, hidden = columns.get(name, {}), columns.get(f"{name}{queries.PARTITIONS}", {})
    if COUNTS not in hidden:
        return tuple(hidden)
    return tuple(_expression(field, own) for field in _fields(hidden.get("partition", "")))


def _expression(field: str, columns: Columns) -> str:
    """Return a partition's field as the transform it is named after, unless it is a column itself."""
    match = _TRANSFORM.fullmatch(field)
    if field in columns or match is None or match["column"] not in columns:
        return field
    return f"{_FUNCTIONS.get(match['name'], match['name'])}({match['column']})"


_FUNCTIONS = {"trunc": "truncate"}


def source(part: str) -> str:
    """Return the column behind an expression of a table's partitioning."""
    return part.partition("(")[2].rstrip(")") or part


def _fields(row_type: str) -> Iterator[str]:
    """Yield the names of the fields of `row(name type, ...)`."""
    depth, position = 0, row_type.find("(") + 1
    while position and (match := _FIELD.match(row_type, position)):
        yield match["name"].strip('"').replace('""', '"')
        position = match.end()
        while position < len(row_type) and (depth or row_type[position] not in ",)"):
            depth += {"(": 1, ")": -1}.get(row_type[position], 0)
            position += 1
        position += 2
