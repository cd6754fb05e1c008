"""The gate of a database of which callers see a part: a statement may read and name only that part."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from dragoman.catalog import Catalog, Snapshot
from dragoman.catalog.names import parse_name
from dragoman.dialect import Dialect
from dragoman.errors import UnsafeSql
from dragoman.gateway.failures import not_there
from dragoman.gateway.resolving import Resolver
from dragoman.model import Database, Relation, Table
from dragoman.parsed import FunctionCall, Named, ParsedStatement
from dragoman.sql import Lexicon, Statement
from dragoman.validators import find_telling

QUERIES = frozenset({"select", "values", "with", "from", "table"})
_MODIFIER = re.compile(r'("(?:[^"]|"")*")|\([^()]*\)|\[\]')
"""What follows the name of a type. What is in quotes is of the name."""
_ASK = "Use list_tables, describe_table and search_catalog."


class _Types(NamedTuple):
    """Names of types. `holding`: those whose values hold names of objects, without the `_` of array types."""

    shown: frozenset[str]
    holding: frozenset[str]

    @classmethod
    def of(cls, tables: Iterable[Table], lexicon: Lexicon) -> _Types:
        """Return the types of columns, and those of relations' rows, which have the relations' names."""
        shown: set[str] = set()
        holding: set[str] = set()
        texts: dict[str, bool] = {}
        for table in tables:
            of_names = [column.type for column in table.columns if column.names_objects]
            (holding if of_names else shown).add(table.relation.name)
            texts |= {column.type: False for column in table.columns} | dict.fromkeys(of_names, True)
        for text, holds in texts.items():
            parts = parse_name(_MODIFIER.sub(r"\1", text), lexicon)
            if parts:
                (holding if holds else shown).add(parts[-1].text)
        return cls(frozenset(shown), frozenset(name.lstrip("_") for name in holding))

    def holds(self, name: str) -> bool:
        """Return whether the values of a type may hold names of objects. The name of an array type may be cut."""
        plain = name.lstrip("_")
        return plain in self.holding or (plain != name and any(each.startswith(plain) for each in self.holding))


class Visible:
    """Refuses statements that leave the visible part.

    Its messages depend on what a statement names, never on what exists.
    """

    def __init__(self, dialect: Dialect, database: Database, catalog: Catalog, resolver: Resolver) -> None:
        self._dialect = dialect
        self._catalog = catalog
        self._places = catalog.places
        self._resolver = resolver
        self._functions = frozenset(name.lower() for name in database.allow_functions)
        self._relations = frozenset(name.lower() for name in database.allow_relations)
        home = database.schema
        self._at_home = home is None or catalog.places.visible(home, database.database)
        self._told: tuple[Snapshot | None, _Types] = (None, _Types(frozenset(), frozenset()))

    async def check_types(self, parsed: ParsedStatement) -> None:
        """Raise `UnsafeSql` for a type, or another name, that is not visible, whether it exists or not.

        This comes before every check that knows what is hidden: the choice between two errors must not reveal it.
        """
        snapshot = await self._catalog.snapshot()  # also reads which schemas are the engine's own
        self._check_names((*parsed.types, *parsed.others))
        self._check_types(parsed.types, snapshot)

    def check(self, statement: Statement, parsed: ParsedStatement) -> None:
        """Raise `UnsafeSql` for anything but a relation that would reveal one that is not visible."""
        self._check_kind(statement)
        self._check_calls(parsed.calls)

    async def check_relations(self, statement: Statement, parsed: ParsedStatement) -> None:
        """Raise `NotFound` for a relation that is not visible, after the same work whether it exists or not.

        The engine's own error would tell that.
        """
        for written, table in (await self._resolver.find_tables(parsed.names)).items():
            if not self._is_open(written, table) and not await self._is_aspect(written):
                raise await not_there(written, statement, self._catalog)

    def _check_kind(self, statement: Statement) -> None:
        word = statement.first_word
        if word == "explain":
            raise UnsafeSql("A plan may show more than is visible here.", suggestion="Use explain_query.", offset=0)
        text = statement.text.strip()
        telling = any(pattern.fullmatch(text) for pattern in self._dialect.loaded_rules.telling_statements)
        if telling or (self._places.hides and word not in QUERIES):
            raise UnsafeSql("It would show more than is visible here.", suggestion=_ASK, offset=0)

    def _check_calls(self, calls: Iterable[FunctionCall]) -> None:
        path = self._places.hides or not self._at_home
        call = find_telling(self._dialect.loaded_rules, calls, self._functions, path=path)
        if call is not None:
            raise UnsafeSql(
                f"{call.name} shows names of objects or schemas, and only a part of them is visible here.",
                suggestion=f"{_ASK} The server's administrator can allow it with allow_functions.",
            )

    def _check_names(self, names: Iterable[Named]) -> None:
        for name in names:
            if name.schema is not None and not self._places.knows(name.schema):
                raise UnsafeSql(
                    f"Nothing of a schema {name.schema} is visible here.",
                    suggestion="Use list_schemas to see which schemas exist.",
                )

    def _check_types(self, types: Iterable[Named], snapshot: Snapshot) -> None:
        """Refuse types that hold names of objects, and those that may be of a hidden relation's rows.

        The latter are refused whether they exist or not.
        """
        own = self._dialect.loaded_rules.types
        if not own:
            return
        for each in types:
            is_own = each.schema is None or self._places.is_engine(each.schema)
            if is_own and each.name.removeprefix("_") in own:
                continue
            known = self._types_of(snapshot)
            if known.holds(each.name) or (self._places.hides and each.name not in known.shown):
                raise unknown_type(each)

    def _types_of(self, snapshot: Snapshot) -> _Types:
        """Return the types of visible columns and of visible relations' rows."""
        if self._told[0] is not snapshot:
            self._told = (snapshot, _Types.of(snapshot.tables, self._dialect.lexicon))
        return self._told[1]

    def _is_open(self, written: Relation, table: Table | None) -> bool:
        names = {str(relation).lower() for relation in (written, table and table.relation) if relation}
        if written.schema is None or self._places.is_engine(written.schema):
            names.add(written.name.lower())
        if names & self._relations:
            return True
        return table is not None and not (table.system and self._places.hides)

    async def _is_aspect(self, written: Relation) -> bool:
        """Return whether it is a fact about a visible relation."""
        whole = self._dialect.loaded_rules.find_whole(written)
        return whole is not None and self._is_open(whole, (await self._resolver.find_tables((whole,)))[whole])


def unknown_type(named: Named) -> UnsafeSql:
    """Return the error for a type that a statement may not name, whether it exists or not."""
    return UnsafeSql(
        f"No visible column has the type {named.name}.",
        suggestion="Leave the cast out, or cast to a type of the database's own.",
        offset=named.offset,
    )
