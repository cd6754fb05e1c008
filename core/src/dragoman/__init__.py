"""dragoman: a query gateway for AI agents. One MCP server in front of many databases of many kinds.

`Gateway` is the library. Everything else here is for dialect and policy plugins. Names load on first use, so that a
worker process that only encodes rows imports nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.cleanup import finish
    from dragoman.dialect import (
        AUDIT_COLUMNS,
        CONTRACT,
        AuditStore,
        Call,
        Capability,
        Confined,
        Dialect,
        Executor,
        Form,
        Inspector,
        NamedPart,
        Output,
        Report,
        Resolution,
        Restriction,
        Restrictor,
        Rules,
        Sealing,
        Validator,
        WrappedExecutor,
        WrappedInspector,
    )
    from dragoman.errors import (
        AmbiguousQuery,
        Busy,
        ColumnNotFound,
        ConfigurationError,
        ConnectionFailed,
        CostExceeded,
        DialectError,
        DragomanError,
        InternalError,
        InvalidSql,
        ModelError,
        NotFound,
        ParameterError,
        PathNotFound,
        PermissionDenied,
        QueryCancelled,
        QueryError,
        QueryTimeout,
        QuotaExceeded,
        Refused,
        ResultNotFound,
        ResultTooLarge,
        SchemaNotFound,
        TableNotFound,
        UnknownDatabase,
        UnsafeSql,
        Unsupported,
        WriteDenied,
    )
    from dragoman.gateway import Gateway
    from dragoman.hookspecs import DialectPlugin, PolicyPlugin, hookimpl
    from dragoman.model import (
        Acting,
        Batch,
        Claims,
        Column,
        ColumnProfile,
        ConfinedColumn,
        ConfinedRelation,
        Confinement,
        Constraint,
        Database,
        DeclaredKey,
        Encoded,
        EnvironmentDatabase,
        ExplainOptions,
        Expression,
        Finding,
        ForeignKey,
        Index,
        Inspection,
        Kind,
        KnowledgeSettings,
        Limits,
        Names,
        Plan,
        Principal,
        ProfileBudget,
        Relation,
        Request,
        Result,
        RowStream,
        Schema,
        Scope,
        Secret,
        Table,
        TableColumn,
        Truncation,
    )
    from dragoman.parsed import (
        CallKind,
        FunctionCall,
        Named,
        NamedRelation,
        NamedSchema,
        ParsedStatement,
        Refusal,
        schema_of,
    )
    from dragoman.profiling import profile_columns
    from dragoman.results import encode
    from dragoman.sql import Statement
    from dragoman.sql.lexicon import Lexicon
    from dragoman.sql.standard import STANDARD_FUNCTIONS, STANDARD_RESERVED

_HOMES = {
    "dragoman.cleanup": "finish",
    "dragoman.dialect": "AUDIT_COLUMNS AuditStore CONTRACT Call Capability Confined Dialect Executor Form Inspector"
    " NamedPart Output Report Resolution Restriction Restrictor Rules Sealing Validator WrappedExecutor"
    " WrappedInspector",
    "dragoman.errors": "AmbiguousQuery Busy ColumnNotFound ConfigurationError ConnectionFailed CostExceeded"
    " DialectError DragomanError InternalError InvalidSql ModelError NotFound ParameterError"
    " PathNotFound PermissionDenied QueryCancelled QueryError QueryTimeout QuotaExceeded Refused"
    " ResultNotFound ResultTooLarge SchemaNotFound TableNotFound UnknownDatabase UnsafeSql"
    " Unsupported WriteDenied",
    "dragoman.gateway": "Gateway",
    "dragoman.hookspecs": "DialectPlugin PolicyPlugin hookimpl",
    "dragoman.model": "Acting Batch Claims Column ColumnProfile ConfinedColumn ConfinedRelation Confinement Constraint"
    " Database DeclaredKey Encoded EnvironmentDatabase ExplainOptions Expression Finding ForeignKey Index Inspection"
    " Kind KnowledgeSettings Limits Names Plan Principal ProfileBudget Relation Request Result RowStream Schema Scope"
    " Secret Table TableColumn Truncation",
    "dragoman.parsed": "CallKind FunctionCall Named NamedRelation NamedSchema ParsedStatement Refusal schema_of",
    "dragoman.profiling": "profile_columns",
    "dragoman.results": "encode",
    "dragoman.sql": "Statement",
    "dragoman.sql.lexicon": "Lexicon",
    "dragoman.sql.standard": "STANDARD_FUNCTIONS STANDARD_RESERVED",
}
# Former names, and the names that replace them. They work with a warning until the next contract version.
_FORMER: dict[str, str] = {}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "AUDIT_COLUMNS",
    "CONTRACT",
    "STANDARD_FUNCTIONS",
    "STANDARD_RESERVED",
    "Acting",
    "AmbiguousQuery",
    "AuditStore",
    "Batch",
    "Busy",
    "Call",
    "CallKind",
    "Capability",
    "Claims",
    "Column",
    "ColumnNotFound",
    "ColumnProfile",
    "ConfigurationError",
    "Confined",
    "ConfinedColumn",
    "ConfinedRelation",
    "Confinement",
    "ConnectionFailed",
    "Constraint",
    "CostExceeded",
    "Database",
    "DeclaredKey",
    "Dialect",
    "DialectError",
    "DialectPlugin",
    "DragomanError",
    "Encoded",
    "EnvironmentDatabase",
    "Executor",
    "ExplainOptions",
    "Expression",
    "Finding",
    "ForeignKey",
    "Form",
    "FunctionCall",
    "Gateway",
    "Index",
    "Inspection",
    "Inspector",
    "InternalError",
    "InvalidSql",
    "Kind",
    "KnowledgeSettings",
    "Lexicon",
    "Limits",
    "ModelError",
    "Named",
    "NamedPart",
    "NamedRelation",
    "NamedSchema",
    "Names",
    "NotFound",
    "Output",
    "ParameterError",
    "ParsedStatement",
    "PathNotFound",
    "PermissionDenied",
    "Plan",
    "PolicyPlugin",
    "Principal",
    "ProfileBudget",
    "QueryCancelled",
    "QueryError",
    "QueryTimeout",
    "QuotaExceeded",
    "Refusal",
    "Refused",
    "Relation",
    "Report",
    "Request",
    "Resolution",
    "Restriction",
    "Restrictor",
    "Result",
    "ResultNotFound",
    "ResultTooLarge",
    "RowStream",
    "Rules",
    "Schema",
    "SchemaNotFound",
    "Scope",
    "Sealing",
    "Secret",
    "Statement",
    "Table",
    "TableColumn",
    "TableNotFound",
    "Truncation",
    "UnknownDatabase",
    "UnsafeSql",
    "Unsupported",
    "Validator",
    "WrappedExecutor",
    "WrappedInspector",
    "WriteDenied",
    "encode",
    "finish",
    "hookimpl",
    "profile_columns",
    "schema_of",
]


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        import warnings

        now = _FORMER[name]
        warnings.warn(
            f"dragoman.{name} was renamed to dragoman.{now}; the former name is removed with the next contract.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(__name__), now)
    if name not in _HOME:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
