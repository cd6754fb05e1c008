"""The page about the tools, generated from their declarations: `python -m dragoman.tools.reference > docs/tools.md`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dragoman.tools.admin import SPECS as ADMIN
from dragoman.tools.arguments import Argument, words_of
from dragoman.tools.knowledge import SPECS as KNOWLEDGE
from dragoman.tools.registry import PROFILES
from dragoman.tools.results import SPECS as RESULTS
from dragoman.tools.saved import SPECS as SAVED
from dragoman.tools.spec import Spec
from dragoman.tools.standard import SPECS

_HEAD = """# Tools

Made from the code by `python -m dragoman.tools.reference`; a test compares the two.

Every tool that asks one database takes `database`. It may be left out when one database is configured or
`default_database` is set; the answer then says which one answered, if there are several. Table names are written as
in SQL: plain, quoted or dotted, or exactly as they are stored. Some clients send every argument, so an optional one
that is null, or an empty text or list, is as if left out; in `admin`, an empty one takes away what is set. Tools only
read databases. `save_query` and `export_result` write files of the gateway, and the tools of `admin` change its
configuration.

Every argument has a bound. A text has at most 1,000 characters, a `name_pattern` 250, a list 1,000 items, SQL 64
kB. All `params` together have at most 10,000 values and 1,000,000 characters. They nest at most 32 levels deep, and
a number has at most 1,000 digits. A number with a fraction or an exponent is a binary float, as in JSON:
send decimals of more than 15 digits as text.

An answer is a JSON object, the same as text and as structured content. The database's `max_bytes` bounds the rows
of a result, or the whole answer of any other tool. The names and types of a result's columns have a limit of their
own: the same number of bytes, but at least 16 kB. Above it the answer is `RESULT_TOO_LARGE`. What did not fit is
counted in `omitted`, with a `hint`. Remarks for the caller are in `notices`. An error is
`{"error": {"code", "message", "suggestion", "context"}, "tool_name"}`.

| profile | tools |
|---|---|
"""

_ABOUT = {
    "list_databases": """Per database: `name`, `dialect`, `version`, `description`, `status` (`ready`, `unknown`,
`unreachable` with `error`), `placeholder` (`$1` or `?`) and `schemas`. Databases that are not known to be ready are
asked; each has at most one second to answer.""",
    "search_catalog": """Ranks relations and columns by name and comment, over one database or all of them: words in
any case and number, parts of words, and near spellings. `results` have `database`, `schema_name`, `table`,
`column`, `kind`, `value` and `description`. The search also finds values that descriptions may show, if they are
already known. With `kinds` set to `value`, values are learned first. For one small database, an empty query answers
`tables`, the compact descriptions. Otherwise it answers `relations`, the names of all relations by database and
schema. `notes` holds matching text from [files](knowledge-files.md). Databases that could not be searched are named
in `notices`.""",
    "describe_table": """Takes one name or a list. Names of a list that do not exist are in `not_found`.
`compact` is a line per column:

    {"tables": {"orders": ["-- Customer orders; ~890000 rows", "id bigint PK", "user_id integer -> users.id",
                           "status order_status {pending|paid}", "total numeric(12,2) NULL",
                           "(region, branch) -> sales.branch(region, id)"]}}

`NULL` where nulls are allowed, `PK` (`PK1`, `PK2` in key order), `UNIQUE`, `-> table.column` for a foreign key
(without the column when it has the same name), values in braces, `GENERATED`, `IDENTITY`, the comment after ` -- `.
`full` has objects with every fact, a view's `definition` and what a table is `partitioned_by` among them. Indexes
and constraints are part of `full` and left out of `compact`, unless asked otherwise.""",
    "execute_query": """Runs one read-only statement. `params` are bound to `$1`, `$2`, ... or `?`, as `placeholder`
of the database says. `from_dialect` names the SQL that the statement is written in, if it is not the database's.
The answer's `sql` is then the statement that ran. A `limit` or `timeout_ms` above the configured ceiling is lowered
to it. `truncated` says why rows are missing: its `reason` is `rows`, `bytes` or `timeout`. Integers beyond 2^53 are
strings, and so are decimals where the database computes them exactly. SQLite computes with binary floating point,
so its `decimal(10,2)` columns answer JSON numbers (12.5). Binary is base64.""",
    "list_schemas": "Per schema: `name`, `owner`, `description`, `table_count` (views not counted).",
    "list_tables": """`compact`: names by schema, `views` apart. `full`: objects with `type`, `description`,
`estimated_row_count`, `size_bytes`, `has_primary_key`, `column_count`, and `total_count`. `name_pattern` is a LIKE
pattern without regard to case.""",
    "get_sample_rows": """A result like that of `execute_query`. `where_clause` is one boolean expression, judged
like any query.""",
    "get_foreign_keys": """`outgoing` and `incoming` keys: `constraint_name`, `from_schema`, `from_table`,
`from_columns`, `to_schema`, `to_table`, `to_columns`, `on_update`, `on_delete`.""",
    "find_join_path": """Up to five shortest paths over foreign keys, walked in either direction: `depth`, `steps` and
`sql`, a whole SELECT that runs. Parallel foreign keys make separate paths.""",
    "explain_query": """`plan`, `format`, `estimated_cost`, `estimated_rows`, `actual_time_ms` and `warnings`, as
far as the database tells them. `analyze` runs the query, in the same read-only session and limits.""",
    "list_queries": """Per saved query: `name`, `description`, `database` and `params` with their types and defaults.
`kind="history"` answers the statements the caller ran since the server started, newest first.""",
    "run_query": "Runs a saved query by its name; `params` is an object of its parameters' values.",
    "save_query": """Writes a file into `server.queries_dir`, where `server.save_queries` is true. The database compiles
the query first. Lines `-- param: NAME TYPE` above the SQL declare parameters, which the SQL uses as `:NAME`. A name is
given once; the tool never replaces a file.""",
    "get_result": """A page of a kept result, exact, from `offset` on. `status` is `running`, `complete` or `failed`,
`total_rows` what can be read, `next_offset` where the next page begins.""",
    "export_result": """Writes a kept result, or the whole answer of `sql`, to a file on the server's disk. Answers
its path over stdio; over HTTP a signed `url`, which `expires` after so many seconds. `truncated` says what cut the
rows, as in `execute_query`. A query that failed leaves no file. Parquet and Arrow have a type for a column where
every value keeps its meaning in it; `notices` name the columns written as text. `svg` and `png` are pictures:
`chart` chooses what they show. Without it the gateway chooses what suits the columns.""",
    "read_schema": """The whole schema, or `tables` of it: annotated SQL for a prompt, a Mermaid diagram, or JSON; as
much as fits.""",
    "get_row": """One row by its key: a value, or an object of key columns. `refers_to` has the rows it refers to, by
the columns that do, up to `follow` steps away, as many as fit.""",
    "server_info": """Version, abilities and limits of a database, and what to know of its SQL.""",
    "read_resource": """The `text` of a [resource](resources.md); without `uri`, `resources` and `templates`.""",
    "add_database": """Adds a database and says whether it answers. `url` as in the configuration, without `${...}`;
`roles` are granted all of it. Kept in `server.state_dir`.""",
    "edit_database": "Changes the given settings of any database. A change that does not work is not kept.",
    "remove_database": "Undoes `add_database` and `edit_database`. `changed` names the databases.",
    "reload": """Reads the configuration files again, as SIGHUP does: [run a server](running.md).""",
    "drop_result": "Ends a query that is still being kept, and removes its rows and files.",
}
TOOLSETS: dict[str, Sequence[Spec]] = {"knowledge": KNOWLEDGE, "results": RESULTS, "saved": SAVED, "admin": ADMIN}
_TOOLSETS = {
    "knowledge": """[What a database holds](knowledge.md): a whole schema, a row with what it refers to, resources.""",
    "results": """`execute_query(..., keep="name")` keeps the whole answer, up to `results.max_rows`, for its caller
alone, and answers the first rows and `kept`: `name`, `rows`, `bytes` and `expires` in seconds. What takes longer than
two seconds goes on, with `status` `running`.""",
    "admin": """Offered only where `server.tools` lists it, a role of the caller lists it, and `server.state_dir` is
set. See [run a server](running.md).""",
    "saved": """Offered where `server.queries_dir` is set: [saved queries](saved-queries.md) and tools of one's
own.""",
}


def page() -> str:
    """Return the whole page as Markdown."""
    profiles = "".join(f"| `{name}` | {_profile(tools)} |\n" for name, tools in PROFILES.items())
    profiles += "| `full` | `standard` and every toolset but `admin` |\n"
    toolsets = "".join(_toolset(name, specs) for name, specs in TOOLSETS.items())
    return _HEAD + profiles + "".join("".join(_section(spec)) for spec in SPECS) + toolsets


def _toolset(name: str, specs: Sequence[Spec]) -> str:
    return f"\n# Toolset `{name}`\n\n{_TOOLSETS[name]}\n" + "".join("".join(_section(spec)) for spec in specs)


def _profile(tools: tuple[str, ...]) -> str:
    return "the ten below" if len(tools) == len(SPECS) else ", ".join(f"`{tool}`" for tool in tools)


def _section(spec: Spec) -> Iterator[str]:
    yield f"\n## {spec.name}\n\n{_ABOUT[spec.name]}\n"
    if spec.all_arguments:
        yield "\n| argument | type | default |\n|---|---|---|\n"
        yield from (
            f"| `{argument.name}` | {_type(argument)} | {_default(spec, argument)} |\n"
            for argument in spec.all_arguments
        )
    keys = ", ".join(f"`{key}`" if key in spec.always else f"`{key}` (only if not empty)" for key in spec.answers)
    yield f"\nAnswers {keys}.\n"


def _type(argument: Argument) -> str:
    text = words_of(argument.type)
    if argument.choices:
        text += ": " + ", ".join(f"`{choice}`" for choice in argument.choices)
    if argument.maximum is not None:
        text += f", {argument.minimum} to {argument.maximum}"
    return text


def _default(spec: Spec, argument: Argument) -> str:
    if argument.name == "database":
        return "all databases" if spec.reach == "any" else "the default database"
    if argument.required:
        return "required"
    return "" if argument.default is None else f"`{_json(argument.default)}`"


def _json(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    print(page(), end="")
