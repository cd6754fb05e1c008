"""The ten tools of the profile `standard`."""

from __future__ import annotations

from dragoman.tools.arguments import Argument
from dragoman.tools.spec import Spec, count, flag, sql, text

_SCHEMA = text("schema_name")
_TABLE = text("table_name", required=True)
_DETAIL = Argument(name="detail", default="compact", choices=("compact", "full"))
_SQL = (sql("sql", required=True), Argument(name="params", type="values", default=[]))
_FROM = text("from_dialect")
_KEEP = Argument(name="keep", beside="get_result")
ROWS = {"columns": "array", "types": "array", "rows": "array", "row_count": "integer"}
RESULT = {**ROWS, "truncated": "object", "notices": "array"}

SPECS = (
    Spec(
        name="list_databases",
        title="List databases",
        description="Names and status.",
        reach="none",
        answers={"databases": "array"},
        always=("databases",),
    ),
    Spec(
        name="search_catalog",
        title="Search catalog",
        description="Find names; empty: all.",
        arguments=(
            Argument(name="query", default=""),
            Argument(name="kinds", type="string or strings", choices=("table", "view", "column", "value")),
            count("limit", 20, maximum=1000),
        ),
        reach="any",
        answers={"results": "array", "tables": "object", "relations": "object", "notes": "array", "notices": "array"},
        always=(),
    ),
    Spec(
        name="describe_table",
        title="Describe tables",
        description="Columns, keys.",
        arguments=(
            Argument(name="table_name", type="string or strings", required=True),
            _SCHEMA,
            flag("include_indexes", default=None),
            flag("include_constraints", default=None),
            _DETAIL,
        ),
        answers={"tables": "", "not_found": "array"},
        always=("tables",),
    ),
    Spec(
        name="execute_query",
        title="Run a query",
        description="Read-only SQL.",
        arguments=(*_SQL, count("limit", None), count("timeout_ms", None), _FROM, _KEEP),
        answers={**RESULT, "kept": "object"},
        always=tuple(ROWS),
    ),
    Spec(
        name="list_schemas",
        title="List schemas",
        description="Schemas.",
        arguments=(flag("include_system"),),
        answers={"schemas": "array"},
        always=("schemas",),
    ),
    Spec(
        name="list_tables",
        title="List tables",
        description="Tables, by LIKE pattern.",
        arguments=(
            _SCHEMA,
            flag("include_views", default=True),
            Argument(name="name_pattern", longest=250),
            count("limit", 500),
            _DETAIL,
        ),
        answers={"tables": "", "views": "object", "omitted": "integer"},
        always=("tables",),
    ),
    Spec(
        name="get_sample_rows",
        title="Sample rows",
        description="Sample rows.",
        arguments=(
            _TABLE,
            _SCHEMA,
            count("limit", 5, maximum=100),
            Argument(name="columns", type="strings"),
            sql("where_clause"),
            flag("randomize"),
        ),
        answers=RESULT,
        always=tuple(ROWS),
    ),
    Spec(
        name="get_foreign_keys",
        title="Foreign keys",
        description="Foreign keys.",
        arguments=(
            _TABLE,
            _SCHEMA,
            Argument(name="direction", default="both", choices=("outgoing", "incoming", "both")),
        ),
        answers={"outgoing": "array", "incoming": "array"},
        always=("outgoing", "incoming"),
    ),
    Spec(
        name="find_join_path",
        title="Find join paths",
        description="Join paths.",
        arguments=(
            text("from_table", required=True),
            text("to_table", required=True),
            text("from_schema"),
            text("to_schema"),
            count("max_depth", 4, maximum=6),
        ),
        answers={"paths": "array"},
        always=("paths",),
    ),
    Spec(
        name="explain_query",
        title="Explain a query",
        description="A query plan.",
        arguments=(
            *_SQL,
            flag("analyze"),
            Argument(name="format", default="text", choices=("text", "json", "yaml")),
            flag("verbose"),
            flag("buffers"),
            _FROM,
        ),
        answers={"plan": "", "format": "string", "warnings": "array"},
        always=("format", "warnings"),
    ),
)
