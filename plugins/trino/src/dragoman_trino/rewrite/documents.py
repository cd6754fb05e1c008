"""JSON, arrays, and functions that both engines have under some name."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import call, is_text, number, text
from sqlglot import exp

from dragoman_trino.rewrite.dates import make_date
from dragoman_trino.rewrite.rewriting import Notes, Rewriter, unsupported, whole

_SCALARS = "Objects and lists as text are NULL in Trino; numbers in JSON are texts, spelled as Trino does."


def _path(node: Any) -> str:
    """Return the path of an operator or a function on JSON, as Trino writes it."""
    path = node.expression
    if is_text(path):
        found = re.fullmatch(r"\{((?:[A-Za-z_]\w*,?)+)\}", path.name)
        steps: list[Any] = found[1].split(",") if found else []
    else:
        parts = path.expressions if isinstance(path, exp.JSONPath) else ()
        steps = [part.this for part in parts if isinstance(part, (exp.JSONPathKey, exp.JSONPathSubscript))]
        if len(steps) + 1 != len(parts):
            steps = []
    plain = all(isinstance(step, (str, int)) and not re.search(r'["\\]', str(step)) for step in steps)
    if not steps or not plain or any(isinstance(step, int) and step < 0 for step in steps):
        raise unsupported("This path into JSON", "Use -> and ->> with plain keys or positions from 0.")
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f'["{step}"]' for step in steps)


def _check_one_path(node: Any) -> None:
    if node.expressions:
        raise unsupported("Several paths into JSON", "Extract one value at a time.")


def _json(node: Any, notes: Notes) -> Any:
    _check_one_path(node)
    return call("json_extract", node.this, _path(node), kind="json")


def _json_text(node: Any, notes: Notes) -> Any:
    _check_one_path(node)
    notes.add(_SCALARS)
    return call("json_extract_scalar", node.this, _path(node))


def _element(node: Any, notes: Notes) -> Any:
    """Rewrite an element access. Trino's [] fails beyond the end; the tree counts from 0, element_at() from 1."""
    if node.meta.get("ours"):
        return node
    index = whole(node.expressions[0]) if len(node.expressions) == 1 else None
    if index is None or index < 0:
        raise unsupported("An element or a part of an array by what is computed", "Write a position from 1.")
    return call("element_at", node.this, index + 1)


def _size(node: Any, notes: Notes) -> Any:
    """Rewrite array_length(), which is NULL for an empty array in Postgres."""
    if whole(node.expression) not in {1, None}:
        raise unsupported("array_length() of an inner dimension", "Use cardinality().")
    size = call("cardinality", node.this)
    return size if node.expression is None else call("nullif", size, 0)


def _join_array(node: Any, notes: Notes) -> Any:
    return call("array_join", node.this, node.expression, *filter(None, [node.args.get("null")]))


def _array(node: Any, notes: Notes) -> Any:
    if any(isinstance(part, exp.Query) for part in node.expressions):
        raise unsupported("ARRAY of a query", "Use array_agg().")
    return exp.Array(expressions=node.expressions)


def _array_position(node: Any, notes: Notes) -> Any:
    if node.args.get("start"):
        raise unsupported("array_position() from a position", "Search the whole array.")
    return call("nullif", call("array_position", node.this, node.expression), number(0))


_RENAMED = {
    "cardinality": "cardinality",
    "every": "every",
    "jsonb_array_length": "json_array_length",
    "json_array_length": "json_array_length",
    "width_bucket": "width_bucket",
}


def call_named(node: Any, notes: Notes) -> Any:
    """Return a call of a function that sqlglot does not know, if Trino has the same one."""
    if node.meta.get("ours"):
        return node
    name, arguments = node.name.lower(), node.expressions
    if name == "make_date" and not notes.sqlite:
        return make_date(node, notes)
    if name == "octet_length":
        return call("length", call("to_utf8", *arguments))
    if name in _RENAMED and len(arguments) == 1:
        return call(_RENAMED[name], arguments[0])
    return node


def _same_text(node: Any, notes: Notes) -> Any:
    return text(node.name)


DOCUMENTS: dict[type[Any], Rewriter] = {
    exp.JSONExtract: _json,
    exp.JSONExtractScalar: _json_text,
    exp.JSONBExtract: _json,
    exp.JSONBExtractScalar: _json_text,
    exp.Bracket: _element,
    exp.ArraySize: _size,
    exp.ArrayToString: _join_array,
    exp.ArrayPosition: _array_position,
    exp.Array: _array,
    exp.Anonymous: call_named,
    exp.National: _same_text,
}
