"""Turns the rows of the catalog queries into `Table` values. Pure functions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from dragoman import Names, Relation, Table, TableColumn
from dragoman.words import mention

from dragoman_trino.spelling import short_type

Row = Sequence[Any]
SYSTEM_CATALOG = "system"
SYSTEM_SCHEMA = "information_schema"
"""A schema that every catalog has."""
_SCHEMAS = """
cassandra system system_schema system_auth system_distributed system_traces system_views system_virtual_schema
clickhouse system
druid sys
iceberg system
ignite sys
mariadb performance_schema sys mysql
mysql performance_schema sys mysql
oracle sys system
phoenix5 system
postgresql pg_catalog
redshift pg_catalog
singlestore cluster memsql
sqlserver sys
vertica v_catalog v_internal v_monitor
"""
# Only Iceberg's could be tested on a server: iceberg_tables lists every table of the catalog. The others are schemas
# that these databases have. Connectors hide some of them: MySQL's hides sys and mysql, and shows performance_schema.
SCHEMAS_OF_CONNECTORS: Mapping[str, frozenset[str]] = {
    connector: frozenset(schemas) for connector, *schemas in map(str.split, _SCHEMAS.strip().splitlines())
}
"""By connector, the schemas in which it, or the database behind it, describes the objects of a catalog."""


RelationType: TypeAlias = Literal["table", "view", "materialized view"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Rows about one catalog, as the queries of the same names return them.

    - `materialized_views`: None if they are not known. The server lists them among the tables.
    - `connector`: None if it is not known.
    """

    catalog: str
    relations: Sequence[Row]
    columns: Sequence[Row] = ()
    comments: Sequence[Row] = ()
    views: Sequence[Row] = ()
    materialized_views: Sequence[Row] | None = ()
    connector: str | None = field(default=None, kw_only=True)


def is_system(schema: str, catalog: str, connector: str | None) -> bool:
    """Return whether a schema describes objects of the server.

    If the connector is not known, the schemas of all connectors count.
    """
    if catalog == SYSTEM_CATALOG or schema == SYSTEM_SCHEMA:
        return True
    if connector is None:
        return any(schema in schemas for schemas in SCHEMAS_OF_CONNECTORS.values())
    return schema in SCHEMAS_OF_CONNECTORS.get(connector, ())


def build(facts: Facts) -> list[Table]:
    """Return the relations of a catalog."""
    columns = _columns(facts.columns)
    comments = {(schema, name): comment for schema, name, comment in facts.comments}
    definitions = {(schema, name): text for schema, name, text in (*facts.views, *(facts.materialized_views or ()))}
    return [
        Table(
            relation=Relation(name, group.schema, facts.catalog),
            type=group.type,
            columns=columns.get(key, ()),
            comment=comments.get(key),
            definition=definitions.get(key),
            system=group.system,
        )
        for group in group_names(facts)
        for name in group.names
        for key in [(str(group.schema), name)]
    ]


def group_names(facts: Facts) -> list[Names]:
    """Return the names of a catalog's relations.

    Whatever may be a materialized view is reported as one, without its definition, so that roles grant it by its own
    name only.
    """
    kept = facts.materialized_views
    materialized = None if kept is None else {(schema, name) for schema, name, _ in kept}
    groups: dict[tuple[str, bool, RelationType], list[str]] = {}
    for schema, name, kind in facts.relations:
        system = is_system(schema, facts.catalog, facts.connector)
        is_materialized = not system if materialized is None else (schema, name) in materialized
        type_: RelationType = "view" if kind == "VIEW" else "materialized view" if is_materialized else "table"
        groups.setdefault((schema, system, type_), []).append(name)
    return [
        Names(names=tuple(names), schema=schema, catalog=facts.catalog, type=type_, system=system)
        for (schema, system, type_), names in groups.items()
    ]


def _columns(rows: Iterable[Row]) -> dict[tuple[str, str], tuple[TableColumn, ...]]:
    """Return columns by schema and name. Equal columns of different tables share one value."""
    made: dict[tuple[Any, ...], TableColumn] = {}
    types: dict[str, str] = {}
    groups: dict[tuple[str, str], list[TableColumn]] = {}
    for schema, table, _, *told in sorted(rows, key=itemgetter(0, 1, 2)):
        key = tuple(told)
        column = made.get(key)
        if column is None:
            name, type_, nullable, default, comment = told
            spelled = types.get(type_) or types.setdefault(type_, short_type(type_))
            column = made[key] = TableColumn(
                name=name, type=spelled, nullable=nullable != "NO", default=default, comment=comment or None
            )
        groups.setdefault((schema, table), []).append(column)
    return {key: tuple(group) for key, group in groups.items()}


def without_columns(tables: Iterable[Table]) -> Iterator[str]:
    """Yield notices about relations that are listed and cannot be read."""
    unread = [mention(str(table.relation)) for table in tables if not table.columns]
    if unread:
        more = f" and {len(unread) - 5} more" if len(unread) > 5 else ""
        yield f"The columns of {', '.join(unread[:5])}{more} could not be read."


def row_estimates(answer: str) -> dict[Relation, int]:
    """Return the rows of the scanned tables in an IO plan, without those that have no statistics."""
    return {scan.relation: round(scan.rows) for scan in scans(answer) if scan.rows is not None}


@dataclass(frozen=True, slots=True)
class Scan:
    """What a query reads of a table: rows and bytes before filters (None if unknown), and the columns it restricts."""

    relation: Relation
    rows: float | None
    size: float | None
    constrained: frozenset[str]


def scans(answer: str) -> list[Scan]:
    """Return the tables that an IO plan reads, in its order."""
    return [_scan(told) for told in json.loads(answer)["inputTableColumnInfos"]]


def _scan(told: Mapping[str, Any]) -> Scan:
    place, estimate = told["table"], told["estimate"]
    return Scan(
        Relation(place["schemaTable"]["table"], place["schemaTable"]["schema"], place["catalog"]),
        finite(estimate["outputRowCount"]),
        finite(estimate["outputSizeInBytes"]),
        frozenset(each["columnName"] for each in told["constraint"]["columnConstraints"]),
    )


def finite(told: Any) -> float | None:
    """Return an estimate of the server; None for NaN and the infinities, which mean unknown and may be huge."""
    number = float(told)
    return number if math.isfinite(number) else None
