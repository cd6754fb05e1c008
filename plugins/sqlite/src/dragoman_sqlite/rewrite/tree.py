"""Rewrites a query from another SQL so that SQLite gives the intended answer, or refuses it.

Every node of the tree is either known to mean the same in SQLite (`SAME`), or is rewritten by a function of `REWRITES`.
Any other node is refused by name. `dates`, `numbers`, `patterns` and `values` hold the rewrites.
"""

from __future__ import annotations

from typing import Any

from dragoman.sql.rewriting import UNKNOWN, refuse_others, replace_nodes
from sqlglot import exp

from dragoman_sqlite.reserved import RESERVED
from dragoman_sqlite.rewrite.dates import DATES
from dragoman_sqlite.rewrite.numbers import NUMBERS
from dragoman_sqlite.rewrite.patterns import PATTERNS
from dragoman_sqlite.rewrite.rewriting import POSTGRES, TRINO, Notes, Rewriter, is_predicate, unsupported
from dragoman_sqlite.rewrite.values import VALUES

# The frame of a query: clauses, names, joins and the like.
_STRUCTURE = (
    exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset,
    exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.With, exp.CTE, exp.Values, exp.Table, exp.TableAlias,
    exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Paren, exp.Tuple, exp.Distinct, exp.Placeholder, exp.Var,
)  # fmt: skip
_OPERATORS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.In, exp.Between, exp.Exists, exp.Case, exp.If, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod,
    exp.Neg, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift,
    exp.Literal, exp.Null, exp.Boolean, exp.Cast, exp.DataType, exp.Like, exp.Glob,
)  # fmt: skip
_FUNCTIONS = (
    exp.Abs, exp.Ceil, exp.Floor, exp.Sign, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Round, exp.Trunc,
    exp.Coalesce, exp.Nullif, exp.Lower, exp.Upper, exp.Length, exp.Substring, exp.StrPosition, exp.Replace, exp.Trim,
    exp.Concat, exp.ConcatWs, exp.Chr, exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp,
)  # fmt: skip
_AGGREGATES = (
    exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.GroupConcat, exp.LogicalAnd, exp.LogicalOr, exp.JSONArrayAgg,
    exp.JSONObjectAgg, exp.JSONObject, exp.Filter,
)  # fmt: skip
_WINDOWS = (
    exp.Window, exp.WindowSpec, exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile,
    exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
)  # fmt: skip
_JSON = (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONPath, exp.JSONPathRoot, exp.JSONPathKey, exp.JSONPathSubscript)
SAME = frozenset(_STRUCTURE + _OPERATORS + _FUNCTIONS + _AGGREGATES + _WINDOWS + _JSON)


def _fetch(node: Any, notes: Notes) -> Any:
    options = node.args.get("limit_options")
    if options and (options.args.get("percent") or options.args.get("with_ties")):
        raise unsupported("FETCH ... WITH TIES or PERCENT", "Use rank() in an inner query.")
    return exp.Limit(expression=node.args["count"])


def _select(node: Any, notes: Notes) -> Any:
    distinct = node.args.get("distinct")
    if distinct and distinct.args.get("on"):
        raise unsupported("DISTINCT ON", "Use row_number() OVER (PARTITION BY ... ORDER BY ...) = 1 in an outer query.")
    for clause in ("laterals", "sample", "connect", "qualify", "match", "kind", "pivots", "locks", "into"):
        if node.args.get(clause):
            raise unsupported(clause.upper(), "Write the query without it.")
    if any(is_predicate(column) for column in node.expressions):
        notes.add("Truth values are 1 and 0 in SQLite.")
    if notes.source in TRINO:
        _write_out_keys(node)
    return node


def _write_out_keys(node: Any) -> None:
    """Write out a result that ORDER BY computes with, since SQLite takes its name for a column's."""
    order = node.args.get("order")
    named = {column.alias.lower(): column.this for column in node.expressions if isinstance(column, exp.Alias)}
    for key in order.expressions if order else ():
        for column in () if isinstance(key.this, exp.Column) else list(key.find_all(exp.Column)):
            if not column.table and column.name.lower() in named and column.parent_select is node:
                column.replace(exp.paren(named[column.name.lower()].copy()))


def _group(node: Any, notes: Notes) -> Any:
    for kind in ("rollup", "cube", "grouping_sets"):
        if node.args.get(kind):
            raise unsupported(f"GROUP BY {kind.replace('_', ' ').upper()}", "Use UNION ALL of several GROUP BYs.")
    return node


def _join(node: Any, notes: Notes) -> Any:
    if node.kind in {"SEMI", "ANTI", "ASOF", "STRAIGHT"} or node.method in {"ASOF", "POSITIONAL"}:
        raise unsupported(f"{node.method} {node.kind} JOIN".strip(), "Use EXISTS or an inner query.")
    return node


def _table(node: Any, notes: Notes) -> Any:
    if not isinstance(node.this, exp.Identifier):
        raise unsupported(
            f"The table function {node.this.sql()}", "Use a recursive WITH, or json_each in SQLite's SQL."
        )
    if any(node.args.get(part) for part in ("sample", "version", "when", "pivots", "changes", "only", "partition")):
        raise unsupported("TABLESAMPLE and the like", "Use ORDER BY random() LIMIT n.")
    return node


def _star(node: Any, notes: Notes) -> Any:
    if any(node.args.values()):
        raise unsupported("* without or with changed columns", "Name the columns.")
    return node


def _name(node: Any, notes: Notes) -> Any:
    if node.name.lower() in RESERVED:
        node.set("quoted", True)
    return node


def _subquery(node: Any, notes: Notes) -> Any:
    """Rewrite `(SELECT ...) AS t(a, b)`, which SQLite lacks: the subquery's columns get the names instead."""
    alias = node.args.get("alias")
    names = alias.args.get("columns") if alias else None
    if not names:
        return node
    inner = node.this
    if not isinstance(inner, exp.Select) or len(inner.expressions) != len(names) or inner.is_star:
        raise unsupported("Column names behind an inner query's alias", "Name the columns inside the inner query.")
    inner.set("expressions", [exp.alias_(e.unalias(), name) for e, name in zip(inner.expressions, names, strict=True)])
    alias.set("columns", None)
    return node


def _values(node: Any, notes: Notes) -> Any:
    """Rewrite VALUES. SQLite names its columns column1, column2, ... and accepts no other names."""
    alias = node.args.get("alias")
    names = alias.args.get("columns") if alias else None
    if not names:
        return node
    columns = [exp.alias_(exp.column(f"column{n}"), name) for n, name in enumerate(names, 1)]
    rows = node.copy()
    rows.set("alias", None)
    return exp.Subquery(this=exp.select(*columns).from_(rows), alias=exp.TableAlias(this=alias.this))


REWRITES: dict[type[Any], Rewriter] = {
    exp.Fetch: _fetch,
    exp.Select: _select,
    exp.Group: _group,
    exp.Join: _join,
    exp.Table: _table,
    exp.Identifier: _name,
    exp.Star: _star,
    exp.Subquery: _subquery,
    exp.Values: _values,
    **DATES,
    **PATTERNS,
    **NUMBERS,
    **VALUES,
}


def rewrite(tree: Any) -> Any:
    """Return the sqlglot tree to run on SQLite.

    Raises `Unsupported` for a query that SQLite would answer differently.
    """
    notes = Notes(tree.meta.get("source", ""), tree.meta.setdefault("notices", []), _has_derived(tree))
    if notes.source not in POSTGRES | TRINO:
        notes.add(UNKNOWN)
    tree = replace_nodes(tree, REWRITES, notes)
    refuse_others(tree, SAME, unsupported, "SQLite")
    return tree


def _has_derived(tree: Any) -> bool:
    inner = tree.find_all(exp.CTE, exp.Subquery)
    return any(isinstance(query, exp.CTE) or isinstance(query.parent, (exp.From, exp.Join)) for query in inner)
