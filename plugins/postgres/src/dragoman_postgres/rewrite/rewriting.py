"""What the rewrites share that is Postgres': refusals, notices, casts and knowledge of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dragoman import Unsupported
from dragoman.sql import rewriting
from dragoman.sql.rewriting import bare, is_integer, ours
from sqlglot import exp

TRINO = frozenset({"trino", "presto", "athena"})
SQLITE = frozenset({"sqlite"})


@dataclass(frozen=True, slots=True)
class Notes(rewriting.Notes):
    """The source and the notices."""

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


def cast(node: Any, to: str) -> Any:
    """Return `node` cast to a type of Postgres, unless it has that type already."""
    return node if kind_of(node) == to and to in {"text", "date"} else ours(_cast(node, to), _kind_of_type(to))


def _cast(node: Any, to: str) -> Any:
    return exp.Cast(this=node, to=exp.DataType.build(to, dialect="postgres"))


def binary_order(node: Any) -> Any:
    """Return a text that compares by its bytes and folds only ASCII letters, whatever the database's collation."""
    collation = exp.to_identifier("C", quoted=True)
    return ours(exp.paren(ours(exp.Collate(this=cast(node, "text"), expression=collation), "text")), "text")


def parent_of(node: Any) -> Any:
    """Return the parent of a node, beyond parentheses."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent


# Knowledge of values


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
