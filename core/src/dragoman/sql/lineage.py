"""Traces each column of an answer to the columns of relations. If uncertain: too many columns, never too few.

A column is traced through WITH, subqueries and set operations. Conditions, groups and orders only decide which rows
there are, and are not traced: `sql.columns` finds everything that a statement touches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from sqlglot import exp

from dragoman.errors import InvalidSql
from dragoman.model import Relation, Table
from dragoman.sql.columns import Names, Place, Reader, Touched, read_columns, unclear
from dragoman.sql.lexicon import Lexicon
from dragoman.sql.scopes import Name, Scope, Source, key
from dragoman.sql.statement import Statement

MOST = 20_000
"""The most columns, over all outputs of all queries. A statement with more is not traced."""
_JOINED = frozenset({"using", "method"})
_KINDS = frozenset({"", "INNER", "CROSS", "OUTER"})
_AROUND = ("joins", "laterals", "pivots", "match")


class Output(NamedTuple):
    """A column of an answer: its name, if the statement writes one, and the columns it is computed from."""

    name: str | None
    columns: frozenset[Touched]


def trace_columns(
    statement: Statement, tables: Mapping[Relation, Table | None], names: Names
) -> tuple[tuple[Touched, ...], tuple[tuple[str | None, tuple[Touched, ...]], ...] | None]:
    """Return the columns a query touches, and for each column of its answer, in order, its name and source columns.

    `*` stands for the columns that the catalog lists. The second value is None if the columns of the answer are
    unknown. Raises `InvalidSql` as `find_touched_columns` does.
    """
    reader = read_columns(statement, tables, names)
    touched = tuple(reader.found.touched)
    try:
        outputs = _Tracer(reader, statement.lexicon).trace(statement.tree)
    except (InvalidSql, RecursionError):
        outputs = None
    if outputs is None:
        return touched, None
    rank = {column: place for place, column in enumerate(touched)}
    return touched, tuple((each.name, tuple(sorted(each.columns, key=rank.__getitem__))) for each in outputs)


class _Tracer:
    """Traces the outputs of the queries of a statement that has been read."""

    def __init__(self, reader: Reader, lexicon: Lexicon) -> None:
        self._reader = reader
        self._lexicon = lexicon
        self._all = frozenset(reader.found.touched)
        self._traced: dict[int, list[Output] | None] = {}
        self._by_key: dict[int, dict[str | None, frozenset[Touched]] | None] = {}
        self._size = 0

    def trace(self, tree: exp.Expr) -> list[Output] | None:
        """Return the outputs of a statement; None if they are unknown."""
        self._reader.found.effort = 0
        with self._reader.found.apart():
            return self._outputs(tree)

    def _outputs(self, query: exp.Expr) -> list[Output] | None:
        while isinstance(query, exp.Subquery) and not any(query.args.get(name) for name in _AROUND):
            query = query.this
        if id(query) not in self._traced:
            self._traced[id(query)] = None  # the value that a recursive member finds for itself
            self._traced[id(query)] = self._check_size(self._trace(query))
        return self._traced[id(query)]

    def _check_size(self, outputs: list[Output] | None) -> list[Output] | None:
        self._size += sum(len(each.columns) + 1 for each in outputs or ())
        if self._size > MOST:
            raise unclear()
        return outputs

    def _trace(self, query: exp.Expr) -> list[Output] | None:
        if isinstance(query, exp.Select):
            return self._select(query)
        if not isinstance(query, exp.SetOperation) or any(query.args.get(each) for each in ("by_name", "side", "on")):
            return None
        left, right = self._outputs(query.this), self._outputs(query.expression)
        if left is None or right is None or len(left) != len(right):
            return None
        return [Output(one.name, one.columns | other.columns) for one, other in zip(left, right, strict=True)]

    def _select(self, select: exp.Select) -> list[Output] | None:
        within = self._reader.within[id(select)]
        scope = within.scope
        if scope is None or not scope.settled or select.args.get("kind"):
            return None
        if any(item.find(exp.Columns) or _is_row_star(item) for item in select.expressions):
            return None
        found: list[Output] = []
        for item in select.expressions:
            brought = self._expand(item, scope, select) if _is_star(item) else [self._item(item, select, within)]
            if brought is None:
                return None
            found += brought
        return found

    # One item of a SELECT

    def _item(self, item: exp.Expr, select: exp.Select, place: Place) -> Output:
        columns = frozenset(self._reader.loose)
        for node in (*_list_items(item, select), *(select.args.get("windows") or ())):
            columns |= self._read(node, place)
        # Reading a loose name again may find more columns. Names not read before are in no output.
        return Output(item.output_name or None, columns & self._all)

    def _read(self, node: exp.Expr, place: Place) -> frozenset[Touched]:
        """Return the columns that an expression is computed from.

        If it contains a query, these are all columns that the statement touches.
        """
        if _holds_query(node):
            return self._all
        with self._reader.found.apart() as touched:
            self._reader.walk(node, place)
            self._reader.found.read_generated(self._lexicon)
        columns = frozenset(touched)
        for names in _names_in(node):
            for source, column in self._inner_sources(names, place):
                columns |= self._follow(source, column)
        return columns

    def _inner_sources(self, names: Sequence[Name], place: Place) -> Iterator[tuple[Source, str | None]]:
        """Yield the sources other than plain tables that a name may mean, each with the column's key.

        None: all columns.
        """
        for scope, whole in place.scopes():
            sure = whole and self._reader.is_sure(scope, names)
            for source in scope.sources:
                if not source.plain:
                    yield from ((source, column) for column in _columns_meant(source, names, sure=sure))
            if sure:
                return

    def _follow(self, source: Source, column: str | None) -> frozenset[Touched]:
        """Return the columns that a source's columns with this key are computed from."""
        if source.query is None:
            return self._all if source.open or source.renamed or source.inner else frozenset()
        if id(source) not in self._by_key:
            self._by_key[id(source)] = _index(self._outputs_of(source))
        found = self._by_key[id(source)]
        return self._all if found is None else found.get(column, found[None])

    def _outputs_of(self, source: Source) -> list[Output] | None:
        """Return the outputs of a subquery under their outer names; None if they are unknown."""
        outputs = self._outputs(source.query) if source.query is not None else None
        named = zip(source.columns, outputs or (), strict=False)
        return outputs and [*(each._replace(name=name.text) for name, each in named), *outputs[len(source.columns) :]]

    # Stars

    def _expand(self, item: exp.Expr, scope: Scope, select: exp.Select) -> list[Output] | None:
        """Return the columns that `*` or `a.*` stands for; None if they are unknown."""
        star = item.this if isinstance(item, exp.Column) else item
        sources: Sequence[Source] = scope.sources
        if isinstance(item, exp.Column):
            sources = scope.find(Name.of(item.parts[-2])) if len(item.parts) == 2 else ()
        elif any(map(_is_odd, _joins_of(select))):
            return None
        if any(star.args.values()) or not sources or (item is not star and len(sources) > 1):
            return None
        found: list[Output] = []
        for source in sources:
            columns = self._columns_of(source)
            if columns is None:
                return None
            found += columns
        return found

    def _columns_of(self, source: Source) -> list[Output] | None:
        """Return all columns of a source, in order; None if they are unknown."""
        relations = list(dict.fromkeys(self._reader.behind(source)))
        if source.query is not None and not relations:
            return self._outputs_of(source)
        table = self._reader.found.tables.get(relations[0]) if source.plain and len(relations) == 1 else None
        if table is None or table.type == "virtual table":
            return None
        return [Output(column.name, self._column(relations[0], column.name)) for column in table.columns]

    def _column(self, written: Relation, name: str) -> frozenset[Touched]:
        with self._reader.found.apart() as touched:
            self._reader.found.touch(written, name)
            self._reader.found.read_generated(self._lexicon)
        return frozenset(touched)


def _index(outputs: list[Output] | None) -> dict[str | None, frozenset[Touched]] | None:
    """Return for each key the source columns of its outputs, including those of unnamed outputs.

    Under None: all of them.
    """
    if outputs is None:
        return None
    unnamed = [each.columns for each in outputs if each.name is None]
    found: dict[str | None, list[frozenset[Touched]]] = {None: [each.columns for each in outputs]}
    for each in outputs:
        if each.name is not None:
            found.setdefault(key(each.name), [*unnamed]).append(each.columns)
    return {name: frozenset[Touched]().union(*columns) for name, columns in found.items()}


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _is_row_star(item: exp.Expr) -> bool:
    """Return whether an item stands for all fields of a value, as `(a.*)` and `(a.b).*`."""
    inner = item
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Dot):
        return isinstance(inner.expression, exp.Star)
    return inner is not item and _is_star(inner)


def _holds_query(node: exp.Expr) -> bool:
    """Return whether an expression contains a query, or a table as in SQLite's `a IN t`."""
    return node.find(exp.Query) is not None or any(each.args.get("field") for each in node.find_all(exp.In))


def _list_items(item: exp.Expr, select: exp.Select) -> list[exp.Expr]:
    """Return an item, and the items whose aliases it may refer to: some databases allow that."""
    aliased: dict[str, list[exp.Expr]] = {}
    for each in select.expressions:
        if isinstance(each, exp.Alias):
            aliased.setdefault(key(each.alias), []).append(each)
    found = {id(item): item}
    waiting = [item]
    while waiting:
        for names in _names_in(waiting.pop()):
            for other in aliased.get(names[0].key, ()):
                if id(other) not in found:
                    found[id(other)] = other
                    waiting.append(other)
    return [*found.values()]


def _names_in(node: exp.Expr) -> Iterator[list[Name]]:
    """Yield the names in an expression, the parts of a column together, without the alias of the expression."""
    for each in node.walk(prune=lambda below: isinstance(below, exp.Column) and _is_plain(below)):
        if isinstance(each, exp.Column) and _is_plain(each):
            yield [Name.of(part) for part in each.parts]
        elif isinstance(each, exp.Identifier) and not (each.arg_key == "alias" and each.parent is node):
            yield [Name.of(each)]


def _is_plain(column: exp.Column) -> bool:
    return all(isinstance(part, (exp.Identifier, exp.Literal)) for part in column.parts)


def _columns_meant(source: Source, names: Sequence[Name], *, sure: bool) -> Iterator[str | None]:
    """Yield the keys of the columns of a source that a name may mean. None: all of them, as a row."""
    alias = source.alias.key if source.alias else None
    for before, name in pairwise(names):
        if before.key == alias:
            yield name.key
    if sure and len(names) > 1:
        return
    for name in names[:-1] or names:
        if source.open or source.renamed or name.key in source.others:
            yield name.key
    if len(names) == 1 and names[0].key == alias:
        yield None


def _joins_of(select: exp.Select) -> Iterable[exp.Join]:
    return (join for join in select.find_all(exp.Join) if join.find_ancestor(exp.Select) is select)


def _is_odd(join: exp.Join) -> bool:
    """Return whether a join has other columns than those of its two sides in order."""
    return any(join.args.get(name) for name in _JOINED) or str(join.args.get("kind") or "").upper() not in _KINDS
