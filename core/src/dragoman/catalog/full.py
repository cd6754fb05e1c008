"""Relations as objects with every fact. Facts that are null, false or empty are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dragoman.catalog.compact import UNKNOWN, check_definition, is_unique, one_line
from dragoman.catalog.insight import Insight, facts
from dragoman.catalog.joins import Step
from dragoman.catalog.names import Namespace
from dragoman.model import Constraint, ForeignKey, Index, Relation, Table, TableColumn

Facts = dict[str, Any]


def drop_empty(facts: Mapping[str, Any]) -> Facts:
    """Return the facts that are not null, false or empty. Zero stays."""
    return {
        key: value
        for key, value in facts.items()
        if value is not None and value is not False and value not in ("", [], {})
    }


def summary(table: Table, namespace: Namespace) -> Facts:
    """Return a relation as `list_tables` shows it."""
    return drop_empty(
        {
            **_heading(table, namespace),
            "size_bytes": table.size_bytes,
            "has_primary_key": bool(table.primary_key),
            "column_count": len(table.columns),
        }
    )


def full(
    table: Table,
    namespace: Namespace,
    *,
    indexes: bool = True,
    constraints: bool = True,
    insight: Insight = UNKNOWN,
) -> Facts:
    """Return a relation as `describe_table` shows it."""
    return drop_empty(
        {
            **_heading(table, namespace),
            "partitioned_by": list(table.partitioned_by),
            "definition": table.definition,
            "columns": [_column(table, column, namespace, insight) for column in table.columns],
            "constraints": list(_constraints(table, namespace)) if constraints else [],
            "indexes": [_index(table, index, namespace) for index in table.indexes] if indexes else [],
        }
    )


def foreign_key(key: ForeignKey, namespace: Namespace) -> Facts:
    """Return a foreign key as `get_foreign_keys` shows it."""
    return drop_empty(
        {
            "constraint_name": _name(key.name, namespace),
            **_ends(key.relation, key.columns, key.references, key.referenced_columns, namespace),
            "on_update": key.on_update,
            "on_delete": key.on_delete,
        }
    )


def step(taken: Step, namespace: Namespace) -> Facts:
    """Return one join as `find_join_path` shows it."""
    ends = _ends(taken.source, taken.source_columns, taken.target, taken.target_columns, namespace)
    return drop_empty({**ends, "constraint_name": _name(taken.key.name, namespace), "inferred": taken.key.suggested})


def _heading(table: Table, namespace: Namespace) -> Facts:
    return {
        "name": namespace.dialect.quote(table.relation.name),
        "schema_name": namespace.schema_name(table.relation),
        "type": table.type,
        "description": table.comment,
        "estimated_row_count": table.row_estimate,
    }


def _ends(
    source: Relation, columns: Sequence[str], target: Relation, target_columns: Sequence[str], namespace: Namespace
) -> Facts:
    return {
        "from_schema": namespace.schema_name(source),
        "from_table": namespace.dialect.quote(source.name),
        "from_columns": _names(columns, namespace),
        "to_schema": namespace.schema_name(target),
        "to_table": namespace.dialect.quote(target.name),
        "to_columns": _names(target_columns, namespace),
    }


def _column(table: Table, column: TableColumn, namespace: Namespace, insight: Insight) -> Facts:
    profile = insight.profiles.get(column.name)
    known = drop_empty(
        {
            "name": namespace.dialect.quote(column.name),
            "data_type": column.type,
            "default_value": column.default,
            "description": column.comment,
            "is_primary_key": column.name in table.primary_key,
            "is_unique": is_unique(table, column.name, namespace),
            "foreign_key": _reference(table, column.name, namespace),
            "enum_values": list(column.enum),
            "generated": column.generated,
            "identity": column.identity,
            "inferred": _list_inferred(column, namespace, insight),
            **(dict(facts(profile)) if profile else {}),
        }
    )
    return known if column.nullable else {**known, "is_nullable": False}


def _list_inferred(column: TableColumn, namespace: Namespace, insight: Insight) -> list[Facts]:
    """Return the joins that nobody declared, each with its evidence."""
    return [
        {**_target(key, 0, namespace), "evidence": key.suggested}
        for key in insight.suggested
        if key.columns == (column.name,)
    ]


def _reference(table: Table, column: str, namespace: Namespace) -> Facts:
    """Return the target of a column, by the narrowest foreign key it is part of."""
    keys = sorted((key for key in table.foreign_keys if column in key.columns), key=lambda key: len(key.columns))
    if not keys:
        return {}
    key = keys[0]
    end = _target(key, key.columns.index(column), namespace)
    return drop_empty({"constraint_name": _name(key.name, namespace), **end})


def _target(key: ForeignKey, position: int, namespace: Namespace) -> Facts:
    referenced = key.referenced_columns[position] if position < len(key.referenced_columns) else None
    return drop_empty(
        {
            "referenced_schema": namespace.schema_name(key.references),
            "referenced_table": namespace.dialect.quote(key.references.name),
            "referenced_column": _name(referenced, namespace),
        }
    )


def _constraints(table: Table, namespace: Namespace) -> Iterator[Facts]:
    for constraint in table.constraints:
        yield drop_empty(
            {
                "name": _name(constraint.name, namespace),
                "type": constraint.type,
                "columns": _names(constraint.columns, namespace),
                "definition": _definition(constraint),
            }
        )
    for key in table.foreign_keys:
        yield drop_empty(
            {
                "name": _name(key.name, namespace),
                "type": "FOREIGN KEY",
                "columns": _names(key.columns, namespace),
                "definition": one_line(key.definition) if key.definition else None,
                "referenced_schema": namespace.schema_name(key.references),
                "referenced_table": namespace.dialect.quote(key.references.name),
                "referenced_columns": _names(key.referenced_columns, namespace),
                "on_update": key.on_update,
                "on_delete": key.on_delete,
            }
        )


def _definition(constraint: Constraint) -> str | None:
    if constraint.definition is None:
        return None
    return check_definition(constraint.definition) if constraint.type == "CHECK" else one_line(constraint.definition)


def _index(table: Table, index: Index, namespace: Namespace) -> Facts:
    names = {column.name for column in table.columns}
    plain = all(part in names for part in index.parts)
    parts = [namespace.dialect.quote(part) if part in names else one_line(part) for part in index.parts]
    return drop_empty(
        {
            "name": namespace.dialect.quote(index.name),
            "columns" if plain else "expressions": parts,
            "is_unique": index.unique,
            "is_primary": index.primary,
            "index_type": index.method,
            "predicate": index.predicate,
        }
    )


def _names(names: Sequence[str], namespace: Namespace) -> list[str]:
    return [namespace.dialect.quote(name) for name in names]


def _name(name: str | None, namespace: Namespace) -> str | None:
    return None if name is None else namespace.dialect.quote(name)
