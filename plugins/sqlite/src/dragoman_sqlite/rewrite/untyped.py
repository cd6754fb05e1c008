"""Texts beside values, which Postgres reads as values of the same type: 'true' beside a truth value is one.

SQLite has 1 and 0 for truth values, and computes with the number that a text begins with. It compares a text with a
column as that column's type would, but a text with what is computed as a text, which differs from every number.
"""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import bare, call, exact, is_long, is_ours, is_text, number, text
from sqlglot import exp

from dragoman_sqlite.rewrite.rewriting import POSTGRES, Notes, is_predicate, kind_of, unsupported

_TRUE = re.compile(r"t(?:r(?:ue?)?)?|y(?:es?)?|on|1", re.IGNORECASE)
_FALSE = re.compile(r"f(?:a(?:l(?:se?)?)?)?|no?|off?|0", re.IGNORECASE)
_NUMBER = re.compile(r"\s*([+-]?)((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*")
_TEXTS = (
    exp.Lower, exp.Upper, exp.Concat, exp.ConcatWs, exp.DPipe, exp.Substring, exp.Trim, exp.Replace, exp.GroupConcat,
    exp.CurrentTime, exp.Placeholder, exp.Null, exp.Star,
)  # fmt: skip
_NUMBERS = (
    exp.Count, exp.Sum, exp.Avg, exp.Length, exp.StrPosition, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Abs, exp.Round, exp.Ceil, exp.Floor, exp.Sign, exp.Sqrt,
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseNot,
)  # fmt: skip
_PASSING = (exp.Window, exp.Filter, exp.Max, exp.Min, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
_NUMBER_TYPES = frozenset({"INT", "BIGINT", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT", "DECIMAL"})
_TEXT_CALLS = frozenset(
    {"substr", "lower", "upper", "trim", "ltrim", "rtrim", "char", "concat", "strftime", "json_type"}
)
_NUMBER_CALLS = frozenset({"instr", "length", "octet_length", "unicode", "julianday", "mod"})
_CHOSEN = "A text beside a value in coalesce, CASE, greatest or least is a text: write true or 1 where that is meant."


def refuse_arithmetic(node: Any, notes: Notes) -> None:
    """Refuse arithmetic with a text that is no number: beside a date it is a date, or an interval."""
    if notes.source not in POSTGRES:
        return
    for side in (bare(node.this), bare(node.expression)):
        if is_text(side) and not _NUMBER.fullmatch(side.name):
            raise unsupported("Arithmetic with a text of no written type", "Write its type: '2024-01-31'::date.")


def like(value: Any, written: Any, notes: Notes) -> Any:
    """Return what stands for `written` beside `value`: for a text, what Postgres makes of it there."""
    value, found = bare(value), bare(written)
    if notes.source not in POSTGRES:
        return written
    if isinstance(value, exp.Tuple) and isinstance(found, exp.Tuple):
        pairs = zip(value.expressions, found.expressions, strict=False)
        return exp.Tuple(expressions=[like(one, two, notes) for one, two in pairs])
    if not is_text(found) or is_text(value) or kind_of(value) or isinstance(value, (exp.Any, exp.All)):
        return written
    return _read_as(value, found) or _read_at_run(value, found, notes) or written


def _read_as(value: Any, found: Any) -> Any:
    """Return what stands for a text beside a truth value or a number."""
    if is_predicate(value):
        if _truth(found.name) is None:
            raise unsupported("A text beside a truth value that is none", "Write true or false.")
        return number(_truth(found.name))
    return _number(found.name) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    if isinstance(value, exp.Cast):
        return value.to.this.name in _NUMBER_TYPES
    if isinstance(value, _PASSING):
        return _is_number(bare(value.this))
    if isinstance(value, (exp.Case, exp.Subquery)):
        results = [bare(each) for each in _results(value)]
        return bool(results) and all(map(_is_number, results))
    is_called = is_ours(value) and value.name in _NUMBER_CALLS
    return is_called or isinstance(value, _NUMBERS) or exact(value) is not None


def _results(node: Any) -> list[Any]:
    """Return what CASE or an inner query may give, but for NULL."""
    if isinstance(node, exp.Subquery):
        return [column.unalias() for column in node.unnest().args.get("expressions") or ()][:1]
    found = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
    return [each for each in found if each is not None and not isinstance(each, exp.Null)]


def _is_text(value: Any) -> bool:
    if isinstance(value, exp.Cast):
        return value.to.this.name in {"TEXT", "VARCHAR"}
    is_called = is_ours(value) and value.name in _TEXT_CALLS
    return is_called or isinstance(value, _TEXTS) or bool(value.meta.get("text"))


def _read_at_run(value: Any, found: Any, notes: Notes) -> Any:
    """Return what finds out when it runs what a text is beside a value of an unknown type."""
    truth, digits = _truth(found.name), _number(found.name)
    other = digits or (number(truth) if truth is not None else None)
    # SQLite itself makes a number of a text beside a table's column of numbers.
    is_stored = isinstance(value, exp.Column) and not notes.has_derived
    if other is None or _is_text(value) or (is_stored and digits):
        return None
    if is_long(value):
        raise unsupported("A text of no written type beside a long value", "Write its type: '1'::integer.")
    kinds = ("integer", "real") if digits else ("integer",)
    cases = [exp.If(this=text(kind), true=other.copy()) for kind in kinds]
    return exp.Case(this=call("typeof", value.copy()), ifs=cases, default=text(found.name))


def heed_query(node: Any, notes: Notes) -> None:
    """Refuse `'1' IN (SELECT ...)`: what the query gives is not seen here."""
    found, query = bare(node.this), node.args.get("query")
    if notes.source not in POSTGRES or query is None or not is_text(found):
        return
    columns: list[Any] = query.unnest().args.get("expressions") or []
    is_column = bool(columns) and isinstance(columns[0].unalias(), exp.Column)
    is_number = _number(found.name) is not None
    if (is_number and not is_column) or (not is_number and _truth(found.name) is not None):
        raise unsupported("A text of no written type among a query's values", "Write its type: '1'::integer.")


def _truth(written: str) -> int | None:
    return 1 if _TRUE.fullmatch(written.strip()) else 0 if _FALSE.fullmatch(written.strip()) else None


def _number(written: str) -> Any:
    found = _NUMBER.fullmatch(written)
    if found is None:
        return None
    return exp.Neg(this=number(found[2])) if found[1] == "-" else number(found[2])


def condition(node: Any, notes: Notes) -> Any:
    """Make truth values of texts that are conditions: `WHERE 'true'`."""
    for place in ("this", "expression"):
        side = bare(node.args.get(place))
        if notes.source in POSTGRES and is_text(side):
            node.set(place, like(exp.true(), side, notes))
    return node


def alternatives(node: Any, notes: Notes) -> Any:
    """Give the texts among the arguments of coalesce, greatest or least the type of the others."""
    unify([node.this, *node.expressions], notes)
    return node


def unify(values: list[Any], notes: Notes) -> None:
    """Give the texts among values of one type the type that the others show. Changes their tree."""
    written = [value for value in values if notes.source in POSTGRES and is_text(bare(value))]
    others = [bare(value) for value in values if not is_text(bare(value))]
    for value in written:
        found = bare(value)
        new = next((read for other in others if (read := _read_as(other, found)) is not None), None)
        if new is not None:
            value.replace(new)
        elif not all(_is_text(other) or kind_of(other) for other in others) and _is_ambiguous(found.name):
            notes.add(_CHOSEN)


def _is_ambiguous(written: str) -> bool:
    return _truth(written) is not None or _number(written) is not None
