"""Rewrites a query from another SQL so that Postgres gives the intended answer, or refuses it.

Every node of the tree is either known to mean the same in Postgres (`SAME`), or is rewritten by a function of
`REWRITES`. Any other node is refused by name. Trino's family and SQLite are known. From any other SQL, the common part
is translated, with a notice.
"""

from __future__ import annotations

from typing import Any

from dragoman.sql.rewriting import UNKNOWN, bare, refuse_others, replace_nodes
from sqlglot import exp

from dragoman_postgres.reserved import RESERVED
from dragoman_postgres.rewrite import aggregates, moments
from dragoman_postgres.rewrite.dates import DATES
from dragoman_postgres.rewrite.numbers import NUMBERS
from dragoman_postgres.rewrite.rewriting import Notes, Rewriter, unsupported
from dragoman_postgres.rewrite.texts import TEXTS
from dragoman_postgres.rewrite.truth import TRUTH, number_truths, of_one_type

# The frame of a query: clauses, names, joins and the like.
_STRUCTURE = (
    exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset,
    exp.Fetch, exp.LimitOptions, exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.With, exp.CTE, exp.Values,
    exp.Table, exp.TableAlias, exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Paren, exp.Tuple, exp.Distinct,
    exp.Placeholder, exp.Var, exp.Lateral, exp.Unnest, exp.Rollup, exp.Cube, exp.GroupingSets, exp.TableSample,
)  # fmt: skip
_OPERATORS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.In, exp.Between, exp.Exists, exp.Case, exp.If, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod,
    exp.Neg, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift,
    exp.BitwiseRightShift, exp.Literal, exp.Null, exp.Boolean, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Like,
    exp.RegexpLike, exp.Any, exp.All, exp.Interval,
)  # fmt: skip
_NUMBERS = (
    exp.Abs, exp.Ceil, exp.Floor, exp.Sign, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Cbrt, exp.Round, exp.Trunc,
    exp.Rand, exp.Greatest, exp.Least, exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Atan2, exp.Degrees,
    exp.Radians, exp.Pi,
)  # fmt: skip
_TEXTS = (
    exp.Coalesce, exp.Nullif, exp.Lower, exp.Upper, exp.Length, exp.Substring, exp.StrPosition, exp.Replace, exp.Trim,
    exp.Concat, exp.ConcatWs, exp.Chr, exp.Reverse, exp.Pad, exp.Translate, exp.SplitPart, exp.Repeat,
)  # fmt: skip
_DATES = (exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp, exp.Extract)
_AGGREGATES = (
    exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.GroupConcat, exp.LogicalAnd, exp.LogicalOr, exp.ArrayAgg,
    exp.Filter, exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop, exp.Corr, exp.CovarSamp,
    exp.CovarPop, exp.Grouping,
)  # fmt: skip
_WINDOWS = (
    exp.Window, exp.WindowSpec, exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile,
    exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
)  # fmt: skip
_ARRAYS = (exp.Array, exp.Bracket, exp.ArrayToString, exp.GenerateSeries)
SAME = frozenset(_STRUCTURE + _OPERATORS + _NUMBERS + _TEXTS + _DATES + _AGGREGATES + _WINDOWS + _ARRAYS)

_ROW_IDS = frozenset({"rowid", "_rowid_", "oid"})


def _select(node: Any, notes: Notes) -> Any:
    for clause in ("laterals", "connect", "qualify", "match", "kind", "pivots", "locks", "into"):
        if node.args.get(clause):
            raise unsupported(clause.upper(), "Write the query without it.")
    if notes.sqlite:
        _no_bare_columns(node)
        _no_names_of_results(node)
    if notes.trino:
        _write_out_keys(node)
    return node


def _write_out_keys(node: Any) -> None:
    """Write out a result that ORDER BY computes with, since Postgres takes its name for a column's."""
    order = node.args.get("order")
    named = {column.alias.lower(): column.this for column in node.expressions if isinstance(column, exp.Alias)}
    for key in order.expressions if order else ():
        for column in () if isinstance(bare(key.this), exp.Column) else list(key.find_all(exp.Column)):
            if not column.table and column.name.lower() in named and column.parent_select is node:
                column.replace(exp.paren(named[column.name.lower()].copy()))


def _no_bare_columns(node: Any) -> None:
    """Refuse a column that is neither grouped nor aggregated. SQLite picks a row for it."""
    group = node.args.get("group")
    shown = [column.unalias() for column in node.expressions]
    if not group and not any(_aggregates(column) for column in shown):
        return
    grouped = {_spell(key) for key in (group.expressions if group else ())}
    for place, column in enumerate(node.expressions, 1):
        if not {str(place), column.alias_or_name.lower(), _spell(column.unalias())} & grouped:
            _heed_group(column.unalias(), grouped)


def _no_names_of_results(node: Any) -> None:
    """Refuse names of the result in HAVING, which SQLite allows."""
    having = node.args.get("having")
    named = {column.alias.lower() for column in node.expressions if isinstance(column, exp.Alias)}
    grouped = {_spell(key) for key in (node.args["group"].expressions if node.args.get("group") else ())}
    for column in having.find_all(exp.Column) if having else ():
        if not column.table and column.name.lower() in named - grouped and not column.find_ancestor(exp.AggFunc):
            raise unsupported(f"The name of a result, {column.name}, in HAVING", "Repeat what it stands for.")


def _unite(node: Any, notes: Notes) -> Any:
    if notes.sqlite:
        sides = [side.unnest() for side in (node.this, node.expression)]
        for pair in zip(*(side.selects for side in sides), strict=False):
            of_one_type([value.unalias() for value in pair])
    return node


def _spell(node: Any) -> str:
    return str(node.name if isinstance(node, exp.Column) else node.sql()).lower()


def _aggregates(node: Any) -> bool:
    return any(
        found.find_ancestor(exp.Window, exp.Query) in (None, node.parent_select) for found in node.find_all(exp.AggFunc)
    )


def _heed_group(node: Any, grouped: set[str]) -> None:
    if _spell(node) in grouped or isinstance(node, (exp.AggFunc, exp.Query, exp.Window, exp.Filter)):
        return
    if isinstance(node, exp.Anonymous) and node.name.lower() in {"total", "to_char"}:
        return
    if isinstance(node, (exp.Column, exp.Star)):
        raise unsupported(
            f"The column {node.name}, neither grouped nor aggregated,", "Group by it, or use min() or max()."
        )
    for child in node.iter_expressions():
        _heed_group(child, grouped)


def _table(node: Any, notes: Notes) -> Any:
    if not isinstance(node.this, exp.Identifier):
        raise unsupported(f"The table function {node.this.sql()}", "Write the query in Postgres' own SQL.")
    if any(node.args.get(part) for part in ("version", "when", "pivots", "changes", "only", "partition")):
        raise unsupported("A table as of another time, or a part of one", "Name the table alone.")
    if notes.sqlite and node.db.lower() == "main":
        node.set("db", None)
    return node


def _star(node: Any, notes: Notes) -> Any:
    if any(node.args.values()):
        raise unsupported("* without or with changed columns", "Name the columns.")
    return node


def _column(node: Any, notes: Notes) -> Any:
    if notes.sqlite and node.name.lower() in _ROW_IDS and not node.this.quoted:
        raise unsupported("SQLite's number of a row", "Use the primary key.")
    if notes.sqlite and node.db.lower() == "main":
        node.set("db", None)
    return node


def _name(node: Any, notes: Notes) -> Any:
    if not node.quoted and node.name.lower() in RESERVED:
        node.set("this", node.name.lower())
        node.set("quoted", True)
    return node


def _limit(node: Any, notes: Notes) -> Any:
    """Remove SQLite's LIMIT -1, which means no limit."""
    return exp.Limit(expression=exp.Null()) if notes.sqlite and isinstance(node.expression, exp.Neg) else node


def _call(node: Any, notes: Notes) -> Any:
    return aggregates.rewrite_call(moments.rewrite_call(node, notes), notes)


def _bytes(node: Any, notes: Notes) -> Any:
    raise unsupported("A literal of bytes", "Pass it as a parameter.")


REWRITES: dict[type[Any], Rewriter] = {
    exp.Select: _select,
    exp.Table: _table,
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), _unite),
    exp.Star: _star,
    exp.Column: _column,
    exp.Identifier: _name,
    exp.Limit: _limit,
    exp.Anonymous: _call,
    exp.HexString: _bytes,
    **NUMBERS,
    **TRUTH,
    **DATES,
    **TEXTS,
    **aggregates.AGGREGATES,
}
_FOR_SQLITE = REWRITES | moments.MOMENTS_OF_SQLITE


def rewrite(tree: Any) -> Any:
    """Return the sqlglot tree to run on Postgres.

    Raises `Unsupported` for a query that Postgres would answer differently.
    """
    notes = Notes(source=tree.meta.get("source", ""), notices=tree.meta.setdefault("notices", []))
    if not (notes.trino or notes.sqlite):
        notes.add(UNKNOWN)
    rewrites = _FOR_SQLITE if notes.sqlite else REWRITES
    tree = replace_nodes(tree, rewrites, notes)
    if notes.sqlite:
        number_truths(tree)
    refuse_others(tree, SAME, unsupported, "Postgres")
    return tree
