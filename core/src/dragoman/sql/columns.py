"""Which columns a statement touches. Where that is not certain the answer holds too many, never too few."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope, walk_in_scope

from dragoman.errors import InvalidSql
from dragoman.model import Relation, Table

Touched = tuple[Relation, str]
ALIASED = frozenset({"order", "group", "having", "qualify"})
"""Clauses in which a name may be that of an output column."""


def touched_columns(tree: exp.Expr, tables: Mapping[Relation, Table | None]) -> tuple[Touched, ...]:
    """Return the columns a query touches, as (relation, column), both as stored.

    `tables` has every relation the query names, as written, with what the catalog knows of it, or None: then names stay
    as written, and `*` stands for all columns. A column the catalog does not list, such as `rowid`, counts as all of
    its relation's besides. A view is one relation. Columns that derived tables and WITH pass on are
    those they read. Raises `InvalidSql` for what cannot be followed.
    """
    found = _Found(tables)
    try:
        for scope in traverse_scope(tree):
            _Reader(scope, found).read()
    except (SqlglotError, RecursionError):
        raise InvalidSql(
            "The columns the statement reads cannot be told.", suggestion="Write the query in a simpler form."
        ) from None
    found.read_the_rest(tree)
    return tuple(found.touched)


@dataclass(slots=True)
class _Found:
    """What was found so far, and which nodes and relations it was found at."""

    tables: Mapping[Relation, Table | None]
    touched: dict[Touched, None] = field(default_factory=dict[Touched, None])
    visited: set[int] = field(default_factory=set[int])
    sources: set[Relation] = field(default_factory=set[Relation])

    def touch(self, written: Relation, name: str) -> bool:
        """Touch one column; whether the relation has it, or may have it."""
        table = self.tables.get(written)
        if table is None:
            self.touched[written, name] = None
            return True
        names = [column.name for column in table.columns if column.name.lower() == name.lower()]
        self.touched.update(dict.fromkeys((table.relation, column) for column in names))
        return bool(names)

    def touch_odd(self, written: Relation, name: str) -> None:
        """Touch what the catalog does not list; since it may be another name of a listed column, all of those too."""
        self.touch_all(written)
        table = self.tables.get(written)
        self.touched[table.relation if table else written, name] = None

    def touch_all(self, written: Relation) -> None:
        table = self.tables.get(written)
        if table is None:
            self.touched[written, "*"] = None
        else:
            self.touched.update(dict.fromkeys((table.relation, column.name) for column in table.columns))

    def read_the_rest(self, tree: exp.Expr) -> None:
        """Take what no scope had for a column of every relation, and a relation no scope had as read wholly."""
        for node in tree.find_all(exp.Column):
            if id(node) not in self.visited:
                for written in self.tables:
                    self.touch_all(written) if isinstance(node.this, exp.Star) else self.touch(written, node.name)
        for written in self.tables.keys() - self.sources:
            self.touch_all(written)
        for table in _renamed(tree):
            self.touch_all(_written(table))


class _Reader:
    """Reads one SELECT: resolves its names by what its FROM clause brings, then by those of the queries around it."""

    def __init__(self, scope: Scope, found: _Found) -> None:
        self._scope = scope
        self._found = found
        self._tiers = [_Tier.of(around) for around in _inside_out(scope)]
        found.sources |= set(self._tiers[0].relations.values())

    def read(self) -> None:
        for node in walk_in_scope(self._scope.expression):
            match node:
                case exp.Column():
                    self._found.visited.add(id(node))
                    self._column(node)
                case exp.Star() if isinstance(node.parent, exp.Select):
                    self._all(self._tiers[0].relations.values())
                case exp.Join():
                    self._join(node)
                case exp.In():
                    self._membership(node)
                case _:
                    pass

    def _column(self, column: exp.Column) -> None:
        source = self._named(column.table.lower()) if column.table else None
        if isinstance(source, Relation):
            if isinstance(column.this, exp.Star):
                self._found.touch_all(source)
            elif not self._found.touch(source, column.name):
                self._found.touch_odd(source, column.name)
        elif source is None and not isinstance(column.this, exp.Star):
            # Unqualified; or the qualifier is itself a column, of a composite type.
            aliases = self._aliases(column)
            for name in filter(None, (column.name, column.table, column.db)):
                self._unqualified(name, aliases)

    def _named(self, alias: str) -> Relation | Scope | None:
        """What an alias stands for; an inner one hides an outer one."""
        for tier in self._tiers:
            if alias in tier.relations:
                return tier.relations[alias]
            if alias in tier.derived:
                return tier.derived[alias]
        return None

    def _unqualified(self, name: str, aliases: Container[str] = ()) -> None:
        row = self._named(name.lower())
        if isinstance(row, Relation):
            self._found.touch_all(row)
            return
        having: list[Relation] = []
        for tier in self._tiers:
            having += [written for written in tier.relations.values() if self._found.touch(written, name)]
            if any(self._found.tables.get(written) for written in having):
                return
        if having or name.lower() in aliases or any(self._derives(tier, name) for tier in self._tiers):
            return
        for tier in self._tiers:
            for written in tier.relations.values():
                self._found.touch_odd(written, name)

    def _aliases(self, column: exp.Column) -> set[str]:
        """The query's own aliases, where a column may mean one."""
        query = self._scope.expression
        clause: exp.Expr = column
        while clause.parent is not None and clause.parent is not query:
            clause = clause.parent
        if clause.arg_key not in ALIASED or not isinstance(query, exp.Query):
            return set()
        return {select.alias.lower() for select in query.selects if isinstance(select, exp.Alias)}

    def _derives(self, tier: _Tier, name: str) -> bool:
        """Whether a derived table, a member of WITH or a table function may bring a column of that name."""
        names = {output.lower() for source in tier.derived.values() for output in _outputs(source.expression)}
        return tier.opaque or name.lower() in names or ("*" in names and self._is_known(name))

    def _is_known(self, name: str) -> bool:
        tables = (table for table in self._found.tables.values() if table)
        return any(column.name.lower() == name.lower() for table in tables for column in table.columns)

    def _all(self, relations: Iterable[Relation]) -> None:
        for written in relations:
            self._found.touch_all(written)

    def _join(self, join: exp.Join) -> None:
        for name in join.args.get("using") or ():
            self._unqualified(name.name)
        if str(join.args.get("method") or "").upper() == "NATURAL":
            self._all(self._tiers[0].relations.values())

    def _membership(self, node: exp.In) -> None:
        """SQLite's `a IN t` reads the table t."""
        named = node.args.get("field")
        if named is not None:
            self._all(written for written in self._found.tables if written.name.lower() == named.name.lower())


@dataclass(frozen=True, slots=True)
class _Tier:
    """What one query's FROM and WITH clauses bring, by alias; `opaque`: a table function, whose columns are its own."""

    relations: dict[str, Relation]
    derived: dict[str, Scope]
    opaque: bool

    @staticmethod
    def of(scope: Scope) -> _Tier:
        sources = {alias.lower(): source for alias, source in scope.sources.items()}
        derived = {alias: source for alias, source in sources.items() if isinstance(source, Scope)}
        tables = {alias: source for alias, source in sources.items() if isinstance(source, exp.Table)}
        relations = {alias: _written(table) for alias, table in tables.items() if not isinstance(table.this, exp.Func)}
        return _Tier(relations, derived, len(derived) + len(relations) < len(sources))


def _renamed(tree: exp.Expr) -> Iterator[exp.Table]:
    """The tables whose columns go by other names, `t AS x (a, b)`; a query's own columns are read inside it."""
    for alias in tree.find_all(exp.TableAlias):
        around = alias.parent
        if not alias.columns or around is None or isinstance(around, exp.CTE) or isinstance(around.this, exp.Query):
            continue
        tables = [around] if isinstance(around, exp.Table) else around.find_all(exp.Table)
        yield from (table for table in tables if not isinstance(table.this, exp.Func))


def _inside_out(scope: Scope) -> Iterator[Scope]:
    around: Scope | None = scope
    while around is not None:
        yield around
        around = around.parent


def _written(table: exp.Table) -> Relation:
    name = ".".join(part.name for part in table.this.flatten()) if isinstance(table.this, exp.Dot) else table.name
    return Relation(name, table.db or None, table.catalog or None)


def _outputs(query: exp.Expr) -> Iterator[str]:
    if isinstance(query, exp.Query):
        yield from query.named_selects
    alias = query.parent.args.get("alias") if query.parent else None
    if isinstance(alias, exp.TableAlias):
        yield from (column.name for column in alias.columns)
