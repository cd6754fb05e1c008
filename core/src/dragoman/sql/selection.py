"""The sources and conditions of a query, taken apart so that each condition can be tested alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from dragoman.errors import DragomanError, Unsupported
from dragoman.model import Relation
from dragoman.sql.statement import Statement
from dragoman.sql.translate import Placeholder, tree_with_parameters, write
from dragoman.words import close_quotes, display

MOST_CONDITIONS = 8
MOST_SOURCES = 6
SHOWN = 80
"""The most characters of a condition in a notice."""

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "=", "<>": "<>"}
Value = str | int | float | bool | Decimal | None


@dataclass(frozen=True, slots=True)
class Source:
    """A source of a query, by its name there.

    `relation`: as written; None for a subquery, a call or a member of WITH. `optional`: an outer join may put NULL in
    place of its columns.
    """

    name: str
    relation: Relation | None
    optional: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with values: `=` with one, `IN` with several, `BETWEEN` with two. `source`: its qualifier.

    `function`: applied to the column first, such as LOWER; empty: none.
    """

    column: str
    source: str | None
    operator: str
    values: tuple[Value, ...]
    function: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that a row must meet. `columns`: (qualifier or None, name) of those it reads.

    `nested`: it contains a query.
    """

    text: str
    columns: tuple[tuple[str | None, str], ...]
    comparison: Comparison | None
    nested: bool
    tree: exp.Expr


@dataclass(frozen=True, slots=True)
class Selection:
    """A query without its outputs. `aggregate`: it always returns one row. `limit` and `offset`: None if not given.

    `aggregated`: what its only output aggregates (COUNT, SUM, ...), if that is all that the output does; else empty.
    `joins`: for each source but the first, the condition that joins it, as text; empty if there is none.
    """

    sources: tuple[Source, ...]
    conditions: tuple[Condition, ...]
    joins: tuple[str, ...]
    aggregate: bool
    aggregated: str
    having: bool
    limit: Value
    offset: Value
    select: exp.Select
    kept: tuple[exp.Expr, ...]
    dialect: str

    def exists(self, conditions: Iterable[Condition] = (), sources: int | None = None, only: str = "") -> exp.Expr:
        """Return a question: whether a row of the first `sources` sources, or of one alone, meets the conditions."""
        return exp.Exists(this=self._from(conditions, sources, only).select("1"))

    def some_values(self, column: exp.Column, source: str, rows: int, most: int) -> exp.Select:
        """Return the query for the different values of a column in some rows of one source."""
        name = exp.column(column.this.copy())
        inner = self._from((), None, source).select(name.copy()).where(name.copy().is_(exp.null()).not_()).limit(rows)
        return exp.select(name.copy()).from_(inner.subquery("few_rows")).distinct().limit(most)

    def _from(self, conditions: Iterable[Condition], sources: int | None, only: str) -> exp.Select:
        own = self.select
        parts = [own.args["from_"].this, *(own.args.get("joins") or ())]
        trees = [condition.tree for condition in conditions]
        if only:
            one = next(part for part, source in zip(parts, self.sources, strict=True) if source.name == only)
            select = exp.Select().from_((one.this if isinstance(one, exp.Join) else one).copy())
        else:
            select = exp.Select().from_(parts[0].copy())
            for join in parts[1 : len(self.sources) if sources is None else sources]:
                select.append("joins", join.copy())
            trees += self.kept if sources is None else ()
        return select.where(*(tree.copy() for tree in trees)) if trees else select

    def ask(self, questions: Sequence[exp.Expr], placeholder: Placeholder) -> tuple[str, tuple[int, ...]]:
        """Return one statement that answers several questions, and the numbers of the values of its parameters."""
        return self.write(exp.select(*(exp.alias_(each, f"q{n}") for n, each in enumerate(questions))), placeholder)

    def write(self, query: exp.Select, placeholder: Placeholder) -> tuple[str, tuple[int, ...]]:
        """Return one query as text, and the numbers of the values of its parameters."""
        if with_ := self.select.args.get("with_"):
            query.set("with_", with_.copy())
        return write(query, self.dialect, placeholder)


def selection_of(statement: Statement, parameters: Sequence[Any] = ()) -> Selection:
    """Return the sources and conditions of a query.

    `parameters`: the values of its parameters, for texts about its conditions. Raises `InvalidSql`, and `Unsupported`
    for queries that are not taken apart: set operations, samples, many tables, many conditions.
    """
    tree = tree_with_parameters(statement)
    if not isinstance(tree, exp.Select) or not tree.args.get("from_"):
        raise Unsupported("It is not one SELECT from something.")
    if tree.find(exp.TableSample):
        raise Unsupported("It reads a sample.")
    members = frozenset(member.alias.lower() for member in tree.find_all(exp.CTE))
    outer, tree = tree, _innermost(tree)
    reader = _Reader(statement.sqlglot, parameters)
    sources = tuple(
        _source(part, members, optional=optional)
        for part, optional in zip(_parts(tree), _are_optional(tree), strict=True)
    )
    if len(sources) > MOST_SOURCES or len({source.name for source in sources}) < len(sources):
        raise Unsupported("It has many tables, or some without a name.")
    kept, conditions = reader.conditions(tree)
    if len(conditions) > MOST_CONDITIONS:
        raise Unsupported("It has many conditions.")
    return Selection(
        sources=sources,
        conditions=tuple(conditions),
        joins=tuple(
            reader.format(join.args["on"]) if join.args.get("on") else "" for join in tree.args.get("joins") or ()
        ),
        aggregate=_is_aggregate(outer),
        aggregated=_only_aggregate(outer),
        having=bool(tree.args.get("having")),
        limit=reader.limit_of(outer, "limit"),
        offset=reader.limit_of(outer, "offset"),
        select=tree,
        kept=tuple(kept),
        dialect=statement.sqlglot,
    )


def _innermost(tree: exp.Select) -> exp.Select:
    """Return the query with the conditions. A query that only passes on another's rows is skipped."""
    while True:
        inner = tree.args["from_"].this
        plain = not tree.args.get("joins") and not tree.args.get("where")
        if not (plain and isinstance(inner, exp.Subquery) and isinstance(inner.this, exp.Select)):
            return tree
        if not inner.this.args.get("from_") or inner.this.args.get("limit"):
            return tree
        if (with_ := tree.args.get("with_")) and not inner.this.args.get("with_"):
            inner.this.set("with_", with_.copy())
        tree = inner.this


def _parts(select: exp.Select) -> Iterator[exp.Expr]:
    yield select.args["from_"].this
    for join in select.args.get("joins") or ():
        yield join.this


def _are_optional(select: exp.Select) -> list[bool]:
    """Return for each source whether an outer join puts NULL in place of its columns."""
    optional = [False]
    for join in select.args.get("joins") or ():
        if join.side in ("RIGHT", "FULL"):
            optional = [True] * len(optional)
        optional.append(join.side in ("LEFT", "FULL"))
    return optional


def _source(part: exp.Expr, members: frozenset[str], *, optional: bool) -> Source:
    relation = None
    if isinstance(part, exp.Table) and isinstance(part.this, exp.Identifier):
        relation = Relation(part.name, part.db or None, part.catalog or None)
        if relation.schema is None and relation.name.lower() in members:
            relation = None
    return Source(part.alias_or_name, relation, optional)


def _is_aggregate(select: exp.Select) -> bool:
    if select.args.get("group") or not select.expressions:
        return False
    return all(each.find(exp.AggFunc) is not None and each.find(exp.Window) is None for each in select.expressions)


_AGGREGATES = (exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg)


def _only_aggregate(select: exp.Select) -> str:
    """Return the aggregate that is the only output; empty if there is more to it, such as FILTER or arithmetic."""
    if len(select.expressions) != 1 or select.args.get("group"):
        return ""
    output = select.expressions[0].unalias()
    return type(output).__name__.upper() if isinstance(output, _AGGREGATES) else ""


class _Reader:
    """Reads conditions, with the values of parameters if they are known."""

    def __init__(self, dialect: str, parameters: Sequence[Any]) -> None:
        self._dialect = dialect
        self._parameters = parameters

    def conditions(self, select: exp.Select) -> tuple[list[exp.Expr], list[Condition]]:
        """Return the conditions that join sources (they stay with them), and separately those on rows."""
        where = select.args.get("where")
        given = _conjuncts(where.this) if where else []
        kept = [each for each in given if _joins(each)]
        found = [self._condition(each) for each in given if not _joins(each)]
        for join in select.args.get("joins") or ():
            on = join.args.get("on")
            if on is not None and not join.side:
                apart = [each for each in _conjuncts(on) if not _joins(each)]
                found += [self._condition(each) for each in apart]
                rest = [each for each in _conjuncts(on) if _joins(each)]
                join.set("on", exp.and_(*(each.copy() for each in rest)) if rest else exp.true())
        return kept, found

    def _condition(self, tree: exp.Expr) -> Condition:
        columns = dict.fromkeys((column.table or None, column.name) for column in tree.find_all(exp.Column))
        nested = tree.find(exp.Select) is not None
        return Condition(self.format(tree), tuple(columns), None if nested else self._comparison(tree), nested, tree)

    def _comparison(self, tree: exp.Expr) -> Comparison | None:
        if tree.args.get("negate"):  # NOT LIKE, and in some dialects IS NOT NULL
            return None
        if isinstance(tree, exp.In) and tree.expressions:
            return self._read_comparison(tree.this, "IN", tree.expressions)
        if isinstance(tree, exp.Between):
            return self._read_comparison(tree.this, "BETWEEN", [tree.args["low"], tree.args["high"]])
        if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
            return self._read_comparison(tree.this, "IS", [tree.expression])
        operator = _OPERATORS.get(type(tree))
        if operator is None:
            return None
        left, right = tree.this, tree.expression
        return self._read_comparison(left, operator, [right]) or (
            self._read_comparison(right, _MIRRORED[operator], [left]) if operator in _MIRRORED else None
        )

    def _read_comparison(self, side: exp.Expr, operator: str, others: Sequence[exp.Expr]) -> Comparison | None:
        function = ""
        if isinstance(side, exp.Lower | exp.Upper):
            function, side = type(side).__name__.upper(), side.this
        if not isinstance(side, exp.Column) or not all(_is_value(other) for other in others):
            return None
        values = tuple(self._value(other) for other in others)
        return Comparison(side.name, side.table or None, operator, values, function)

    def _value(self, tree: exp.Expr) -> Value:
        while isinstance(tree, exp.Cast | exp.Paren):
            tree = tree.this
        match tree:
            case exp.Placeholder():
                number = int(tree.name) - 1
                value: Value = self._parameters[number] if number < len(self._parameters) else None
                return value
            case exp.Literal() if tree.is_string:
                return tree.name
            case exp.Literal():
                return Decimal(tree.name) if set(tree.name) & set(".eE") else int(tree.name)
            case exp.Neg():
                inner = self._value(tree.this)
                return -inner if isinstance(inner, int | float | Decimal) else None
            case exp.Boolean():
                return bool(tree.this)
            case _:
                return None

    def limit_of(self, select: exp.Select, name: str) -> Value:
        """Return the number of LIMIT or OFFSET; None if there is none."""
        found = select.args.get(name)
        return self._value(found.expression) if found is not None and _is_value(found.expression) else None

    def format(self, tree: exp.Expr) -> str:
        """Return a condition as SQL on one line, shortened, with the values of its parameters."""

        def fill(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Placeholder):
                return node
            value = self._value(node)
            return exp.Literal.string(value) if isinstance(value, str) else exp.convert(value)

        try:
            text = tree.copy().transform(fill).sql(dialect=self._dialect, comments=False)
        except (ValueError, DragomanError):
            text = tree.sql(comments=False)
        return close_quotes(display(text, SHOWN))


def _is_value(tree: exp.Expr) -> bool:
    while isinstance(tree, exp.Cast | exp.Paren | exp.Neg):
        tree = tree.this
    return isinstance(tree, exp.Literal | exp.Placeholder | exp.Boolean | exp.Null)


def _conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        return [*_conjuncts(tree.this), *_conjuncts(tree.expression)]
    return [tree]


def _joins(tree: exp.Expr) -> bool:
    """Return whether it compares columns of two sources."""
    if not isinstance(tree, exp.EQ) or tree.find(exp.Select):
        return False
    left, right = ({column.table for column in side.find_all(exp.Column)} for side in (tree.this, tree.expression))
    return len(left) == len(right) == 1 and left != right


Resolve = Callable[[str | None, str], str | None]
"""Maps (qualifier or None, column) to the name of the column's source. None: unknown."""


def home_of(condition: Condition, resolve: Resolve) -> str | None:
    """Return the only source whose rows decide a condition. None: there are several, or it is unknown."""
    homes = {resolve(*column) for column in condition.columns}
    return homes.pop() if len(homes) == 1 and not condition.nested else None


def column_in(condition: Condition) -> exp.Column | None:
    """Return the column that a condition compares."""
    return condition.tree.find(exp.Column)
