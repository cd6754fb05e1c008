"""What the rewrites share that is SQLite's: refusals, notices, casts and knowledge of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dragoman import Unsupported
from dragoman.sql import rewriting
from dragoman.sql.rewriting import bare, exact, is_integer, is_ours, is_text, number
from sqlglot import exp

# SQLs whose texts compare without case unless a collation says otherwise; Microsoft's SQLs; two families.
IGNORE_CASE = frozenset({"mysql", "tsql", "doris", "starrocks", "singlestore", "fabric"})
TSQL = frozenset({"tsql", "fabric"})
POSTGRES = frozenset({"postgres", "redshift", "materialize", "risingwave"})
TRINO = frozenset({"trino", "presto", "athena"})


@dataclass(frozen=True, slots=True)
class Notes(rewriting.Notes):
    """The source and the notices.

    `has_derived`: a name may stand for what an inner query computes, of which SQLite knows no type.
    """

    has_derived: bool = False


Rewriter = Callable[[Any, Notes], Any]


def unsupported(what: str, instead: str) -> Unsupported:
    """Return the refusal of a construct that SQLite would answer differently, or not at all."""
    return Unsupported(f"{what} has no translation to SQLite.", suggestion=instead)


def integer(node: Any) -> Any:
    """Return `node` cast to SQLite's integer."""
    return exp.Cast(this=node, to=exp.DataType.build("bigint"))


def real(node: Any) -> Any:
    """Return `node` cast to SQLite's floating point number."""
    return exp.Cast(this=node, to=exp.DataType.build("double"))


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
