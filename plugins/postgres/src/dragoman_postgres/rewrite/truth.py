"""Comparisons and truth values. SQLite has no booleans, ignores types in comparisons, and compares dates as texts."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import bare, call, exact, is_ours, is_text, number, only_selects, ours
from sqlglot import exp

from dragoman_postgres.rewrite.rewriting import (
    COMPARISONS,
    NUMBERS,
    Notes,
    Rewriter,
    binary_order,
    cast,
    kind_of,
    parent_of,
    unsupported,
)

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ORDERED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_COLLATION = "Texts compare and sort by the database's collation, not by the codes of their letters."
_MIDNIGHT = (
    "With a column of dates or timestamps, a text like a date is compared as one: midnight is the day itself, where"
    " SQLite compares texts."
)
_CLOCK = re.compile(rf"{_DATE.pattern} \d\d:\d\d:\d\d")
_MIRRORED: dict[type[Any], type[Any]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}


def _compare(node: Any, notes: Notes) -> Any:
    if isinstance(node, _ORDERED):
        _heed_collation([node.this, node.expression], notes)
    if not notes.sqlite or isinstance(node.expression, (exp.Any, exp.All)):
        return node
    _check(node.this, node.expression)
    _heed_midnight(node.this, node.__class__, node.expression, notes)
    _heed_midnight(node.expression, _MIRRORED.get(node.__class__, node.__class__), node.this, notes)
    left, right = _alike(node.this, node.expression), _alike(node.expression, node.this)
    node.set("this", left)
    node.set("expression", right)
    return node


def _heed_collation(sides: list[Any], notes: Notes) -> None:
    kinds = {kind_of(side) for side in sides if side is not None}
    texts = [side for side in sides if is_text(side)]
    if (notes.trino or notes.sqlite) and kinds <= {"", "text"} and not any(_DATE.match(side.name) for side in texts):
        notes.add(_COLLATION)


def _heed_midnight(value: Any, compared: type[Any], moment: Any, notes: Notes) -> None:
    """Say where a column of an unknown type gives another answer as a date or timestamp than as a text."""
    if not kind_of(value) and not is_text(value) and compared not in _find_safe(moment):
        notes.add(_MIDNIGHT)


def _find_safe(moment: Any) -> tuple[type[Any], ...]:
    """Return the comparisons with what may be a moment that mean the same for its text."""
    written = moment.name if is_text(moment) else ""
    if _DATE.fullmatch(written) or kind_of(moment) == "date":
        return exp.GTE, exp.LT
    if _CLOCK.fullmatch(written) or moment.meta.get("moment") is not None:
        return exp.GT, exp.LTE
    return () if re.match(r"\d{4}-\d", written) else (*COMPARISONS, exp.In, exp.Nullif)


def _check(left: Any, right: Any) -> None:
    kinds = kind_of(left), kind_of(right)
    if any(kinds == pair for number in (*NUMBERS, "boolean") for pair in (("text", number), (number, "text"))):
        raise unsupported("A comparison of a text with a number, which are never equal in SQLite,", "Cast one of them.")


def _alike(side: Any, other: Any) -> Any:
    """Return `side` in the form that compares with `other` as in SQLite."""
    if other.meta.get("nocase") and not side.meta.get("nocase"):
        return ignoring_case(side)
    if kind_of(side) == "boolean" and kind_of(other) in NUMBERS:
        return cast(side, "integer")
    dated = side.meta.get("moment") is not None
    if kind_of(other) == "text":
        partial = kind_of(side) == "date" and not (is_text(other) and _DATE.fullmatch(other.name))
        return binary_order(side) if dated or partial else side
    return side.meta["moment"] if dated else side


def ignoring_case(value: Any) -> Any:
    """Return `value` as a text in which the case of ASCII letters is ignored."""
    return ours(call("lower", binary_order(value)), "text")


def _collate(node: Any, notes: Notes) -> Any:
    if is_ours(node):
        return node
    name = node.expression.name.upper()
    if not notes.sqlite or name not in {"NOCASE", "BINARY"}:
        raise unsupported(f"The collation {node.expression.name}", "Leave it out.")
    if name == "BINARY":
        return binary_order(node.this)
    if not isinstance(parent_of(node), (*COMPARISONS, exp.Between, exp.In, exp.Ordered)):
        raise unsupported("COLLATE NOCASE outside of a comparison", "Use lower().")
    lowered = ignoring_case(node.this)
    lowered.meta["nocase"] = True
    return lowered


def _between(node: Any, notes: Notes) -> Any:
    low, high = node.args["low"], node.args["high"]
    _heed_collation([node.this, low, high], notes)
    if not notes.sqlite:
        return node
    for bound, compared in ((low, exp.GTE), (high, exp.LTE)):
        _check(node.this, bound)
        _heed_midnight(node.this, compared, bound, notes)
    if kind_of(low) == kind_of(high):
        value = _alike(node.this, low)
        for name, bound in (("low", low), ("high", high)):
            node.set(name, _alike(bound, node.this))
        node.set("this", value)
    return node


def _heed_rows(node: Any, notes: Notes) -> None:
    """Say that Trino's IN of rows may be NULL where a field is, unless NULL is as good as false there."""
    if not only_selects(node):
        notes.add(
            "IN of rows in which a field is NULL may be NULL in Trino where it is true or false here, and false"
            " where it is NULL here."
        )


def _among(node: Any, notes: Notes) -> Any:
    if node.args.get("unnest") or node.args.get("field"):
        raise unsupported("IN of an array", "Write IN with the values one by one.")
    if notes.trino and isinstance(node.this, exp.Tuple):
        _heed_rows(node, notes)
    if notes.sqlite:
        for value in node.expressions:
            _check(node.this, value)
            _heed_midnight(node.this, exp.In, value, notes)
        of_one_type(node.expressions)
        if not node.expressions and not node.args.get("query"):
            return exp.false()
        if node.this.meta.get("nocase"):
            node.set("expressions", [ignoring_case(value) for value in node.expressions])
    return node


def _sort(node: Any, notes: Notes) -> Any:
    if (notes.trino or notes.sqlite) and not kind_of(node.this) and exact(node.this) is None:
        notes.add(_COLLATION)
    return node


def _choose(node: Any, notes: Notes) -> Any:
    """Rewrite CASE and IF. In SQLite every branch may have another type."""
    if notes.sqlite and not isinstance(node.parent, exp.Case):
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        of_one_type([*(b.args["true"] for b in branches), node.args.get("default") or node.args.get("false")])
        if isinstance(node, exp.If) or node.this is None:
            for branch in branches:
                branch.set("this", as_condition(branch.this))
    return node


def of_one_type(values: list[Any]) -> None:
    """Raise `Unsupported` for texts among numbers, which SQLite accepts anywhere."""
    kinds = {"number" if kind_of(v) in NUMBERS | {"boolean"} else kind_of(v) for v in values if v is not None}
    if {"text", "number"} <= kinds:
        raise unsupported("A value that may be a text or a number", "Give every branch the same type.")


def _coalesce(node: Any, notes: Notes) -> Any:
    if notes.sqlite:
        of_one_type([node.this, *node.expressions])
    return node


def _null_if(node: Any, notes: Notes) -> Any:
    if notes.sqlite:
        _heed_midnight(node.this, exp.Nullif, node.expression, notes)
    return node


def as_condition(value: Any) -> Any:
    """Return `value` where a truth value is required: in SQLite any number but 0 is true."""
    kind = kind_of(value)
    if kind == "text":
        raise unsupported("A text as a truth value", "Compare it with something.")
    return exp.paren(exp.NEQ(this=value, expression=number(0))) if kind in NUMBERS else value


def _clause(node: Any, notes: Notes) -> Any:
    for side in ("on",) if isinstance(node, exp.Join) else ("this", "expression"):
        if notes.sqlite and node.args.get(side) is not None:
            node.set(side, as_condition(node.args[side]))
    return node


# Places where a truth value may stay one. Anywhere else it is 1 or 0, as in SQLite.
_TRUTHFUL = (
    exp.And, exp.Or, exp.Not, exp.Where, exp.Having, exp.Join, exp.Is, exp.Select, exp.Alias, exp.Ordered, exp.Group,
    exp.LogicalAnd, exp.LogicalOr, exp.Filter, exp.Escape, exp.Distinct, exp.Tuple, exp.Cast,
)  # fmt: skip


def number_truths(tree: Any) -> None:
    """Convert SQLite's truth values to numbers where they are used as such."""
    for node in list(tree.walk()):
        if isinstance(node, exp.Paren) or kind_of(node) != "boolean" or is_ours(node):
            continue
        parent = parent_of(node)
        if not (parent is None or isinstance(parent, _TRUTHFUL) or _is_test(node, parent) or _is_pair(parent)):
            node.replace(cast(node.copy(), "integer"))


def _is_pair(parent: Any) -> bool:
    """Return whether two truth values are compared."""
    return isinstance(parent, COMPARISONS) and kind_of(parent.this) == kind_of(parent.expression) == "boolean"


def _is_test(node: Any, parent: Any) -> bool:
    return isinstance(parent, exp.If) and bare(parent.this) is bare(node)


TRUTH: dict[type[Any], Rewriter] = {
    **dict.fromkeys(COMPARISONS, _compare),
    exp.Between: _between,
    exp.In: _among,
    exp.Collate: _collate,
    exp.Ordered: _sort,
    exp.Case: _choose,
    exp.If: _choose,
    exp.Coalesce: _coalesce,
    exp.Nullif: _null_if,
    **dict.fromkeys((exp.And, exp.Or, exp.Not, exp.Where, exp.Having, exp.Join), _clause),
}
