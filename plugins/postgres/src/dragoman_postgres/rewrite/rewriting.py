"""Shared code of the rewrites: refusals, notices, knowledge of values, and building trees."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dragoman import Unsupported
from sqlglot import exp

TRINO = frozenset({"trino", "presto", "athena"})
SQLITE = frozenset({"sqlite"})


@dataclass(frozen=True, slots=True)
class Notes:
    """The SQL that the tree was written in, and the notices for the caller."""

    source: str
    notices: list[str]

    def add(self, notice: str) -> None:
        """Add a notice, once."""
        if notice not in self.notices:
            self.notices.append(notice)

    @property
    def trino(self) -> bool:
        """Return whether the source is Trino or one of its family."""
        return self.source in TRINO

    @property
    def sqlite(self) -> bool:
        """Return whether the source is SQLite."""
        return self.source in SQLITE


Rewriter = Callable[[Any, Notes], Any]


def unsupported(what: str, instead: str) -> Unsupported:
    """Return the refusal of a construct that Postgres would answer differently, or not at all."""
    return Unsupported(f"{what} has no translation to Postgres.", suggestion=instead)


# Trees


def ours(node: Any, kind: str = "") -> Any:
    """Mark a node as created here. `kind`: the kind of its result, if later rewrites need to know it."""
    node.meta.update(ours=True, kind=kind)
    return node


def is_ours(node: Any) -> bool:
    """Return whether a node was created here."""
    return bool(node.meta.get("ours"))


def call(name: str, *arguments: Any, kind: str = "") -> Any:
    """Return a call of one of Postgres' functions."""
    given = [text(a) if isinstance(a, str) else number(a) if isinstance(a, int) else a for a in arguments]
    return ours(exp.Anonymous(this=name, expressions=given), kind)


def text(value: str) -> Any:
    """Return a text literal."""
    return exp.Literal.string(value)


def number(value: object) -> Any:
    """Return a number literal."""
    return exp.Literal.number(str(value))


def cast(node: Any, to: str) -> Any:
    """Return `node` cast to a type of Postgres, unless it has that type already."""
    return node if kind_of(node) == to and to in {"text", "date"} else ours(_cast(node, to), _kind_of_type(to))


def _cast(node: Any, to: str) -> Any:
    return exp.Cast(this=node, to=exp.DataType.build(to, dialect="postgres"))


def binary_order(node: Any) -> Any:
    """Return a text that compares by its bytes and folds only ASCII letters, whatever the database's collation."""
    collation = exp.to_identifier("C", quoted=True)
    return ours(exp.paren(ours(exp.Collate(this=cast(node, "text"), expression=collation), "text")), "text")


def bare(node: Any) -> Any:
    """Return `node` without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def parent_of(node: Any) -> Any:
    """Return the parent of a node, beyond parentheses."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent


# Knowledge of values


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
    if isinstance(node, exp.Literal) and not node.is_string and re.fullmatch(r"\d+\.?\d*|\.\d+", node.name):
        return Decimal(node.name)
    return None


PREDICATES = (
    exp.Boolean, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In,
    exp.Between, exp.Exists, exp.Like, exp.Glob, exp.Escape, exp.LogicalAnd, exp.LogicalOr, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.RegexpLike, exp.StartsWith,
)  # fmt: skip
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_WHOLE = (
    exp.Count, exp.CountIf, exp.ApproxDistinct, exp.Length, exp.StrPosition, exp.RowNumber, exp.Rank, exp.DenseRank,
    exp.Ntile, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.Extract, exp.Unicode, exp.ArraySize,
)  # fmt: skip
_REAL = (exp.Avg, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Cbrt, exp.PercentRank, exp.CumeDist)
_TEXT = (
    exp.DPipe, exp.Concat, exp.ConcatWs, exp.Lower, exp.Upper, exp.Substring, exp.Replace, exp.Trim, exp.Chr,
    exp.GroupConcat, exp.Reverse, exp.Pad, exp.Translate,
)  # fmt: skip
_ITS_FIRST = (exp.Min, exp.Max, exp.Alias, exp.Neg, exp.Abs, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue,
              exp.NthValue, exp.Filter, exp.Window, exp.Round, exp.Ceil, exp.Floor, exp.Trunc, exp.Nullif)  # fmt: skip
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_TYPES = {
    "integer": "INT BIGINT SMALLINT TINYINT MEDIUMINT", "real": "DOUBLE FLOAT", "decimal": "DECIMAL",
    "text": "TEXT VARCHAR CHAR NVARCHAR", "date": "DATE", "timestamp": "TIMESTAMP TIMESTAMPNTZ DATETIME",
    "zoned": "TIMESTAMPTZ", "boolean": "BOOLEAN",
}  # fmt: skip
_KINDS = {name: kind for kind, names in _TYPES.items() for name in names.split()}
NUMBERS = frozenset({"integer", "real", "decimal", "number"})
FRACTIONS = frozenset({"real", "decimal"})
MOMENTS = frozenset({"date", "timestamp", "zoned"})


def _kind_of_type(name: str) -> str:
    return _KINDS.get(exp.DataType.build(name, dialect="postgres").this.name, "")


def kind_of(node: Any) -> str:
    """Return the kind of a node's value, or an empty text if its form does not show it.

    It is one of `_TYPES`, `number` (of an unknown type), `interval` or `array`.
    """
    node = bare(node)
    if node.meta.get("kind"):
        return str(node.meta["kind"])
    for classes, kind in _BY_CLASS:
        if isinstance(node, classes):
            return kind
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "integer" if is_integer(node) else _kind_of_fraction(node)
    if isinstance(node, exp.Cast):
        return _KINDS.get(node.args["to"].this.name, "")
    if isinstance(node, _ITS_FIRST):
        return kind_of(node.this)
    if isinstance(node, _ARITHMETIC):
        return _kind_of_arithmetic(node)
    return _kind_of_choice(node)


_BY_CLASS: tuple[tuple[Any, str], ...] = (
    (PREDICATES, "boolean"),
    (_WHOLE, "integer"),
    (_REAL, "real"),
    (_TEXT, "text"),
    (exp.CurrentDate, "date"),
    (exp.Localtimestamp, "timestamp"),
    (exp.CurrentTimestamp, "zoned"),
    (exp.Interval, "interval"),
    (exp.Array, "array"),
)


def _kind_of_fraction(node: Any) -> str:
    return "real" if "e" in node.name.lower() else "decimal"


def _kind_of_arithmetic(node: Any) -> str:
    left, right = kind_of(node.this), kind_of(node.expression)
    for kind in ("real", "decimal"):
        if kind in (left, right):
            return kind
    if left == right == "integer":
        return "integer"
    known = isinstance(node, (exp.Mul, exp.Div, exp.Mod)) or "number" in (left, right) or "integer" in (left, right)
    return "number" if known and not MOMENTS & {left, right} else ""


def _kind_of_choice(node: Any) -> str:
    if isinstance(node, exp.Sum):
        kind = kind_of(node.this)
        return kind if kind in NUMBERS else "number"
    if isinstance(node, (exp.Coalesce, exp.Greatest, exp.Least)):
        return _find_shared([node.this, *node.expressions])
    if isinstance(node, exp.If):
        return _find_shared([node.args.get("true"), node.args.get("false")])
    if isinstance(node, exp.Case):
        return _find_shared([*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")])
    return ""


def _find_shared(nodes: list[Any]) -> str:
    kinds = {kind_of(node) for node in nodes if node is not None and not isinstance(bare(node), exp.Null)}
    if len(kinds) == 1:
        return kinds.pop()
    return "number" if kinds and kinds <= NUMBERS else ""
