"""Tells where a query of another SQL may be answered otherwise by DuckDB. No rules cover it: sqlglot's text runs."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

UNKNOWN = "No translation rules cover this pair of dialects: check the result."
DIVISION = "A division of whole numbers keeps its fraction in DuckDB: write trunc(a / b) to drop it."
_FRACTIONS = frozenset({"DOUBLE", "FLOAT", "DECIMAL"})


def rewrite(tree: Any) -> Any:
    """Return the tree unchanged, with notices in its `meta`."""
    notices = tree.meta.setdefault("notices", [])
    notices.append(UNKNOWN)
    if any(_may_be_whole(division) for division in tree.find_all(exp.Div)):
        notices.append(DIVISION)
    return tree


def _may_be_whole(division: Any) -> bool:
    """Return whether the source drops the fraction of a division of whole numbers, and neither side shows one."""
    return bool(division.args.get("typed")) and not any(map(_has_fraction, (division.this, division.expression)))


def _has_fraction(value: Any) -> bool:
    if isinstance(value, exp.Literal):
        return not value.is_string and not value.name.isdigit()
    if isinstance(value, exp.Cast):
        return value.args["to"].this.name in _FRACTIONS
    return isinstance(value, exp.Avg) or (isinstance(value, exp.Paren | exp.Neg) and _has_fraction(value.this))
