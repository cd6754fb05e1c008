"""Shared code of the rewrites: refusals, notices, and the small trees they are built from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dragoman import Unsupported
from sqlglot import exp

# SQLs whose texts compare without case unless a collation says otherwise; Microsoft's SQLs; two families.
IGNORE_CASE = frozenset({"mysql", "tsql", "doris", "starrocks", "singlestore", "fabric"})
TSQL = frozenset({"tsql", "fabric"})
POSTGRES = frozenset({"postgres", "redshift", "materialize", "risingwave"})
TRINO = frozenset({"trino", "presto", "athena"})


@dataclass(frozen=True, slots=True)
class Notes:
    """The SQL that the tree was written in, and the notices for the caller.

    `has_derived`: a name may stand for what an inner query computes, of which SQLite knows no type.
    """

    source: str
    notices: list[str]
    has_derived: bool = False

    def add(self, notice: str) -> None:
        """Add a notice, once."""
        if notice not in self.notices:
            self.notices.append(notice)


Rewriter = Callable[[Any, Notes], Any]


def unsupported(what: str, instead: str) -> Unsupported:
    """Return the refusal of a construct that SQLite would answer differently, or not at all."""
    return Unsupported(f"{what} has no translation to SQLite.", suggestion=instead)


def call(name: str, *arguments: Any, kind: str = "") -> Any:
    """Return a call of one of SQLite's functions. `kind`: the kind of its result, if later rewrites need to know it."""
    node = exp.Anonymous(this=name, expressions=[text(a) if isinstance(a, str) else a for a in arguments])
    node.meta.update(ours=True, kind=kind)
    return node


def is_ours(node: Any) -> bool:
    """Return whether a call was created here."""
    return bool(node.meta.get("ours"))


def text(value: str) -> Any:
    """Return a text literal."""
    return exp.Literal.string(value)


def number(value: object) -> Any:
    """Return a number literal."""
    return exp.Literal.number(str(value))


def integer(node: Any) -> Any:
    """Return `node` cast to SQLite's integer."""
    return exp.Cast(this=node, to=exp.DataType.build("bigint"))


def real(node: Any) -> Any:
    """Return `node` cast to SQLite's floating point number."""
    return exp.Cast(this=node, to=exp.DataType.build("double"))


def bare(node: Any) -> Any:
    """Return `node` without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def kind_of(node: Any) -> str:
    """Return `date` or `timestamp` for a node known to be one, `interval`, else an empty text."""
    node = bare(node)
    if isinstance(node, exp.CurrentDate):
        return "date"
    if isinstance(node, exp.CurrentTimestamp):
        return "timestamp"
    if isinstance(node, exp.Interval):
        return "interval"
    return str(node.meta.get("kind", ""))


def is_text(node: Any) -> bool:
    """Return whether a node is a text literal."""
    return isinstance(node, exp.Literal) and bool(node.is_string)


def is_integer(node: Any) -> bool:
    """Return whether a node is a whole number written as digits."""
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()


def exact(node: Any) -> Decimal | None:
    """Return the value of a number literal, in parentheses and with a sign if it has them; else None."""
    node = bare(node)
    if isinstance(node, exp.Neg):
        inner = exact(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string and re.fullmatch(r"\d*\.?\d*", node.name):
        return Decimal(node.name)
    return None


SPELLED = (
    "As texts, decimals, truth values and times of columns are spelled as SQLite has them: 1.5 and 1, not 1.50 and"
    " true."
)
_PLAIN = (
    exp.Count, exp.Length, exp.StrPosition, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Placeholder, exp.Null,
    exp.DPipe, exp.Concat, exp.ConcatWs, exp.Lower, exp.Upper, exp.Substring, exp.Replace, exp.Trim, exp.GroupConcat,
)  # fmt: skip


def heed_text(value: Any, notes: Notes) -> None:
    """Add a notice where a value that becomes a text may have another spelling in SQLite."""
    value = bare(value)
    is_cast = isinstance(value, exp.Cast) and value.args["to"].this.name in {"TEXT", "VARCHAR", "INT", "BIGINT"}
    if not (is_cast or is_text(value) or is_integer(value) or is_ours(value) or isinstance(value, _PLAIN)):
        notes.add(SPELLED)


def fold(node: Any) -> Any | None:
    """Return the exact result of arithmetic on two literals, one with decimals. SQLite's would be a binary float."""
    left, right = exact(node.this), exact(node.expression)
    if left is None or right is None or (left == left.to_integral() and right == right.to_integral()):
        return None
    value = left * right if isinstance(node, exp.Mul) else left + right if isinstance(node, exp.Add) else left - right
    return exp.Neg(this=number(f"{-value:f}")) if value < 0 else number(f"{value:f}")


_PREDICATES = (
    exp.Boolean, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In,
    exp.Between, exp.Exists, exp.Like, exp.Glob, exp.Escape, exp.LogicalAnd, exp.LogicalOr, exp.NullSafeEQ,
    exp.NullSafeNEQ,
)  # fmt: skip


def is_predicate(node: Any) -> bool:
    """Return whether a node is a truth value."""
    while isinstance(node, (exp.Paren, exp.Alias)):
        node = node.this
    return isinstance(node, _PREDICATES)
