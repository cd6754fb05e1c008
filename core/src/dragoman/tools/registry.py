"""The tools as data: what a model is shown of them, and what they take.

Every byte here is paid for by every session of every agent, so words that a schema says already are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dragoman.errors import ConfigurationError
from dragoman.tools.arguments import Argument
from dragoman.words import nearest

if TYPE_CHECKING:
    from dragoman.config import Configuration

MAX_NAMED = 20
"""More databases than this are not enumerated in the schemas."""

Reach = Literal["none", "one", "any"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as clients list it. `output_schema` is None when only text is answered."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A tool as declared. `reach`: whether it asks no database, one, or any number of them.

    `answers` maps the keys of the answer to their JSON type, empty when it differs; those in `always` are always there.
    """

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...] = ()
    reach: Reach = "one"
    answers: dict[str, str]
    always: tuple[str, ...]

    @property
    def taken(self) -> tuple[Argument, ...]:
        """All arguments of a call. Whether a missing database can be guessed is the gateway's to say."""
        return self.arguments if self.reach == "none" else (Argument(name="database"), *self.arguments)

    def tool(self, databases: Sequence[str], default: str | None, *, structured: bool) -> Tool:
        """Return the descriptor for these databases. One database alone is not shown: naming it says nothing."""
        properties = {argument.name: argument.schema for argument in self.arguments}
        required = [argument.name for argument in self.arguments if argument.required]
        if self.reach != "none" and len(databases) != 1:
            named = {"type": "string", "enum": list(databases)} if len(databases) <= MAX_NAMED else {"type": "string"}
            properties = {"database": named, **properties}
            required = ["database", *required] if self.reach == "one" and default is None else required
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        description = self.description
        if len(databases) > MAX_NAMED and "database" in properties:
            description += " Databases: see list_databases."
        return Tool(self.name, self.title, description, schema, self._output() if structured else None)

    def _output(self) -> dict[str, Any]:
        """Return a shallow schema: clients check it value by value, and deep ones took a second for 10,000 rows."""
        properties = {key: {"type": kind} if kind else {} for key, kind in self.answers.items()}
        return {"type": "object", "properties": properties, "required": list(self.always)}


def _text(name: str, *, required: bool = False) -> Argument:
    return Argument(name=name, required=required)


def _sql(name: str, *, required: bool = False) -> Argument:
    """SQL, whose length the gate bounds, with words of its own."""
    return Argument(name=name, required=required, longest=None)


def _flag(name: str, *, default: bool | None = False) -> Argument:
    return Argument(name=name, type="boolean", default=default)


def _count(name: str, default: int | None, *, maximum: int | None = None) -> Argument:
    return Argument(name=name, type="integer", default=default, minimum=1, maximum=maximum)


_SCHEMA = _text("schema_name")
_TABLE = _text("table_name", required=True)
_DETAIL = Argument(name="detail", default="compact", choices=("compact", "full"))
_SQL = (_sql("sql", required=True), Argument(name="params", type="values", default=[]))
_FROM = _text("from_dialect")
_ROWS = {"columns": "array", "types": "array", "rows": "array", "row_count": "integer"}
_RESULT = {**_ROWS, "truncated": "object", "notices": "array"}

SPECS = (
    Spec(
        name="list_databases",
        title="List databases",
        description="Names, dialects, status.",
        reach="none",
        answers={"databases": "array"},
        always=("databases",),
    ),
    Spec(
        name="search_catalog",
        title="Search catalog",
        description="Find tables and columns; empty query: all.",
        arguments=(
            Argument(name="query", default=""),
            Argument(name="kinds", type="string or strings", choices=("table", "view", "column")),
            _count("limit", 20, maximum=1000),
        ),
        reach="any",
        answers={"results": "array", "relations": "object", "notices": "array"},
        always=(),
    ),
    Spec(
        name="describe_table",
        title="Describe tables",
        description="Columns, types and keys.",
        arguments=(
            Argument(name="table_name", type="string or strings", required=True),
            _SCHEMA,
            _flag("include_indexes", default=None),
            _flag("include_constraints", default=None),
            _DETAIL,
        ),
        answers={"tables": "", "not_found": "array"},
        always=("tables",),
    ),
    Spec(
        name="execute_query",
        title="Run a query",
        description="Run a read-only query.",
        arguments=(*_SQL, _count("limit", None), _count("timeout_ms", None), _FROM),
        answers=_RESULT,
        always=tuple(_ROWS),
    ),
    Spec(
        name="list_schemas",
        title="List schemas",
        description="Schemas of a database.",
        arguments=(_flag("include_system"),),
        answers={"schemas": "array"},
        always=("schemas",),
    ),
    Spec(
        name="list_tables",
        title="List tables",
        description="Tables; name_pattern is LIKE.",
        arguments=(
            _SCHEMA,
            _flag("include_views", default=True),
            Argument(name="name_pattern", longest=250),
            _count("limit", 500),
            _DETAIL,
        ),
        answers={"tables": "", "views": "object", "omitted": "integer"},
        always=("tables",),
    ),
    Spec(
        name="get_sample_rows",
        title="Sample rows",
        description="Some rows of a table.",
        arguments=(
            _TABLE,
            _SCHEMA,
            _count("limit", 5, maximum=100),
            Argument(name="columns", type="strings"),
            _sql("where_clause"),
            _flag("randomize"),
        ),
        answers=_RESULT,
        always=tuple(_ROWS),
    ),
    Spec(
        name="get_foreign_keys",
        title="Foreign keys",
        description="Foreign keys of a table.",
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
        description="Joins between two tables.",
        arguments=(
            _text("from_table", required=True),
            _text("to_table", required=True),
            _text("from_schema"),
            _text("to_schema"),
            _count("max_depth", 4, maximum=6),
        ),
        answers={"paths": "array"},
        always=("paths",),
    ),
    Spec(
        name="explain_query",
        title="Explain a query",
        description="The plan of a query.",
        arguments=(
            *_SQL,
            _flag("analyze"),
            Argument(name="format", default="text", choices=("text", "json", "yaml")),
            _flag("verbose"),
            _flag("buffers"),
            _FROM,
        ),
        answers={"plan": "", "format": "string", "warnings": "array"},
        always=("format", "warnings"),
    ),
)

PROFILES: dict[str, tuple[str, ...]] = {
    "minimal": ("list_databases", "search_catalog", "describe_table", "execute_query"),
    "standard": tuple(spec.name for spec in SPECS),
    "full": tuple(spec.name for spec in SPECS),
}


def chosen(profile: str | Sequence[str]) -> tuple[Spec, ...]:
    """Return the tools of a profile or of a list of names. Raises `ConfigurationError`, naming the nearest."""
    if isinstance(profile, str) and profile not in PROFILES:
        raise _unknown(profile, "profile", PROFILES)
    names = PROFILES[profile] if isinstance(profile, str) else tuple(profile)
    known = {spec.name: spec for spec in SPECS}
    for name in names:
        if name not in known:
            raise _unknown(name, "tool", known)
    return tuple(spec for spec in SPECS if spec.name in names)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model is shown of a server: the tools, and the words before any call."""

    specs: tuple[Spec, ...]
    tools: tuple[Tool, ...]
    instructions: str


def shown(configuration: Configuration, profile: str | Sequence[str], result_format: str) -> Shown:
    """Return what a server of these databases shows. Raises `ConfigurationError` for what is no profile or tool."""
    specs, databases, default = chosen(profile), configuration.databases, default_of(configuration)
    tools = tuple(spec.tool(list(databases), default, structured=result_format != "text") for spec in specs)
    return Shown(specs, tools, instructions(specs, [(name, each.dialect) for name, each in databases.items()]))


def default_of(configuration: Configuration) -> str | None:
    """Return the database a call means that names none: the configured default, or the only one."""
    names = list(configuration.databases)
    return configuration.default_database or (names[0] if len(names) == 1 else None)


def instructions(specs: Sequence[Spec], databases: Sequence[tuple[str, str]]) -> str:
    """Return what a model is told of the server: the databases with their dialects, and the way to work."""
    listed = ", ".join(f"{name} ({dialect})" for name, dialect in databases)
    where = f"Databases: {listed}." if 0 < len(databases) <= MAX_NAMED else "Databases: see list_databases."
    steps = {
        "search_catalog": "find tables with search_catalog",
        "describe_table": "read columns with describe_table",
        "execute_query": "then execute_query",
    }
    way = ", ".join(words for name, words in steps.items() if name in {spec.name for spec in specs})
    return f"Read-only SQL. {where} {way[:1].upper()}{way[1:]}{'.' if way else ''}".strip()


def _unknown(name: str, what: str, known: Sequence[str] | dict[str, Any]) -> ConfigurationError:
    close = nearest(name, known, 1, 0.5)
    remedy = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(known)}."
    return ConfigurationError(f"server.tools: there is no {what} {name!r}.", suggestion=remedy)
