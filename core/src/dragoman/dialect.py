"""What a plugin implements: a `Dialect` that describes it, and an executor and an inspector that do the work.

An executor returns a stream, which the core bounds. An inspector answers in bulk. A validator may refuse a statement.
All three are asynchronous and know nothing of MCP. Each grows by new methods with safe defaults, never by parameters.
"""

from __future__ import annotations

import abc
import enum
import functools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dragoman.errors import Unsupported
from dragoman.model import (
    Column,
    ColumnProfile,
    ConfinedRelation,
    Database,
    ExplainOptions,
    Finding,
    Inspection,
    Names,
    Plan,
    Principal,
    ProfileBudget,
    Relation,
    Schema,
    Scope,
    Table,
)
from dragoman.parsed import NamedRelation, ParsedStatement
from dragoman.sql.lexicon import Lexicon
from dragoman.sql.statement import Statement
from dragoman.words import lower_ascii, upper_ascii

if TYPE_CHECKING:
    from dragoman.model import Request, RowStream

CONTRACT = 1
"""The version of this contract. A plugin states the one it was written for."""


class Capability(enum.Enum):
    """What a dialect can do.

    The kit tests both: what is declared works, and what is not declared is refused with a clear error.
    """

    READ_ONLY_SESSION = "The engine itself refuses every write in the sessions we open."
    CANCEL = "Leaving a stream early also ends the work in the database."
    PARAMETERS = "Values are bound by the driver, apart from the statement."
    EXPLAIN = "`explain` returns a plan without running the query."
    ANALYZE = "`explain` returns a plan with actual times: it runs the query in the read-only session."
    DESCRIBE = "`describe` returns the columns and types of a query without running it."
    PRIMARY_KEYS = "The inspector reports primary keys."
    FOREIGN_KEYS = "The inspector reports foreign keys."
    INDEXES = "The inspector reports indexes."
    COMMENTS = "The inspector reports comments on relations and columns."
    ROW_ESTIMATES = "The inspector reports an estimate of the rows of a relation."
    CATALOGS = "There is a level above schemas."
    ARRAYS = "Values may be arrays."
    NESTED = "Values may be rows or maps."
    STATISTICS = "The inspector reports the engine's statistics of column values (`Inspector.profiles`)."
    GRAMMAR = "The dialect parses statements with a grammar of its own (`Dialect.read`)."


Form = tuple[re.Pattern[str] | None, ...]
"""The arguments of a call: for each a pattern that a literal text must match, or None for any argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report that a database's server gives about itself.

    `sql`: one harmless query without parameters, written by the plugin.

    `opt_in`: run it only where the configuration names it, since it may show data of other users.
    """

    description: str
    sql: str
    opt_in: bool = False


def _no_reports() -> Mapping[str, Report]:
    return MappingProxyType({})


def _no_substitutes() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_forms() -> Mapping[str, tuple[Form, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The read-only policy of a dialect: the data that drives the core's validator. Whatever is not listed is refused.

    Functions and operators:

    - `functions`, `table_functions`: functions that may be called as a value and as a relation. Lower case. A name with
      dots may be called as it is written, any other name without a schema. If the text does not show which kind a call
      is, either list allows it.
    - `table_function_patterns`: patterns of whole dotted names of table functions.
    - `forms`: functions on neither list that are harmless with certain arguments. A form has one entry per argument: a
      pattern that the literal text must match, or None for any argument.
    - `substitutes`: what to write instead of a function of another database, by its name in lower case.
    - `refused_attributes`: names that may not follow a row, as in `row.name`, since that may call a function.
    - `operators`: operators that may be used, named as in `functions`. None allows all of them: right only where nobody
      can create one.

    Statements:

    - `statements`: patterns of whole statements that only inspect (SHOW, PRAGMA, DESCRIBE).
    - `prefixes`: patterns of what may stand before a query (EXPLAIN). The query is then judged by itself.

    Relations:

    - `refused_relations`: patterns of dotted lower-case names. A name is matched with its schema and, where there are
      catalogs, its catalog. Parts that were not written are filled in; a name without a schema is matched by itself
      too.
    - `system_schemas`: lower case. In these schemas only the `system_relations`, written with dots, may be read.

    Some callers see only a part of the database. For them the following is refused too, because it would show the rest:

    - `telling`: functions that reveal an object by its name or number (`*.name`: in any schema), and casts to types
      whose values are such names. Allowed with arguments that match one of the forms.
    - `telling_path`: functions that tell in which schemas names are looked up. They are refused where roles or a policy
      hide relations, and where the configured schema is not visible. Allowed with arguments that match one of the
      forms.
    - `telling_statements`: patterns of whole statements.
    - `types`: the engine's own types, which anybody may name. Where relations are hidden, any other type must belong to
      a visible column or relation, since the rows of each relation may have a type of its name. Empty: relations have
      no types.
    - `aspect`: the end of a name that asks for a fact about the relation named before it, such as `$files` in
      `orders$files`.

    All patterns are matched against text without comments, regardless of case.
    """

    functions: frozenset[str] = frozenset()
    table_functions: frozenset[str] = frozenset()
    table_function_patterns: tuple[re.Pattern[str], ...] = ()
    forms: Mapping[str, tuple[Form, ...]] = field(default_factory=_no_forms, hash=False)
    substitutes: Mapping[str, str] = field(default_factory=_no_substitutes, hash=False)
    refused_attributes: frozenset[str] = frozenset()
    operators: frozenset[str] | None = None
    statements: tuple[re.Pattern[str], ...] = ()
    prefixes: tuple[re.Pattern[str], ...] = ()
    refused_relations: tuple[re.Pattern[str], ...] = ()
    system_schemas: frozenset[str] = frozenset()
    system_relations: frozenset[str] = frozenset()
    telling: Mapping[str, tuple[Form, ...]] = field(default_factory=_no_forms, hash=False)
    telling_path: Mapping[str, tuple[Form, ...]] = field(default_factory=_no_forms, hash=False)
    telling_statements: tuple[re.Pattern[str], ...] = ()
    types: frozenset[str] = frozenset()
    aspect: re.Pattern[str] | None = None

    def find_whole(self, relation: Relation) -> Relation | None:
        """Return the relation that a name asks a fact of (`orders` for `orders$files`); None for any other name."""
        found = self.aspect.search(relation.name) if self.aspect else None
        return replace(relation, name=relation.name[: found.start()]) if found and found.start() else None


_STANDARD = Lexicon()
_NOTHING_ALLOWED = Rules()
_NO_MASKS: Mapping[str, str] = MappingProxyType({})
Folding = Literal["lower", "upper", "insensitive", "exact"]
_PLAIN_NAME = {
    "lower": re.compile(r"[a-z_][a-z0-9_]*"),
    "upper": re.compile(r"[A-Z_][A-Z0-9_]*"),
    "insensitive": re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
    "exact": re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
}


@functools.cache
def _plain_lines(folding: Folding) -> re.Pattern[str]:
    name = _PLAIN_NAME[folding].pattern
    return re.compile(f"(?>{name})(?:\\n(?>{name}))*")


@functools.cache
def _load(load: Callable[[], Rules]) -> Rules:
    return load()


@dataclass(frozen=True, slots=True)
class Confined:
    """A statement as it is sent for callers who may read only a part of some relations.

    - `parameters`: the values to bind, in order. A number is the place, from 0, of one of the caller's own; a text is
      the name of a value of the confinement. None: the caller's own, unchanged.
    - `replaced`: the places of the caller's text that were replaced, in order, each as (start, end, new length) in
      characters. A text with replaced parts is judged again, and only these parts may name a confined relation.
    - `lead`: the number of characters at the beginning of `text` that must stay in front of whatever an executor puts
      around the statement.
    - `slow`: why it may be much slower than the caller's text, and what to write instead. It is said when the deadline
      passes.
    """

    text: str
    parameters: tuple[int | str, ...] | None = None
    replaced: tuple[tuple[int, int, int], ...] = ()
    lead: int = 0
    slow: str = ""

    def original(self, offset: int) -> int:
        """Return the place in the caller's text that a place in `text` comes from."""
        return self._find(offset)[0]

    def is_replaced(self, offset: int) -> bool:
        """Return whether a place in `text` lies in a replaced part."""
        return self._find(offset)[1]

    def _find(self, offset: int) -> tuple[int, bool]:
        shift = 0
        for start, end, length in self.replaced:
            if offset < start + shift:
                break
            if offset < start + shift + length:
                return start, True
            shift += length - (end - start)
        return offset - shift, False


NamedPart = tuple[NamedRelation, ConfinedRelation | None]
"""A relation that a statement names, and the part of it that callers have. None: all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A kind of SQL, as its plugin describes it.

    - `contract`: the contract version the plugin was written for.
    - `sqlglot`: sqlglot's name for this SQL.
    - `driver`: the name of the driver's distribution.
    - `rules`: the read-only policy. Or a function that returns it, if reading it takes time; it is called once.
    - `options`: a dataclass of the plugin's own settings. The core checks and builds it.
    - `placeholder`: how agents write the first parameter.
    - `folding`: how the database folds unquoted names. `insensitive`: it keeps them and compares them without case.
    - `ascii_folding`: only ASCII letters are folded. Any other letter differs from its other case.
    - `reserved`: words that need quotes as names, in lower case.
    - `misread`: words that the database takes as names without quotes, and the grammar that judges statements does
      not everywhere, in lower case. The gateway writes them with quotes.
    - `implicit_columns`: columns that relations have without listing them, such as `rowid`, in lower case.
    - `search_path`: a name without a schema may mean one of several schemas, so that only the catalog knows which.
    - `only_schema`: there is no schema but `default_schema`.
    - `full_view_names`: in a view, names are looked up where its author's session was, which nobody can ask. So only
      names in full, with every level that the database has, tell which relations a view reads.
    - `foreign_tables`: there are tables that read other servers or files, and the inspector reports them as `foreign
      table`. The core looks them up in the catalog before a statement runs and refuses them without
      `allow_foreign_tables`. False where there are none, or where the dialect's own validators check them.
    - `stored_functions`: users can define functions that do more than compute, and a view may call them. The core
      reads the definition of each view that a statement reads, and refuses a view that calls what queries may not
      call, or that it cannot read. False where there are no such functions, or where the dialect's own validators
      check them.
    - `rewrite`: called with a sqlglot tree that was translated to this dialect. Returns the tree to run, or raises
      `Unsupported`. `dragoman.sql.rewriting` has what it is built from.
    - `read`: the dialect's own grammar (`Capability.GRAMMAR`). Called with one statement, it returns what the statement
      names. It asks no database, depends on nothing else and raises nothing: text it cannot parse is a `Refusal`. It
      must be a function of a module, since another process may run it. Without it, sqlglot parses.
    - `instructions`: what a model should know to write this SQL, in a few lines of markdown.
    - `probes`: small queries are cheap and quick, so the core may run one of its own to find out why an answer is
      empty.
    - `reports`: the reports that the server gives about itself, by name.
    - `confine`: called with a judged statement and the relations it names. Returns the statement to send, in which
      callers reach only the columns and rows they have of each relation. No condition of theirs may be evaluated on
      another row, since an error would reveal it. What the text alone cannot do, the executor does by
      `Request.confinement`. Raises `Unsupported` if that cannot be guaranteed. Without it, roles can neither filter
      rows nor mask columns.
    - `masks`: SQL for the masks `null`, `hash`, `partial` and `year`. `{column}` stands for the column, `{type}` for
      its type.
    - `identities`: the ways in which the engine can apply the rights of callers: `role`, `session`, `user`. The
      executor applies `Request.acting` for that request alone; the inspector and the validators apply
      `Database.acting`.
    - `open_options`: names of options that use nothing of this machine: no file, ticket or process. Databases that
      administrators add at run time (`Database.administered`) have only these.
    """

    name: str
    contract: int
    sqlglot: str
    driver: str = ""
    capabilities: frozenset[Capability] = frozenset()
    lexicon: Lexicon = _STANDARD
    rules: Rules | Callable[[], Rules] = _NOTHING_ALLOWED
    options: type[Any] | None = None
    placeholder: Literal["$1", "?"] = "?"
    quote_marks: str = '""'
    folding: Folding = "lower"
    ascii_folding: bool = False
    reserved: frozenset[str] = frozenset()
    misread: frozenset[str] = frozenset()
    implicit_columns: frozenset[str] = frozenset()
    default_schema: str | None = None
    search_path: bool = False
    only_schema: bool = False
    full_view_names: bool = False
    foreign_tables: bool = True
    stored_functions: bool = False
    rewrite: Callable[[Any], Any] | None = None
    read: Callable[[Statement], ParsedStatement] | None = None
    instructions: str = ""
    probes: bool = True
    reports: Mapping[str, Report] = field(default_factory=_no_reports, hash=False)
    confine: Callable[[Statement, Sequence[NamedPart]], Confined] | None = None
    masks: Mapping[str, str] = field(default_factory=lambda: _NO_MASKS, hash=False)
    open_options: frozenset[str] = frozenset()
    identities: frozenset[str] = frozenset()

    @property
    def loaded_rules(self) -> Rules:
        """The rules, loaded on first use."""
        return self.rules if isinstance(self.rules, Rules) else _load(self.rules)

    def quote(self, name: str) -> str:
        """Return `name` as SQL, quoted only where necessary."""
        word = name.lower()
        if _PLAIN_NAME[self.folding].fullmatch(name) and word not in self.reserved and word not in self.misread:
            return name
        opening, closing = self.quote_marks[0], self.quote_marks[1]
        return opening + name.replace(closing, closing * 2) + closing

    def qualify(self, relation: Relation, *, default: str | None = None) -> str:
        """Return a relation's name as SQL, without its schema if that is `default`."""
        schema = None if relation.schema == default else relation.schema
        return ".".join(self.quote(part) for part in (relation.catalog, schema, relation.name) if part is not None)

    def fold(self, name: str) -> str:
        """Return the form that all unquoted spellings of a name share.

        It is the stored form unless names are `insensitive`.
        """
        match self.folding:
            case "lower" | "insensitive":
                return lower_ascii(name) if self.ascii_folding else name.lower()
            case "upper":
                return upper_ascii(name) if self.ascii_folding else name.upper()
            case "exact":
                return name

    def is_known_in_view(self, written: Relation) -> bool:
        """Return whether a name in the definition of a view tells which relation it means."""
        full = written.schema and (written.catalog or Capability.CATALOGS not in self.capabilities)
        return not self.full_view_names or bool(full)

    def same(self, written: str, stored: str) -> bool:
        """Return whether an unquoted name, as written, means the stored name."""
        return self.fold(written) == (self.fold(stored) if self.folding == "insensitive" else stored)


def quote_all(dialect: Dialect, names: Collection[str]) -> list[str]:
    """Return each of many names as `Dialect.quote` does, in less than half the time where none needs quotes."""
    lines = "\n".join(names)
    plain = _plain_lines(dialect.folding).fullmatch(lines) and lines.count("\n") == len(names) - 1
    words = list(map(str.lower, names))
    if plain and dialect.reserved.isdisjoint(words) and dialect.misread.isdisjoint(words):
        return list(names)
    return [dialect.quote(name) for name in names]


class CannotDescribe(Unsupported):
    """The executor has no `describe` of its own."""


class Executor(abc.ABC):
    """Runs statements on one database. Created without I/O, it connects on first use and recovers by itself.

    Methods raise only `DragomanError`s. A plugin implements `open`; every other method has a default.
    """

    @abc.abstractmethod
    def open(self, request: Request) -> AbstractAsyncContextManager[RowStream]:
        """Run one statement and yield its stream of rows.

        Entering sends the statement. Leaving, for whatever reason, ends the work in the database; the connection goes
        back clean or is closed. The core reads at most `limits.max_rows + 1` rows and may stop at any batch. The
        executor enforces `limits.timeout` in the engine where it can. Batches should stay near 256 KiB.
        """

    async def describe(self, request: Request) -> Sequence[Column]:
        """Return the columns a query would have, without running it. Raises `Unsupported` by default."""
        raise CannotDescribe("This dialect cannot describe the columns of a query without running it.")

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """Return the plan of a judged query. The executor builds the EXPLAIN. Raises `Unsupported` by default."""
        raise Unsupported("This dialect cannot explain queries.", suggestion="Run it with a small limit instead.")

    async def estimate_cost(self, request: Request) -> float | None:
        """Return the cost that the database estimates for a judged query, in its own unit, without running it.

        Returns None if the database gives no estimate. By default it is the cost that `explain` reports.
        """
        try:
            plan = await self.explain(request, ExplainOptions(format="json"))
        except Unsupported:
            return None
        return plan.estimated_cost

    async def prepare(self, request: Request) -> None:
        """Let the database check a statement without running it. Calls `describe` by default.

        Raises `InvalidSql`, `TableNotFound` or `ColumnNotFound`, as running the statement would.
        """
        await self.describe(request)

    async def doctor(self) -> Sequence[Finding]:
        """Return what the configured role could do if all protections failed, worst first. Asks the database.

        It only reads. If the role may not make a check, the finding is a note that says so, never an error. Raises
        `ConnectionFailed`.
        """
        return (
            Finding(
                severity="note",
                subject="no_checks",
                message="This dialect has no checks of its own, so nobody checked what the role may do.",
                remedy="Use a role that may only SELECT, and ask the plugin's authors for `Executor.doctor`.",
            ),
        )

    async def aclose(self) -> None:
        """Release every connection, process and thread. Called once, when no stream is open."""
        return


class Inspector(abc.ABC):
    """Reads a database's catalog in bulk: one call answers for many relations, never with one query per table."""

    @abc.abstractmethod
    async def version(self) -> str:
        """Return the server's version, by the cheapest round trip that proves that the server answers."""

    @abc.abstractmethod
    async def schemas(self) -> Sequence[Schema]:
        """Return the schemas the role may see, system schemas included and marked."""

    @abc.abstractmethod
    async def tables(self, scope: Scope) -> Inspection:
        """Return everything about the relations in `scope`, in a few queries, however many relations there are."""

    async def names(self, scope: Scope) -> Sequence[Names] | None:
        """Return only the names of the relations in `scope`, each as `tables` reports it, and much sooner.

        The core shows them while it still reads the rest. The default, None, means that the names are not available
        this way or not complete; the core then calls `tables`.
        """
        return None

    async def details(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Return the few `tables` that a caller looks at, with the details that are too costly to read for all of them.

        Returns them unchanged by default. Details that cannot be determined are left out. Never adds, drops or renames
        a table.
        """
        return tables

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """Return what is known of the values of these relations' columns, in bulk, as the role may read them.

        Nothing unless overridden (`Capability.STATISTICS`). What cannot be read within the budget is left out. Whether
        a value may be shown is not asked here: the core decides that for every dialect.
        """
        return {}

    async def fingerprint(self) -> str | None:
        """Return a text that changes when relations, columns, keys or view queries change; or None.

        It must be cheap: the core asks for it instead of reading everything again, once a second while callers with
        roles ask. Comments and estimates may change without it.
        """
        return None

    async def aclose(self) -> None:
        """Release the inspector's own resources. Called once, before the executor's `aclose`."""
        return


AuditKind = Literal["text", "integer", "number", "list", "json"]
AUDIT_COLUMNS: Mapping[str, AuditKind] = MappingProxyType(
    {
        "ts": "text",
        "event": "text",
        "call": "text",
        "principal": "text",
        "issuer": "text",
        "subject": "text",
        "client": "text",
        "token": "text",
        "roles": "list",
        "database": "text",
        "acting": "text",
        "tool": "text",
        "hash": "text",
        "sql": "text",
        "params": "json",
        "arguments": "json",
        "relations": "list",
        "columns": "list",
        "verdict": "text",
        "filters": "list",
        "masks": "list",
        "rows": "integer",
        "bytes": "integer",
        "ms": "number",
        "outcome": "text",
        "trace": "text",
        "detail": "text",
        "model": "json",
    }
)
"""The columns of an audit table beside `seq` and `line`. Each maps to the key that it shows of `line`."""

Sealing = Callable[[tuple[int, str] | None], Sequence[tuple[int, str]]]
"""Called with the last record, or None in an empty table; returns the records (number, line) that follow it."""


class AuditStore(abc.ABC):
    """A database's store of the audit's records: the table `calls`, to which records are only added.

    A record is its number, `seq`, and `line`, a JSON object. The database generates the other columns, `AUDIT_COLUMNS`,
    from `line`, so that they cannot differ from it. Only one method runs at a time. All raise `DragomanError`s.
    """

    @abc.abstractmethod
    async def open(self) -> None:
        """Create the table if it does not exist. Raises `ConfigurationError` if it could not hold every record."""

    @abc.abstractmethod
    async def append(self, seal: Sealing) -> None:
        """Add the records that `seal` returns for the last record (None in an empty table).

        Reads and adds in one transaction, and keeps other writers of the table out until it ends. Raises if the table
        did not store every record.
        """

    @abc.abstractmethod
    def lines(self) -> AsyncIterator[tuple[int, str]]:
        """Yield every record, ordered by number."""

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Close the connection."""


class WrappedExecutor(Executor):
    """Passes every call on to another executor. A policy overrides what it changes."""

    def __init__(self, inner: Executor) -> None:
        self.inner = inner

    def open(self, request: Request) -> AbstractAsyncContextManager[RowStream]:
        """Call `Executor.open` of the wrapped executor."""
        return self.inner.open(request)

    async def describe(self, request: Request) -> Sequence[Column]:
        """Call `Executor.describe` of the wrapped executor."""
        return await self.inner.describe(request)

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """Call `Executor.explain` of the wrapped executor."""
        return await self.inner.explain(request, options)

    async def estimate_cost(self, request: Request) -> float | None:
        """Call `Executor.estimate_cost` of the wrapped executor."""
        return await self.inner.estimate_cost(request)

    async def prepare(self, request: Request) -> None:
        """Call `Executor.prepare` of the wrapped executor."""
        await self.inner.prepare(request)

    async def doctor(self) -> Sequence[Finding]:
        """Call `Executor.doctor` of the wrapped executor."""
        return await self.inner.doctor()

    async def aclose(self) -> None:
        """Call `Executor.aclose` of the wrapped executor."""
        await self.inner.aclose()


class WrappedInspector(Inspector):
    """Passes every call but `names` on to another inspector. A policy overrides what it changes."""

    def __init__(self, inner: Inspector) -> None:
        self.inner = inner

    async def version(self) -> str:
        """Call `Inspector.version` of the wrapped inspector."""
        return await self.inner.version()

    async def schemas(self) -> Sequence[Schema]:
        """Call `Inspector.schemas` of the wrapped inspector."""
        return await self.inner.schemas()

    async def tables(self, scope: Scope) -> Inspection:
        """Call `Inspector.tables` of the wrapped inspector."""
        return await self.inner.tables(scope)

    async def names(self, scope: Scope) -> Sequence[Names] | None:
        """Return None, so that the core takes the names from `tables`, where a policy may hide some."""
        return None

    async def details(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Call `Inspector.details` of the wrapped inspector."""
        return await self.inner.details(tables)

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """Call `Inspector.profiles` of the wrapped inspector.

        A policy that changes values must leave out those columns here.
        """
        return await self.inner.profiles(tables, budget)

    async def fingerprint(self) -> str | None:
        """Call `Inspector.fingerprint` of the wrapped inspector."""
        return await self.inner.fingerprint()

    async def aclose(self) -> None:
        """Call `Inspector.aclose` of the wrapped inspector."""
        await self.inner.aclose()


def _no_views() -> Mapping[Relation, tuple[tuple[Relation, str], ...] | None]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Output:
    """One column of a statement's answer.

    - `name`: the name that the statement gives it, or None.
    - `columns`: the columns its values are computed from, as (relation, column name), traced through WITH, subqueries
      and set operations. Columns that only decide which rows there are do not count. A view is a relation with columns
      of its own.
    """

    name: str | None
    columns: tuple[tuple[Relation, str], ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a statement touches, resolved against the catalog: relations, and columns as (relation, column name).

    If this is uncertain, it lists too many columns, never too few. `*` is every column of a relation that the catalog
    does not know. A view is a relation with columns of its own.

    - `views`: for each view the columns that its definition touches, those of views below it included. None where that
      is unknown.
    - `unlisted`: the relations whose columns the catalog does not have, because they are the engine's own, do not
      exist, or are read in an older version.
    - `outputs`: the columns of the answer, in order. None where the statement does not show which there are. For an
      EXPLAIN they are those of the query.
    """

    relations: tuple[Relation, ...]
    columns: tuple[tuple[Relation, str], ...] = ()
    views: Mapping[Relation, tuple[tuple[Relation, str], ...] | None] = field(default_factory=_no_views, hash=False)
    unlisted: tuple[Relation, ...] = ()
    outputs: tuple[Output, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call: the caller, the database, and what the dialect's grammar, or sqlglot, found in the statement.

    `resolve` is lazy, since it may parse the statement and read the catalog. `relations` returns only the relations, as
    the catalog knows them. Where the dialect has a grammar of its own, it needs no second parser.
    """

    principal: Principal
    tool: str
    database: Database
    dialect: Dialect
    resolve: Callable[[], Awaitable[Resolution]]
    relations: Callable[[], Awaitable[tuple[Relation, ...]]]
    parsed: ParsedStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """The part of a relation that a policy leaves to a caller. `Restriction()` leaves everything.

    - `filter`: an SQL condition on the rows that stay.
    - `masks`: what is shown instead of a column's values, by the column's stored name: `null`, `hash`, `partial` or
      `year` where `Dialect.masks` has them, else SQL.
    - `hidden_columns`: stored names of columns that callers cannot see.
    - `hidden`: callers cannot see the relation at all.

    Filters and masks are expressions over the relation's own columns. In them `$user`, `$groups`, `$claim.NAME` and
    `$value.NAME` stand for values that are bound.
    """

    filter: str | None = None
    masks: Mapping[str, str] = field(default_factory=lambda: _NO_MASKS)
    hidden_columns: frozenset[str] = frozenset()
    hidden: bool = False


class Restrictor(abc.ABC):
    """Decides what a policy leaves of the relations of a database to some principals.

    Equal restrictors share what is computed from them, such as a catalog. So make it a frozen dataclass of what
    distinguishes principals (their department, not their name), and let it depend on nothing else.
    """

    @abc.abstractmethod
    def restrict(self, table: Table, dialect: Dialect) -> Restriction | None:
        """Return what is left of a relation; None: everything.

        Asked once for each relation of a catalog. A view for which it returns None is visible only if nothing is taken
        from the relations it reads. Quote names in SQL with `dialect.quote`.
        """


class Validator(abc.ABC):
    """May refuse a statement before it runs. Returning allows it; one refusal is enough to stop it.

    Verdicts are remembered by database, statement and whatever `check` read: the principal and the tool if it read them
    from the call, the catalog's version if it called `resolve`. A validator that knows the caller by other means sets
    `depends_on_principal`. One that depends on anything else overrides `state`.
    """

    depends_on_principal: ClassVar[bool] = False

    async def state(self) -> object:
        """Return whatever else verdicts depend on: they are forgotten when it changes.

        Asked before every statement, so it must be cheap.
        """
        return None

    @abc.abstractmethod
    async def check(self, statement: Statement, call: Call) -> None:
        """Return to allow the statement.

        Else raise `WriteDenied`, `UnsafeSql` or `InvalidSql`, and say what, where, why and what to do. Whatever else it
        returns than None is an error.
        """
