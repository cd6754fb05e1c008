"""Aggregates, arrays and JSON of Trino, and aggregates of SQLite."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import call, is_integer, number, ours, text
from sqlglot import exp

from dragoman_postgres.rewrite.rewriting import Notes, Rewriter, cast, kind_of, unsupported

# Aggregates


def _count(node: Any, notes: Notes) -> Any:
    counted = node.this
    if node.expressions or (isinstance(counted, exp.Distinct) and len(counted.expressions) > 1):
        raise unsupported("count() of several columns", "Count the rows of a SELECT DISTINCT instead.")
    return node


def _count_if(node: Any, notes: Notes) -> Any:
    return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=number(1))]))


def _about_distinct(node: Any, notes: Notes) -> Any:
    notes.add("approx_distinct() became an exact count.")
    return exp.Count(this=exp.Distinct(expressions=[node.this]))


def _alone(node: Any) -> None:
    if isinstance(node.parent, (exp.Filter, exp.Window)):
        raise unsupported(f"{node.sql_name().lower()} with FILTER or OVER", "Use it without.")


def _first_of(value: Any, condition: Any, order: Any = None) -> Any:
    """Return the first value, by `order`, of the rows in which `condition` is not NULL."""
    gathered = exp.ArrayAgg(this=exp.Order(this=value, expressions=[order]) if order is not None else value)
    known = exp.Where(this=exp.not_(exp.Is(this=condition, expression=exp.Null())))
    rows = exp.paren(exp.Filter(this=gathered, expression=known))
    return ours(exp.Bracket(this=rows, expressions=[number(1)], offset=1), kind_of(value))


def _any_value(node: Any, notes: Notes) -> Any:
    _alone(node)
    return _first_of(node.this, node.this.copy())


def _by_extreme(node: Any, notes: Notes) -> Any:
    _alone(node)
    if node.args.get("count"):
        raise unsupported("max_by() of several rows", "Use ORDER BY and LIMIT.")
    order = exp.Ordered(this=node.expression, desc=isinstance(node, exp.ArgMax), nulls_first=False)
    return _first_of(node.this, node.expression.copy(), order)


def _join(node: Any, notes: Notes) -> Any:
    if node.args.get("on_overflow"):
        raise unsupported("LISTAGG ... ON OVERFLOW", "Leave it out.")
    separator = node.args.get("separator") or text("," if notes.sqlite else "")
    value = node.this
    if notes.sqlite:
        notes.add("Without an ORDER BY inside, group_concat() joins in no particular order.")
        target = value
        while isinstance(target, (exp.Order, exp.Distinct)):
            target = target.this if isinstance(target, exp.Order) else target.expressions[0]
        if kind_of(target) != "text":
            target.replace(cast(target.copy(), "text"))
            value = node.this
    node.set("this", value)
    node.set("separator", separator)
    return node


def _extreme(node: Any, notes: Notes) -> Any:
    if notes.trino and node.expressions:
        raise unsupported(f"{node.key}() of several rows, an array,", "Use ORDER BY and LIMIT.")
    return node


def _total(node: Any, notes: Notes) -> Any:
    _alone(node)
    summed = cast(exp.Sum(this=node.expressions[0]), "double precision")
    return ours(exp.Coalesce(this=summed, expressions=[number(0)]), "real")


def _sum(node: Any, notes: Notes) -> Any:
    if notes.sqlite and kind_of(node.this) == "text":
        raise unsupported("A sum of texts", "Cast them to a number.")
    return node


def _pair(node: Any, notes: Notes) -> Any:
    if notes.trino and "real" not in (kind_of(node.this), kind_of(node.expression)):
        raise unsupported(
            "corr() and covar() of what may be whole numbers, which Trino computes as reals,", "Cast both to double."
        )
    return node


# Arrays


def _array(node: Any, notes: Notes) -> Any:
    if not node.expressions or any(kind_of(value) == "array" for value in node.expressions):
        raise unsupported("An array that is empty or holds arrays", "Use arrays of plain values.")
    return node


def _element(node: Any, notes: Notes) -> Any:
    indexes = node.expressions
    if len(indexes) != 1 or not is_integer(indexes[0]):
        raise unsupported("A value of a map, or an element counted from the end or at a computed place", "Write a[1].")
    if not isinstance(node.this, (exp.Column, exp.Paren)):
        node.set("this", exp.paren(node.this))
    return node


def _contains(node: Any, notes: Notes) -> Any:
    return exp.paren(ours(exp.EQ(this=node.expression, expression=exp.Any(this=exp.paren(node.this))), "boolean"))


def _size(node: Any, notes: Notes) -> Any:
    return call("cardinality", node.this, kind="integer")


def _sequence(node: Any, notes: Notes) -> Any:
    bounds, step = [node.args["start"], node.args["end"]], node.args.get("step")
    if not all(is_integer(bound) for bound in (*bounds, step or bounds[0])):
        raise unsupported("sequence() of what is no literal", "Write whole numbers.")
    first, last = (int(bound.name) for bound in bounds)
    if first > last:
        raise unsupported("sequence() from a larger number to a smaller", "Count upwards.")
    numbers = call("generate_series", first, last, *([step] if step else []))
    return call("ARRAY", exp.select(numbers), kind="array")


def _unnest(node: Any, notes: Notes) -> Any:
    notes.add("Arrays of arrays are unnested wholly in Postgres.")
    return node


# JSON

_PATH = re.compile(r"\$(?:\.[A-Za-z_]\w*|\[\d+\])+")


def _json_text(node: Any, notes: Notes) -> Any:
    """Rewrite json_extract_scalar: a text, or NULL for a value that is not a scalar."""
    if not notes.trino:
        raise unsupported("JSON of this SQL", "Write the query in Postgres' own SQL.")
    keys = _keys(node.expression)
    document = cast(node.this.this if isinstance(node.this, exp.ParseJSON) else node.this, "jsonb")
    kind = call("jsonb_typeof", call("jsonb_extract_path", document.copy(), *keys))
    compound = exp.In(this=kind, expressions=[text("object"), text("array")])
    found = call("jsonb_extract_path_text", document, *keys)
    return ours(exp.Case(ifs=[exp.If(this=compound, true=exp.Null())], default=found), "text")


def _keys(path: Any) -> list[str]:
    steps = path.expressions if isinstance(path, exp.JSONPath) else ()
    keys: list[str] = []
    for step in steps:
        if isinstance(step, exp.JSONPathRoot):
            continue
        if not isinstance(step, (exp.JSONPathKey, exp.JSONPathSubscript)) or not re.fullmatch(r"\w+", str(step.this)):
            raise unsupported("This path into JSON", "Use plain keys and positions from 0.")
        keys.append(str(step.this))
    if not keys:
        raise unsupported("This path into JSON", "Use plain keys and positions from 0.")
    return keys


AGGREGATES: dict[type[Any], Rewriter] = {
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.ApproxDistinct: _about_distinct,
    exp.AnyValue: _any_value,
    exp.ArgMax: _by_extreme,
    exp.ArgMin: _by_extreme,
    exp.GroupConcat: _join,
    exp.Sum: _sum,
    **dict.fromkeys((exp.Max, exp.Min), _extreme),
    **dict.fromkeys((exp.Corr, exp.CovarSamp, exp.CovarPop), _pair),
    exp.Array: _array,
    exp.Bracket: _element,
    exp.ArrayContains: _contains,
    exp.ArraySize: _size,
    exp.GenerateSeries: _sequence,
    exp.Unnest: _unnest,
    exp.JSONExtractScalar: _json_text,
}


def rewrite_call(node: Any, notes: Notes) -> Any:
    """Rewrite a function that sqlglot has no class for."""
    name = node.name.lower()
    if notes.sqlite and name == "total" and len(node.expressions) == 1:
        return _total(node, notes)
    if notes.trino and name == "every":
        return exp.LogicalAnd(this=node.expressions[0])
    if notes.trino and name == "codepoint":
        return call("ascii", *node.expressions, kind="integer")
    return node
