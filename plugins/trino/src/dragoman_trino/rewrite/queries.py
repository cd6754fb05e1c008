"""The frame of a query: names, grouping, limits, recursion, tables made by functions."""

from __future__ import annotations

from typing import Any

from dragoman.sql.rewriting import call, is_integer
from sqlglot import exp

from dragoman_trino.reserved import RESERVED
from dragoman_trino.rewrite.numbers import kind_of_number
from dragoman_trino.rewrite.rewriting import Notes, Rewriter, bare, cast, kind_of, unsupported, whole

# The longest list of numbers that Trino creates.
MAX_SERIES = 10_000
_AGGREGATES = (exp.AggFunc, exp.Filter, exp.Grouping)
_RECURSION = "Trino stops a recursive WITH after 10 steps, unless its administrator allows more."


def check_spelling(tree: Any, notes: Notes) -> None:
    """Refuse names that differ only in case: to Trino they are one name, to Postgres two if quoted."""
    if notes.sqlite:
        return
    seen: dict[str, str] = {}
    for name in tree.find_all(exp.Identifier):
        written = name.name if name.args.get("quoted") else name.name.lower()
        if seen.setdefault(written.lower(), written) != written:
            raise unsupported(f"Two names that differ in case only, {written!r} among them,", "Rename one of them.")


def _select(node: Any, notes: Notes) -> Any:
    distinct = node.args.get("distinct")
    if distinct and distinct.args.get("on"):
        raise unsupported("DISTINCT ON", "Use row_number() OVER (PARTITION BY ... ORDER BY ...) = 1 in an outer query.")
    for clause in ("laterals", "sample", "connect", "qualify", "match", "kind", "pivots", "locks", "into"):
        if node.args.get(clause):
            raise unsupported(clause.upper(), "Write the query without it.")
    if any(isinstance(column.unalias(), exp.Interval) for column in node.expressions):
        raise unsupported("An interval as a result", "Add it to a date or timestamp.")
    _group_by_place(node)
    if notes.sqlite:
        _resolve_having(node)
    _unqualify(node)
    _check_grouped(node)
    _qualify_keys(node, notes)
    return _explode(node)


def _qualify_keys(node: Any, notes: Notes) -> None:
    """Say in ORDER BY that a name is a column's: in an expression Trino takes it for the result's of that name."""
    order = node.args.get("order")
    named = {column.alias.lower(): column.this for column in node.expressions if isinstance(column, exp.Alias)}
    for key in order.expressions if order else ():
        for column in () if isinstance(bare(key.this), exp.Column) else key.find_all(exp.Column):
            name = column.name.lower()
            if _is_plain(column) and name in named and column.parent_select is node:
                _qualify_key(column, named[name], node, notes)


def _qualify_key(column: Any, result: Any, node: Any, notes: Notes) -> None:
    names = {found.name.lower() for found in result.find_all(exp.Column)}
    # SQLite knows a result there too, where no column has its name.
    if isinstance(bare(result), exp.Column) or (notes.sqlite and column.name.lower() not in names):
        return
    source = node.args.get("from_")
    if not source or node.args.get("joins") or not source.this.alias_or_name:
        raise unsupported(
            f"ORDER BY an expression of {column.name}, which is a column and a result,", "Give the result another name."
        )
    column.set("table", exp.to_identifier(source.this.alias_or_name))


def _explode(node: Any) -> Any:
    """Rewrite `SELECT unnest(x)` alone to a query of a table."""
    makers = [column for column in node.expressions if _is_maker(column.unalias())]
    if not makers:
        return node
    if len(node.expressions) > 1 or node.args.get("from_"):
        raise unsupported("A function that gives rows, beside columns", "Move it into FROM.")
    maker = makers[0].unalias()
    name = makers[0].alias or ("unnest" if isinstance(maker, exp.Explode) else "generate_series")
    rows = _series(maker) if isinstance(maker, exp.GenerateSeries) else maker.this
    alias = exp.TableAlias(this=exp.to_identifier("made"), columns=[exp.to_identifier(name, quoted=True)])
    node.set("from_", exp.From(this=exp.Unnest(expressions=[rows], alias=alias)))
    node.set("expressions", [exp.column(exp.to_identifier(name, quoted=True))])
    return node


def _is_maker(node: Any) -> bool:
    return isinstance(node, (exp.Explode, exp.GenerateSeries))


def _group_by_place(node: Any) -> None:
    """Group by the place of a column instead of its alias, which Trino does not know there.

    The name may also be a column of the tables. It means the alias if the aliased expression needs grouping itself.
    """
    group = node.args.get("group")
    if not group:
        return
    named = {c.alias.lower(): (place, c.this) for place, c in enumerate(node.expressions, 1) if c.args.get("alias")}
    keys = {_plain_sql(key) for key in group.expressions}
    for key in list(group.expressions):
        place, meant = named.get(key.name.lower(), (0, None)) if _is_plain(key) else (0, None)
        columns = {_plain_sql(column) for column in meant.find_all(exp.Column)} if meant is not None else set[str]()
        if columns and _plain_sql(key) not in columns and not columns <= keys:
            key.replace(exp.Literal.number(place))


def _resolve_having(node: Any) -> None:
    """Replace aliases of aggregates in HAVING, which SQLite allows."""
    having = node.args.get("having")
    named = {c.alias.lower(): c.this for c in node.expressions if c.args.get("alias") and _has_aggregate(c)}
    for column in list(having.find_all(exp.Column)) if having else ():
        if _is_plain(column) and column.name.lower() in named and not column.find_ancestor(exp.AggFunc):
            column.replace(exp.paren(named[column.name.lower()].copy()))


def _unqualify(node: Any) -> None:
    """Remove the table from a column of USING: in Trino it belongs to no table."""
    joins = node.args.get("joins") or ()
    shared = {name.name.lower() for join in joins for name in join.args.get("using") or ()}
    if not shared:
        return
    tables = {source.alias_or_name for source in (node.args["from_"].this, *(join.this for join in joins))}
    for column in list(node.find_all(exp.Column)):
        if column.table in tables and column.name.lower() in shared:
            if any(join.side for join in joins):
                raise unsupported("A column of USING with its table's name beside an outer join", "Write ON a.x = b.x.")
            column.set("table", None)


def _is_plain(key: Any) -> bool:
    return isinstance(key, exp.Column) and not key.table


def _check_grouped(node: Any) -> None:
    """Refuse a column beside aggregates that is not grouped.

    SQLite takes any row's value; Postgres may know the key.
    """
    group = node.args.get("group")
    aggregated = any(_has_aggregate(column) for column in node.expressions)
    if not group and not aggregated:
        return
    parts = (
        [key for kind in ("rollup", "cube", "grouping_sets") for key in (group.args.get(kind) or ())] if group else []
    )
    if parts:
        return
    keys = [*group.expressions] if group else []
    grouped = {_plain_sql(_resolve_alias(key, node)) for key in keys}
    for column in node.expressions:
        if not _is_grouped(column.unalias(), grouped):
            raise unsupported("A column that is neither grouped nor aggregated", "Add it to GROUP BY, or use max().")


def _resolve_alias(key: Any, select: Any) -> Any:
    place = whole(key)
    return select.expressions[place - 1].unalias() if place and place <= len(select.expressions) else key


def _plain_sql(node: Any) -> str:
    """Return a column without its table's name, anything else as written."""
    return str(node.name.lower() if isinstance(node, exp.Column) else node.sql().lower())


def _has_aggregate(node: Any) -> bool:
    return any(
        isinstance(found, exp.AggFunc) and not isinstance(found.parent, exp.Window) and _is_own(found, node)
        for found in node.walk()
    )


def _is_own(found: Any, node: Any) -> bool:
    select = found.find_ancestor(exp.Select)
    return select is node.find_ancestor(exp.Select)


def _is_grouped(node: Any, grouped: set[str]) -> bool:
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return False
    if _plain_sql(node) in grouped or isinstance(node, (*_AGGREGATES, exp.Query, exp.Window)) or _is_aggregate(node):
        return True
    if isinstance(node, exp.Column):
        return False
    return all(_is_grouped(child, grouped) for child in node.iter_expressions())


def _is_aggregate(node: Any) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in {"every", "listagg"}


def _join(node: Any, notes: Notes) -> Any:
    if node.kind in {"SEMI", "ANTI", "ASOF", "STRAIGHT"} or node.method in {"ASOF", "POSITIONAL", "NATURAL"}:
        raise unsupported(f"{node.method} {node.kind} JOIN".replace("  ", " "), "Use JOIN ... USING or EXISTS.")
    return node


def _limit(node: Any, notes: Notes) -> Any:
    count = node.expression
    if isinstance(count, exp.Var) and count.name.upper() == "ALL":
        return None
    if notes.sqlite and isinstance(count, exp.Neg) and isinstance(node, exp.Limit):
        return None
    if not is_integer(count) and not isinstance(count, exp.Placeholder):
        raise unsupported(f"A {node.key.upper()} that is computed", "Write a number, or pass a parameter.")
    return node


def _fetch(node: Any, notes: Notes) -> Any:
    options = node.args.get("limit_options")
    if options and options.args.get("percent"):
        raise unsupported("FETCH ... PERCENT", "Use a number of rows.")
    if options and options.args.get("with_ties"):
        return node
    return exp.Limit(expression=node.args["count"])


def _table(node: Any, notes: Notes) -> Any:
    if isinstance(node.this, exp.Func):
        return _table_function(node)
    if any(node.args.get(part) for part in ("version", "when", "pivots", "changes", "only", "partition", "hints")):
        raise unsupported("This table", "Name the table alone.")
    node.set("indexed", None)
    return node


def _table_function(node: Any) -> Any:
    maker = node.this
    if not isinstance(maker, exp.GenerateSeries) and not _is_series(maker):
        raise unsupported(f"The table function {maker.sql()[:40]}", "Use UNNEST in Trino's own SQL.")
    alias = node.args.get("alias")
    name = alias.this if alias and alias.this else exp.to_identifier("generate_series")
    columns = (alias.args.get("columns") if alias else None) or [name.copy()]
    return exp.Unnest(expressions=[_series(maker)], alias=exp.TableAlias(this=name, columns=columns))


def _is_series(node: Any) -> bool:
    return isinstance(node, exp.ExplodingGenerateSeries)


def _series(node: Any) -> Any:
    """Rewrite a series.

    Trino's sequence() counts down by itself where Postgres returns no rows, and it has a maximum.
    """
    start, end, step = node.args["start"], node.args["end"], node.args.get("step")
    numbers = whole(start), whole(end), 1 if step is None else whole(step)
    first, last, by = numbers
    if first is not None and last is not None and by:
        if (last - first) * by < 0 or abs((last - first) // by) >= MAX_SERIES:
            raise unsupported(f"A series of no numbers, or of more than {MAX_SERIES}", "Use a table of numbers.")
        return call("sequence", start, end, *([step] if step is not None else []))
    if kind_of(start) == kind_of(end) == "timestamp" and isinstance(step, exp.Interval) and step.args.get("unit"):
        return call("sequence", start, end, step)
    raise unsupported("A series of what is computed", "Write its bounds as numbers, or as timestamps with an interval.")


def _unnest(node: Any, notes: Notes) -> Any:
    """Rewrite `unnest(x) AS y`, which names table and column in Postgres."""
    alias = node.args.get("alias")
    if alias and not alias.args.get("columns") and not node.args.get("offset"):
        alias.set("columns", [alias.this.copy()])
    return node


def _name_values(node: Any, notes: Notes) -> Any:
    """Name the columns of VALUES column1, column2 and so on if they have no other names."""
    alias, rows = node.args.get("alias"), node.expressions
    if not alias and isinstance(node.parent, (exp.From, exp.Join)):
        alias = exp.TableAlias(this=exp.to_identifier("listed"))
        node.set("alias", alias)
    if alias and alias.this and not alias.args.get("columns"):
        width = len(rows[0].expressions) if isinstance(rows[0], exp.Tuple) else 1
        alias.set("columns", [exp.to_identifier(f"column{place}") for place in range(1, width + 1)])
    return node


def _sample(node: Any, notes: Notes) -> Any:
    method = node.args.get("method")
    if node.args.get("seed") or not method or method.name.upper() not in {"BERNOULLI", "SYSTEM"}:
        raise unsupported("TABLESAMPLE with a seed", "Use TABLESAMPLE BERNOULLI (percent).")
    return node


def _column(node: Any, notes: Notes) -> Any:
    if notes.sqlite and node.name.lower() in {"rowid", "_rowid_"}:
        raise unsupported(f"The column {node.name}", "Use a key of the table.")
    return node


def _star(node: Any, notes: Notes) -> Any:
    if any(node.args.values()):
        raise unsupported("* without or with changed columns", "Name the columns.")
    return node


def _name(node: Any, notes: Notes) -> Any:
    if node.name.lower() in RESERVED:
        node.set("quoted", True)
    return node


def _with(node: Any, notes: Notes) -> Any:
    for made in node.expressions:
        made.set("materialized", None)
    if not node.recursive:
        return node
    for made in node.expressions:
        if not any(table.name == made.alias for table in made.this.find_all(exp.Table)):
            continue
        notes.add(_RECURSION)
        if not isinstance(made.this, exp.Union) or made.this.args.get("distinct"):
            raise unsupported("A recursive WITH of UNION", "Use UNION ALL.")
        if made.this.args.get("order") or made.this.args.get("limit"):
            raise unsupported("A recursive WITH that is ordered or limited", "End it by a condition.")
        _name_columns(made)
    return node


def _name_columns(made: Any) -> None:
    """Name the columns of a recursive WITH, and make them wide enough for later rows, as Trino requires."""
    first = made.this.left
    if not made.args["alias"].args.get("columns"):
        names = [column.alias_or_name for column in first.expressions] if isinstance(first, exp.Select) else []
        if not names or not all(names):
            raise unsupported("A recursive WITH without the names of its columns", "Name them: WITH RECURSIVE t(n).")
        made.args["alias"].set("columns", [exp.to_identifier(name) for name in names])
    if isinstance(first, exp.Select):
        first.set("expressions", [_wide(column) for column in first.expressions])


def _wide(column: Any) -> Any:
    inner = column.unalias()
    if kind_of_number(inner) == "whole":
        wide = cast(inner, "bigint")
        return exp.alias_(wide, column.alias) if column.alias else wide
    if isinstance(inner, exp.Literal) and inner.is_string:
        wide = cast(inner, "varchar")
        return exp.alias_(wide, column.alias) if column.alias else wide
    return column


def _frame(node: Any, notes: Notes) -> Any:
    if node.args.get("exclude"):
        raise unsupported("A window that excludes rows", "Compute it without the window.")
    return node


def _window(node: Any, notes: Notes) -> Any:
    if isinstance(node.this, exp.Filter):
        raise unsupported("FILTER over a window", "Use CASE WHEN inside the aggregate.")
    return node


def _count(node: Any, notes: Notes) -> Any:
    counted = node.this
    if node.expressions or (isinstance(counted, exp.Distinct) and len(counted.expressions) > 1):
        raise unsupported("count() of several columns", "Count the rows of a SELECT DISTINCT instead.")
    return node


QUERIES: dict[type[Any], Rewriter] = {
    exp.Select: _select,
    exp.Join: _join,
    exp.Limit: _limit,
    exp.Offset: _limit,
    exp.Fetch: _fetch,
    exp.Table: _table,
    exp.Unnest: _unnest,
    exp.Values: _name_values,
    exp.TableSample: _sample,
    exp.Column: _column,
    exp.Star: _star,
    exp.Identifier: _name,
    exp.With: _with,
    exp.Window: _window,
    exp.WindowSpec: _frame,
    exp.Count: _count,
}
