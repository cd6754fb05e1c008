"""Casts: the name of each type of the source, and casts with another result."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import call, is_integer, is_long, is_text, only_selects, text
from sqlglot import exp

from dragoman_trino.rewrite.numbers import kind_of_number
from dragoman_trino.rewrite.rewriting import (
    DECIMAL_PLACES,
    Notes,
    Rewriter,
    bare,
    cast,
    is_textual,
    kind_of,
    type_name,
    unsupported,
)
from dragoman_trino.rewrite.texts import LETTERS, SPELLED

_WHOLE = {"INT": "integer", "BIGINT": "bigint", "SMALLINT": "smallint", "TINYINT": "tinyint", "MEDIUMINT": "integer"}
_REAL = {"DOUBLE": "double", "FLOAT": "real"}
_TEXTS = frozenset({"TEXT", "VARCHAR", "NVARCHAR"})
_TRUE, _FALSE = frozenset({"true", "t", "yes", "y", "on", "1"}), frozenset({"false", "f", "no", "n", "off", "0"})
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")
_DATE = r"\d{4}-\d\d-\d\d"
_MOMENT = re.compile(rf"\s*({_DATE})(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{{1,6}})?)?))?\s*")
_NUMERIC = f"A numeric of no fixed size became a decimal of {DECIMAL_PLACES} decimal places."
_HALVES = "A cast of a double to an integer rounds halves away from zero in Trino."


def _cast(node: Any, notes: Notes) -> Any:
    value, to = node.this, node.args["to"]
    name = to.this.name
    if name in _WHOLE:
        return _whole(value, _WHOLE[name], notes)
    if name in _REAL:
        return cast(_number(value, notes), "double" if notes.sqlite else _REAL[name])
    if name == "DECIMAL":
        return _decimal(value, to, notes)
    if name in _TEXTS:
        return _text(value, to, notes)
    if name in {"DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ", "DATETIME"} and not notes.sqlite:
        return _moment(value, name, to)
    if name == "BOOLEAN" and not notes.sqlite:
        return _boolean(value)
    if name in {"JSON", "JSONB"} and not notes.sqlite:
        return value if type_name(value) == "JSON" else call("json_parse", value, kind="json")
    if name == "UUID":
        return cast(value, "uuid")
    if name == "INTERVAL" and is_text(value):
        return exp.Interval(this=value)
    if name == "ARRAY" and isinstance(bare(value), exp.Array) and not notes.sqlite:
        return _array(value, to)
    raise unsupported(f"A cast to {to.sql()}", "Cast to integer, double precision, numeric, text, date or timestamp.")


def _number(value: Any, notes: Notes) -> Any:
    """Return `value` for use as a number. SQLite would take the number that a text begins with, or 0."""
    if is_text(value):
        if not _NUMBER.fullmatch(value.name):
            raise unsupported(f"A cast of the text {value.name[:20]!r} to a number", "Write a number.")
        return text(value.name.strip())
    return value


def _whole(value: Any, to: str, notes: Notes) -> Any:
    value = _number(value, notes)
    if notes.sqlite:
        if is_text(value) and not re.fullmatch(r"[+-]?\d+", value.name):
            raise unsupported("A cast of a text with decimals to an integer", "Write a whole number.")
        known = kind_of_number(value) == "whole" or is_textual(value)
        # SQLite cuts where Trino rounds. A decimal of this size holds texts and numbers of every type.
        return cast(value if known else call("truncate", cast(value, f"decimal(38, {DECIMAL_PLACES})")), "bigint")
    if kind_of_number(value) == "double" and notes.source == "postgres":
        raise unsupported("A cast of a double to an integer, which rounds halves to even,", "Cast to numeric first.")
    if not kind_of_number(value) and not is_textual(value):
        notes.add(_HALVES)
    return cast(value, to)


def _decimal(value: Any, to: Any, notes: Notes) -> Any:
    if notes.sqlite:
        raise unsupported("A cast to numeric, which changes some values only,", "Cast to REAL or INTEGER.")
    sizes = [int(size.name) for size in to.expressions]
    if not sizes:
        # A division of whole numerics is not whole, so it needs decimal places too.
        notes.add(_NUMERIC)
        sizes = [38, DECIMAL_PLACES]
    if not 0 < sizes[0] <= 38:
        raise unsupported(f"A numeric of {sizes[0]} digits", "Trino has 38.")
    return cast(_number(value, notes), f"decimal({', '.join(map(str, (*sizes, 0)[:2]))})")


def _text(value: Any, to: Any, notes: Notes) -> Any:
    # SQLite cuts no text.
    size = f"varchar({to.expressions[0].name})" if to.expressions and not notes.sqlite else "varchar"
    if kind_of(value) == "json":
        raise unsupported("JSON as text", "Use ->> for one of its values.")
    if kind_of(value) in {"timestamp", "timestamptz", "interval"}:
        raise unsupported(f"A {kind_of(value)} as text", "Use to_char(..., 'YYYY-MM-DD HH24:MI:SS').")
    if kind_of_number(value) == "double" or (notes.sqlite and kind_of_number(value) == "decimal"):
        raise unsupported("A double as text", "Cast to numeric with a number of decimal places first.")
    if kind_of(value) or is_textual(value) or kind_of_number(value) or isinstance(value, (exp.Boolean, exp.Null)):
        return cast(value, size)
    if not isinstance(value, (exp.Predicate, exp.Placeholder)):
        notes.add(SPELLED)
    return cast(value, size)


def _moment(value: Any, name: str, to: Any) -> Any:
    places = int(to.expressions[0].name) if to.expressions else 6
    wanted = {"DATE": "date", "TIMESTAMPTZ": f"timestamp({places}) with time zone"}.get(name, f"timestamp({places})")
    if is_text(value):
        found = _MOMENT.fullmatch(value.name)
        if not found:
            raise unsupported(f"The moment {value.name[:20]!r}", "Write it as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS.")
        value = text(found[1] if name == "DATE" or not found[2] else f"{found[1]} {found[2]}")
    return cast(value, wanted)


def _boolean(value: Any) -> Any:
    if not is_text(value):
        return cast(value, "boolean")
    if value.name.strip().lower() not in _TRUE | _FALSE:
        raise unsupported(f"The truth value {value.name[:20]!r}", "Write true or false.")
    return exp.Boolean(this=value.name.strip().lower() in _TRUE)


def _array(value: Any, to: Any) -> Any:
    element = to.expressions[0].this.name if to.expressions else ""
    names = {**_WHOLE, **_REAL, "TEXT": "varchar", "VARCHAR": "varchar", "DATE": "date", "BOOLEAN": "boolean"}
    if element not in names:
        raise unsupported(f"A cast to {to.sql()}", "Cast the elements instead.")
    return cast(value, f"array({names[element]})")


def compare(node: Any, notes: Notes) -> Any:
    """Turn a text that looks like a date, beside a possible date, into a date: Trino does not compare them."""
    sides = [side for side in _sides(node) if side is not None]
    if any(map(is_textual_but_literal, sides)) or all(map(is_text, sides)):
        return node
    for side in sides:
        found = _MOMENT.fullmatch(side.name) if is_text(side) else None
        if found:
            moment = _moment(side, "TIMESTAMP" if found[2] else "DATE", exp.DataType.build("date"))
            side.replace(moment)
            if not any(map(kind_of, sides)):
                notes.add("A text like a date is compared as one: cast the column to text where it holds texts.")
    return node


def _is_nocase(node: Any) -> bool:
    return isinstance(node, exp.Collate) and node.expression.name.lower() == "nocase"


def _order(node: Any, notes: Notes) -> Any:
    if _is_nocase(node.this):
        node.set("this", call("lower", node.this.this))
        notes.add(LETTERS)
    return node


def _sides(node: Any) -> list[Any]:
    named = [node.args.get(place) for place in ("this", "expression", "low", "high")]
    return [*named, *(node.expressions if isinstance(node, exp.In) else ())]


def is_textual_but_literal(node: Any) -> bool:
    """Return whether a node is known to be a text, but is not a literal."""
    return is_textual(node) and not is_text(bare(node))


def _compare_numbers(node: Any, notes: Notes) -> Any:
    """Refuse comparisons of a number and a text. SQLite compares them by type; Trino refuses."""
    if any(_is_nocase(side) for side in (node.this, node.expression)):
        for place in ("this", "expression"):
            side = node.args[place]
            node.set(place, call("lower", side.this if _is_nocase(side) else side))
        notes.add(LETTERS)
    kinds = [is_text(side) for side in (node.this, node.expression)]
    numbers = [kind_of_number(side) or is_integer(side) for side in (node.this, node.expression)]
    if notes.sqlite and any(kinds) and any(numbers):
        raise unsupported("A comparison of a text and a number", "Compare numbers with numbers.")
    return compare(_guard(node), notes)


def _equals(node: Any, notes: Notes) -> Any:
    """Rewrite `= ANY (...)` and `<> ALL (...)` of a list to IN and NOT IN; of an array, to contains()."""
    several = node.expression
    negated = isinstance(node, exp.NEQ)
    if isinstance(several, exp.Anonymous) and several.name.lower() == "all" and negated:
        listed = bare(several.expressions[0])
    elif isinstance(several, exp.All if negated else exp.Any):
        listed = bare(several.this)
    else:
        return _compare_numbers(node, notes)
    if isinstance(listed, (exp.Query, exp.Subquery)):
        return node
    found = (
        _without_nulls(compare(exp.In(this=node.this, expressions=listed.expressions), notes))
        if isinstance(listed, exp.Array) and listed.expressions
        else call("contains", listed, node.this)
    )
    return exp.not_(exp.paren(found)) if negated else found


def _in(node: Any, notes: Notes) -> Any:
    if node.args.get("unnest") or node.args.get("field"):
        raise unsupported("IN of an array", "Write IN with the values one by one.")
    if not node.expressions and not node.args.get("query"):
        raise unsupported("IN of nothing", "Write false.")
    if isinstance(row := bare(node.this), exp.Tuple):
        return _row_in(node, row, notes)
    return _without_nulls(compare(_guard(node), notes))


def _row_in(node: Any, row: Any, notes: Notes) -> Any:
    """Rewrite IN of rows: Trino's is NULL if a field is, also where another field differs from every row's.

    Of a query's rows it is false there, which makes no difference in a condition.
    """
    if not node.expressions:
        if not only_selects(node):
            raise unsupported("A row that may have a NULL among a query's rows", "Use EXISTS or NOT EXISTS.")
        return compare(_guard(node), notes)
    if not all(isinstance(bare(other), exp.Tuple) for other in node.expressions):
        raise unsupported("IN of rows that are computed", "Write each row as (a, b).")
    if is_long(row):
        raise unsupported("IN of a long row", "Name its fields in an inner query.")
    rows = [_equal_fields(row, bare(other), notes) for other in node.expressions]
    return exp.paren(exp.or_(*rows))


def _equal_fields(row: Any, other: Any, notes: Notes) -> Any:
    if len(row.expressions) != len(other.expressions):
        raise unsupported("IN of rows of different lengths", "Give them as many fields.")
    pairs = zip(row.expressions, other.expressions, strict=True)
    return exp.and_(*(_equals(exp.EQ(this=one.copy(), expression=two.copy()), notes) for one, two in pairs))


def _without_nulls(node: Any) -> Any:
    """Write `x IN (1, NULL)` as `x IN (1) OR NULL`: in a WHERE, Trino's IN is true there if x is NULL."""
    values = [value for value in node.expressions if not isinstance(bare(value), exp.Null)]
    if not values or len(values) == len(node.expressions):
        return node
    node.set("expressions", values)
    return exp.paren(exp.Or(this=node, expression=exp.Null()))


def _is(node: Any, notes: Notes) -> Any:
    """Rewrite IS. Trino has only IS NULL; IS TRUE becomes a comparison that is never NULL."""
    if isinstance(node.expression, exp.Boolean):
        return exp.paren(exp.NullSafeEQ(this=exp.paren(node.this), expression=node.expression))
    if not isinstance(node.expression, exp.Null):
        raise unsupported("This IS", "Use IS NULL, IS TRUE or IS NOT DISTINCT FROM.")
    return _guard(node)


def _guard(node: Any) -> Any:
    """Put a comparison in parentheses, which Trino needs to compare it."""
    for place in ("this", "expression"):
        side = node.args.get(place)
        operator = isinstance(side, (exp.Predicate, exp.Not, exp.Connector))
        if operator and not isinstance(side, (exp.Exists, exp.SubqueryPredicate)):
            node.set(place, exp.paren(side.copy()))
    return node


def _between(node: Any, notes: Notes) -> Any:
    if node.args.get("symmetric"):
        raise unsupported("BETWEEN SYMMETRIC", "Write the lower bound first.")
    return compare(_guard(node), notes)


CASTS: dict[type[Any], Rewriter] = {
    exp.Cast: _cast,
    exp.EQ: _equals,
    exp.NEQ: _equals,
    exp.GT: _compare_numbers,
    exp.GTE: _compare_numbers,
    exp.LT: _compare_numbers,
    exp.LTE: _compare_numbers,
    exp.NullSafeEQ: _compare_numbers,
    exp.NullSafeNEQ: _compare_numbers,
    exp.Ordered: _order,
    exp.In: _in,
    exp.Between: _between,
    exp.Is: _is,
}
