"""The values all layers share: frozen, slotted, without I/O.

Words are the field's: catalog > schema > relation > column, as in `information_schema`.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


class Secret:
    """A text that never shows itself; `reveal()` is the only way to read it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text itself. Never log it, never put it into a message."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)


class Claims(Mapping[str, Any]):
    """What an identity provider says of a caller, as JSON values: read-only, hashable, equal by content."""

    __slots__ = ("_text", "_values")

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values = dict(values or {})
        self._text = json.dumps(self._values, sort_keys=True, separators=(",", ":"))

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Claims) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        # The values are personal: a log line shows only which claims there are.
        return f"Claims({', '.join(self._values)})"


NO_CLAIMS = Claims()


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls. stdio and the command line have the local one.

    `name` is for people and logs; `issuer` and `subject` together identify the caller, and a right is never given by
    the name alone. `client`: the program that calls for them. `token`: the name of the static token they came with.
    `claims`: what their identity provider says of them.
    """

    name: str = "local"
    issuer: str = ""
    subject: str = ""
    client: str = ""
    token: str = ""
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    claims: Claims = NO_CLAIMS

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells callers apart, whatever else changes from token to token: issuer, subject, static token.

        Where no issuer vouches, the name stands for the subject.
        """
        return self.issuer, self.subject or self.name, self.token


LOCAL = Principal()
"""Who calls where nobody signs in: over stdio, on the command line, in a program."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one answer: rows, bytes of its minified JSON rows, and seconds until the deadline."""

    max_rows: int = 1000
    max_bytes: int = 100_000
    timeout: float = 30.0


# Configured databases


@dataclass(frozen=True, slots=True)
class DeclaredKey:
    """A key the engine cannot tell: a primary key, or a foreign key when `references` is given. Names as in SQL."""

    table: str
    columns: tuple[str, ...]
    references: str | None = None
    referenced_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeSettings:
    """What may be shown of a database beside its structure.

    `values`: from the statistics that the engine keeps, also by reading a sample, or not at all. `show_values` and
    `hide_values`: patterns of columns (`status`, `orders.st*`, `sales.orders.status`) whose values are told, or not,
    whatever the core thinks of them; hiding wins. `infer_joins`: whether joins that nobody declared are looked for.
    `refresh_interval`: seconds. `reports`: those of the dialect's reports that are told only where they are named.
    `files`: what people wrote about the database, relative to its folder; the first that tells of something counts.
    """

    values: Literal["statistics", "sample", "off"] = "statistics"
    show_values: tuple[str, ...] = ()
    hide_values: tuple[str, ...] = ()
    infer_joins: bool = True
    refresh_interval: float = 3600.0
    reports: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """As whom an engine does something that keeps the rights of callers itself.

    `user`: in place of the one who signs in. `role`: what the session becomes. `settings`: names and values, of the
    session meanwhile; names are plain, values are the caller's and any text. Without any of them: as who signs in.
    """

    user: str | None = None
    role: str | None = None
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)


IdentityKind = Literal["gateway", "role", "session", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A configured, named place an agent can query. Grows by defaulted fields only.

    A URL in the configuration arrives here as its parts; `url` keeps the whole text for drivers that want it.
    `database` is what follows the host: a database, a catalog, or a file path relative to `folder`. `options` are the
    plugin's own, already checked against the dataclass its dialect declares.

    `identity`: whose rights the engine keeps: the gateway's; those of a role, by `database_roles` from roles of the
    gateway to its own; those that values of the session tell, by `session`; or those of a user, whose name is `act_as`.
    `acting`: as whom the catalog is read, where the engine keeps the rights of callers.
    """

    name: str
    dialect: str
    url: Secret | None = None
    host: str | None = None
    port: int | None = None
    database: str | None = None
    schema: str | None = None
    user: str | None = None
    password: Secret | None = None
    options: Mapping[str, Any] = field(default_factory=_nothing, hash=False, repr=False)
    folder: Path = Path()
    description: str = ""
    schemas: tuple[str, ...] = ()
    allow_functions: frozenset[str] = frozenset()
    allow_relations: frozenset[str] = frozenset()
    allow_foreign_tables: bool = False
    accept_unenforced: bool = False
    keys: tuple[DeclaredKey, ...] = ()
    max_rows: int = 10_000
    default_rows: int = 1000
    max_bytes: int = 100_000
    timeout: float = 30.0
    pool_size: int = 5
    catalog_ttl: float = 300.0
    knowledge: KnowledgeSettings = field(default_factory=KnowledgeSettings)
    identity: IdentityKind = "gateway"
    database_roles: Mapping[str, str] = field(default_factory=_nothing, hash=False)
    session: Mapping[str, str] = field(default_factory=_nothing, hash=False)
    act_as: str = "{user}"
    acting: Acting | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentDatabase:
    """A database that variables of another tool name, as a plugin of the group `dragoman.environment` finds it.

    `values`: settings, nested as under `[databases.NAME]`; the core checks them. `variables`: which variable gave each,
    by its key; a problem is told by that name.
    """

    name: str
    values: Mapping[str, Any]
    variables: Mapping[tuple[str, ...], str]


# What a database holds


@dataclass(frozen=True, slots=True)
class Relation:
    """The name of a table, a view or anything else with columns."""

    name: str
    schema: str | None = None
    catalog: str | None = None

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.schema, self.name) if part is not None)


@dataclass(frozen=True, slots=True)
class Scope:
    """What an inspector is asked about, in bulk. Empty fields do not restrict; several restrict together.

    `catalogs` and `schemas` are names as the database stores them, `names` the relations' own.
    """

    catalogs: frozenset[str] = frozenset()
    schemas: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def __contains__(self, relation: Relation) -> bool:
        """Whether a relation was asked for: `relation in scope`."""
        return (
            (not self.catalogs or relation.catalog in self.catalogs)
            and (not self.schemas or relation.schema in self.schemas)
            and (not self.names or relation.name in self.names)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A schema; `system` ones are shown only when asked for.

    `search_order`: its place, from 0, among the schemas where names without one are looked for; None: not among them,
    or the database does not tell.
    """

    name: str
    catalog: str | None = None
    owner: str | None = None
    comment: str | None = None
    system: bool = False
    search_order: int | None = None


RelationType = Literal["table", "view", "materialized view", "foreign table", "partitioned table", "virtual table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column of a relation. `type`: the shortest spelling the database accepts. `enum`: its only values, in order.

    `default`, `generated` and `identity` are SQL text as the database tells it (`identity`: ALWAYS or BY DEFAULT).
    """

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None
    generated: str | None = None
    identity: str | None = None
    enum: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A primary key, unique, check or exclusion constraint.

    `definition`: the database's text, for the last two always, for others where it says more than the columns do.
    """

    type: Literal["PRIMARY KEY", "UNIQUE", "CHECK", "EXCLUDE"]
    name: str | None = None
    columns: tuple[str, ...] = ()
    definition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A foreign key: `columns` of `relation` point to `referenced_columns` of `references`, in this order.

    `definition`: the database's text, where it says more than the other fields do (DEFERRABLE, MATCH FULL, ...).
    `suggested`: why the core believes in a key that nobody declared, in words; empty for every other.
    """

    relation: Relation
    columns: tuple[str, ...]
    references: Relation
    referenced_columns: tuple[str, ...]
    name: str | None = None
    on_update: str | None = None
    on_delete: str | None = None
    declared: bool = False
    definition: str | None = None
    suggested: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index. `parts`: column names or expressions as SQL text, in order; `predicate` of a partial one."""

    name: str
    parts: tuple[str, ...]
    unique: bool = False
    primary: bool = False
    method: str | None = None
    predicate: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Everything an inspector tells of one relation. `row_estimate` and `size_bytes`: None when unknown.

    `partitioned_by`: the columns or expressions, as SQL text, whose values say where rows are stored. `partition_of`:
    the relation whose rows these are a part of; lists and searches tell that one only. `shows`: the relation whose rows
    or words a virtual table tells, such as an index of another's text: callers who may not read it all have neither.
    """

    relation: Relation
    type: RelationType = "table"
    columns: tuple[TableColumn, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    indexes: tuple[Index, ...] = ()
    comment: str | None = None
    owner: str | None = None
    row_estimate: int | None = None
    size_bytes: int | None = None
    definition: str | None = None
    system: bool = False
    partitioned_by: tuple[str, ...] = ()
    partition_of: Relation | None = None
    shows: Relation | None = None

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The primary key's columns in key order, or none."""
        return next((c.columns for c in self.constraints if c.type == "PRIMARY KEY"), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Relations of one schema and type by their names alone. `partition_of`: as `Table` has it, of all of them."""

    names: tuple[str, ...]
    schema: str | None = None
    catalog: str | None = None
    type: RelationType = "table"
    system: bool = False
    partition_of: Relation | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """An inspector's bulk answer; `notices` name what could not be read, so that one bad corner spoils nothing."""

    tables: tuple[Table, ...]
    notices: tuple[str, ...] = ()


# What its columns hold


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileBudget:
    """How much a look at the values of columns may cost.

    `seconds`: in all. `sample`: rows may be read, at most `rows` of a relation, where the engine keeps no statistics.
    `values`: of a column with more different values than this, none are listed.
    """

    seconds: float = 60.0
    sample: bool = False
    rows: int = 10_000
    values: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """What is known of the values of a column; None: not known. Values are in the database's own text.

    Fractions are of the relation's rows, from 0 to 1; `blank_fraction`: the text is empty. `distinct`: how many
    different values there are, NULL not counted. `minimum` and `maximum`: of numbers and dates. `values`: the most
    frequent first, with their `fractions` where those are known. `kind`: whether these are `all` there are, counted,
    or only the `common` ones. `rows`: how many rows were looked at, or stand behind the statistics. `as_of`: the day of
    the look, as in 2026-11-22.
    """

    name: str
    null_fraction: float | None = None
    blank_fraction: float | None = None
    distinct: int | None = None
    minimum: str | None = None
    maximum: str | None = None
    values: tuple[str, ...] = ()
    fractions: tuple[float, ...] = ()
    kind: Literal["all", "common"] = "common"
    rows: int | None = None
    source: Literal["statistics", "sample"] = "statistics"
    as_of: str | None = None


# What callers have of a relation


@dataclass(frozen=True, slots=True)
class Expression:
    """SQL with places where values are bound: `texts[0]`, `values[0]`, `texts[1]`, ... and at last a text.

    `values` are names of what is known of a caller: `user`, `groups`, `claim.NAME`.
    """

    texts: tuple[str, ...]
    values: tuple[str, ...] = ()

    def write(self, place: Callable[[str], str]) -> str:
        """Return the SQL, with what `place` returns for the name of a value where that is bound."""
        return self.texts[0] + "".join(
            place(value) + text for value, text in zip(self.values, self.texts[1:], strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedColumn:
    """A column as callers have it: `expression` over the relation's own columns; None: as it is stored."""

    name: str
    type: str
    expression: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedRelation:
    """What callers have of a relation: these columns, of the rows where `filter` holds; None: of every row."""

    relation: Relation
    columns: tuple[ConfinedColumn, ...]
    filter: Expression | None = None

    @property
    def whole(self) -> bool:
        """Whether its rows and these columns are what is stored."""
        return self.filter is None and all(column.expression is None for column in self.columns)

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the values that its expressions bind, once each."""
        return tuple(dict.fromkeys(name for each in self.expressions for name in each.values))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that it is made of: the filter first, then those of columns."""
        expressions = (self.filter, *(column.expression for column in self.columns))
        return tuple(each for each in expressions if each is not None)

    def write_columns(self, quote: Callable[[str], str], write: Callable[[Expression], str]) -> str:
        """Return the list of columns as SELECT has it; `quote` writes a name, `write` an expression."""
        return ", ".join(
            quote(column.name) if column.expression is None else f"({write(column.expression)}) AS {quote(column.name)}"
            for column in self.columns
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a caller has of the relations that a statement names and of which it does not have everything.

    `values`: JSON values, by the names that the expressions have for them. `lead`: characters at the beginning of the
    statement that stay before whatever is put around it.
    """

    relations: tuple[ConfinedRelation, ...]
    values: Claims = NO_CLAIMS
    lead: int = 0


# Calls and answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One statement on its way to a database. Grows by defaulted fields only.

    `statement` is the text that was judged; `parameters` are JSON values, bound, never pasted. `tags` reach the
    database in its own way (application_name, client tags, a comment the executor adds). `confinement`: what the
    statement may read of relations; None: everything. `acting`: as whom, where the engine keeps the rights of callers.
    """

    statement: str
    parameters: Sequence[Any] = ()
    limits: Limits = Limits()
    principal: Principal = Principal()
    tags: Mapping[str, str] = field(default_factory=_nothing, hash=False)
    call_id: str = ""
    confinement: Confinement | None = None
    acting: Acting | None = None


KindName = Literal["text", "boolean", "integer", "float", "binary", "json", "native", "any", "array", "map", "row"]


@dataclass(frozen=True, slots=True)
class Kind:
    """How a column's values arrive from the driver, so that the core encodes by column and touches only what it must.

    text: str, already the server's exact text. boolean: bool. integer: int. float: float. binary: bytes. json: JSON
    text. native: Python values of any type (Decimal, datetime, UUID, dict, ...), encoded cell by cell. any: int, float,
    str, bytes or None, mixed, as SQLite has them. array: a sequence of `of[0]`. map: a mapping, or pairs, of `of[0]` to
    `of[1]`. row: a sequence of `of`, with `fields` when they have names.
    """

    name: KindName
    of: tuple[Kind, ...] = ()
    fields: tuple[str, ...] = ()

    @staticmethod
    def array(of: Kind) -> Kind:
        """An array whose elements are of this kind."""
        return Kind("array", (of,))

    @staticmethod
    def map(key: Kind, value: Kind) -> Kind:
        """A map; its keys become the key's text."""
        return Kind("map", (key, value))

    @staticmethod
    def row(of: Sequence[Kind], fields: Sequence[str] = ()) -> Kind:
        """A row or composite: an object when every field has a name of its own, else an array."""
        return Kind("row", tuple(of), tuple(fields))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result: its name, its type in the database's own short spelling, and how its values arrive."""

    name: str
    type: str
    kind: Kind = Kind("any")


@dataclass(frozen=True, slots=True)
class Encoded:
    """Rows in their final form: `count` minified JSON arrays with commas between, most never looked at again.

    `notices` say what encoding had to change. `oversized`: after these comes a row that alone is certainly larger than
    `max_bytes`; it was not read.
    """

    json: bytes
    count: int
    notices: tuple[str, ...] = ()
    oversized: bool = False

    @classmethod
    def of(cls, rows: Sequence[bytes], notices: tuple[str, ...] = ()) -> Encoded:
        """Return rows that are encoded one by one."""
        return cls(b",".join(rows), len(rows), notices)

    @property
    def values(self) -> list[list[Any]]:
        """The rows as JSON values."""
        values: list[list[Any]] = json.loads(b"[%b]" % self.json)
        return values

    @property
    def rows(self) -> list[bytes]:
        """The rows one by one, cut where each ends."""
        text = self.json.decode()
        rows: list[bytes] = []
        start = 0
        for _ in range(self.count):
            end = _next_value(text, start)[1]
            rows.append(text[start:end].encode())
            start = end + 1
        return rows


_next_value = json.JSONDecoder().raw_decode

Batch = Encoded | Sequence[Sequence[Any]]


@dataclass(slots=True)
class RowStream:
    """What an executor opens: columns, and rows in batches. `columns` are final once `batches` is exhausted.

    `truncated` is for readers of a gateway's stream: what cut it, once it is exhausted. Executors leave it alone.
    """

    columns: Sequence[Column]
    batches: AsyncIterator[Batch]
    notices: list[str] = field(default_factory=list[str])
    truncated: Truncation | None = None


@dataclass(frozen=True, slots=True)
class Truncation:
    """Why rows are missing: the limit that cut, of rows, bytes or seconds, and how to get the rest."""

    reason: Literal["rows", "bytes", "timeout"]
    limit: int
    hint: str = ""

    @classmethod
    def late(cls, seconds: float) -> Truncation:
        """Return what says that a deadline struck while rows were coming."""
        return cls("timeout", math.ceil(seconds), "These rows came in time: narrow the query with WHERE, or aggregate.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Columns and rows, bounded and exact. `rows_json` is the rows as one minified JSON array of arrays.

    `sql` is there only when the SQL that ran is not the SQL that came.
    """

    columns: tuple[Column, ...]
    rows_json: bytes
    row_count: int
    truncated: Truncation | None = None
    notices: tuple[str, ...] = ()
    sql: str | None = None
    elapsed_ms: float = 0.0
    query_hash: str = ""

    @property
    def rows(self) -> list[list[Any]]:
        """The rows as JSON values: exact decimals and large integers are strings."""
        rows: list[list[Any]] = json.loads(self.rows_json)
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """How a plan is wanted. `analyze` runs the query, inside the same read-only envelope.

    `reads`: the plan must also tell what it reads and names, where the engine can tell that.
    """

    format: Literal["text", "json", "yaml"] = "text"
    analyze: bool = False
    verbose: bool = False
    buffers: bool = False
    reads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer of EXPLAIN. `plan` is text, or JSON values for the json format; None: it is not shown.

    `reads`: the relations that it reads beside those of the statement, behind views for instance; `schemas`: where
    whatever else it names is, such as functions and types. Told where the engine tells it and the options ask for it.
    """

    plan: Any
    format: Literal["text", "json", "yaml"] = "text"
    estimated_cost: float | None = None
    estimated_rows: int | None = None
    actual_time_ms: float | None = None
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    sql: str | None = None
    reads: tuple[Relation, ...] = ()
    schemas: frozenset[str] = frozenset()


Severity = Literal["danger", "warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a role could still do if all protections failed, and the SQL or setting that closes it.

    `severity`: danger (data could be changed, read beyond the role's own, or the host reached), warning (a limit is
    missing), note (worth knowing). `subject` is a short stable name such as `superuser` or `write_grants`.
    """

    severity: Severity
    subject: str
    message: str
    remedy: str
