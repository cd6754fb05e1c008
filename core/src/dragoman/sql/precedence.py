"""Puts parentheses where one SQL binds operators otherwise than another.

A tree says what belongs together, and sqlglot writes it without parentheses. Every SQL multiplies before it adds,
adds before it compares, and compares before NOT, AND and OR. Where `||`, operators on bits and JSON, and chains of
comparisons stand, no two agree: `'a' || 1 + 2` is `a3` in Postgres and 2 in SQLite.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from dragoman.errors import Unsupported
from dragoman.sql.text import Token

_PREDICATES = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Glob,
    exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip
_LEVELS: tuple[tuple[Any, int], ...] = (
    (exp.Or, 0),
    (exp.And, 1),
    (exp.Not, 2),
    (_PREDICATES, 3),
    ((exp.Add, exp.Sub), 5),
    ((exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Pow), 6),
    ((exp.Neg, exp.BitwiseNot), 7),
    ((exp.JSONExtract, exp.JSONExtractScalar), 4),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Pow)
_CHAIN, _OTHER, _SUM, _SIGN = 3, 4, 5, 7
_NO_OPERATORS = (exp.Dot, exp.Escape, exp.Collate, exp.Func, exp.PropertyEQ, exp.Slice, exp.Kwarg)
_OPERANDS = ("this", "expression", "low", "high")


def write_out_precedence(tree: exp.Expr) -> exp.Expr:
    """Put each operand in parentheses that not every SQL would read as this operand."""
    for node in list(tree.walk()):
        for side, operand in list(_operands(node)):
            if _is_ambiguous(node, operand, side):
                parentheses = exp.Paren()
                operand.replace(parentheses)
                parentheses.set("this", operand)
    return tree


def check_chains(tree: exp.Expr) -> None:
    """Raise `Unsupported` for `a = b IN (...)`, which SQLite reads from the left and sqlglot from the right."""
    for node in tree.find_all(*_PREDICATES):
        last = node.args.get("expression")
        last = last.this if isinstance(last, exp.Not) else last
        if isinstance(node, exp.Binary) and isinstance(last, (exp.In, exp.Between, exp.Like, exp.Glob, exp.Is)):
            raise Unsupported("A chain of comparisons has another meaning elsewhere.", suggestion="Use parentheses.")


def check_complements(tree: exp.Expr) -> None:
    """Raise `Unsupported` for `~a + b`, which Postgres reads as `~(a + b)` and sqlglot as `(~a) + b`."""
    for found in tree.find_all(exp.BitwiseNot):
        node: Any = found
        while _ends_with(node.parent, node):
            node = node.parent
        if isinstance(node.parent, _ARITHMETIC) and node.arg_key == "this":
            raise Unsupported("~ before arithmetic has another meaning elsewhere.", suggestion="Use parentheses.")


def check_roots(text: str, tokens: tuple[Token, ...]) -> None:
    """Raise `Unsupported` for `|/ a + b`, which Postgres reads as the root of a sum and sqlglot as a sum."""
    if any(token.text == "|" and text.startswith("/", token.end) for token in tokens):
        raise Unsupported("The operators |/ and ||/ are not translated.", suggestion="Call sqrt() or cbrt().")


def _ends_with(parent: Any, node: Any) -> bool:
    """Return whether the text of a sign or of arithmetic ends with that of an operand."""
    if isinstance(parent, exp.Unary):
        return not isinstance(parent, (exp.Paren, exp.Not))
    return isinstance(parent, _ARITHMETIC) and node.arg_key != "this"


def _operands(node: exp.Expr) -> Iterator[tuple[str, Any]]:
    for side in _OPERANDS:
        operand = node.args.get(side)
        if isinstance(operand, exp.Expr):
            yield side, operand


def _level(node: exp.Expr) -> int | None:
    """Return how closely an operator binds; None for what is not one, or stands in parentheses."""
    for classes, level in _LEVELS:
        if isinstance(node, classes):
            return level
    return _OTHER if isinstance(node, exp.Binary) and not isinstance(node, _NO_OPERATORS) else None


def _is_ambiguous(node: exp.Expr, operand: exp.Expr, side: str) -> bool:
    outer, inner = _level(node), _level(operand)
    if outer is None or inner is None:
        return False
    if inner < outer:
        return True
    if inner > outer:
        return outer == _OTHER and inner < _SIGN
    if outer == _CHAIN or isinstance(node, exp.Pow):
        return True
    is_left = side == "this"
    if outer == _OTHER:
        return not (is_left and node.__class__ is operand.__class__)
    return outer >= _SUM and not is_left
