"""What a plugin implements: a `Dialect` to describe itself, and an executor and an inspector to do the work.

An executor is a stream the core bounds; an inspector answers in bulk; a validator may refuse a statement. All three are
asynchronous and know nothing of MCP. Each grows by methods with honest defaults, never by parameters.
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
    """What a dialect can do. The kit tests both answers: declared, it works; undeclared, it refuses cleanly."""

    READ_ONLY_SESSION = "The engine itself refuses every write in the sessions we open."
    CANCEL = "Leaving a stream early ends the work in the database, not only ours."
    PARAMETERS = "Values are bound by the driver, apart from the statement."
    EXPLAIN = "A plan can be had without running the query."
    ANALYZE = "A plan can be had with actual times, by running the query inside the read-only envelope."
    DESCRIBE = "The columns and types of a query can be had without running it."
    PRIMARY_KEYS = "The inspector tells primary keys."
    FOREIGN_KEYS = "The inspector tells foreign keys."
    INDEXES = "The inspector tells indexes."
    COMMENTS = "The inspector tells comments on relations and columns."
    ROW_ESTIMATES = "The inspector tells about how many rows a relation has."
    CATALOGS = "There is a level above schemas."
    ARRAYS = "Values may be arrays."
    NESTED = "Values may be rows or maps."
    STATISTICS = "The inspector tells what the engine knows of the values of columns (`Inspector.profiles`)."
    GRAMMAR = "The dialect's own grammar reads statements (`Dialect.read`)."


Form = tuple[re.Pattern[str] | None, ...]
"""The arguments of a call: for each what a literal text must fit, None for any argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a database's server tells of itself. `sql`: one harmless query of the plugin's own, without parameters.

    `opt_in`: only where the configuration names it, since it may tell of others.
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
    """The read-only policy of a dialect: the data that drives the core's validator. What is not here is refused.

    `functions` and `table_functions`: callable by name, lower case, as a value and as a relation; a name with dots is
    callable as it is written, any other without a schema. Where the text does not tell which of the two a call is,
    either list will do. `table_function_patterns`: of whole dotted names. `forms`: functions on no list that are
    harmless with just so many arguments, each a literal text that fits its pattern, or anything for None.
    `substitutes`: what to write instead of functions of other databases, by their names in lower case.
    `refused_attributes`: names that row.name must not have, since it may call a function. `operators`: those that may
    be used, as `functions`; None: all of them, where nobody can make one.

    `statements`: patterns of whole statements that are harmless inspection (SHOW, PRAGMA, DESCRIBE). `prefixes`:
    patterns of what may stand before a query that is then judged by itself (EXPLAIN).

    `refused_relations`: patterns of dotted lower-case names: with the schema and, where there are catalogs, the catalog
    that a name without them means; a name without a schema also by itself. `system_schemas`: lower case; of what lies
    in them only `system_relations`, dotted, are open.

    Where callers see a part of the database only, what would tell of the rest is refused too. `telling`: functions that
    tell of an object by its name or number (`*.name`: in any schema), and casts to types whose values are such names;
    harmless with arguments that fit one of the forms. `telling_statements`: patterns of whole statements. `types`: the
    engine's own that anybody may name; where relations are hidden, any other must be a visible column's or relation's,
    since every relation's rows may have a type of its name. Empty: relations have none. `aspect`: the end
    of a name that asks for a fact of the relation named before it, as `$files` in `orders$files`.

    All patterns are matched without regard to case against comment-free text.
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
    telling_statements: tuple[re.Pattern[str], ...] = ()
    types: frozenset[str] = frozenset()
    aspect: re.Pattern[str] | None = None

    def find_whole(self, relation: Relation) -> Relation | None:
        """Return the relation that a name asks for a fact of; None for any other name."""
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
    """A statement as it is sent for callers who have only a part of some relations.

    `parameters`: what is bound, in this order: the place of one of the caller's own, from 0, or the name of a value of
    the confinement; None: the caller's own as they are. `replaced`: what of the caller's text was replaced, in order:
    where it began and ended, and how many characters stand there now. A text in which something was is judged again,
    and names a confined relation there alone. `lead`: characters at the beginning of `text` that must stay before
    whatever an executor puts around the statement.
    """

    text: str
    parameters: tuple[int | str, ...] | None = None
    replaced: tuple[tuple[int, int, int], ...] = ()
    lead: int = 0

    def original(self, offset: int) -> int:
        """Return where a place in `text` is in what the caller wrote."""
        return self._find(offset)[0]

    def is_replaced(self, offset: int) -> bool:
        """Whether something that was put in stands at a place in `text`."""
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
"""A relation that a statement names, and what callers have of it; None: everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A kind of SQL, as its plugin describes it.

    `contract`: the contract version the plugin was written for. `sqlglot`: sqlglot's name for this SQL. `driver`: the
    driver's distribution name. `options`: a dataclass of the plugin's own settings; the core checks and builds it.
    `folding`: what the database makes of unquoted names (`insensitive`: kept, compared without case). `ascii_folding`:
    of their ASCII letters alone; the others are never taken for letters in another case. `reserved`: words that need
    quotes as names, lower case. `implicit_columns`: what relations have without listing it, such as `rowid`, lower
    case. `placeholder`: how agents write the first parameter. `search_path`: a name without a schema may mean one of
    several schemas, so that only the catalog tells where it lies. `only_schema`: there is none but `default_schema`.
    `foreign_tables`: there are tables that read other servers or files, which the inspector tells as `foreign table`;
    the core asks the catalog for them before a statement runs and refuses them without `allow_foreign_tables`. False
    where there are none, or the dialect's own validators see to it. `rules`: the read-only policy, or a function that
    returns it, called once, when reading it takes time. `rewrite`: called with a sqlglot tree translated to this
    dialect; returns the tree to run, or raises `Unsupported`. `read`: the dialect's own grammar (`Capability.GRAMMAR`),
    called with one statement; returns what it names. It asks no database, depends on nothing else and raises nothing:
    what cannot be read is a `Refusal`. A function of a module, since another process may run it. Without it sqlglot
    reads. `instructions`: what a model that writes this SQL should know of it, in a few lines of markdown. `probes`:
    small queries are cheap and quick, so that the core may ask one of its own to find out why an answer is empty.
    `reports`: what the server tells of itself, by name.

    `confine`: called with a judged statement and the relations it names; returns the statement to send, in which
    callers reach nothing of a relation beside the columns and rows they have of it. No condition of theirs may be
    evaluated on another row: an error would tell of it. What the text alone cannot do, the executor does by
    `Request.confinement`. Raises `Unsupported` for what would not hold. Without it roles can neither filter rows nor
    mask columns. `masks`: SQL for the masks `null`, `hash`, `partial` and `year`, over `{column}`, which has `{type}`.

    `identities`: in which ways the engine can keep the rights of callers: `role`, `session`, `user`. The executor then
    does what `Request.acting` says, for that request alone; the inspector and the validators what `Database.acting`
    does.

    `open_options`: names of options that use nothing of this machine, no file, ticket or process: the only ones that
    databases have which administrators add (`Database.administered`).
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
    implicit_columns: frozenset[str] = frozenset()
    default_schema: str | None = None
    search_path: bool = False
    only_schema: bool = False
    foreign_tables: bool = True
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
        """The rules, read when they are first asked for."""
        return self.rules if isinstance(self.rules, Rules) else _load(self.rules)

    def quote(self, name: str) -> str:
        """Return `name` as SQL, quoted only when it needs to be."""
        if _PLAIN_NAME[self.folding].fullmatch(name) and name.lower() not in self.reserved:
            return name
        opening, closing = self.quote_marks[0], self.quote_marks[1]
        return opening + name.replace(closing, closing * 2) + closing

    def qualify(self, relation: Relation, *, default: str | None = None) -> str:
        """Return a relation's name as SQL; its schema is left out when it is `default`."""
        schema = None if relation.schema == default else relation.schema
        return ".".join(self.quote(part) for part in (relation.catalog, schema, relation.name) if part is not None)

    def fold(self, name: str) -> str:
        """Return what all unquoted spellings of a name share: how it is stored, but where names are `insensitive`."""
        match self.folding:
            case "lower" | "insensitive":
                return lower_ascii(name) if self.ascii_folding else name.lower()
            case "upper":
                return upper_ascii(name) if self.ascii_folding else name.upper()
            case "exact":
                return name

    def same(self, written: str, stored: str) -> bool:
        """Whether an unquoted name as written names what the database stores."""
        return self.fold(written) == (self.fold(stored) if self.folding == "insensitive" else stored)


def quote_all(dialect: Dialect, names: Collection[str]) -> list[str]:
    """Return each of many names as `Dialect.quote` does, in less than half the time where none needs quotes."""
    lines = "\n".join(names)
    plain = _plain_lines(dialect.folding).fullmatch(lines) and lines.count("\n") == len(names) - 1
    if plain and dialect.reserved.isdisjoint(map(str.lower, names)):
        return list(names)
    return [dialect.quote(name) for name in names]


class Executor(abc.ABC):
    """Runs statements on one database. Connects on first use and recovers by itself; created without I/O.

    Methods raise only `DragomanError`s. A plugin implements `open`; the rest has defaults.
    """

    @abc.abstractmethod
    def open(self, request: Request) -> AbstractAsyncContextManager[RowStream]:
        """Run one statement and yield its stream of rows.

        Entering sends the statement; leaving, for whatever reason, ends the work in the database and returns the
        connection clean or not at all. The core reads at most `limits.max_rows + 1` rows and may stop at any batch; the
        executor must enforce `limits.timeout` in the engine where it can. Batches should stay near 256 KiB.
        """

    async def describe(self, request: Request) -> Sequence[Column]:
        """Return the columns a query would have, without running it. Else raises `Unsupported`."""
        raise Unsupported("This dialect cannot tell the columns of a query without running it.")

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """Return the plan of a judged query; the executor builds the EXPLAIN. Else raises `Unsupported`."""
        raise Unsupported("This dialect cannot explain queries.", suggestion="Run it with a small limit instead.")

    async def estimate_cost(self, request: Request) -> float | None:
        """Return what the database expects a judged query to cost, in its own unit, without running it.

        None: it cannot tell. Unless overridden, what `explain` tells.
        """
        try:
            plan = await self.explain(request, ExplainOptions(format="json"))
        except Unsupported:
            return None
        return plan.estimated_cost

    async def prepare(self, request: Request) -> None:
        """Have the database check a statement without running it; `describe` unless overridden.

        Raises `InvalidSql`, `TableNotFound` or `ColumnNotFound` as running it would.
        """
        await self.describe(request)

    async def doctor(self) -> Sequence[Finding]:
        """Return what the configured role could do if all protections failed, worst first, by asking the database.

        Reads only. A check the role may not make is a note that says so, never an error; raises `ConnectionFailed`.
        """
        return (
            Finding(
                severity="note",
                subject="no_checks",
                message="This dialect brings no checks of its own: what the role may do was not looked at.",
                remedy="Use a role that may only SELECT, and ask the plugin's authors for `Executor.doctor`.",
            ),
        )

    async def aclose(self) -> None:
        """Release every connection, process and thread. Called once; no stream is open."""
        return


class Inspector(abc.ABC):
    """Reads a database's catalog in bulk: one call answers for many relations. One query per table is the wrong way."""

    @abc.abstractmethod
    async def version(self) -> str:
        """Return the server's version, by the cheapest round trip that proves it answers."""

    @abc.abstractmethod
    async def schemas(self) -> Sequence[Schema]:
        """Return the schemas the role may see, system ones included and marked."""

    @abc.abstractmethod
    async def tables(self, scope: Scope) -> Inspection:
        """Return everything about the relations in `scope`, in a handful of queries whatever their number."""

    async def names(self, scope: Scope) -> Sequence[Names] | None:
        """Return the names of the relations in `scope` alone, each as `tables` tells it, far sooner than that.

        They are told while the rest is still being read. None, the default, where that is not possible or not
        complete: then `tables` is asked.
        """
        return None

    async def details(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Return the few `tables` that a caller looks at, with what would be too costly to tell of all of them.

        As they are unless overridden; what cannot be determined is left out. Never adds, drops or renames one.
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
        """Return a text that changes when relations, columns, keys or the queries of views do, or None.

        Cheap: it is asked instead of reading everything again, once a second while callers with roles ask. Comments
        and estimates may change without it.
        """
        return None

    async def aclose(self) -> None:
        """Release what the inspector holds of its own. Called once, before the executor's."""
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
"""The columns of an audit's table beside `seq` and `line`, and what they hold: each the key of its name in `line`."""

Sealing = Callable[[tuple[int, str] | None], Sequence[tuple[int, str]]]
"""Returns the records, numbers and lines, that follow the last one; None: there is none yet."""


class AuditStore(abc.ABC):
    """Where a database keeps the audit's records: the table `calls`, to which records are only ever added.

    A record is its number, `seq`, and `line`, a JSON object. The other columns, `AUDIT_COLUMNS`, are generated from
    `line` by the database, so that they cannot say anything else. One method runs at a time; all raise
    `DragomanError`s.
    """

    @abc.abstractmethod
    async def open(self) -> None:
        """Make the table unless it is there."""

    @abc.abstractmethod
    async def append(self, seal: Sealing) -> None:
        """Add the records that `seal` returns of the last one, None in an empty table.

        All of it is one transaction, beside which no other writer of the table has one.
        """

    @abc.abstractmethod
    def lines(self) -> AsyncIterator[tuple[int, str]]:
        """Yield every record, by number."""

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Close the connection."""


class WrappedExecutor(Executor):
    """Passes everything on to another executor; a policy overrides what it changes."""

    def __init__(self, inner: Executor) -> None:
        self.inner = inner

    def open(self, request: Request) -> AbstractAsyncContextManager[RowStream]:
        """As `Executor.open`."""
        return self.inner.open(request)

    async def describe(self, request: Request) -> Sequence[Column]:
        """As `Executor.describe`."""
        return await self.inner.describe(request)

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """As `Executor.explain`."""
        return await self.inner.explain(request, options)

    async def estimate_cost(self, request: Request) -> float | None:
        """As `Executor.estimate_cost`."""
        return await self.inner.estimate_cost(request)

    async def prepare(self, request: Request) -> None:
        """As `Executor.prepare`."""
        await self.inner.prepare(request)

    async def doctor(self) -> Sequence[Finding]:
        """As `Executor.doctor`."""
        return await self.inner.doctor()

    async def aclose(self) -> None:
        """As `Executor.aclose`."""
        await self.inner.aclose()


class WrappedInspector(Inspector):
    """Passes everything on to another inspector but `names`; a policy overrides what it changes."""

    def __init__(self, inner: Inspector) -> None:
        self.inner = inner

    async def version(self) -> str:
        """As `Inspector.version`."""
        return await self.inner.version()

    async def schemas(self) -> Sequence[Schema]:
        """As `Inspector.schemas`."""
        return await self.inner.schemas()

    async def tables(self, scope: Scope) -> Inspection:
        """As `Inspector.tables`."""
        return await self.inner.tables(scope)

    async def names(self, scope: Scope) -> Sequence[Names] | None:
        """Return None, so that `tables` tells the names too: what a policy hides there would show here."""
        return None

    async def details(self, tables: Sequence[Table]) -> Sequence[Table]:
        """As `Inspector.details`."""
        return await self.inner.details(tables)

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """As `Inspector.profiles`. A policy that changes values on their way out leaves out those columns here."""
        return await self.inner.profiles(tables, budget)

    async def fingerprint(self) -> str | None:
        """As `Inspector.fingerprint`."""
        return await self.inner.fingerprint()

    async def aclose(self) -> None:
        """As `Inspector.aclose`."""
        await self.inner.aclose()


def _no_views() -> Mapping[Relation, tuple[tuple[Relation, str], ...] | None]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Output:
    """One column of a statement's answer.

    `name`: the one that the statement writes for it, or None. `columns`: what its values are made of, as (relation,
    column name): what is followed through WITH, inner queries and set operations, not what only decides which rows
    there are. A view is a relation with columns of its own.
    """

    name: str | None
    columns: tuple[tuple[Relation, str], ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a statement touches, resolved against the catalog: relations, and columns as (relation, column name).

    Where that is not certain there are too many columns, never too few; `*` is every column of a relation the catalog
    does not know. A view is a relation with columns of its own; `views` tells for each the columns that its definition
    touches, those below further views included, or None where that is unknown. `unlisted`: the relations of which
    the catalog has no columns, because they are the engine's own or not there. `outputs`: the columns of the answer in
    order, each with what it is made of; None where the statement does not tell which there are. Of an EXPLAIN they are
    those of the query.
    """

    relations: tuple[Relation, ...]
    columns: tuple[tuple[Relation, str], ...] = ()
    views: Mapping[Relation, tuple[tuple[Relation, str], ...] | None] = field(default_factory=_no_views, hash=False)
    unlisted: tuple[Relation, ...] = ()
    outputs: tuple[Output, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who asks what of which database, and what the dialect's grammar, or sqlglot, read in the statement.

    `resolve` is lazy, since it may parse the statement and read the catalog. `relations` tells the relations alone, as
    the catalog knows them, without another parser where the dialect has a grammar of its own.
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
    """What a policy leaves of one relation. `Restriction()` leaves everything.

    `filter`: SQL, a condition on the rows that stay. `masks`: what is shown in place of a column's values, by its
    stored name: `null`, `hash`, `partial` or `year` where `Dialect.masks` has them, else SQL. Both are expressions over
    the relation's own columns, in which `$user`, `$groups`, `$claim.NAME` and `$value.NAME` stand for values that are
    bound. `hidden_columns`: stored names of columns that are not there. `hidden`: nor is the relation.
    """

    filter: str | None = None
    masks: Mapping[str, str] = field(default_factory=lambda: _NO_MASKS)
    hidden_columns: frozenset[str] = frozenset()
    hidden: bool = False


class Restrictor(abc.ABC):
    """What a policy leaves of the relations of a database to some principals.

    Equal ones share what is made of them, such as a catalog: so make it a frozen dataclass of what distinguishes
    principals (their department, not their name), and one that depends on nothing else.
    """

    @abc.abstractmethod
    def restrict(self, table: Table, dialect: Dialect) -> Restriction | None:
        """Return what is left of a relation; None: everything.

        A view for which it returns None is there if nothing is taken from all that it reads. Asked once for each
        relation of a catalog; names that it writes into SQL go through `dialect.quote`.
        """


class Validator(abc.ABC):
    """May refuse a statement before it runs. Silence is consent; any one validator refuses.

    Verdicts are remembered by database, statement and whatever `check` looked at: the principal and the tool if it read
    them of the call, the catalog's version if it resolved. One that knows who asks by other means sets
    `depends_on_principal`; one that depends on anything else overrides `state`.
    """

    depends_on_principal: ClassVar[bool] = False

    async def state(self) -> object:
        """Return what verdicts depend on besides: they end once it differs. Asked before every statement, so cheap."""
        return None

    @abc.abstractmethod
    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `WriteDenied`, `UnsafeSql` or `InvalidSql`, saying what, where, why and what to do; else return."""
