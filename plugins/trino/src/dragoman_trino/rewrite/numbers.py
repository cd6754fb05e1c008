"""Numbers: divisions and their decimal places, rounding, extremes with NULL, shifts."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from dragoman.sql.rewriting import call, exact, is_integer, is_text, number
from sqlglot import exp

from dragoman_trino.rewrite.rewriting import (
    DECIMAL_PLACES,
    Notes,
    Rewriter,
    bare,
    cast,
    in_parens,
    kind_of,
    type_name,
    unsupported,
    whole,
)

_PLACES = 16
_BIGINT = 2**63 - 1
_DIVIDED = (
    "Trino's division of decimals keeps the decimal places of its operands, fewer than "
    "the source's. A division of whole numbers has none, also if they are a sum() of "
    "bigint."
)
_AVERAGED = "avg() of decimals keeps their number of decimal places in Trino."
_HALVES = "round() rounds halves away from zero in Trino, of doubles too."

_WHOLE_TYPES = frozenset({"INT", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT"})
_DOUBLE_TYPES = frozenset({"DOUBLE", "FLOAT"})
_WHOLE = (
    exp.Count, exp.Length, exp.StrPosition, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Extract,
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift,
)  # fmt: skip
_DOUBLE = (exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Pi, exp.Stddev, exp.Variance, exp.Rand)
_PASS_ON = (exp.Window, exp.Filter, exp.Neg, exp.Abs, exp.Sum, exp.Min, exp.Max, exp.Round)


def kind_of_number(node: Any) -> str:
    """Return `whole`, `decimal` or `double` for a number known to be one; else an empty text."""
    node = bare(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        return "whole" if node.name.isdigit() else "double" if "e" in node.name.lower() else "decimal"
    if isinstance(node, exp.Cast):
        name = type_name(node)
        return (
            "whole" if name in _WHOLE_TYPES else "double" if name in _DOUBLE_TYPES else _decimal_if(name == "DECIMAL")
        )
    if isinstance(node, _WHOLE):
        return "whole"
    if isinstance(node, _DOUBLE):
        return "double"
    if isinstance(node, (*_PASS_ON, exp.Avg)):
        return kind_of_number(node.this)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)):
        sides = {kind_of_number(node.this), kind_of_number(node.expression)}
        return "double" if "double" in sides else sides.pop() if len(sides) == 1 else ""
    return str(node.meta.get("number", ""))


def _decimal_if(known: bool) -> str:
    return "decimal" if known else ""


def _literal(node: Any, notes: Notes) -> Any:
    """Rewrite a number with decimals. In SQLite it is a binary float, elsewhere it is exact, with an exponent too."""
    if node.is_string or isinstance(node.parent, (exp.DataTypeParam, exp.Interval)):
        return node
    name = node.name.lower()
    if name.isdigit():
        return node if int(name) <= _BIGINT else number(name + ("e0" if notes.sqlite else "."))
    if notes.sqlite:
        return node if "e" in name else number(f"{name}e0")
    if notes.source == "postgres" and "e" in name:
        value = Decimal(name)
        return number(f"{value:f}" if value != value.to_integral() else f"{value:f}.0")
    return node


def _quotient(node: Any, notes: Notes) -> Any:
    left, right = node.this, node.expression
    kinds = {kind_of_number(left), kind_of_number(right)}
    if notes.sqlite:
        if "double" not in kinds and kinds != {"whole"}:
            raise unsupported(
                "A division that is whole or not by the values of its columns",
                "Say which: write x * 1.0 / y, or CAST(x AS INTEGER) / CAST(y AS INTEGER).",
            )
        return _over(node)
    if notes.source == "postgres" and kinds <= {"whole", ""} and (_has_field(left) or _has_field(right)):
        notes.add(_DIVIDED)
        return exp.Div(this=cast(bare(left), f"decimal(38, {DECIMAL_PLACES})"), expression=right, typed=True)
    if "double" not in kinds and kinds != {"whole"}:
        notes.add(_DIVIDED)
        left, right = _widen(left), _widen(right)
    return exp.Div(this=left, expression=right, typed=True)


def _has_field(node: Any) -> bool:
    """Return whether a whole number is computed from a field of a date and not cast to an integer."""
    node = bare(node)
    if node.meta.get("field"):
        return True
    passes_on = isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, *_PASS_ON))
    return passes_on and any(_has_field(side) for side in (node.this, node.expression) if side is not None)


def _over(node: Any) -> Any:
    """Return a division that gives NULL for zero, as in SQLite."""
    right = node.expression
    if not exact(right) and not _nonzero_double(right):
        right = call("nullif", right, 0)
    return node.__class__(this=node.this, expression=right, **({"typed": True} if isinstance(node, exp.Div) else {}))


def _nonzero_double(node: Any) -> bool:
    node = bare(node)
    return isinstance(node, exp.Literal) and not node.is_string and float(node.name) != 0


def _widen(node: Any) -> Any:
    """Return a literal with enough decimal places for the quotient."""
    value = exact(node)
    if value is None or is_integer(node) or (whole(node) is not None and "." not in bare(node).sql()):
        return node
    wide = number(f"{abs(value):.{_PLACES}f}")
    return exp.Neg(this=wide) if value < 0 else wide


def _remainder(node: Any, notes: Notes) -> Any:
    if not notes.sqlite:
        return node
    if "double" in {kind_of_number(node.this), kind_of_number(node.expression)}:
        raise unsupported("The remainder of numbers with decimals", "Cast both to INTEGER.")
    if {kind_of_number(node.this), kind_of_number(node.expression)} != {"whole"}:
        notes.add("% of columns with decimals is exact in Trino; SQLite drops the decimals first.")
    return _over(exp.Mod(this=in_parens(node.this), expression=in_parens(node.expression)))


def _product(node: Any, notes: Notes) -> Any:
    if any(kind_of(side) == "interval" for side in (node.this, node.expression)):
        raise unsupported("Arithmetic on an interval", "Write the whole interval as a literal.")
    check_numbers(node)
    return fold(node, notes) or node


def fold(node: Any, notes: Notes) -> Any | None:
    """Compute arithmetic on whole literals of SQLite, whose integers are larger than Trino's literals."""
    left, right = whole(node.this), whole(node.expression)
    if not notes.sqlite or left is None or right is None:
        return None
    value = left * right if isinstance(node, exp.Mul) else left + right if isinstance(node, exp.Add) else left - right
    written = number(f"{abs(value)}{'' if abs(value) <= _BIGINT else 'e0'}")
    return exp.Neg(this=written) if value < 0 else written


def check_numbers(node: Any) -> None:
    """Refuse arithmetic on a text, which is a number in SQLite."""
    if any(is_text(side) for side in (node.this, node.expression)):
        raise unsupported("Arithmetic on a text", "Write a number.")


def _average(node: Any, notes: Notes) -> Any:
    if notes.sqlite:
        inner = node.this
        if isinstance(inner, exp.Distinct):
            return exp.Avg(this=exp.Distinct(expressions=[cast(inner.expressions[0], "double")]))
        return exp.Avg(this=cast(inner, "double"))
    if kind_of_number(node.this) != "double":
        notes.add(_AVERAGED)
    return node


def _round(node: Any, notes: Notes) -> Any:
    value, digits = node.this, node.args.get("decimals")
    if notes.sqlite:
        return _round_double(value, digits, notes) if digits is not None else node
    if kind_of_number(value) == "double" and not digits:
        raise unsupported("round() of a double, which rounds halves to even,", "Cast to numeric first.")
    if not kind_of_number(value) and not digits:
        notes.add(_HALVES)
    return node


def _round_double(value: Any, digits: Any, notes: Notes) -> Any:
    """Round a double. SQLite rounds the binary float, which is seldom a half; Trino the decimal as it is written."""
    places = whole(digits)
    if places is None:
        raise unsupported("round() to a computed number of digits", "Write the number of digits.")
    places = max(places, 0)
    constant = bare(value)
    if isinstance(constant, exp.Literal) and not constant.is_string:
        rounded = Decimal(float(constant.name)).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
        return number(f"{rounded:f}e0")
    if places:
        notes.add("round() of a half goes away from zero in Trino; in SQLite it follows the binary float beside it.")
    return exp.Round(this=value, decimals=number(places))


def _extreme(node: Any, notes: Notes) -> Any:
    values = [node.this, *node.expressions]
    name = "greatest" if isinstance(node, exp.Greatest) else "least"
    if not values[1:]:
        raise unsupported(f"{name} of one value", "Give it two values.")
    known = [value for value in values if not isinstance(value, exp.Null)]
    if not node.args.get("ignore_nulls"):
        return call(name, *values) if len(known) == len(values) else exp.Null()
    # Trino's greatest() is NULL if one argument is, so each argument falls back on the others.
    turned = (known[n:] + known[:n] for n in range(len(known)))
    fallen = [call("coalesce", *(v.copy() for v in turn)) if len(known) > 1 else turn[0] for turn in turned]
    return call(name, *fallen) if fallen[1:] else fallen[0] if fallen else exp.Null()


def _shift(node: Any, notes: Notes) -> Any:
    by = whole(node.expression)
    if by is None or not 0 <= by < (64 if notes.sqlite else 32):
        raise unsupported("A shift by what is computed, or by a number's width or more", "Multiply by a power of two.")
    if notes.sqlite or isinstance(node, exp.BitwiseRightShift):
        name = "bitwise_right_shift_arithmetic" if isinstance(node, exp.BitwiseRightShift) else "bitwise_left_shift"
        return call(name, cast(node.this, "bigint"), by)
    return node


def _whole_quotient(node: Any, notes: Notes) -> Any:
    if not (is_integer(node.this) and is_integer(node.expression)):
        raise unsupported("div() of what may have decimals", "Cast both to bigint and write /.")
    return exp.paren(exp.Div(this=node.this, expression=node.expression, typed=True))


def _random(node: Any, notes: Notes) -> Any:
    if notes.sqlite and not isinstance(node.parent, exp.Ordered):
        raise unsupported("random() as a whole number", "Use it in ORDER BY random() only.")
    return node


def _logarithm(node: Any, notes: Notes) -> Any:
    if node.expression is None:
        return call("log10", node.this)
    return call("log", node.this, node.expression) if whole(node.this) != 10 else call("log10", node.expression)


def _pair(node: Any, notes: Notes) -> Any:
    """Rewrite functions that Trino computes in single precision for whole numbers."""
    sides = {place: cast(node.args[place], "double") for place in ("this", "expression")}
    return node.__class__(**sides)


def _hex_number(node: Any, notes: Notes) -> Any:
    if not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", node.name):
        raise unsupported("This literal of bytes", "Write two hex digits for each byte.")
    return node


NUMBERS: dict[type[Any], Rewriter] = {
    exp.Literal: _literal,
    exp.Div: _quotient,
    exp.IntDiv: _whole_quotient,
    exp.Mod: _remainder,
    exp.Mul: _product,
    exp.Avg: _average,
    exp.Round: _round,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.BitwiseLeftShift: _shift,
    exp.BitwiseRightShift: _shift,
    exp.Rand: _random,
    exp.Log: _logarithm,
    exp.HexString: _hex_number,
    exp.Corr: _pair,
    exp.CovarPop: _pair,
    exp.CovarSamp: _pair,
    exp.RegrSlope: _pair,
    exp.RegrIntercept: _pair,
}
