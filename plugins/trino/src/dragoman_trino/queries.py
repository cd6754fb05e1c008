"""The catalog queries: a few per catalog, whatever the number of its relations.

All of them restrict the catalog: otherwise `system.jdbc` and `system.metadata` ask every catalog of the server. Those
tables pass at most one schema to the connector, so several schemas are asked for one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from dragoman import Relation, Scope

VERSION = "SELECT version()"
CATALOGS = ("SELECT catalog_name, connector_name FROM system.metadata.catalogs ORDER BY 1", "SHOW CATALOGS")
"""The second one is for users who may not read the `system` catalog."""

PARTITIONS = "$partitions"
PARTS = ("", PARTITIONS)
FEW_SCHEMAS = 8
"""Up to this many schemas are asked for one by one."""


def quote(name: str) -> str:
    """Return a name as SQL, always in quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def qualify(relation: Relation) -> str:
    """Return a relation's fully qualified name as SQL."""
    return ".".join(quote(part) for part in (relation.catalog, relation.schema, relation.name) if part is not None)


def portions(scope: Scope) -> Iterator[Scope]:
    """Yield the scopes to ask for instead of one: each schema by itself if they are few."""
    if 1 < len(scope.schemas) <= FEW_SCHEMAS:
        yield from (replace(scope, schemas=frozenset({schema})) for schema in sorted(scope.schemas))
    else:
        yield scope


def schemas(catalog: str) -> str:
    """Return a query: schema_name."""
    return f"SELECT schema_name FROM {quote(catalog)}.information_schema.schemata ORDER BY 1"


def relations(catalog: str, scope: Scope) -> str:
    """Return a query: schema, name, kind."""
    return (
        f"SELECT table_schema, table_name, table_type FROM {quote(catalog)}.information_schema.tables"
        f"{_where(scope, 'table_schema', 'table_name')}"
    )


def columns(catalog: str, scope: Scope) -> tuple[str, str]:
    """Return queries: schema, table, position, name, type, nullable (YES or NO), default, comment.

    The second one, without comments, is for users who may not read the `system` catalog.
    """
    return (
        "SELECT table_schem, table_name, ordinal_position, column_name, type_name, is_nullable, column_def, remarks"
        f" FROM system.jdbc.columns{_where(scope, 'table_schem', 'table_name', table_cat=catalog)}",
        "SELECT table_schema, table_name, ordinal_position, column_name, data_type, is_nullable, column_default, NULL"
        f" FROM {quote(catalog)}.information_schema.columns{_where(scope, 'table_schema', 'table_name')}",
    )


def checksums(catalog: str, scope: Scope) -> str:
    """Return a query with two rows: for relations and for columns, their number and a checksum of their facts."""
    own = f"{quote(catalog)}.information_schema"
    where = _where(scope, "table_schema", "table_name")
    return (
        f"SELECT {_sum(_RELATION_FACTS)} FROM {own}.tables{where} UNION ALL"
        f" SELECT {_sum(_COLUMN_FACTS)} FROM {own}.columns{where}"
    )


def view_checksums(catalog: str, scope: Scope) -> tuple[str, str]:
    """Return queries with one row each: for views and for materialized views, as in `checksums`.

    A connector may have neither.
    """
    plain = f"SELECT {_sum(_VIEW_FACTS)} FROM ({views(catalog, scope)})"
    kept = materialized_views(catalog, scope)
    return plain, f"SELECT {_sum(_KEPT_VIEW_FACTS)} FROM ({kept})"


def _sum(facts: Sequence[str]) -> str:
    """Return the expressions of a number of rows and of a checksum over what they tell.

    Each row is one text. Trino hashes a row field by field and adds, so that two rows may swap a field unnoticed.
    """
    return f"count(*), to_hex(checksum(json_format(CAST(ROW({', '.join(facts)}) AS JSON))))"


_RELATION_FACTS = ("table_schema", "table_name", "table_type")
_COLUMN_FACTS = (
    *("table_schema", "table_name", "ordinal_position", "column_name", "data_type", "is_nullable", "column_default"),
)
_VIEW_FACTS = ("table_schema", "table_name", "view_definition")
_KEPT_VIEW_FACTS = ("schema_name", "name", "definition")


def comments(catalog: str, scope: Scope) -> str:
    """Return a query: schema, name, comment of the relations that have one."""
    return (
        "SELECT schema_name, table_name, comment FROM system.metadata.table_comments"
        f"{_where(scope, 'schema_name', 'table_name', catalog_name=catalog)} AND comment <> ''"
    )


def views(catalog: str, scope: Scope) -> str:
    """Return a query: schema, name, query."""
    return (
        f"SELECT table_schema, table_name, view_definition FROM {quote(catalog)}.information_schema.views"
        f"{_where(scope, 'table_schema', 'table_name')}"
    )


def materialized_views(catalog: str, scope: Scope) -> str:
    """Return a query: schema, name, query. It leaves out freshness, which would read every table behind them."""
    return (
        "SELECT schema_name, name, definition FROM system.metadata.materialized_views"
        f"{_where(scope, 'schema_name', 'name', catalog_name=catalog)}"
    )


def estimates(tables: Iterable[Relation]) -> str:
    """Return a query: one JSON text with the rows of every table, from statistics. It is planned, and not run."""
    scans = " UNION ALL ".join(f"SELECT 1 FROM {qualify(table)}" for table in tables)
    return f"EXPLAIN (TYPE IO, FORMAT JSON) {scans}"


def scan(relation: Relation, columns: Iterable[str]) -> str:
    """Return a query: one JSON text with the plan of reading columns of a relation. It is not run."""
    return f"EXPLAIN (TYPE LOGICAL, FORMAT JSON) SELECT {', '.join(map(quote, columns))} FROM {qualify(relation)}"


def partition_columns(catalog: str, schema: str, names: Iterable[str]) -> str:
    """Return a query: table, column, type.

    It lists tables, and the hidden tables beside them that show their partitions.
    """
    wanted = Scope(schemas=frozenset({schema}), names=frozenset(f"{name}{part}" for name in names for part in PARTS))
    return (
        f"SELECT table_name, column_name, data_type FROM {quote(catalog)}.information_schema.columns"
        f"{_where(wanted, 'table_schema', 'table_name')} ORDER BY ordinal_position"
    )


def _where(scope: Scope, schema: str, name: str, **fixed: str) -> str:
    conditions: Sequence[str] = (
        *(f"{column} = {literal(value)}" for column, value in fixed.items()),
        *_among(schema, scope.schemas),
        *_among(name, scope.names),
    )
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _among(column: str, names: Collection[str]) -> Iterator[str]:
    if names:
        yield f"{column} IN ({', '.join(literal(name) for name in sorted(names))})"
