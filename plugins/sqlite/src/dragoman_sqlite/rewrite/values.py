"""Texts, JSON and aggregates with another meaning or name in SQLite."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import bare, call, exact, is_integer, is_ours, is_text, number, only_selects, text
from sqlglot import exp

from dragoman_sqlite.rewrite.dates import both_texts, heed_spelling, is_midnight, same_kind
from dragoman_sqlite.rewrite.rewriting import (
    IGNORE_CASE,
    POSTGRES,
    TRINO,
    TSQL,
    Notes,
    Rewriter,
    heed_text,
    is_predicate,
    kind_of,
    unsupported,
)
from dragoman_sqlite.rewrite.untyped import alternatives, condition, heed_query, like, unify

# Texts


def _take_left(node: Any, notes: Notes) -> Any:
    if not is_integer(node.expression):
        raise unsupported(f"{node.key}() with a computed length", "Use substr().")
    if isinstance(node, exp.Left):
        return call("substr", node.this, number(1), node.expression)
    if node.expression.name == "0":
        return text("")
    return call("substr", node.this, exp.Neg(this=node.expression))


def _substring(node: Any, notes: Notes) -> Any:
    start, length = node.args.get("start"), node.args.get("length")
    if start is None or is_text(start) or isinstance(start, exp.Neg) or exact(start) == 0:
        raise unsupported("substring by a pattern or from before the beginning", "Start at 1 or later.")
    if not _is_positive(start):
        raise unsupported("substr() from a computed place", "Start at a number, or at strpos() plus a number.")
    if length is not None and not _is_positive(length):
        node.set("length", call("max", length, number(0)))
    return node


def _is_positive(value: Any) -> bool:
    """Return whether a number cannot be negative."""
    value = bare(value)
    if isinstance(value, exp.Add):
        return _is_positive(value.this) and _is_positive(value.expression)
    found = isinstance(value, exp.Anonymous) and is_ours(value) and value.name in {"instr", "length"}
    return found or is_integer(value) or isinstance(value, (exp.Length, exp.StrPosition, exp.Placeholder))


def _starts(node: Any, notes: Notes) -> Any:
    beginning = call("substr", node.this, number(1), exp.Length(this=node.expression.copy()))
    return exp.paren(exp.EQ(this=beginning, expression=node.expression))


def _position(node: Any, notes: Notes) -> Any:
    if node.args.get("position") or node.args.get("occurrence"):
        raise unsupported("A search from a position", "Use instr() on substr().")
    searched, found = node.this, node.args["substr"]
    if notes.source in IGNORE_CASE:
        notes.add("The search ignores the case of ASCII letters only.")
        searched, found = call("lower", searched), call("lower", found)
    return call("instr", searched, found)


def _length(node: Any, notes: Notes) -> Any:
    if node.args.get("binary") and notes.source in IGNORE_CASE:
        return call("octet_length", node.this)
    return exp.Length(this=call("rtrim", node.this, " ")) if notes.source in TSQL else node


def _join(node: Any, notes: Notes) -> Any:
    if any(is_predicate(side) for side in (node.this, node.expression)):
        raise unsupported("A truth value as text", "Use CASE WHEN ... THEN 'true' ELSE 'false' END.")
    if notes.source in POSTGRES:
        for side in (node.this, node.expression):
            heed_text(side, notes)
    return node


def _concat(node: Any, notes: Notes) -> Any:
    for part in node.expressions if notes.source in POSTGRES else ():
        heed_text(part, notes)
    if isinstance(node, exp.ConcatWs):
        return node
    if node.args.get("coalesce"):
        return call("concat", *node.expressions)
    joined = node.expressions[0]
    for part in node.expressions[1:]:
        joined = exp.DPipe(this=joined, expression=part)
    return exp.paren(joined)


# The characters that Trino's trim() removes and SQLite's does not: Unicode white space at which a line may break.
_SPACES = (*range(0x9, 0xE), *range(0x1C, 0x21), 0x1680, *range(0x2000, 0x2007), *range(0x2008, 0x200B), 0x2028, 0x2029,
           0x205F, 0x3000)  # fmt: skip


def _trim(node: Any, notes: Notes) -> Any:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    if notes.source in TRINO and node.expression is None:
        return call(name, node.this, call("char", *(number(code) for code in _SPACES)))
    return call(name, *(part for part in (node.this, node.expression) if part))


def _change_case(node: Any, notes: Notes) -> Any:
    if is_text(node.this) and not node.this.name.isascii():
        raise unsupported("upper() or lower() of letters beyond ASCII", "Write the text itself.")
    notes.add("upper() and lower() change ASCII letters only.")
    return node


def _ascii(node: Any, notes: Notes) -> Any:
    """Return 0 for an empty text, where SQLite's function returns NULL."""
    return call("coalesce", call("unicode", node.this), call("length", node.this.copy()))


_ESCAPE_STRINGS = frozenset({"postgres", "redshift", "materialize", "risingwave", "duckdb"})


def _rewrite_literal(node: Any, notes: Notes) -> Any:
    """Rewrite a literal. E'...' and $$...$$ are texts in another notation; elsewhere b'...' is a value of bytes."""
    if isinstance(node, exp.ByteString) and notes.source not in _ESCAPE_STRINGS:
        raise unsupported("A literal of bytes", "Pass it as a parameter.")
    return text(node.this)


# JSON


def _path(node: Any) -> str:
    path = node.expression
    parts = path.expressions if isinstance(path, exp.JSONPath) else ()
    steps = [part for part in parts if not isinstance(part, exp.JSONPathRoot)]
    written = "$" + "".join(
        f"[{step.this}]" if isinstance(step, exp.JSONPathSubscript) else f".{step.this}" for step in steps
    )
    if not steps or not re.fullmatch(r"\$(?:\[\d+\]|\.[A-Za-z_]\w*)+", written):
        raise unsupported("This path into JSON", "Use -> and ->> with plain keys or positions from 0.")
    return written


def _json(node: Any, notes: Notes) -> Any:
    _path(node)
    return node


def _json_text(node: Any, notes: Notes) -> Any:
    """Rewrite `->>`, which returns a text everywhere else. SQLite's returns numbers, and 1 and 0 for true and false."""
    path = _path(node)
    kind = call("json_type", node.this.copy(), path)
    value = exp.Cast(this=call("json_extract", node.this.copy(), path), to=exp.DataType.build("text"))
    case = exp.Case(this=kind, default=value)
    if notes.source in TRINO:
        for compound in ("object", "array"):
            case.append("ifs", exp.If(this=text(compound), true=exp.Null()))
    for truth in ("true", "false"):
        case.append("ifs", exp.If(this=text(truth), true=text(truth)))
    case.meta["text"] = True
    return case


# Membership, aggregates and functions of another name


def _any(node: Any, notes: Notes) -> Any:
    """Rewrite `= ANY (...)` and `<> ALL (...)` of a list or a query to IN and NOT IN."""
    node = same_kind(node, notes)
    _heed_case(notes)
    several = node.expression
    if isinstance(node, exp.NEQ) and isinstance(several, exp.Anonymous) and several.name.lower() == "all":
        source = several.expressions[0]
    elif isinstance(several, exp.Any if isinstance(node, exp.EQ) else exp.All):
        source = several.this
    else:
        return node
    while isinstance(source, (exp.Paren, exp.Subquery)):
        source = source.this
    if isinstance(source, exp.Array):
        found = _in(exp.In(this=node.this, expressions=source.expressions), notes)
    elif isinstance(source, exp.Query):
        found = _in(exp.In(this=node.this, query=exp.Subquery(this=source)), notes)
    else:
        raise unsupported("ANY or ALL of an array", "Write IN with the values one by one.")
    return found if isinstance(node, exp.EQ) else exp.not_(found)


def _heed_case(notes: Notes) -> None:
    if notes.source in IGNORE_CASE:
        notes.add(
            "Comparisons of texts are case-sensitive in SQLite: add COLLATE NOCASE in SQLite's "
            "own SQL where it matters."
        )


def _heed_rows(node: Any, notes: Notes) -> None:
    """Say that Trino's IN of rows may be NULL where a field is, unless NULL is as good as false there."""
    if not only_selects(node):
        notes.add(
            "IN of rows in which a field is NULL may be NULL in Trino where it is true or false here, and false"
            " where it is NULL here."
        )


def _in(node: Any, notes: Notes) -> Any:
    _heed_case(notes)
    if node.args.get("unnest") or node.args.get("field"):
        raise unsupported("IN of an array", "Write IN with the values one by one.")
    if notes.source in TRINO and isinstance(bare(node.this), exp.Tuple):
        _heed_rows(node, notes)
    heed_query(node, notes)
    if notes.source in POSTGRES and is_text(bare(node.this)) and not all(map(is_text, node.expressions)):
        equal = (_any(exp.EQ(this=value, expression=node.this.copy()), notes) for value in node.expressions)
        return exp.paren(exp.or_(*equal))
    for value in node.expressions:
        heed_spelling(node.this, exp.In, value, notes)
    if not kind_of(node.this):
        listed = (both_texts(value) if is_midnight(value, notes) else [value] for value in node.expressions)
        node.set("expressions", [like(node.this, value, notes) for values in listed for value in values])
    return node


def _case(node: Any, notes: Notes) -> Any:
    if notes.source not in POSTGRES:
        return node
    branches: list[Any] = []
    for branch in node.args["ifs"]:
        branches += _branch(node.this, branch, notes)
    node.set("ifs", branches)
    results = [branch.args["true"] for branch in branches]
    unify([*results, *filter(None, [node.args.get("default")])], notes)
    return node


def _branch(value: Any, branch: Any, notes: Notes) -> list[Any]:
    if value is None:
        return [condition(branch, notes)]
    if is_midnight(branch.this, notes) and not kind_of(value):
        return [exp.If(this=day, true=branch.args["true"].copy()) for day in both_texts(branch.this)]
    branch.set("this", like(value, branch.this, notes))
    return [branch]


def _nullif(node: Any, notes: Notes) -> Any:
    """Rewrite nullif beside a text, which SQLite compares without regard to the type of the column."""
    value, other = node.this, node.expression
    if notes.source not in POSTGRES or not any(map(_is_untyped, (value, other))):
        return node
    if isinstance(value, exp.Column) or isinstance(other, exp.Column):
        equal = _any(exp.EQ(this=value.copy(), expression=other.copy()), notes)
        return exp.Case(ifs=[exp.If(this=equal, true=exp.Null())], default=value)
    node.set("expression", like(value, other, notes))
    node.set("this", like(node.expression, value, notes))
    return node


def _is_untyped(value: Any) -> bool:
    return isinstance(value, exp.Placeholder) or (is_text(value) and bool(value.name))


def _count(node: Any, notes: Notes) -> Any:
    counted = node.this
    several = isinstance(counted, exp.Distinct) and (
        len(counted.expressions) > 1 or isinstance(counted.expressions[0], exp.Tuple)
    )
    if several or node.expressions:
        raise unsupported("count() of several columns", "Count the rows of a SELECT DISTINCT instead.")
    return node


def _count_if(node: Any, notes: Notes) -> Any:
    return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=number(1))]))


def _gather(node: Any, notes: Notes) -> Any:
    if node.args.get("on_overflow"):
        raise unsupported("LISTAGG ... ON OVERFLOW", "Leave it out.")
    if notes.source in TRINO and node.args.get("separator") is None:
        node.set("separator", text(""))
    return node


def _replace(node: Any, notes: Notes) -> Any:
    if notes.source in TRINO and is_text(node.expression) and not node.expression.name:
        raise unsupported("replace() of an empty text", "Replace something.")
    return node


def _about_distinct(node: Any, notes: Notes) -> Any:
    notes.add("approx_distinct() became an exact count.")
    return exp.Count(this=exp.Distinct(expressions=[node.this]))


def _any_value(node: Any, notes: Notes) -> Any:
    return exp.Min(this=node.this)


def _ordered_set(node: Any, notes: Notes) -> Any:
    names = {exp.PercentileCont: "percentile_cont", exp.PercentileDisc: "percentile_disc"}
    name, order = names.get(node.this.__class__), node.expression.expressions
    if name is None or len(order) != 1 or order[0].args.get("desc"):
        raise unsupported("This WITHIN GROUP", "Use percentile_cont or percentile_disc with one ascending column.")
    return call(name, order[0].this, node.this.this)


_RENAMED = {
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_build_array": "json_array",
    "jsonb_build_array": "json_array",
    "jsonb_agg": "json_group_array",
    "jsonb_object_agg": "json_group_object",
    "json_typeof": "json_type",
}


def _name_columns(node: Any, notes: Notes) -> Any:
    name = _RENAMED.get(node.name.lower())
    if node.name.lower() == "every" and len(node.expressions) == 1:
        return exp.LogicalAnd(this=node.expressions[0])
    if node.name.lower() == "codepoint" and notes.source in TRINO:
        return call("unicode", *node.expressions)
    return call(name, *node.expressions) if name else node


_OWN = ("order", "limit", "offset", "with_")


def _unwrap(node: Any, notes: Notes) -> Any:
    """Remove parentheses around the sides of UNION, INTERSECT and EXCEPT, which SQLite does not accept."""
    for side in ("this", "expression"):
        inner = node.args[side]
        while isinstance(inner, exp.Subquery) and not inner.args.get("alias"):
            inner = inner.this
        if inner is node.args[side]:
            continue
        if not isinstance(inner, (exp.Select, exp.Values)) or any(
            inner.args.get(a) for a in ("order", "limit", "with_")
        ):
            raise unsupported(
                "A side of UNION with its own ORDER BY, LIMIT or WITH", "Select from it: SELECT * FROM (...)."
            )
        node.set(side, inner)
    return node


def _extreme(node: Any, notes: Notes) -> Any:
    if notes.source in TRINO and node.expressions:
        raise unsupported(f"{node.key}() of several rows, an array,", "Use ORDER BY and LIMIT.")
    return node


VALUES: dict[type[Any], Rewriter] = {
    **dict.fromkeys((exp.Max, exp.Min), _extreme),
    exp.Left: _take_left,
    exp.Right: _take_left,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    **dict.fromkeys((exp.Concat, exp.ConcatWs), _concat),
    exp.Trim: _trim,
    exp.Lower: _change_case,
    exp.Upper: _change_case,
    exp.Ascii: _ascii,
    exp.DPipe: _join,
    exp.ByteString: _rewrite_literal,
    exp.RawString: _rewrite_literal,
    exp.JSONExtract: _json,
    exp.JSONExtractScalar: _json_text,
    exp.EQ: _any,
    exp.NEQ: _any,
    exp.In: _in,
    exp.Case: _case,
    exp.Nullif: _nullif,
    exp.Coalesce: alternatives,
    **dict.fromkeys((exp.And, exp.Or, exp.Not, exp.Where, exp.Having), condition),
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.GroupConcat: _gather,
    exp.Replace: _replace,
    exp.ApproxDistinct: _about_distinct,
    exp.AnyValue: _any_value,
    exp.StartsWith: _starts,
    exp.Length: _length,
    exp.WithinGroup: _ordered_set,
    exp.Anonymous: _name_columns,
    exp.Union: _unwrap,
    exp.Intersect: _unwrap,
    exp.Except: _unwrap,
}
