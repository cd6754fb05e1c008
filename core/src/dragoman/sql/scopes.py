"""What names may mean at their place in a query: the sources of each SELECT, and the enclosing SELECTs.

Databases differ in what is visible where. So a scope offers everything that some database sees there, and calls certain
only what holds in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dragoman.words import fold_widely

Members = Mapping[str, "Source"]
"""The members of WITH that are visible at a place, by the key of their names."""
CUT = 60
"""The bytes of a name that count. Databases that cut names keep a few more."""
_PLAIN = frozenset({"this", "alias", "db", "catalog", "joins", "only", "sample"})
"""The parts that a table in FROM may have while its columns keep their names."""


def key(name: str) -> str:
    """Return the form that all spellings share which some database takes for one name."""
    # Letters that stand for longer ones, such as the Kelvin sign, count as these: what a cut leaves has one key.
    long = fold_widely(name).replace("i", "iii").replace("k", "kkk").replace("s", "ss").replace("ι", "ιι")
    return long[:CUT] if long.isascii() else long.encode(errors="replace")[:CUT].decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written. `quoted` is also true if that is unknown."""

    text: str
    quoted: bool

    @classmethod
    def of(cls, node: exp.Expr) -> Name:
        """Return the name of an identifier, or of a text in its place."""
        return cls(node.name, not (isinstance(node, exp.Identifier) and not node.args.get("quoted")))

    @property
    def key(self) -> str:
        """The form that it shares with its other spellings."""
        return key(self.text)

    @property
    def certain(self) -> bool:
        """Whether no database cuts it or folds it in a special way."""
        return self.text.isascii() and len(self.text) < CUT


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Source:
    """What one alias of a FROM clause stands for.

    - `tables`: relations that are read through it; several for a join.
    - `plain`: it is one table with its own column names.
    - `inner`: it is, or may be, a subquery.
    - `hidden`: its alias may be invisible.
    - `renamed`: its columns have other names.
    - `outputs`: the columns that a subquery certainly has.
    - `others`: the keys of columns that it may have.
    - `open`: it may have any column.
    - `query`: the subquery, if it is one.
    - `columns`: the names that its first columns get here.
    """

    alias: Name | None = None
    tables: tuple[exp.Table, ...] = ()
    plain: bool = False
    inner: bool = False
    hidden: bool = False
    renamed: bool = False
    outputs: frozenset[Name] = frozenset()
    others: frozenset[str] = frozenset()
    open: bool = False
    query: exp.Expr | None = None
    columns: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """One SELECT.

    - `whole`: names at its place see the whole FROM clause of the enclosing SELECT, `outer`.
    - `settled`: its columns are those of its sources, and nothing in between changes them.
    - `others`: the keys of columns that subqueries or the SELECT list may have.
    - `open`: some source may have any column.
    """

    outer: Scope | None
    whole: bool
    sources: tuple[Source, ...]
    settled: bool
    others: frozenset[str]
    open: bool
    by_alias: Mapping[str, Sequence[Source]]

    @classmethod
    def of(
        cls, sources: Iterable[Source], outer: Scope | None, whole: bool, *, settled: bool, aliases: Iterable[str] = ()
    ) -> Scope:
        """Return the scope of a SELECT with these sources, and with these keys as aliases of its outputs."""
        sources = tuple(sources)
        by_alias: dict[str, list[Source]] = {}
        for source in sources:
            if source.alias:
                by_alias.setdefault(source.alias.key, []).append(source)
        others = frozenset(aliases).union(*(source.others for source in sources))
        return cls(outer, whole, sources, settled, others, any(source.open for source in sources), by_alias)

    def find(self, alias: Name) -> Sequence[Source]:
        """Return the sources with this alias."""
        return self.by_alias.get(alias.key, ())


def select_scope(select: exp.Select, outer: Scope | None, whole: bool, members: Members) -> Scope:
    """Return the scope of a SELECT."""
    from_ = select.args.get("from_")
    sources = [*(_sources(from_.this, members) if from_ else ()), *_beside(select, members)]
    odd = any(select.args.get(name) for name in ("match", "pivots", "laterals", "connect"))
    aliases = (Name.of(item.args["alias"]).key for item in select.expressions if isinstance(item, exp.Alias))
    return Scope.of(sources, outer, whole, settled=not odd, aliases=aliases)


def outputs_scope(query: exp.Query, outer: Scope | None, whole: bool) -> Scope:
    """Return the scope of ORDER BY after a set operation, which sees its outputs."""
    return Scope.of([_derive(query, None, ())], outer, whole, settled=False)


def members_of(clause: exp.With, around: Members) -> Members:
    """Return the members of WITH that are visible below a query with a WITH clause.

    They may be visible in the clause too.
    """
    members = ((member.args["alias"], member.this) for member in clause.expressions)
    return {**around, **{key(alias.name): _derive(query, None, _columns(alias)) for alias, query in members}}


def _columns(alias: exp.Expr | None) -> tuple[Name, ...]:
    return tuple(Name.of(column) for column in alias.columns) if isinstance(alias, exp.TableAlias) else ()


def _beside(node: exp.Expr, members: Members) -> Iterator[Source]:
    for name in ("joins", "laterals"):
        for joined in node.args.get(name) or ():
            yield from _sources(joined.this if isinstance(joined, exp.Join) else joined, members)


def _sources(node: exp.Expr, members: Members) -> Iterator[Source]:
    """Yield the sources of one item of a FROM clause, including what is joined to it in the same parentheses."""
    alias = node.args.get("alias")
    name = Name.of(alias.this) if isinstance(alias, exp.TableAlias) and alias.this else None
    columns = _columns(alias)
    inner = _bare(node.this) if isinstance(node, (exp.Subquery, exp.Lateral)) else None
    if isinstance(node, exp.Table):
        yield _table(node, name, columns, members)
    elif isinstance(inner, (exp.Table, exp.Subquery)):
        yield from _group(list(_sources(inner, members)), name, columns)
    elif isinstance(inner, exp.Query):
        yield _derive(inner, name, columns)
    else:
        yield Source(alias=name, open=True)
    yield from _beside(node, members)


def _bare(node: exp.Expr) -> exp.Expr:
    """Return a query or a join without redundant parentheses."""
    while isinstance(node, exp.Subquery) and not (node.args.get("alias") or node.args.get("joins")):
        node = node.this
    return node


def _table(table: exp.Table, alias: Name | None, columns: tuple[Name, ...], members: Members) -> Source:
    if not isinstance(table.this, (exp.Identifier, exp.Dot)):
        # A function; or a search in a table, if there is one of its name.
        named = Name(table.name, True) if table.this and table.name else None
        return Source(alias=alias or named, tables=(table,), inner=True, open=True)
    plain = not columns and all(part in _PLAIN for part, value in table.args.items() if value)
    own = alias or Name.of(table.parts[-1])
    member = None if table.args.get("db") else members.get(key(table.name))
    if member is None:
        return Source(alias=own, tables=(table,), plain=plain, renamed=bool(columns))
    # If there is also a relation of that name it may be meant: databases differ in which member is visible.
    return Source(
        alias=own,
        tables=(table,),
        inner=True,
        renamed=bool(columns),
        outputs=frozenset(columns) or member.outputs,
        others=member.others.union(column.key for column in columns),
        open=member.open,
        query=member.query,
        columns=columns or member.columns,
    )


def _group(inner: list[Source], alias: Name | None, columns: tuple[Name, ...]) -> Iterator[Source]:
    """Return the source for a join in parentheses. Under an alias it hides what it joins, at least in some databases.

    If two columns have the same name, one is renamed; and SQLite reads all of its columns, whichever are used.
    """
    if alias is None:
        yield from (replace(each, renamed=len(inner) > 1) for each in inner)
        return
    yield from (replace(each, plain=False, hidden=True, outputs=frozenset()) for each in inner)
    yield Source(
        alias=alias,
        tables=tuple(table for each in inner for table in each.tables),
        renamed=True,
        outputs=frozenset(columns),
        others=frozenset(column.key for column in columns).union(*(each.others for each in inner)),
        open=any(each.open for each in inner),
    )


def _derive(query: exp.Expr, alias: Name | None, columns: tuple[Name, ...]) -> Source:
    """Return the source for a subquery.

    The first SELECT of a set operation names its outputs, but not in every database.
    """
    named = [_list_outputs(select) for select in _selects(query)]
    sure = columns or named[0][0]
    others = frozenset(name.key for names, _ in named for name in (*names, *columns))
    unknown = any(more for _, more in named)
    return Source(
        alias=alias, inner=True, outputs=frozenset(sure), others=others, open=unknown, query=query, columns=columns
    )


def _selects(query: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the SELECTs of a set operation, first to last."""
    waiting = [query]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.SetOperation):
            waiting += [node.expression, node.this]
        elif isinstance(node, exp.Subquery):
            waiting.append(node.this)
        else:
            yield node


def _list_outputs(select: exp.Expr) -> tuple[list[Name], bool]:
    """Return the outputs that a SELECT names, and whether it may have further named ones."""
    if not isinstance(select, exp.Select):
        return [], True
    names: list[Name] = []
    unknown = False
    for item in select.expressions:
        node = item.args.get("alias" if isinstance(item, exp.Alias) else "this")
        if isinstance(item, (exp.Alias, exp.Column)) and isinstance(node, exp.Identifier):
            names.append(Name.of(node))
        else:
            unknown = unknown or not isinstance(item, exp.Literal)
    return names, unknown
