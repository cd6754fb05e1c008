"""Rewrites a query from another SQL so that Trino gives the intended answer, or refuses it.

Every node of the tree is either known to mean the same in Trino (`SAME`), or is rewritten by a function of `REWRITES`.
Any other node is refused by name.
"""

from __future__ import annotations

from typing import Any

from dragoman.sql.rewriting import UNKNOWN, refuse_others, replace_nodes
from sqlglot import exp

from dragoman_trino.rewrite.casts import CASTS
from dragoman_trino.rewrite.dates import DATES
from dragoman_trino.rewrite.documents import DOCUMENTS
from dragoman_trino.rewrite.numbers import NUMBERS
from dragoman_trino.rewrite.patterns import PATTERNS
from dragoman_trino.rewrite.queries import QUERIES, check_spelling
from dragoman_trino.rewrite.rewriting import Notes, Rewriter, unsupported
from dragoman_trino.rewrite.sqlite_dates import SQLITE_DATES
from dragoman_trino.rewrite.texts import TEXTS
from dragoman_trino.rewrite.truth import make_boolean

# The frame of a query: clauses, names, joins and the like.
_STRUCTURE = (
    exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Having,
    exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Fetch, exp.LimitOptions, exp.Union, exp.Intersect, exp.Except,
    exp.Subquery, exp.With, exp.CTE, exp.Values, exp.Table, exp.TableAlias, exp.Alias, exp.Column, exp.Identifier,
    exp.Star, exp.Paren, exp.Tuple, exp.Distinct, exp.Placeholder, exp.Var, exp.Lateral, exp.Unnest, exp.TableSample,
)  # fmt: skip
_OPERATORS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.In, exp.Between, exp.Exists, exp.Any, exp.All, exp.Case, exp.If, exp.Add, exp.Sub, exp.Mul,
    exp.Div, exp.Mod, exp.Neg, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot,
    exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.Literal, exp.Null, exp.Boolean, exp.Cast, exp.DataType,
    exp.DataTypeParam, exp.Like, exp.Escape, exp.Interval, exp.Array, exp.HexString,
)  # fmt: skip
_FUNCTIONS = (
    exp.Abs, exp.Ceil, exp.Floor, exp.Sign, exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Round,
    exp.Trunc, exp.Pi, exp.Degrees, exp.Radians, exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Atan2,
    exp.Rand, exp.Coalesce, exp.Nullif, exp.Lower, exp.Upper, exp.Length, exp.Substring, exp.StrPosition, exp.Replace,
    exp.Trim, exp.Concat, exp.ConcatWs, exp.Chr, exp.Reverse, exp.Pad, exp.Translate, exp.StartsWith, exp.CurrentDate,
    exp.CurrentTimestamp, exp.Localtimestamp, exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.TimeToStr,
    exp.StrToDate, exp.Uuid,
)  # fmt: skip
_AGGREGATES = (
    exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.GroupConcat, exp.LogicalAnd, exp.LogicalOr, exp.ArrayAgg,
    exp.Filter, exp.Grouping, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr,
    exp.CovarPop, exp.CovarSamp, exp.RegrSlope, exp.RegrIntercept,
)  # fmt: skip
_WINDOWS = (
    exp.Window, exp.WindowSpec, exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile,
    exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
)  # fmt: skip
SAME = frozenset(_STRUCTURE + _OPERATORS + _FUNCTIONS + _AGGREGATES + _WINDOWS)

REWRITES: dict[type[Any], Rewriter] = {**QUERIES, **NUMBERS, **TEXTS, **PATTERNS, **CASTS, **DATES, **DOCUMENTS}
_COVERED = frozenset({"postgres", "sqlite"})


def rewrite(tree: Any) -> Any:
    """Return the sqlglot tree to run on Trino. Raises `Unsupported` for a query that Trino would answer differently."""
    notes = Notes(source=tree.meta.get("source", ""), notices=tree.meta.setdefault("notices", []))
    if notes.source not in _COVERED:
        notes.add(UNKNOWN)
    check_spelling(tree, notes)
    rewrites = REWRITES
    if notes.sqlite:
        make_boolean(tree)
        rewrites = {**REWRITES, **SQLITE_DATES}
    tree = replace_nodes(tree, rewrites, notes)
    refuse_others(tree, SAME, unsupported, "Trino")
    return tree
