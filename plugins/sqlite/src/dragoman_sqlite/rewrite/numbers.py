"""Numbers: arithmetic, rounding and casts."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from dragoman.sql.rewriting import bare, call, exact, is_integer, is_ours, is_text, number, text
from sqlglot import exp

from dragoman_sqlite.rewrite.dates import as_moment, as_time
from dragoman_sqlite.rewrite.rewriting import (
    POSTGRES,
    TRINO,
    TSQL,
    Notes,
    Rewriter,
    fold,
    heed_text,
    integer,
    is_predicate,
    real,
    unsupported,
)
from dragoman_sqlite.rewrite.untyped import alternatives, refuse_arithmetic

_PLACES = "SQLite keeps more decimal places than Trino in divisions and averages of decimals."
_BINARY = "round() rounds the binary number next to a decimal one, which matters for halves."
_WHOLE = (exp.Count, exp.Length, exp.StrPosition, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Placeholder)


def _product(node: Any, notes: Notes) -> Any:
    refuse_arithmetic(node, notes)
    return fold(node) or node


def _quotient(node: Any, notes: Notes) -> Any:
    refuse_arithmetic(node, notes)
    if not exact(node.expression):
        notes.add("Division by zero gives NULL in SQLite.")
    if isinstance(node, exp.Div) and not _keeps_fraction(node):
        _heed_fractions(node, notes)
    if isinstance(node, exp.Mod) and not all(
        (value := exact(side)) is None or value == value.to_integral() for side in (node.this, node.expression)
    ):
        raise unsupported("The remainder of a division of decimals", "Use whole numbers.")
    if isinstance(node, exp.Mod):
        return _remainder(node)
    return _fraction_of_field(node) if notes.source in POSTGRES else node


def _remainder(node: Any) -> Any:
    """Return a remainder of values whose types are not known: SQLite's `%` drops the decimals of both sides first."""
    sides = node.this, node.expression
    unknown = [side for side in sides if _kind(side) != "whole"]
    if not unknown:
        return node
    whole = [exp.EQ(this=call("typeof", bare(side).copy()), expression=text("integer")) for side in unknown]
    exactly = call("mod", *(bare(side).copy() for side in sides))
    return exp.Case(ifs=[exp.If(this=exp.and_(*whole), true=node.copy())], default=exactly)


def _fraction_of_field(node: Any) -> Any:
    """Keep the fraction of a quotient of a date's field, which is a numeric in Postgres."""
    if {_kind(node.this), _kind(node.expression)} != {"whole"} or not any(
        _has_field(side) for side in (node.this, node.expression)
    ):
        return node
    return exp.Div(this=real(bare(node.this)), expression=node.expression, typed=True)


def _has_field(node: Any) -> bool:
    """Return whether a whole number is computed from a field of a date and not cast to an integer."""
    node = bare(node)
    if node.meta.get("field"):
        return True
    passes_on = isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Sum))
    return passes_on and any(_has_field(side) for side in (node.this, node.expression) if side is not None)


def _heed_fractions(node: Any, notes: Notes) -> None:
    """Handle fractions. SQLite drops the fraction if both values are whole, whatever the type of their columns."""
    kinds = {_kind(side) for side in (node.this, node.expression)}
    if kinds == {"whole"}:
        return
    if notes.source in TRINO:
        notes.add(_PLACES)
    if "fraction" in kinds:
        return
    if any(_is_sum(side) for side in (node.this, node.expression)) and "whole" in kinds:
        raise unsupported(
            "A division of a sum by a whole number, which drops the fraction where the sum is whole,",
            "Write sum(x) * 1.0 / n, or cast the sum to integer.",
        )
    notes.add("Division drops the fraction where both sides hold whole numbers, even of a type with decimals.")


def _keeps_fraction(node: Any) -> bool:
    """Return whether a division comes from a dialect whose `/` never drops the fraction.

    SQLite then gets a cast to REAL.
    """
    return isinstance(node, exp.Div) and not node.args.get("typed")


def _kind(node: Any) -> str:
    """Return `whole` or `fraction` for a number that is known to be one, else an empty text."""
    while isinstance(node, (exp.Paren, exp.Neg)):
        node = node.this
    if isinstance(node, exp.Literal):
        return "whole" if is_integer(node) else "fraction"
    if _keeps_fraction(node):
        return "fraction"
    if isinstance(node, exp.Avg) or _is_real(node) or isinstance(node, exp.Cast):
        return "whole" if isinstance(node, exp.Cast) and node.to.this.name in _INTEGERS else "fraction"
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        kinds = {_kind(node.this), _kind(node.expression)}
        return "fraction" if "fraction" in kinds else "whole" if kinds == {"whole"} else ""
    if isinstance(node, exp.Sum):
        return "whole" if _kind(node.this) == "whole" else ""
    if isinstance(node, exp.Case):
        given = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
        return "whole" if all(_kind(value) == "whole" for value in given if value is not None) else ""
    return "whole" if isinstance(node, _WHOLE) else ""


def _is_sum(node: Any) -> bool:
    return node.find(exp.Sum) is not None


def _is_real(node: Any) -> bool:
    """Return whether a node is a cast to a double, in the source or rewritten."""
    node = bare(node)
    return isinstance(node, exp.Cast) and node.args["to"].this.name in {"DOUBLE", "FLOAT"} and not is_ours(node)


def _round(node: Any, notes: Notes) -> Any:
    constant, digits = exact(node.this), node.args.get("decimals")
    if isinstance(node, exp.Round) and constant is not None and is_integer(digits):
        # A number with decimals is exact elsewhere. SQLite would round the nearest binary float.
        value = constant.quantize(Decimal(1).scaleb(-int(digits.name)), rounding=ROUND_HALF_UP)
        return _literal(value)
    if isinstance(node, exp.Round) and notes.source in POSTGRES:
        if _is_real(node.this):
            raise unsupported("round() of a double, which rounds halves to even,", "Cast to numeric first.")
        if constant is None:
            notes.add("round() rounds halves away from zero, as it does for numeric.")
    if isinstance(node, exp.Round) and constant is None and digits is not None:
        if isinstance(node.this, exp.Literal):
            raise unsupported("Rounding a literal double", "Write it without an exponent.")
        notes.add(_BINARY)
    if isinstance(node.args.get("decimals"), exp.Neg):
        raise unsupported("Rounding to tens or hundreds", "Divide, round, and multiply.")
    if isinstance(node, exp.Trunc) and node.args.get("decimals"):
        raise unsupported("trunc() with a number of digits", "Use round().")
    return node


def _random(node: Any, notes: Notes) -> Any:
    if not isinstance(node.parent, exp.Ordered):
        raise unsupported("random() as a number from 0 to 1", "Use it in ORDER BY random() only.")
    return call("random")


def _extreme(node: Any, notes: Notes) -> Any:
    alternatives(node, notes)
    values = [node.this, *node.expressions]
    name = "max" if isinstance(node, exp.Greatest) else "min"
    if not values[1:]:
        raise unsupported(f"{node.key} of one value", "Give it two values.")
    if not node.args.get("ignore_nulls"):
        return call(name, *values)
    # SQLite's max(a, b) is NULL if one argument is, so each argument falls back on the others.
    turned = (values[n:] + values[:n] for n in range(len(values)))
    return call(name, *(call("coalesce", *(value.copy() for value in turn)) for turn in turned))


def _average(node: Any, notes: Notes) -> Any:
    if notes.source in TRINO:
        notes.add(_PLACES)
    if notes.source in TSQL:
        notes.add("avg() of whole numbers gives decimals.")
    return node


# Casts

_INTEGERS = frozenset({"INT", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT"})
_TEXTS = frozenset({"TEXT", "VARCHAR", "NVARCHAR"})
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")
_TRUE, _FALSE = frozenset({"true", "t", "yes", "on", "1"}), frozenset({"false", "f", "no", "off", "0"})


def _cast(node: Any, notes: Notes) -> Any:
    value, to = node.this, node.args["to"]
    name = to.this.name
    sizes = [int(size.this.name) for size in to.expressions if isinstance(size, exp.DataTypeParam)]
    if name in _INTEGERS:
        return _whole(value, notes)
    if name in {"DOUBLE", "FLOAT"}:
        return real(_numeric(value, notes))
    if name == "DECIMAL":
        sizes = sizes or ([38, 0] if notes.source in TRINO else [])
        scale = sizes[1] if len(sizes) > 1 else 0
        constant = _constant(value)
        if sizes and constant is not None:
            return _literal(constant.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP))
        decimal = real(_numeric(value, notes))
        decimal.meta["ours"] = True
        return exp.Round(this=decimal, decimals=number(scale)) if sizes else decimal
    if name in _TEXTS:
        return _as_text(value, sizes, notes)
    if name in {"DATE", "TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"}:
        return as_moment(value, "date" if name == "DATE" else "timestamp", notes)
    if name == "TIME":
        return as_time(value, notes)
    if name == "BOOLEAN" and is_text(value) and value.name.lower() in _TRUE | _FALSE:
        return exp.Boolean(this=value.name.lower() in _TRUE)
    if name in {"JSON", "JSONB"}:
        return call("json", value)
    if name == "INTERVAL" and is_text(value):
        return exp.Interval(this=value)
    raise unsupported(f"A cast to {to.sql()}", "Cast to integer, double precision, numeric, text, date or timestamp.")


def _constant(value: Any) -> Decimal | None:
    """Return the number that a literal is, or that a text literal contains."""
    return Decimal(value.name.strip()) if is_text(value) and _NUMBER.fullmatch(value.name) else exact(value)


def _literal(value: Decimal) -> Any:
    return exp.Neg(this=number(f"{-value:f}")) if value < 0 else number(f"{value:f}")


def _numeric(value: Any, notes: Notes) -> Any:
    """Return `value` for use as a number. SQLite would take the number that a text begins with, or 0."""
    if is_text(value) and not _NUMBER.fullmatch(value.name):
        raise unsupported(f"A cast of the text {value.name[:20]!r} to a number", "Write a number.")
    if isinstance(value, exp.Column):
        notes.add("A cast of a text that is not a number gives the number it begins with, or 0.")
    return value


def _whole(value: Any, notes: Notes) -> Any:
    """Return `value` cast to an integer. Other databases round where SQLite would cut."""
    if _is_real(value) and notes.source in POSTGRES:
        raise unsupported("A cast of a double to an integer, which rounds halves to even,", "Cast to numeric first.")
    value = _numeric(value, notes)
    if _kind(value) == "whole" or is_text(value) or is_predicate(value):
        return integer(value)
    if notes.source in POSTGRES:
        notes.add("A cast to an integer rounds halves away from zero, as it does for numeric.")
    fraction = call("typeof", value.copy())
    case = exp.Case(this=fraction, default=integer(value.copy()))
    case.append("ifs", exp.If(this=text("real"), true=integer(exp.Round(this=value))))
    return case


def _as_text(value: Any, sizes: list[int], notes: Notes) -> Any:
    if is_predicate(value):
        raise unsupported("A truth value as text", "Use CASE WHEN ... THEN 'true' ELSE 'false' END.")
    if isinstance(value, exp.Anonymous) and value.name.lower() == "json":
        raise unsupported("JSON as text", "Leave out the cast: it comes as JSON text.")
    if isinstance(value, exp.Literal) and not value.is_string and not is_integer(value):
        raise unsupported("A number with decimals as text", "Write the text itself.")
    heed_text(value, notes)
    written = exp.Cast(this=value, to=exp.DataType.build("text"))
    return call("substr", written, number(1), number(sizes[0])) if sizes else written


def _bits(node: Any, notes: Notes) -> Any:
    """Rewrite a function of Trino to an operator, which needs parentheses."""
    return exp.paren(node) if notes.source in TRINO else node


def _shift(node: Any, notes: Notes) -> Any:
    """Rewrite a shift. Postgres' integers have 32 bits, SQLite's 64, and bits that are shifted out are dropped."""
    value, places = exact(node.this), exact(node.expression)
    if notes.source not in POSTGRES:
        return node
    if value is None or places is None or not 0 <= places < 31 or value * 2 ** int(places) >= 2**31:
        raise unsupported("Shifting to the left", "Multiply by a power of two.")
    return node


NUMBERS: dict[type[Any], Rewriter] = {
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseNot), _bits),
    exp.BitwiseLeftShift: _shift,
    exp.Mul: _product,
    exp.Div: _quotient,
    exp.Mod: _quotient,
    exp.Round: _round,
    exp.Trunc: _round,
    exp.Rand: _random,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Cast: _cast,
    exp.Avg: _average,
}
