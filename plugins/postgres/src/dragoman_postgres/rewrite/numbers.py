"""Numbers: division, rounding, casts and logarithms."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from dragoman.sql.rewriting import bare, call, exact, is_integer, is_text, number, ours, text
from sqlglot import exp

from dragoman_postgres.rewrite.rewriting import FRACTIONS, MOMENTS, Notes, Rewriter, cast, kind_of, unsupported

_PLACES = "Postgres keeps more decimal places than Trino in divisions and averages."
_HALVES = "Doubles are rounded at their 15th digit, halves away from zero."
_INT4 = 2**31 - 1
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")


# Arithmetic


def product(node: Any, notes: Notes) -> Any:
    """Rewrite arithmetic. SQLite's texts become numbers, and its literals have 64 bits."""
    for side in ("this", "expression"):
        node.set(side, _operand(node.args[side], notes))
    return _of_literals(node) if notes.sqlite else node


def _of_literals(node: Any) -> Any:
    """Rewrite SQLite's arithmetic on literals: binary floats if one has decimals, and otherwise 64 bits."""
    sides = {"this": node.this, "expression": node.expression}
    values = [value for side in sides.values() if (value := exact(side)) is not None]
    if len(values) < 2:
        return node
    if "decimal" in {kind_of(side) for side in sides.values()}:
        for name, side in sides.items():
            node.set(name, cast(side, "double"))
    elif abs(values[0]) + abs(values[1]) + abs(values[0] * values[1]) > _INT4 and kind_of(node.this) == "integer":
        node.set("this", cast(node.this, "bigint"))
    return node


def _operand(value: Any, notes: Notes) -> Any:
    """Rewrite a side of SQLite's arithmetic: a text that contains a number becomes one."""
    if not notes.sqlite or kind_of(value) != "text":
        return value
    if value.meta.get("digits"):
        return cast(value, "bigint")
    if not is_text(value) or not _NUMBER.fullmatch(value.name):
        raise unsupported("Arithmetic on a text", "Cast it to a number.")
    return number(value.name.strip())


def _quotient(node: Any, notes: Notes) -> Any:
    node = product(node, notes)
    if notes.sqlite:
        return _quotient_of_sqlite(node, notes)
    return _quotient_of_trino(node, notes) if notes.trino else node


def _quotient_of_sqlite(node: Any, notes: Notes) -> Any:
    kinds = [kind_of(side) for side in (node.this, node.expression)]
    if not FRACTIONS.isdisjoint(kinds) and isinstance(node, exp.Mod):
        raise unsupported("The remainder of a division of decimals", "Use whole numbers.")
    if kinds != ["integer", "integer"] and FRACTIONS.isdisjoint(kinds) and isinstance(node, exp.Div):
        if "integer" in kinds:
            raise unsupported(
                "A division of what may be a whole number, which drops the fraction in SQLite,",
                "Write the number with a point (/ 7.0), or cast the other side to integer or real.",
            )
        notes.add("Division drops the fraction where both sides are of integer types.")
    if isinstance(node, exp.Mod) and kinds != ["integer", "integer"]:
        notes.add("% of columns with decimals is exact in Postgres; SQLite drops the decimals first.")
    if isinstance(node, exp.Mod) and not exact(node.expression):  # sqlglot handles this for /
        node.set("expression", exp.Nullif(this=node.expression, expression=number(0)))
    return node


def _quotient_of_trino(node: Any, notes: Notes) -> Any:
    kinds = [kind_of(side) for side in (node.this, node.expression)]
    if isinstance(node, exp.Mod) or "real" in kinds:
        return node
    sums = any(_may_be_sum(side) for side in (node.this, node.expression))
    if kinds == ["integer", "integer"]:
        return call("div", bare(node.this), bare(node.expression), kind="integer") if sums else node
    notes.add(_PLACES)
    return _quotient_of_sums(node) if sums and "decimal" not in kinds else node


def _may_be_sum(node: Any) -> bool:
    """Return whether a value may be a sum of integers: a bigint in Trino, a numeric in Postgres."""
    names = _names_of_sums(node.root())
    return node.find(exp.Sum) is not None or not names.isdisjoint(c.name.lower() for c in node.find_all(exp.Column))


def _names_of_sums(tree: Any) -> set[str]:
    """Return the names of sums in a query, and of values computed from them."""
    names: set[str] = set()
    found = -1
    while found < len(names):
        found = len(names)
        for alias in tree.find_all(exp.Alias, exp.TableAlias):
            made_of = alias.this if isinstance(alias, exp.Alias) else alias.parent
            given = {column.name.lower() for column in made_of.find_all(exp.Column)}
            if made_of.find(exp.Sum) or not names.isdisjoint(given):
                columns = [alias.args["alias"]] if isinstance(alias, exp.Alias) else alias.args.get("columns") or []
                names.update(column.name.lower() for column in columns)
    return names


def _quotient_of_sums(node: Any) -> Any:
    """Drop the fraction of a quotient if both sides are whole numbers of an exact type, as sums of integers are."""
    left, right = bare(node.this), bare(node.expression)
    whole = exp.and_(
        *(
            test
            for side in (left, right)
            if kind_of(side) != "integer"
            for test in (
                exp.NEQ(this=cast(call("pg_typeof", side.copy()), "text"), expression=text("double precision")),
                exp.EQ(this=call("scale", cast(side.copy(), "numeric")), expression=number(0)),
            )
        )
    )
    divided = call("div", cast(left.copy(), "numeric"), cast(right.copy(), "numeric"))
    return ours(exp.Case(ifs=[exp.If(this=whole, true=divided)], default=node), "number")


def _average(node: Any, notes: Notes) -> Any:
    if notes.trino and kind_of(node.this) not in {"integer", "real"}:
        notes.add(_PLACES)
    return node


# Rounding


def _round(node: Any, notes: Notes) -> Any:
    value, digits = node.this, node.args.get("decimals")
    if notes.sqlite:
        value = _numeric(value, notes)
        _heed_binary(value, digits, notes)
    if kind_of(value) != "decimal" and exact(value) is None:
        if kind_of(value) != "integer":
            notes.add(_HALVES)
        value = cast(value, "numeric")
    return ours(exp.Round(this=value, decimals=digits), kind_of(node.this))


def _heed_binary(value: Any, digits: Any, notes: Notes) -> None:
    """Handle binary numbers: SQLite rounds the binary number next to a decimal one."""
    if isinstance(digits, exp.Neg):
        raise unsupported("Rounding to tens or hundreds", "Divide, round, and multiply.")
    if digits is None:
        return
    decimal = exact(value)
    if decimal is None:
        notes.add("round() rounds the decimal number, where SQLite rounds the binary one next to it.")
    elif is_integer(digits):
        unit = Decimal(1).scaleb(-int(digits.name))
        if decimal.quantize(unit, ROUND_HALF_UP) != Decimal(float(decimal)).quantize(unit, ROUND_HALF_UP):
            raise unsupported("Rounding the binary number next to a decimal one", "Write the number itself.")


def _cut(node: Any, notes: Notes) -> Any:
    digits = node.args.get("decimals")
    return ours(exp.Trunc(this=cast(node.this, "numeric"), decimals=digits)) if digits else node


def _logarithm(node: Any, notes: Notes) -> Any:
    if node.expression is None:
        return node
    if exact(node.this) == 10:
        return call("log", node.expression, kind="real")
    return call("log", cast(node.this, "numeric"), cast(node.expression, "numeric"), kind="real")


def _random(node: Any, notes: Notes) -> Any:
    if notes.sqlite and not isinstance(node.parent, exp.Ordered):
        raise unsupported("random() as a whole number", "Use it in ORDER BY random() only.")
    if any(node.args.values()):
        raise unsupported("random() with bounds", "Use floor(random() * n).")
    return node


def _shift(node: Any, notes: Notes) -> Any:
    if not notes.sqlite:
        raise unsupported("A shift of bits", "Multiply or divide by a power of two.")
    if not is_integer(node.expression) or int(node.expression.name) > 62:
        raise unsupported("A shift by a computed number of bits", "Write the number of bits, below 63.")
    node.set("this", cast(node.this, "bigint"))
    return node


def _extreme(node: Any, notes: Notes) -> Any:
    """Rewrite the largest or smallest value.

    Postgres leaves out NULLs; Trino and SQLite return NULL if there is one.
    """
    values = [node.this, *node.expressions]
    if notes.sqlite and len({kind_of(value) == "text" for value in values if kind_of(value)}) > 1:
        raise unsupported("The largest of a text and a number", "Give values of one type.")
    if not (notes.trino or notes.sqlite) or node.args.get("ignore_nulls") or all(_is_given(value) for value in values):
        return node
    nulls = call("num_nulls", *(value.copy() for value in values))
    whole = exp.EQ(this=nulls, expression=number(0))
    return ours(exp.Case(ifs=[exp.If(this=whole, true=node)]), kind_of(node))


def _is_given(value: Any) -> bool:
    return exact(value) is not None or is_text(value)


# Casts

_INTEGERS = frozenset({"INT", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT"})
_TEXTS = frozenset({"TEXT", "VARCHAR"})


def _cast(node: Any, notes: Notes) -> Any:
    if notes.sqlite:
        return _cast_from_sqlite(node, notes)
    if notes.trino:
        return _cast_from_trino(node, notes)
    if node.args["to"].this.name in _INTEGERS | _TEXTS | {"DOUBLE", "FLOAT", "DECIMAL", "DATE", "TIMESTAMP", "BOOLEAN"}:
        return node
    raise _type_refusal(node)


def _type_refusal(node: Any) -> Exception:
    return unsupported(
        f"A cast to {node.args['to'].sql()}", "Cast to integer, double precision, decimal, varchar, date or timestamp."
    )


def _cast_from_sqlite(node: Any, notes: Notes) -> Any:
    value, name = node.this, node.args["to"].this.name
    if name in _INTEGERS:
        return _whole_of_sqlite(value, notes)
    if name in {"DOUBLE", "FLOAT"}:
        return cast(_numeric(value, notes), "double precision")
    if name == "DECIMAL":
        return _decimal_of_sqlite(value, notes)
    if name in _TEXTS:
        return text_of_sqlite(value, notes)
    raise unsupported(f"SQLite's cast to {node.args['to'].sql()}", "Cast to integer, real or text.")


def _numeric(value: Any, notes: Notes) -> Any:
    """Return `value` for use as a number. SQLite would take the number that a text begins with, or 0."""
    if is_text(value):
        if not _NUMBER.fullmatch(value.name):
            raise unsupported(f"A cast of the text {value.name[:20]!r} to a number", "Write a number.")
        return number(value.name.strip())
    if kind_of(value) in MOMENTS:
        raise unsupported("A date as a number", "Use strftime with the part you need.")
    return cast(value, "integer") if kind_of(value) == "boolean" else value


def _decimal_of_sqlite(value: Any, notes: Notes) -> Any:
    value = _numeric(value, notes)
    if exact(value) is None and kind_of(value) not in FRACTIONS:
        raise unsupported("A cast to numeric, which leaves whole numbers whole in SQLite,", "Cast to real or integer.")
    return cast(value, "numeric")


def _whole_of_sqlite(value: Any, notes: Notes) -> Any:
    value = _numeric(value, notes)
    if kind_of(value) == "integer" or value.meta.get("digits"):
        return cast(value, "bigint")
    if kind_of(value) != "decimal":
        notes.add("A cast to an integer needs a number: Postgres refuses any other text. Doubles keep 15 digits.")
    return cast(call("trunc", cast(value, "numeric")), "bigint")


def text_of_sqlite(value: Any, notes: Notes) -> Any:
    """Return `value` as the text that SQLite makes of it."""
    if kind_of(value) == "boolean":
        value = cast(value, "integer")
    if kind_of(value) == "real" or (exact(value) is not None and not is_integer(value) and _is_padded(value)):
        raise unsupported("A number with decimals as text", "Write the text itself.")
    if kind_of(value) not in {"text", "integer", "date"} and exact(value) is None:
        notes.add("As texts, decimals and truth values of columns are spelled 1.50 and true; SQLite writes 1.5 and 1.")
    return cast(value, "text")


def _is_padded(value: Any) -> bool:
    written: str = bare(value).name
    return written.startswith(".") or written.endswith((".", "0"))


def _cast_from_trino(node: Any, notes: Notes) -> Any:
    value, to = node.this, node.args["to"]
    name, sizes = to.this.name, to.expressions
    if name in _INTEGERS:
        return _whole_of_trino(node, value, notes)
    if name in _TEXTS:
        return _text_of_trino(node, value, notes)
    if name == "DECIMAL" and not sizes:
        return ours(exp.Cast(this=value, to=exp.DataType.build("decimal(38, 0)")), "decimal")
    if name in {"TIMESTAMP", "TIMESTAMPNTZ"}:
        return _timestamp_of_trino(node, value, sizes)
    if name in {"DOUBLE", "FLOAT", "DECIMAL", "DATE", "BOOLEAN"}:
        return node
    raise _type_refusal(node)


def _whole_of_trino(node: Any, value: Any, notes: Notes) -> Any:
    if kind_of(value) in {"integer", "decimal", "text", "boolean"}:
        return node
    notes.add(_HALVES)
    node.set("this", call("round", cast(value, "numeric")))
    return node


def _text_of_trino(node: Any, value: Any, notes: Notes) -> Any:
    kind = kind_of(value)
    if kind in {"real", "zoned"} or (kind == "timestamp" and not _in_whole_seconds(value)):
        raise unsupported("A double or a timestamp as text, which Postgres spells otherwise,", "Use date_format.")
    if kind == "number" or not kind:
        notes.add("Postgres spells doubles, and timestamps with fractions of a second, otherwise as texts.")
    return node


def _in_whole_seconds(value: Any) -> bool:
    value = bare(value)
    return isinstance(value, exp.Cast) and [size.name for size in value.to.expressions] == ["0"]


def _timestamp_of_trino(node: Any, value: Any, sizes: list[Any]) -> Any:
    if sizes and int(sizes[0].name) > 6:
        raise unsupported("A timestamp of more than 6 digits of a second", "Cast to timestamp(6).")
    if is_text(value) and re.search(r":.*[A-Za-z+-]", value.name):
        raise unsupported("A timestamp with a time zone", "Write it in UTC, without a zone.")
    if not sizes:
        node.set("to", exp.DataType.build("timestamp(3)", dialect="postgres"))
    return node


def _bits(node: Any, notes: Notes) -> Any:
    """Rewrite a function of Trino to an operator, which needs parentheses."""
    return exp.paren(node) if notes.trino else node


NUMBERS: dict[type[Any], Rewriter] = {
    exp.Mul: product,
    exp.Div: _quotient,
    exp.Mod: _quotient,
    exp.Avg: _average,
    exp.Round: _round,
    exp.Trunc: _cut,
    exp.Log: _logarithm,
    exp.Rand: _random,
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot), _bits),
    exp.BitwiseLeftShift: _shift,
    exp.BitwiseRightShift: _shift,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Cast: _cast,
}
