"""Resolves what a statement touches against the catalog, for validators that ask for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from dragoman.catalog import Catalog, Namespace
from dragoman.dialect import Dialect, Output, Resolution
from dragoman.errors import DragomanError, InvalidSql, NotFound, UnsafeSql
from dragoman.gateway.offload import SHORT, Offload
from dragoman.model import Database, Relation, RelationType, Table, TableColumn
from dragoman.parsed import ParsedStatement
from dragoman.sql import Statement
from dragoman.validators import ReadOnly, find_telling, inner_query, read

if TYPE_CHECKING:
    from dragoman.sql.columns import Names

VIEWS = frozenset({"view", "materialized view"})
FOREIGN = "foreign table"
Columns = tuple[tuple[Relation, str], ...]
_Outputs = tuple[tuple[str | None, Columns], ...]
MOST_COLUMNS = 10_000
"""The most columns that a statement may touch: a policy checks them on the event loop."""
_Tables = dict[Relation, Table | None]
_Outline = tuple[Relation, RelationType, tuple[tuple[str, str | None], ...]]
_Outlines = Mapping[Relation, _Outline | None]
P = ParamSpec("P")
T = TypeVar("T")


class Resolver:
    """Resolves the statements of one database. Raises `InvalidSql` if it cannot trace them.

    sqlglot and the dialect's grammar never run on the event loop: short texts are parsed in a thread, long ones in a
    process that can be killed.
    """

    def __init__(self, dialect: Dialect, database: Database, catalog: Catalog, offload: Offload) -> None:
        self._dialect = dialect
        self._database = database
        self._catalog = catalog
        self._offload = offload
        self._read_only = ReadOnly(dialect, database)
        self._allowed = frozenset(name.lower() for name in database.allow_functions)

    def watch(self) -> None:
        """Resolve from now on with a catalog that is checked to be current."""
        self._catalog.watch()

    async def resolution(self, statement: Statement, parsed: ParsedStatement) -> Resolution:
        """Return the resolution: relations and columns. Names that the catalog does not know stay as written."""
        tables = await self._tables(parsed.names)
        columns, outputs = await self._call_with_tables(tables, _trace_columns, statement)
        return Resolution(
            relations=_resolve_names(tables),
            columns=columns,
            views=await self._views(tables),
            unlisted=_find_unlisted(parsed, tables),
            outputs=None if outputs is None else tuple(Output(name, made_of) for name, made_of in outputs),
        )

    async def relations(self, parsed: ParsedStatement) -> tuple[Relation, ...]:
        """Return only the relations, as the dialect's own grammar found them if it has one."""
        return _resolve_names(await self._tables(parsed.names))

    async def find_tables(self, written: Sequence[Relation]) -> Mapping[Relation, Table | None]:
        """Return what the catalog knows about the names that a statement reads."""
        return await self._tables(written)

    async def _call_with_tables(
        self, tables: _Tables, function: Callable[[Dialect, Statement, _Outlines], T], statement: Statement
    ) -> T:
        """Call a function about the columns of a statement, with what the catalog knows of its tables."""
        outlines = {written: _outline(table) if table else None for written, table in tables.items()}
        return await self._apart(len(statement.text), function, self._dialect, statement, outlines)

    async def _read_view(self, view: Table) -> tuple[Statement, ParsedStatement]:
        """Return the query of a view, and what it names. Raises the error of its definition."""
        definition = view.definition or ""
        return await self._apart(len(definition), _read_view, self._dialect, definition)

    async def _apart(self, size: int, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        if size <= SHORT:
            return await asyncio.to_thread(function, *arguments, **named)
        return await self._offload.call(size, function, *arguments, **named)

    async def foreign(self, parsed: ParsedStatement) -> tuple[Relation, ...]:
        """Return the relations that read a foreign table. A view counts if this cannot be determined."""
        if not any(table.type == FOREIGN for table in (await self._catalog.snapshot()).tables):
            return ()
        return await self._find_reaching(parsed, lambda table: table.type == FOREIGN, lambda view: None)

    async def calling(self, parsed: ParsedStatement) -> tuple[Relation, ...]:
        """Return the views that call what queries may not call. A view counts if this cannot be determined."""
        return await self._find_reaching(parsed, lambda table: False, self._read_only.judge)

    async def _find_reaching(
        self, parsed: ParsedStatement, matches: Callable[[Table], bool], judge: Callable[[ParsedStatement], None]
    ) -> tuple[Relation, ...]:
        tables = [table for table in (await self._tables(parsed.names)).values() if table]
        return tuple([table.relation for table in tables if await self._reaches(table, matches, judge)])

    async def _reaches(
        self,
        table: Table,
        matches: Callable[[Table], bool],
        judge: Callable[[ParsedStatement], None],
        around: frozenset[Relation] = frozenset(),
    ) -> bool:
        """Return whether a table matches, or is a view that reads one that does, or may read one.

        `judge`: raises an error for a view that counts because of its own text.
        """
        if table.type != "view" or table.system or table.relation in around:
            return matches(table)
        try:
            _, parsed = await self._read_view(table)
            judge(parsed)
            inner = [await self._look_up_from(table.relation, each) for each in parsed.names]
        except DragomanError:
            return True
        if parsed.refusal or None in inner:
            return True
        around |= {table.relation}
        return any([await self._reaches(each, matches, judge, around) for each in inner if each])

    async def behind(self, view: Table, around: frozenset[Relation] = frozenset()) -> frozenset[Relation] | None:
        """Return the relations that a view reads, directly or through other views. None: they cannot be determined.

        A function that is not on the lists may read any relation; some on the lists show objects by name.
        """
        from dragoman.sql.views import defining_query

        try:
            query = defining_query(view.definition or "", self._dialect.sqlglot, self._dialect.lexicon)
            parsed = read(self._dialect, query)
            self._read_only.judge(parsed)
            if find_telling(self._dialect.loaded_rules, parsed.calls, self._allowed):
                return None
            inner = [await self._look_up_from(view.relation, each) for each in parsed.names]
        except DragomanError:
            return None
        tables = [table for table in inner if table]
        if parsed.refusal or parsed.versions or len(tables) < len(inner):
            return None
        around |= {view.relation}
        below = [
            await self.behind(each, around) for each in tables if each.type in VIEWS and each.relation not in around
        ]
        known = [relations for relations in below if relations is not None]
        return frozenset(table.relation for table in tables).union(*known) if len(known) == len(below) else None

    # From names to what the catalog knows

    async def _tables(self, written: Sequence[Relation]) -> _Tables:
        return {each: await self._lookup(each) for each in written}

    async def _lookup(self, written: Relation) -> Table | None:
        """Return what the catalog knows about a name. Only the dialect's own grammar knows whether it was quoted."""
        spellings = Namespace(self._dialect).spellings
        schemas = spellings(written.catalog or None, written.schema or None)
        named = [(name, schema or None) for schema in schemas for name in spellings(written.name)]
        found = {table.relation: table for each in named if (table := await self._find(*each))}
        if len(found) > 1:
            raise UnsafeSql(
                f"Which relation {written.name} names depends on its case.",
                suggestion="Query it through a view, or have one of them renamed.",
            )
        return next(iter(found.values()), None)

    async def _find(self, name: str, schema: str | None) -> Table | None:
        try:
            return await self._catalog.find(name, schema, near=False)
        except NotFound:
            return None

    # Behind views

    async def _views(self, tables: _Tables) -> Mapping[Relation, Columns | None]:
        return MappingProxyType({view.relation: await self._behind(view) for view in _user_views(tables)})

    async def _look_up_from(self, view: Relation, written: Relation) -> Table | None:
        """Return what a name in a view's definition means. Some databases look it up from the view, others from here.

        Raises `UnsafeSql` if the two differ, and if neither tells.
        """
        if not self._dialect.is_known_in_view(written):
            raise UnsafeSql(f"Which relation {written.name} names in the view {view.name} is not known.")
        home = replace(written, schema=written.schema or view.schema, catalog=written.catalog or view.catalog)
        here, there = [await self._lookup(each) for each in (written, home)]
        if here and there and here.relation != there.relation:
            raise UnsafeSql(f"Which relation {written.name} names in the view {view.name} is not known.")
        return there or here

    async def _behind(self, view: Table, around: frozenset[Relation] = frozenset()) -> Columns | None:
        """Return the columns that a view's definition touches, including those of views it uses; None if unknown."""
        try:
            query, parsed = await self._read_view(view)
            self._read_only.judge(parsed)
            tables = {each: await self._look_up_from(view.relation, each) for each in parsed.names}
            touched = dict.fromkeys(await self._call_with_tables(tables, _find_columns, query))
        except DragomanError:
            return None
        if parsed.refusal or _find_unlisted(parsed, tables):
            return None
        around |= {view.relation}
        for inner in _user_views(tables):
            below = () if inner.relation in around else await self._behind(inner, around)
            if below is None:
                return None
            touched |= dict.fromkeys(below)
        return tuple(touched)


# Functions that run apart. They are functions of the module, whose arguments can be sent to another process.


def _outline(table: Table) -> _Outline:
    """Return what is needed to resolve columns. For a thousand wide tables, sending it takes milliseconds."""
    return table.relation, table.type, tuple((column.name, column.generated) for column in table.columns)


def _restore(outline: _Outline) -> Table:
    relation, kind, columns = outline
    restored = tuple(TableColumn(name=name, type="", generated=generated) for name, generated in columns)
    return Table(relation=relation, type=kind, columns=restored)


def _trace_columns(dialect: Dialect, statement: Statement, outlines: _Outlines) -> tuple[Columns, _Outputs | None]:
    """Return the columns that a statement touches, and those that each column of its answer is computed from."""
    from dragoman.sql.lineage import trace_columns  # sqlglot is slow to import

    columns, outputs = trace_columns(*_prepare(dialect, statement, outlines))
    return _check_number(columns), outputs


def _find_columns(dialect: Dialect, statement: Statement, outlines: _Outlines) -> Columns:
    """Return the columns that a statement touches."""
    from dragoman.sql.columns import find_touched_columns

    return _check_number(find_touched_columns(*_prepare(dialect, statement, outlines)))


def _prepare(
    dialect: Dialect, statement: Statement, outlines: _Outlines
) -> tuple[Statement, Mapping[Relation, Table | None], Names]:
    """Return what both functions need: the query itself, its tables, and the dialect's treatment of names."""
    from dragoman.sql.columns import Names

    names = Names(same=dialect.same, implicit=dialect.implicit_columns, reserved=dialect.reserved)
    tables = {written: _restore(outline) if outline else None for written, outline in outlines.items()}
    return inner_query(statement, dialect.loaded_rules), tables, names


def _check_number(columns: Columns) -> Columns:
    if len(columns) > MOST_COLUMNS:
        raise InvalidSql(
            f"The statement touches more than {MOST_COLUMNS} columns.", suggestion="Name the columns you need."
        )
    return columns


def _read_view(dialect: Dialect, definition: str) -> tuple[Statement, ParsedStatement]:
    from dragoman.sql.views import defining_query

    query = defining_query(definition, dialect.sqlglot, dialect.lexicon)
    return query, read(dialect, query)


def _user_views(tables: _Tables) -> list[Table]:
    return [table for table in tables.values() if table and table.type in VIEWS and not table.system]


def _find_unlisted(parsed: ParsedStatement, tables: _Tables) -> tuple[Relation, ...]:
    """Return the relations that are read with columns that the catalog does not know."""
    older = {each.relation for each in parsed.versions}
    unlisted = (written for written, table in tables.items() if not table or table.system or written in older)
    return tuple(_name(written, tables[written]) for written in unlisted)


def _name(written: Relation, table: Table | None) -> Relation:
    return table.relation if table else written


def _resolve_names(tables: _Tables) -> tuple[Relation, ...]:
    """Return the relations as the catalog knows them; unknown ones stay as written."""
    return tuple(dict.fromkeys(_name(written, table) for written, table in tables.items()))
