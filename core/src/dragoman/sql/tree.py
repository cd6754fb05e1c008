"""What a sqlglot tree tells: relations, functions, and everything that is not a query. Every walk is iterative."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from dragoman.errors import InvalidSql
from dragoman.model import Relation
from dragoman.sql.calls import FunctionCall, type_tails, verbs
from dragoman.sql.text import Token

if TYPE_CHECKING:
    from dragoman.sql.statement import Statement

# sqlglot logs the text of what it cannot read, and a statement may hold secrets.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


def parse(statement: Statement) -> exp.Expr:
    """Return the tree of `statement`. Raises `InvalidSql`, whatever sqlglot stumbles over."""
    try:
        return parse_text(statement, numberless(statement))
    except InvalidSql:
        plainer = _plainer(statement)
        if plainer == numberless(statement):
            raise
        return parse_text(statement, plainer)


def parse_text(statement: Statement, text: str) -> exp.Expr:
    """Return the tree of `text`, which stands for `statement`. Raises `InvalidSql`."""
    try:
        trees = sqlglot.parse(text, read=statement.sqlglot)
    except ParseError as error:
        raise _invalid(statement, error) from None
    except RecursionError:
        raise InvalidSql(
            "The statement is nested too deeply.", suggestion="Use WITH to name inner queries instead of nesting them."
        ) from None
    except Exception:  # sqlglot's tokenizer and builders raise errors of many types on odd input: all mean the same
        raise _invalid(statement, None) from None
    if len(trees) != 1 or trees[0] is None:
        raise _invalid(statement, None)
    return trees[0]


def numberless(statement: Statement) -> str:
    """The text with `?2` written as `? `, since sqlglot knows parameters without numbers only. Offsets stay."""
    numbered = (token for token in statement.tokens if token.kind == "parameter" and token.text[0] == "?")
    return _replaced(statement.text, [(token, "?") for token in numbered]) if "?" in statement.text else statement.text


def _plainer(statement: Statement) -> str:
    """The text in words sqlglot knows, for what it cannot read otherwise. Relations and calls stay, and so do offsets.

    `WITH ... VALUES (1), (2)` becomes a SELECT of the same rows, `a LIKE b ESCAPE c` another expression of the three,
    `CAST(a AS DOUBLE PRECISION)` a cast to one word.
    """
    changes = [(verb, "SELECT") for verb in verbs(statement.tokens) if verb.text.lower() == "values"]
    changes += [(token, "||") for token in statement.tokens if token.text.lower() == "escape"]
    changes += [(token, "") for token in type_tails(statement.tokens)]
    return _replaced(numberless(statement), changes)


def _replaced(text: str, changes: list[tuple[Token, str]]) -> str:
    for token, new in changes:
        text = text[: token.start] + new.ljust(len(token.text)) + text[token.end :]
    return text


def _invalid(statement: Statement, error: ParseError | None) -> InvalidSql:
    """The refusal of a text that does not parse, with the place where sqlglot gave up when it tells one."""
    offset = None
    if error and error.errors and error.errors[0].get("line"):
        found = error.errors[0]
        lines = statement.text.splitlines(keepends=True)
        before = sum(len(line) for line in lines[: found["line"] - 1])
        offset = max(0, min(before + found["col"] - len(found.get("highlight") or "x"), len(statement.text) - 1))
    return InvalidSql("The statement does not parse.", suggestion="Check its syntax.", offset=offset)


def offset_of(node: exp.Expr) -> int | None:
    """Where a node stands in the text: its own place, or the first one known below it."""
    for inner in node.walk():
        start = inner.meta.get("start") if inner.meta else None
        if isinstance(start, int):
            return start
    return None


# Calls


def tree_calls(tree: exp.Expr, text: str) -> Iterator[FunctionCall]:
    """Yield the functions of a tree under the names they are written with. Operators and literals are none."""
    for node in tree.find_all(exp.Func):
        start = node.meta.get("start")
        if isinstance(start, int):
            written = text[start : node.meta["end"] + 1]
            yield FunctionCall(_dotted(node, written.strip("\"'`[]").lower()), start)
        elif isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc)):
            yield FunctionCall(_dotted(node, node.name.lower()), offset_of(node) or 0)


def _dotted(node: exp.Expr, name: str) -> str:
    """`name` with the names before it, when the call is the right side of dots."""
    parent = node.parent
    if isinstance(parent, exp.Dot) and parent.expression is node:
        return ".".join([*(part.name.lower() for part in parent.this.find_all(exp.Identifier)), name])
    if isinstance(parent, exp.Table) and parent.this is node:
        return ".".join([*(part.lower() for part in (parent.catalog, parent.db) if part), name])
    return name


def alias_offsets(tree: exp.Expr) -> frozenset[int]:
    """Where names of the form `t(a, b)` stand that are aliases of relations with their columns, not calls."""
    aliases = (alias.this for alias in tree.find_all(exp.TableAlias) if alias.args.get("columns") and alias.this)
    return frozenset(alias.meta["start"] for alias in aliases if "start" in alias.meta)


# Relations


def relations(tree: exp.Expr) -> tuple[Relation, ...]:
    """Return the relations a tree names, as written, once each, without those its WITH clauses define."""
    found: dict[Relation, None] = {}
    waiting: list[tuple[exp.Expr, _Names]] = [(tree, frozenset())]
    while waiting:
        node, defined = waiting.pop()
        relation = _relation(node, defined) if isinstance(node, (exp.Table, exp.In)) else None
        if relation:
            found[relation] = None
        waiting += _children(node, defined)
    return tuple(found)


_Name = tuple[str, bool]
_Names = frozenset[_Name]


def _children(node: exp.Expr, defined: _Names) -> Iterator[tuple[exp.Expr, _Names]]:
    """Yield what stands directly below a node, last first, with the WITH names that are visible there."""
    clause = node.args.get("with_")
    everywhere, within = defined, list[tuple[exp.Expr, _Names]]()
    if isinstance(clause, exp.With):
        everywhere |= _defined(clause.expressions)
        within = list(_members(clause, everywhere if clause.args.get("recursive") else defined))
    for child in node.iter_expressions(reverse=True):
        yield from reversed(within) if child is clause else ((child, everywhere),)


def _members(clause: exp.With, defined: _Names) -> Iterator[tuple[exp.Expr, _Names]]:
    # Without RECURSIVE a member sees those before it: its own name there means a relation of that name.
    for member in clause.expressions:
        yield member, defined
        defined |= _defined([member])


def _defined(members: list[exp.Expr]) -> _Names:
    aliases = (member.args.get("alias") for member in members)
    return frozenset(_folded(alias.this) for alias in aliases if alias is not None and alias.this)


def _relation(node: exp.Expr, defined: _Names) -> Relation | None:
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
    if not schema and _folded(name) in defined:
        return None
    return Relation(name.name, schema or None, catalog or None)


def _folded(name: exp.Expr) -> _Name:
    """What two spellings of one WITH name share. Wrongly told apart, a name counts as a relation, which is safe."""
    quoted = bool(name.args.get("quoted")) and name.name != name.name.lower()
    return (name.name, True) if quoted else (name.name.lower(), False)


# Queries and everything else


@dataclass(frozen=True, slots=True)
class Effect:
    """Something in a tree that is not a query: what it is, in words, and where."""

    what: str
    offset: int | None


_QUERIES = (exp.Select, exp.SetOperation, exp.Values)
_STATEMENTS = tuple(
    kind
    for name in (
        "DML DDL Command Pragma Set Use Attach Detach Transaction Commit Rollback Kill Copy Cache Uncache Refresh Drop"
        " Alter TruncateTable Analyze Comment Grant Revoke Describe Show LoadData Merge Returning Summarize Declare"
        " Execute ExecuteSql IfBlock WhileBlock Block Put Get Semicolon Export Install Lock Into"
    ).split()
    if isinstance(kind := getattr(exp, name, None), type)
)
_WORDS = {"DML": "a write", "DDL": "a definition", "Lock": "a row lock (FOR UPDATE, FOR SHARE)", "Into": "SELECT INTO"}


def is_query(tree: exp.Expr | None) -> bool:
    """Whether a tree is a SELECT, VALUES or a set operation, in any number of parentheses."""
    while isinstance(tree, (exp.Subquery, exp.Paren)):
        tree = tree.this
    return isinstance(tree, _QUERIES)


def effect(tree: exp.Expr) -> Effect | None:
    """Return the first thing that makes a tree more than a query, wherever it stands in it."""
    if not is_query(tree):
        return Effect(_words(tree), offset_of(tree))
    for node in tree.walk():
        if isinstance(node, _STATEMENTS):
            return Effect(_words(node), offset_of(node))
        if isinstance(node, exp.CTE) and not is_query(node.this):
            return Effect(f"{_words(node.this)} within WITH", offset_of(node))
    return None


def _words(node: exp.Expr) -> str:
    return _WORDS.get(type(node).__name__) or f"{type(node).__name__.upper()}"
