"""What the rewrites share that is Trino's: refusals, notices, casts and knowledge of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dragoman import Unsupported
from dragoman.sql import rewriting
from dragoman.sql.rewriting import exact, is_text
from sqlglot import exp

DECIMAL_PLACES = 10
"""The decimal places of a numeric without a fixed number of them."""


@dataclass(frozen=True, slots=True)
class Notes(rewriting.Notes):
    """The source and the notices."""

    @property
    def sqlite(self) -> bool:
        """Return whether the source has SQLite's types: values have one, columns do not."""
        return self.source == "sqlite"


Rewriter = Callable[[Any, Notes], Any]


def unsupported(what: str, instead: str) -> Unsupported:
    """Return the refusal of a construct that Trino would answer differently, or not at all."""
    return Unsupported(f"{what} has no translation to Trino.", suggestion=instead)


def cast(node: Any, to: str) -> Any:
    """Return `node` cast to the type that Trino names `to`."""
    return exp.Cast(this=node, to=exp.DataType.build(to, dialect="trino"))


def bare(node: Any) -> Any:
    """Return `node` without the parentheses and the alias around it."""
    while isinstance(node, (exp.Paren, exp.Alias)):
        node = node.this
    return node


def in_parens(node: Any) -> Any:
    """Return `node`, in parentheses if it is an operator that could bind to its new neighbours."""
    return exp.paren(node, copy=False) if isinstance(node, (exp.Binary, exp.Unary, exp.Not)) else node


def whole(node: Any) -> int | None:
    """Return the value of a whole number literal, with its sign; else None."""
    value = exact(node)
    return int(value) if value is not None and value == value.to_integral() else None


def type_name(node: Any) -> str:
    """Return the type of a cast, in sqlglot's words; an empty text if the node is not a cast."""
    return str(node.args["to"].this.name) if isinstance(node, exp.Cast) else ""


_MOMENTS = {"DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMPNTZ": "timestamp", "TIMESTAMPTZ": "timestamptz"}
_PASS_ON = (exp.Min, exp.Max, exp.Coalesce, exp.Nullif, exp.TimestampTrunc, exp.DateTrunc)


def kind_of(node: Any) -> str:
    """Return `date`, `timestamp` or `timestamptz` for a node known to be one, `interval`, else an empty text."""
    node = bare(node)
    if isinstance(node, exp.Cast):
        return _MOMENTS.get(type_name(node), "")
    if isinstance(node, exp.CurrentDate):
        return "date"
    if isinstance(node, exp.CurrentTimestamp):
        return "timestamptz"
    if isinstance(node, exp.Localtimestamp):
        return "timestamp"
    if isinstance(node, exp.Interval):
        return "interval"
    return kind_of(node.this) if isinstance(node, _PASS_ON) else str(node.meta.get("kind", ""))


_TEXTUAL = (
    exp.Lower, exp.Upper, exp.Substring, exp.Trim, exp.Replace, exp.Concat, exp.ConcatWs, exp.DPipe, exp.TimeToStr,
    exp.GroupConcat, exp.SplitPart, exp.Pad, exp.Left, exp.Right, exp.Initcap, exp.Reverse, exp.Translate, exp.Chr,
)  # fmt: skip


def is_textual(node: Any) -> bool:
    """Return whether a node is known to be a text."""
    node = bare(node)
    return is_text(node) or isinstance(node, _TEXTUAL) or type_name(node) in {"TEXT", "VARCHAR"}
