"""What one walk over a sqlglot tree finds: relations, calls, and anything that is not a query.

The walk is iterative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from dragoman.errors import InvalidSql
from dragoman.model import Relation
from dragoman.parsed import FunctionCall, Named, schema_of
from dragoman.sql.calls import SYNTAX
from dragoman.sql.lexicon import Lexicon
from dragoman.words import lower_ascii


@dataclass(frozen=True, slots=True)
class Effect:
    """Something in a tree that is not a query: its description and its place."""

    what: str
    offset: int | None


@dataclass(slots=True)
class Facts:
    """What a tree holds.

    - `effect`: the first thing that makes it more than a query.
    - `calls`: functions under the names with which they are written. Operators and literals are not calls.
    - `aliases`: the places of aliases with columns, `t(a, b)`, which look like calls.
    - `relations`: as written, with every place of each, without those that WITH defines.
    - `versions`: those of which an older version is read.
    - `bare`: the first words of the names of tables, those that WITH defines too, if they stand without quotes.
    - `bare_columns`: likewise those of columns.
    - `table_calls`: the places of calls that are relations.
    - `placed`: calls of functions in the place of a relation.
    - `types`: types that do not belong to the language itself.
    """

    effect: Effect | None = None
    calls: list[FunctionCall] = field(default_factory=list[FunctionCall])
    aliases: set[int] = field(default_factory=set[int])
    relations: dict[Relation, list[int | None]] = field(default_factory=dict[Relation, "list[int | None]"])
    versions: dict[Relation, int | None] = field(default_factory=dict[Relation, int | None])
    bare: dict[str, int | None] = field(default_factory=dict[str, int | None])
    bare_columns: dict[str, int | None] = field(default_factory=dict[str, int | None])
    table_calls: set[int] = field(default_factory=set[int])
    placed: list[FunctionCall] = field(default_factory=list[FunctionCall])
    types: dict[Named, None] = field(default_factory=dict[Named, None])


# Names that WITH defines: folded, and whether case counts.
_Name = tuple[str, bool]
_Names = frozenset[_Name]

_QUERIES = (exp.Select, exp.SetOperation, exp.Values)
_STATEMENTS = tuple(
    kind
    for name in (
        "DML DDL Command Pragma Set Use Attach Detach Transaction Commit Rollback Kill Copy Cache Uncache Refresh Drop"
        " Alter TruncateTable Analyze Comment Grant Revoke Describe Show LoadData Merge Returning Summarize Declare"
        " Execute ExecuteSql IfBlock WhileBlock Block Put Get Semicolon Export Install Lock Into"
        " LockingStatement ConditionalInsert MultitableInserts LoopBlock RepeatBlock Undrop AlterSession"
        " UserDefinedFunction"
    ).split()
    if isinstance(kind := getattr(exp, name, None), type)
)
# Clauses of a query that change a setting, or the form of the driver's output.
_CLAUSES = ("settings", "format")
_PAST = ("version", "when", "changes")
"""Clauses of a table that ask for what it was before."""
_WORDS = {"Lock": "a row lock (FOR UPDATE, FOR SHARE)", "Into": "SELECT INTO"}


def survey(tree: exp.Expr, text: str, lexicon: Lexicon, *, exact: bool = False) -> Facts:
    """Return the facts of the tree that was parsed from `text`. Raises `InvalidSql` for a SELECT without columns.

    Calls in the place of a table are relations too, unless they are in `lexicon.table_functions` or that is None.
    `exact`: names that differ in case are different names.
    """
    facts = Facts(effect=None if is_query(tree) else _effect(tree))
    table_functions, scopes = lexicon.table_functions, _Scopes(exact, lexicon.outer_members)
    waiting: list[tuple[exp.Expr, _Names]] = [(tree, frozenset())]
    while waiting:
        node, defined = waiting.pop()
        defined |= scopes.recursing.get(id(node), frozenset())
        _note(node, defined, text, facts, exact)
        if isinstance(node, exp.Table):
            _note_bare(node, "catalog", "db", facts.bare)
        elif isinstance(node, exp.Column):
            _note_bare(node, "db", "table", facts.bare_columns)
        if isinstance(node, (exp.Table, exp.Lateral)):
            facts.placed += _find_placed(node, text)
        if table_functions is not None and isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
            _note_table_call(node, text, facts, table_functions)
        clause = node.args.get("with_")
        if isinstance(clause, exp.With):
            waiting += scopes.below(node, clause, defined)
        else:
            waiting += [(child, defined) for child in node.iter_expressions(reverse=True)]
    return facts


def _note(node: exp.Expr, defined: _Names, text: str, facts: Facts, exact: bool) -> None:
    if isinstance(node, (exp.Table, exp.In)):
        relation = _relation(node, defined, exact)
        if relation:
            place = offset_of(node.args["field"] if isinstance(node, exp.In) else node)
            facts.relations.setdefault(relation, []).append(place)
            if any(node.args.get(clause) for clause in _PAST):
                facts.versions.setdefault(relation, place)
    elif isinstance(node, exp.Func):
        call = _call(node, text)
        if call:
            facts.calls.append(call)
    elif isinstance(node, exp.DataType):
        if node.this is exp.DType.USERDEFINED:
            schema, _, name = str(node.args.get("kind") or "").replace('"', "").lower().rpartition(".")
            facts.types.setdefault(Named(name, schema or None, offset_of(node)))
    elif isinstance(node, exp.TableAlias):
        if node.args.get("columns") and node.this and "start" in node.this.meta:
            facts.aliases.add(node.this.meta["start"])
    elif isinstance(node, exp.Select) and not node.expressions:
        raise InvalidSql("A SELECT names no columns.", suggestion="Name them, or write SELECT *.")
    elif facts.effect is None:
        if isinstance(node, _STATEMENTS):
            facts.effect = _effect(node)
        elif isinstance(node, exp.CTE) and (node.args.get("scalar") or isinstance(node.this, exp.Condition)):
            raise InvalidSql("WITH names a value here.", suggestion="Write the value where it is used.")
        elif isinstance(node, exp.CTE) and not is_query(node.this):
            facts.effect = _effect(node.this)
        elif isinstance(node, exp.Query):
            facts.effect = _clause(node)


def _note_bare(node: exp.Table | exp.Column, first: str, second: str, found: dict[str, int | None]) -> None:
    word = node.args.get(first) or node.args.get(second) or node.this
    if isinstance(word, exp.Identifier) and not word.args.get("quoted"):
        found.setdefault(lower_ascii(word.name), offset_of(word))


def _note_table_call(node: exp.Table, text: str, facts: Facts, functions: frozenset[str]) -> None:
    arguments = node.this.expressions
    call = _call(node.this, text)
    # Such a table takes only a search text. Anything else is a function.
    if call and 1 <= len(arguments) <= 2 and not arguments[0].is_number and call.dotted not in functions:
        name = node.this.name if isinstance(node.this, exp.Anonymous) else call.name
        facts.relations.setdefault(Relation(name, node.db or None, node.catalog or None), []).append(call.offset)
        facts.table_calls.add(call.offset or 0)


def offset_of(node: exp.Expr) -> int | None:
    """Return the place of a node in the text: its own, or the first known one below it."""
    starts = (inner.meta.get("start") for inner in node.walk())
    return next((start for start in starts if isinstance(start, int)), None)


def is_query(tree: exp.Expr | None) -> bool:
    """Return whether a tree is a SELECT, VALUES or a set operation, in any number of parentheses."""
    while isinstance(tree, (exp.Subquery, exp.Paren)):
        tree = tree.this
    return isinstance(tree, _QUERIES)


def _effect(node: exp.Expr) -> Effect:
    name = type(node).__name__
    return Effect(_WORDS.get(name, name.upper()), offset_of(node))


def _clause(node: exp.Expr) -> Effect | None:
    held = next((name for name in _CLAUSES if node.args.get(name)), None)
    return None if held is None else Effect(f"{held.upper()} of its own", offset_of(node))


# Calls


def _call(node: exp.Func, text: str) -> FunctionCall | None:
    start = node.meta.get("start")
    if isinstance(start, int):
        written = text[start : node.meta["end"] + 1]
        # The parser reads an unknown name as a call, even if it is an operator elsewhere: glob('*').
        known = not isinstance(node, exp.Anonymous)
        if known and written.lower() in SYNTAX and not isinstance(node.parent, exp.Dot):
            return None
        return FunctionCall(_plain(written), _schema(node), start)
    if isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc)):
        return FunctionCall(lower_ascii(node.name), _schema(node), offset_of(node) or 0)
    return None


def _find_placed(node: exp.Table | exp.Lateral, text: str) -> Iterator[FunctionCall]:
    """Yield the call in the place of a relation, if there is one. There, words of the grammar are names: first(1)."""
    inner, alias = node.this, node.args.get("alias")
    if isinstance(inner, exp.Identifier) and alias and alias.args.get("columns") and not alias.this:
        # The parser reads rows(a) and pivot(1) as relations with columns of an alias that has no name.
        yield FunctionCall(lower_ascii(inner.name), _schema(inner), offset_of(inner), "table function")
    while isinstance(inner, exp.Dot):
        inner = inner.expression
    if inner is not None and not isinstance(inner, (exp.Identifier, exp.Query, exp.UDTF)):
        called = inner.find(exp.Func) or inner  # mod(1, 2) is an operator for the parser
        start = called.meta.get("start")
        known = called.sql_name() if isinstance(called, exp.Func) else called.key
        name = text[start : called.meta["end"] + 1] if isinstance(start, int) else known
        yield FunctionCall(_plain(name), _schema(called), start, "table function")


def _plain(written: str) -> str:
    """Return a name without its quotes, in lower case."""
    return lower_ascii(written.strip("\"'`[]"))


def _schema(node: exp.Expr) -> str | None:
    """Return the names before a call's name, if the call is the right side of dots."""
    parent = node.parent
    before: list[str] = []
    if isinstance(parent, exp.Dot) and parent.expression is node:
        before = [lower_ascii(part.name) for part in parent.this.find_all(exp.Identifier)] if parent.this else []
    elif isinstance(parent, exp.Table) and parent.this is node:
        before = [lower_ascii(part) for part in (parent.catalog, parent.db) if part]
    return schema_of([*before, ""])


# Relations


@dataclass(slots=True)
class _Scopes:
    """Where the names are visible that WITH defines, as far as all engines agree.

    Where they do not, a name is a relation's. `outer`: members of an inner WITH see those of an outer one.
    `recursing`: by the part of a recursive member in which its name means itself, that name.
    """

    exact: bool
    outer: bool
    recursing: dict[int, _Names] = field(default_factory=dict[int, _Names])

    def below(self, node: exp.Expr, clause: exp.With, defined: _Names) -> Iterator[tuple[exp.Expr, _Names]]:
        """Yield the nodes directly below a query with a WITH clause, last first, and the names visible there."""
        everywhere = defined | _collect_defined(clause.expressions, self.exact)
        members = list(self._members(clause, defined if self.outer else frozenset()))
        for child in node.iter_expressions(reverse=True):
            yield from reversed(members) if child is clause else ((child, everywhere),)

    def _members(self, clause: exp.With, defined: _Names) -> Iterator[tuple[exp.Expr, _Names]]:
        """Yield the members of WITH, each with the names of those before it: its own may mean a relation there."""
        for member in clause.expressions:
            yield member, defined
            name = _collect_defined([member], self.exact)
            step = _step(member.this) if clause.args.get("recursive") else None
            if step is not None:
                self.recursing[id(step)] = name
            defined |= name


def _step(query: exp.Expr) -> exp.Expr | None:
    """Return the last part of a UNION: in a recursive member, the only one in which every engine sees its own name."""
    if not isinstance(query, exp.Union) or isinstance(query.expression, exp.SetOperation):
        return None
    before = query.this
    while isinstance(before, exp.Union):
        before = before.this
    return None if isinstance(before, exp.SetOperation) else query.expression


def _collect_defined(members: list[exp.Expr], exact: bool) -> _Names:
    aliases = (member.args.get("alias") for member in members)
    return frozenset(_fold(alias.this, exact) for alias in aliases if alias is not None and alias.this)


def _relation(node: exp.Expr, defined: _Names, exact: bool) -> Relation | None:
    if isinstance(node, exp.In):
        # SQLite's `a IN t` reads the table t.
        column = node.args.get("field")
        if isinstance(column, exp.Literal) and column.is_string:
            return Relation(column.name)
        if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
            return None
        name, schema, catalog = column.this, column.table, column.db
    else:
        name = node.this
        schema, catalog = (part.name if part else "" for part in (node.args.get("db"), node.args.get("catalog")))
        if isinstance(name, exp.Dot):
            return Relation(".".join(part.name for part in name.flatten()), schema or None, catalog or None)
        if not isinstance(name, exp.Identifier):
            return None
    if not schema and _fold(name, exact) in defined:
        return None
    return Relation(name.name, schema or None, catalog or None)


def _fold(name: exp.Expr, exact: bool) -> _Name:
    """Return the form that two spellings share if they are one WITH name in every engine.

    If in doubt, a name is a relation's name, which is safe. Otherwise a name could be taken for a WITH name here and
    for a relation by an engine, which would then read it unchecked.
    """
    folded = name.name if exact else lower_ascii(name.name)
    quoted = bool(name.args.get("quoted")) and name.name != folded
    return (name.name, True) if quoted else (folded, False)
