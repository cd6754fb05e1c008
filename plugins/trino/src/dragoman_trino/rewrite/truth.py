"""Truth values: SQLite's are the numbers 1 and 0, Trino's are booleans.

They are converted where the other is needed.
"""

from __future__ import annotations

from typing import Any

from dragoman.sql.rewriting import number
from sqlglot import exp

from dragoman_trino.rewrite.rewriting import in_parens

_NEVER_NULL = (exp.Exists, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)
_PREDICATES = (
    *_NEVER_NULL, exp.Boolean, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In,
    exp.Between, exp.Like, exp.Glob, exp.Escape,
)  # fmt: skip


def make_boolean(tree: Any) -> None:
    """Convert every condition below `tree` to a boolean, and all other truth values of SQLite to numbers."""
    # Children first: a condition that is copied is already converted.
    for node in reversed(list(tree.walk())):
        if isinstance(node, exp.Paren) or (isinstance(node, exp.Like) and isinstance(node.parent, exp.Escape)):
            continue
        predicate, wanted = isinstance(node, _PREDICATES), _is_condition(node)
        if wanted and not predicate:
            _put(node, _test)
        elif predicate and not wanted and node is not tree:
            _put(node, _number)


def _is_condition(node: Any) -> bool:
    parent, place = node.parent, node.arg_key
    if isinstance(parent, exp.Paren):
        return _is_condition(parent)
    if isinstance(parent, (exp.Where, exp.Having, exp.And, exp.Or, exp.Not)):
        return True
    if isinstance(parent, exp.Is):
        return (place == "this" and isinstance(parent.expression, exp.Boolean)) or isinstance(node, exp.Boolean)
    if isinstance(parent, exp.If):
        return place == "this" and not (isinstance(parent.parent, exp.Case) and parent.parent.this)
    return isinstance(parent, exp.Join) and place == "on"


def _put(node: Any, build: Any) -> None:
    parent, place, index = node.parent, node.arg_key, node.index
    parent.set(place, build(node), index)


def _test(node: Any) -> Any:
    return exp.NEQ(this=in_parens(node), expression=number(0))


def _number(node: Any) -> Any:
    if isinstance(node, exp.Boolean):
        return number(int(node.this))
    yes = exp.If(this=node, true=number(1))
    if isinstance(node, _NEVER_NULL):
        return exp.Case(ifs=[yes], default=number(0))
    return exp.Case(ifs=[yes, exp.If(this=exp.not_(exp.paren(node.copy())), true=number(0))])
