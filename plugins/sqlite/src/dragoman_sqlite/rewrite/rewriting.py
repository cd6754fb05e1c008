"""What the rewrites share: how they refuse, what they note, and the small trees they are built from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dragoman import Unsupported
from sqlglot import exp

# SQLs whose texts compare without case, unless a collation says otherwise; those of Microsoft; two families.
IGNORE_CASE = frozenset({"mysql", "tsql", "doris", "starrocks", "singlestore", "fabric"})
TSQL = frozenset({"tsql", "fabric"})
POSTGRES = frozenset({"postgres", "redshift", "materialize", "risingwave"})
TRINO = frozenset({"trino", "presto", "athena"})


@dataclass(frozen=True, slots=True)
class Notes:
    """What the tree was written in, and the notices its caller will read."""

    source: str
    notices: list[str]

    def add(self, notice: str) -> None:
        """Add a notice, once."""
        if notice not in self.notices:
            self.notices.append(notice)


Rewriter = Callable[[Any, Notes], Any]


def unsupported(what: str, instead: str) -> Unsupported:
    """The refusal of a construct that SQLite would answer differently, or not at all."""
    return Unsupported(f"{what} has no translation to SQLite.", suggestion=instead)


def call(name: str, *arguments: Any, kind: str = "") -> Any:
    """A call of one of SQLite's functions; `kind` says what it gives where later rewrites need to know."""
    node = exp.Anonymous(this=name, expressions=[text(a) if isinstance(a, str) else a for a in arguments])
    node.meta.update(ours=True, kind=kind)
    return node


def is_ours(node: Any) -> bool:
    """Whether a call was made here."""
    return bool(node.meta.get("ours"))


def text(value: str) -> Any:
    """A text literal."""
    return exp.Literal.string(value)


def number(value: object) -> Any:
    """A number literal."""
    return exp.Literal.number(str(value))


def integer(node: Any) -> Any:
    """`node` cast to SQLite's integer."""
    return exp.Cast(this=node, to=exp.DataType.build("bigint"))


def real(node: Any) -> Any:
    """`node` cast to SQLite's floating point number."""
    return exp.Cast(this=node, to=exp.DataType.build("double"))


def kind_of(node: Any) -> str:
    """`date` or `timestamp` for what is known to be one, `interval`, else an empty text."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.CurrentDate):
        return "date"
    if isinstance(node, exp.CurrentTimestamp):
        return "timestamp"
    if isinstance(node, exp.Interval):
        return "interval"
    return str(node.meta.get("kind", ""))


def is_text(node: Any) -> bool:
    """Whether a node is a text literal."""
    return isinstance(node, exp.Literal) and bool(node.is_string)


def is_integer(node: Any) -> bool:
    """Whether a node is a whole number written as digits."""
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()


def exact(node: Any) -> Decimal | None:
    """The value of a number written as a literal, in parentheses and with a sign if it has them."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Neg):
        inner = exact(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string and re.fullmatch(r"\d*\.?\d*", node.name):
        return Decimal(node.name)
    return None


def fold(node: Any) -> Any | None:
    """The exact result of arithmetic on two literals of which one has decimals: SQLite's would be a binary float's."""
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
    """Whether a node gives a truth value."""
    while isinstance(node, (exp.Paren, exp.Alias)):
        node = node.this
    return isinstance(node, _PREDICATES)
