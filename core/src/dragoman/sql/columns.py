"""Finds the columns that a statement touches. If this is uncertain, there are too many in the answer, never too few.

A column is read where its name stands, where a star or a whole row stands for it, or where columns are matched by name
or place. So a name counts for every relation that may have it. It counts for a single relation only where every
database would find it there. Names that are in the text but not in the tree count for all relations.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise

from sqlglot import exp

from dragoman.errors import DragomanError, InvalidSql
from dragoman.model import Relation, Table
from dragoman.sql import text as texts
from dragoman.sql.calls import unquote
from dragoman.sql.lexicon import Lexicon
from dragoman.sql.scopes import Members, Name, Scope, Source, key, members_of, outputs_scope, select_scope
from dragoman.sql.statement import Statement

Touched = tuple[Relation, str]
MOST = 100_000
"""The most columns that are checked for one statement.

A statement that needs more is refused, since it would block others.
"""
_FROM = frozenset({"from_", "joins", "laterals", "match", "pivots"})
_SIDES = frozenset({"this", "expression", "with_"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """How a dialect treats names. `same`: as `Dialect.same`. `implicit`: as `Dialect.implicit_columns`."""

    same: Callable[[str, str], bool] = str.__eq__
    implicit: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()


_STANDARD = Names()


def find_touched_columns(
    statement: Statement, tables: Mapping[Relation, Table | None], names: Names = _STANDARD
) -> tuple[Touched, ...]:
    """Return the columns that a query touches, as (relation, column), both as stored.

    `tables` has every relation that the query names, as written, with what the catalog knows of it, or None: then names
    stay as written, and `*` stands for all columns. A column that the catalog does not list, such as `rowid`, also
    counts as all columns of its relation. A generated column also counts as the columns it is computed from. A view is
    one relation. Columns that derived tables and WITH pass on are those they read. Raises `InvalidSql` if columns
    cannot be traced.
    """
    return tuple(read_columns(statement, tables, names).found.touched)


def read_columns(statement: Statement, tables: Mapping[Relation, Table | None], names: Names = _STANDARD) -> Reader:
    """Return the reader of a whole statement, which has found the columns it touches. See `find_touched_columns`."""
    found = Found(tables)
    try:
        reader = Reader(found, names)
        reader.read(statement.tree)
        with found.apart() as loose:
            reader.read_text(statement.tokens)
        reader.loose = tuple(loose)
        found.touched |= loose
        found.read_generated(statement.lexicon)
    except RecursionError:
        raise unclear() from None
    return reader


def unclear() -> InvalidSql:
    """Return the refusal of a statement whose columns cannot be determined."""
    return InvalidSql(
        "The columns the statement reads cannot be determined.", suggestion="Write the query in a simpler form."
    )


@dataclass(slots=True)
class Found:
    """The columns found so far."""

    tables: Mapping[Relation, Table | None]
    touched: dict[Touched, None] = field(default_factory=dict[Touched, None])
    sources: set[Relation] = field(default_factory=set[Relation])
    effort: int = 0
    _by_name: dict[str, list[Relation]] = field(default_factory=dict[str, list[Relation]])
    _columns: dict[Relation, dict[str, list[str]]] = field(default_factory=dict[Relation, dict[str, list[str]]])

    def __post_init__(self) -> None:
        for written, table in self.tables.items():
            self._by_name.setdefault(key(written.name), []).append(written)
            if table is not None:
                columns = self._columns[written] = {}
                for column in table.columns:
                    columns.setdefault(key(column.name), []).append(column.name)

    @contextmanager
    def apart(self) -> Generator[dict[Touched, None]]:
        """Collect the columns touched meanwhile separately."""
        before, self.touched = self.touched, {}
        try:
            yield self.touched
        finally:
            self.touched = before

    def find_relations(self, name: str) -> Sequence[Relation]:
        """Return the relations with that key."""
        return self._by_name.get(name, ())

    def list_columns(self, written: Relation, name: str) -> Sequence[str]:
        """Return the columns with that key that the catalog lists."""
        self.effort += 1
        if self.effort > MOST:
            raise unclear()
        return self._columns.get(written, {}).get(name, ())

    def touch(self, written: Relation, name: str) -> bool:
        """Touch one column. Return whether the relation has it, or may have it."""
        columns = self.list_columns(written, key(name))
        table = self.tables.get(written)
        if table is None:
            self.touched[written, name] = None
            return True
        self.touched.update(dict.fromkeys((table.relation, column) for column in columns))
        return bool(columns)

    def touch_unlisted(self, written: Relation, name: str) -> None:
        """Touch a column that the catalog does not list.

        It may be another name of a listed column, so all of those are touched too.
        """
        self.touch_all(written)
        table = self.tables.get(written)
        self.touched[table.relation if table else written, name] = None

    def touch_all(self, written: Relation) -> None:
        table = self.tables.get(written)
        if table is None:
            self.touched[written, "*"] = None
        else:
            self.effort += len(table.columns)
            if self.effort > MOST:
                raise unclear()
            self.touched.update(dict.fromkeys((table.relation, column.name) for column in table.columns))

    def read_generated(self, lexicon: Lexicon) -> None:
        """Touch the columns that touched generated columns are computed from."""
        for written, table in self.tables.items():
            waiting = [column for column in table.columns if column.generated] if table else []
            while table and (due := [column for column in waiting if (table.relation, column.name) in self.touched]):
                waiting = [column for column in waiting if column not in due]
                for name in chain.from_iterable(_names_in(column.generated or "", lexicon) or "*" for column in due):
                    self.touch_all(written) if name == "*" else self.touch(written, name)


def _names_in(expression: str, lexicon: Lexicon) -> list[str]:
    """Return every name in an expression; none if it cannot be parsed."""
    try:
        found = texts.tokens(texts.clean(expression, lexicon), lexicon)
    except DragomanError:
        return []
    return [unquote(token) for token in found if token.kind in {"word", "name"}]


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a node: its SELECT, whether names there see the whole FROM clause, and its WITH members."""

    scope: Scope | None
    whole: bool
    members: Members

    def scopes(self) -> Iterator[tuple[Scope, bool]]:
        """Yield the enclosing SELECTs from the inside out, and for each whether its whole FROM clause is visible."""
        scope, whole = self.scope, self.whole
        while scope is not None:
            yield scope, whole
            whole, scope = scope.whole, scope.outer


class Reader:
    """Walks a tree once, and touches the columns that its names may mean.

    `within`: the places of the items of each SELECT, by its id. `loose`: columns that only the text may touch, not the
    tree.
    """

    def __init__(self, found: Found, names: Names) -> None:
        self.found = found
        self.within: dict[int, Place] = {}
        self.loose: tuple[Touched, ...] = ()
        self._names = names
        self._relations: dict[int, tuple[Relation, ...]] = {}
        self._in_scope: dict[Scope, tuple[Relation, ...]] = {}
        self._aliases: dict[str, set[Relation]] = {}
        # Offsets of names that were read or that define something; and of those that define something if AS stands
        # before them.
        self._seen: set[int] = set()
        self._renamed: set[int] = set()

    # The tree

    def read(self, tree: exp.Expr) -> None:
        """Read everything, then the names that no FROM clause provides."""
        self.walk(tree, Place(None, True, {}))
        for written in self.found.tables.keys() - self.found.sources:
            self.found.touch_all(written)

    def walk(self, tree: exp.Expr, place: Place) -> None:
        """Read the node at a place, and everything below it."""
        waiting = [(tree, place)]
        while waiting:
            node, around = waiting.pop()
            waiting += self._read(node, around)

    def _read(self, node: exp.Expr, place: Place) -> Iterable[tuple[exp.Expr, Place]]:
        """Read one node. Return the nodes below it that are still to be read, and their places."""
        clause = node.args.get("with_")
        if isinstance(clause, exp.With):
            place = replace(place, members=members_of(clause, place.members))
        match node:
            case exp.Select():
                return self._select(node, place)
            case exp.SetOperation():
                return self._operation(node, place)
            case exp.Column():
                return self._column(node, place)
            case exp.In() if node.args.get("field") is not None:
                return self._membership(node, place)
            case exp.Star() if not isinstance(node.parent, exp.Count):
                self._star(place)
            # A pivot groups by every column that it does not name. COLUMNS takes those that fit a pattern.
            case exp.Pivot() | exp.Columns():
                self._star(place)
            case exp.Join():
                self._join(node, place)
            case exp.Identifier():
                self._identifier(node)
            case _:
                pass
        return [(child, place) for child in node.iter_expressions()]

    def _select(self, select: exp.Select, place: Place) -> Iterator[tuple[exp.Expr, Place]]:
        scope = self._enter(select, place)
        beside, within = (Place(scope, whole, place.members) for whole in (False, True))
        self.within[id(select)] = within
        for child in select.iter_expressions():
            yield child, place if child.arg_key == "with_" else beside if child.arg_key in _FROM else within

    def _enter(self, select: exp.Select, place: Place) -> Scope:
        scope = select_scope(select, place.scope, place.whole, place.members)
        for source in scope.sources:
            self._source(source)
        self._in_scope[scope] = tuple(dict.fromkeys(chain.from_iterable(map(self.behind, scope.sources))))
        return scope

    def _operation(self, node: exp.SetOperation, place: Place) -> list[tuple[exp.Expr, Place]]:
        sides = [child for child in node.iter_expressions() if child.arg_key in _SIDES]
        clauses = [child for child in node.iter_expressions() if child.arg_key not in _SIDES]
        found: list[tuple[exp.Expr, Place]] = [(side, place) for side in sides]
        if clauses:
            outputs = Place(outputs_scope(node, place.scope, place.whole), True, place.members)
            found += [(clause, outputs) for clause in clauses]
        return found

    def _source(self, source: Source) -> None:
        for table in source.tables:
            if id(table) not in self._relations:
                self._relations[id(table)] = self._relations_of(table, inner=source.inner)
        relations = set(self.behind(source))
        self.found.sources |= relations
        if source.alias:
            self._aliases.setdefault(source.alias.key, set()).update(relations)
        if source.renamed or source.open:
            for written in relations:
                self.found.touch_all(written)

    def _relations_of(self, table: exp.Table, *, inner: bool) -> tuple[Relation, ...]:
        """Return the relations that a table in FROM may be. Raises `InvalidSql` if nobody listed any."""
        written = Relation(table.name, table.db or None, table.catalog or None) if table.name else None
        if written is None:
            return ()
        if isinstance(table.this, exp.Dot):
            written = replace(written, name=".".join(part.name for part in table.this.flatten()))
        fitting = tuple(each for each in self.found.find_relations(key(written.name)) if _fits(each, written))
        if not fitting and not inner:
            raise unclear()
        return fitting

    def behind(self, source: Source) -> Iterator[Relation]:
        """Yield the relations that are read through a source."""
        return chain.from_iterable(self._relations[id(table)] for table in source.tables)

    # Names

    def _column(self, column: exp.Column, place: Place) -> Iterable[tuple[exp.Expr, Place]]:
        parts = column.parts
        if not all(isinstance(part, (exp.Identifier, exp.Literal, exp.Star)) for part in parts):
            return [(child, place) for child in column.iter_expressions()]
        self._note(parts)
        names = [Name.of(part) for part in parts]
        if isinstance(column.this, exp.Star):
            self._all_of(names[:-1], place)
        elif len(names) == 1:
            self._read_unqualified(names[0], place)
        else:
            self._read_qualified(names, place)
        return ()

    def _identifier(self, node: exp.Identifier) -> None:
        """Read an identifier that sqlglot does not parse as a column.

        It defines a name, or it means any column of that name.
        """
        if isinstance(node.parent, exp.Alias) and node.arg_key == "alias":
            self._renamed.update(_starts([node]))
            return
        self._note([node])
        if not isinstance(node.parent, (exp.Table, exp.TableAlias, exp.Window)):
            self._touch_by_name([Name.of(node)])

    def _note(self, nodes: Iterable[exp.Expr]) -> None:
        self._seen.update(_starts(nodes))

    def _read_qualified(self, names: Sequence[Name], place: Place) -> None:
        """Read `a.b` or `a.b.c`: a column of the source with the name before it, or a part of a column's value."""
        matched = False
        for scope, whole in place.scopes():
            for alias, name in pairwise(names):
                for source in scope.find(alias):
                    matched = True
                    self._touch(source, name)
            if len(names) == 2 and whole and self.is_sure(scope, names):
                return
            for name in names[:-1]:
                matched = self._touch_listed(scope, name) or matched
        if not matched:
            self._touch_by_name(names)

    def is_sure(self, scope: Scope, names: Sequence[Name]) -> bool:
        """Return whether every database would find `a` or `a.b` in this scope, and look no further."""
        if len(names) == 1:
            return scope.settled and self._is_brought(scope, names[0])
        return len(names) == 2 and self._is_visible(scope, names[0]) and self._is_brought(scope, *names)

    def _is_visible(self, scope: Scope, alias: Name) -> bool:
        """Return whether every database would find the alias here."""
        sources = scope.find(alias) if alias.certain and scope.settled else ()
        return any(source.alias == alias and not source.hidden for source in sources)

    def _touch(self, source: Source, name: Name) -> None:
        """Touch a column of one source. A column that the catalog does not list counts as all of them."""
        relations = list(self.behind(source))
        listed = [written for written in relations if self.found.touch(written, name.text)]
        if not listed and name.key not in source.others:
            for written in relations:
                self.found.touch_unlisted(written, name.text)

    def _all_of(self, names: Sequence[Name], place: Place) -> None:
        """Read `a.*`."""
        for scope, whole in place.scopes():
            self._touch_rows(scope.find(names[-1]))
            if len(names) == 1 and whole and self._is_visible(scope, names[0]):
                return
        self._touch_by_name(names)

    def _read_unqualified(self, name: Name, place: Place) -> None:
        """Read an unqualified name: a column of the nearest SELECT that has it, or a whole row."""
        found = explained = False
        rows: list[Source] = []
        for scope, whole in place.scopes():
            found = self._touch_listed(scope, name, unknown=True) or found
            explained = explained or scope.open or name.key in scope.others
            if whole and self.is_sure(scope, [name]):
                break
            rows += scope.find(name)
        else:
            self._touch_rows_of(self.found.find_relations(name.key))
            if not (found or explained or rows) or name.text.lower() in self._names.implicit:
                self._touch_unknown(name, place)
        self._touch_rows(rows)

    def _is_brought(self, scope: Scope, *names: Name) -> bool:
        """Return whether every database would find the column here.

        SQLite looks further out for columns that an alias lacks.
        """
        *alias, name = names
        if not name.certain:
            return False
        for source in scope.find(alias[0]) if alias else scope.sources:
            relations = tuple(self.behind(source))
            if name in source.outputs and not relations:
                return True
            if source.plain and any(self._has(written, name) for written in relations):
                return True
        return False

    def _has(self, written: Relation, name: Name) -> bool:
        columns = self.found.list_columns(written, name.key)
        return any(column == name.text if name.quoted else self._names.same(name.text, column) for column in columns)

    def _touch_listed(self, scope: Scope, name: Name, *, unknown: bool = False) -> bool:
        """Touch the columns of that name in a scope.

        `unknown`: also those of relations that the catalog does not know.
        """
        found = False
        for written in self._in_scope.get(scope, ()):
            if unknown or self.found.tables.get(written) is not None:
                found = self.found.touch(written, name.text) or found
        return found

    def _touch_rows(self, sources: Iterable[Source]) -> None:
        self._touch_rows_of(chain.from_iterable(map(self.behind, sources)))

    def _touch_rows_of(self, relations: Iterable[Relation]) -> None:
        for written in relations:
            self.found.touch_all(written)

    def _touch_unknown(self, name: Name, place: Place) -> None:
        """Touch a name that no known source has: a column of any enclosing relation, or of any relation at all."""
        around = [written for scope, _ in place.scopes() for written in self._in_scope.get(scope, ())]
        for written in around or self.found.tables:
            self.found.touch_unlisted(written, name.text)

    def _touch_by_name(self, names: Iterable[Name]) -> None:
        """Touch whatever has one of these names, anywhere."""
        for name in names:
            self._touch_rows_of(self.found.find_relations(name.key))
            self._touch_rows_of(self._aliases.get(name.key, ()))
            for written, table in self.found.tables.items():
                if table is not None:
                    self.found.touch(written, name.text)

    # Clauses

    def _star(self, place: Place) -> None:
        self._touch_rows_of(self._in_scope.get(place.scope, ()) if place.scope else self.found.tables)

    def _join(self, join: exp.Join, place: Place) -> None:
        using = join.args.get("using") or ()
        self._note(using)
        for name in map(Name.of, using):
            for scope, _ in place.scopes():
                self._touch_listed(scope, name, unknown=True)
        if str(join.args.get("method") or "").upper() == "NATURAL":
            self._star(place)

    def _membership(self, node: exp.In, place: Place) -> Iterator[tuple[exp.Expr, Place]]:
        """Read SQLite's `a IN t`, where t is a table."""
        named = node.args["field"]
        relations = self.found.find_relations(key(named.name))
        self._touch_rows_of(relations)
        for child in node.iter_expressions():
            if child is not named or not (relations or key(named.name) in place.members):
                yield child, place

    # The text

    def read_text(self, tokens: Sequence[texts.Token]) -> None:
        """Treat tokens that no node covers as names of any column that has them."""
        words = ["", *(token.text.lower() for token in tokens), ""]
        for token, (before, after) in zip(tokens, zip(words, words[2:], strict=False), strict=True):
            if token.start in self._seen or (token.start in self._renamed and before == "as"):
                continue
            if self._may_name(token, before, after):
                self._touch_by_name([Name(unquote(token), True)])
        if "match" in words:
            self._search()

    def _may_name(self, token: texts.Token, before: str, after: str) -> bool:
        """Return whether a token may name a column.

        A call does not, nor a reserved word, and a text only beside a dot.
        """
        match token.kind:
            case "word":
                return after != "(" and (before == "." or token.text.lower() not in self._names.reserved)
            case "name":
                return after != "("
            case "string":
                return "." in (before, after)
            case _:
                return False

    def _search(self) -> None:
        """Touch all columns of a virtual table that is searched: `MATCH 'email:x'` reads any of them."""
        for written, table in self.found.tables.items():
            if table and table.type == "virtual table":
                self.found.touch_all(written)


def _starts(nodes: Iterable[exp.Expr]) -> Iterator[int]:
    return (start for node in nodes if isinstance(start := node.meta.get("start"), int))


def _fits(known: Relation, written: Relation) -> bool:
    """Return whether two spellings may mean one relation: all parts that both have are equal."""
    pairs = ((known.schema, written.schema), (known.catalog, written.catalog))
    return all(one is None or other is None or key(one) == key(other) for one, other in pairs)
