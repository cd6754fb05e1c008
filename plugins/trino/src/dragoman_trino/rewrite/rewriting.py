"""Shared code of the rewrites: refusals, notices, and the small trees they are built from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dragoman import Unsupported
from sqlglot import exp

DECIMAL_PLACES = 10
"""The decimal places of a numeric without a fixed number of them."""


@dataclass(frozen=True, slots=True)
class Notes:
    """The SQL that the tree was written in, and the notices for the caller."""

    source: str
    notices: list[str]

    @property
    def sqlite(self) -> bool:
        """Return whether the source has SQLite's types: values have one, columns do not."""
        return self.source == "sqlite"

    def add(self, notice: str) -> None:
        """Add a notice, once."""
        if notice not in self.notices:
            self.notices.append(notice)


Rewriter = Callable[[Any, Notes], Any]


def unsupported(what: str, instead: str) -> Unsupported:
    """Return the refusal of a construct that Trino would answer differently, or not at all."""
    return Unsupported(f"{what} has no translation to Trino.", suggestion=instead)


def call(name: str, *arguments: Any, kind: str = "") -> Any:
    """Return a call of one of Trino's functions. `kind`: the kind of its result, if later rewrites need to know it."""
    parts = [text(a) if isinstance(a, str) else number(a) if isinstance(a, int) else a for a in arguments]
    node = exp.Anonymous(this=name, expressions=parts)
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
