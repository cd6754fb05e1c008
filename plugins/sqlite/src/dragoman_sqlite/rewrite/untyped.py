"""Texts beside values, which Postgres reads as values of the same type: 'true' beside a truth value is one.

SQLite has 1 and 0 for truth values, and computes with the number that a text begins with.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from dragoman_sqlite.rewrite.rewriting import POSTGRES, Notes, bare, call, is_text, number, text, unsupported

_TRUE = re.compile(r"t(?:r(?:ue?)?)?|y(?:es?)?|on", re.IGNORECASE)
_FALSE = re.compile(r"f(?:a(?:l(?:se?)?)?)?|no?|off?", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")


def refuse_arithmetic(node: Any, notes: Notes) -> None:
    """Refuse arithmetic with a text that is no number: beside a date it is a date, or an interval."""
    if notes.source not in POSTGRES:
        return
    for side in (bare(node.this), bare(node.expression)):
        if is_text(side) and not _NUMBER.fullmatch(side.name):
            raise unsupported("Arithmetic with a text of no written type", "Write its type: '2024-01-31'::date.")


def as_truth(value: Any, written: Any, notes: Notes) -> Any:
    """Return a text that is compared with `value`: where `value` is a truth value, the number that stands for it."""
    truth = (
        _truth(written) if notes.source in POSTGRES and isinstance(bare(value), (exp.Column, exp.Coalesce)) else None
    )
    if truth is None:
        return written
    kind = call("typeof", bare(value).copy())
    return exp.Case(this=kind, ifs=[exp.If(this=text("integer"), true=number(truth))], default=text(written.name))


def _truth(written: Any) -> int | None:
    name = written.name.strip() if is_text(written) else ""
    return 1 if _TRUE.fullmatch(name) else 0 if _FALSE.fullmatch(name) else None


def case_of_value(node: Any, notes: Notes) -> Any:
    """Rewrite `CASE a WHEN 'true' THEN ...`."""
    for branch in node.args["ifs"] if node.this is not None else ():
        branch.set("this", as_truth(node.this, branch.this, notes))
    return node


def nullif(node: Any, notes: Notes) -> Any:
    """Rewrite nullif of a column and a text, which SQLite compares without regard to the type of the column."""
    value, other = node.this, node.expression
    if notes.source not in POSTGRES or not isinstance(value, exp.Column):
        return node
    if not isinstance(other, exp.Placeholder) and not (is_text(other) and other.name):
        return node
    equal = exp.EQ(this=value.copy(), expression=as_truth(value, other.copy(), notes))
    return exp.Case(ifs=[exp.If(this=equal, true=exp.Null())], default=value)
