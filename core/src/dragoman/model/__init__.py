"""The values that all layers share: frozen, slotted, without I/O.

Names follow the field: catalog > schema > relation > column, as in `information_schema`. They load on first use: a
server answers its first `tools/list` with a third of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import load_names

if TYPE_CHECKING:
    from dragoman.model.callers import LOCAL, NO_CLAIMS, Claims, Principal
    from dragoman.model.calls import Batch, ExplainOptions, Limits, Plan, Request, Result, RowStream, Truncation
    from dragoman.model.columns import Column, Encoded, Kind, KindName
    from dragoman.model.configured import (
        Acting,
        Database,
        DeclaredKey,
        EnvironmentDatabase,
        IdentityKind,
        KnowledgeSettings,
        Secret,
    )
    from dragoman.model.confinement import ConfinedColumn, ConfinedRelation, Confinement, Expression, Mixed, Spelled
    from dragoman.model.findings import Finding, Severity
    from dragoman.model.profiles import ColumnProfile, ProfileBudget
    from dragoman.model.relations import (
        UNKNOWN_EXPRESSION,
        Constraint,
        ForeignKey,
        Index,
        Inspection,
        Names,
        Relation,
        RelationType,
        Schema,
        Scope,
        Table,
        TableColumn,
    )

__all__ = [
    "LOCAL",
    "NO_CLAIMS",
    "UNKNOWN_EXPRESSION",
    "Acting",
    "Batch",
    "Claims",
    "Column",
    "ColumnProfile",
    "ConfinedColumn",
    "ConfinedRelation",
    "Confinement",
    "Constraint",
    "Database",
    "DeclaredKey",
    "Encoded",
    "EnvironmentDatabase",
    "ExplainOptions",
    "Expression",
    "Finding",
    "ForeignKey",
    "IdentityKind",
    "Index",
    "Inspection",
    "Kind",
    "KindName",
    "KnowledgeSettings",
    "Limits",
    "Mixed",
    "Names",
    "Plan",
    "Principal",
    "ProfileBudget",
    "Relation",
    "RelationType",
    "Request",
    "Result",
    "RowStream",
    "Schema",
    "Scope",
    "Secret",
    "Severity",
    "Spelled",
    "Table",
    "TableColumn",
    "Truncation",
]

_HOMES = {
    "Acting": "configured",
    "Batch": "calls",
    "Claims": "callers",
    "Column": "columns",
    "ColumnProfile": "profiles",
    "ConfinedColumn": "confinement",
    "ConfinedRelation": "confinement",
    "Confinement": "confinement",
    "Constraint": "relations",
    "Database": "configured",
    "DeclaredKey": "configured",
    "Encoded": "columns",
    "EnvironmentDatabase": "configured",
    "ExplainOptions": "calls",
    "Expression": "confinement",
    "Finding": "findings",
    "ForeignKey": "relations",
    "IdentityKind": "configured",
    "Index": "relations",
    "Inspection": "relations",
    "Kind": "columns",
    "KindName": "columns",
    "KnowledgeSettings": "configured",
    "LOCAL": "callers",
    "Limits": "calls",
    "Mixed": "confinement",
    "NO_CLAIMS": "callers",
    "Names": "relations",
    "Plan": "calls",
    "Principal": "callers",
    "ProfileBudget": "profiles",
    "Relation": "relations",
    "UNKNOWN_EXPRESSION": "relations",
    "RelationType": "relations",
    "Request": "calls",
    "Result": "calls",
    "RowStream": "calls",
    "Schema": "relations",
    "Scope": "relations",
    "Secret": "configured",
    "Severity": "findings",
    "Spelled": "confinement",
    "Table": "relations",
    "TableColumn": "relations",
    "Truncation": "calls",
}

__getattr__ = load_names(__name__, _HOMES)
