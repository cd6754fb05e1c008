"""What exists for callers. Only this module decides which schemas are visible, and removes the rest from all texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from dragoman.catalog.literals import separate_texts
from dragoman.catalog.names import Part, name_pattern, parse_name
from dragoman.catalog.updating import update
from dragoman.dialect import Capability, Dialect
from dragoman.errors import ColumnNotFound, DragomanError, InvalidSql, PermissionDenied, QueryError
from dragoman.model import (
    UNKNOWN_EXPRESSION,
    Column,
    Constraint,
    Database,
    Index,
    Plan,
    Relation,
    Table,
    TableColumn,
)
from dragoman.sql.lexicon import Lexicon
from dragoman.words import words_in

HIDDEN = "(hidden)"
"""Stands in an error of the database for a name that its reader may not know."""
UNKNOWN = "unknown"
"""Stands for a type that its reader may not know."""
_TELLING = frozenset({"21", "22", "53", "54", "57"})
"""SQLSTATE classes of `QueryError`s whose message is about values and resources, and never names a relation."""
_ABOUT_OTHERS = frozenset({"42P17", "42P21"})
"""SQLSTATEs of other errors that name a relation or a collation which the caller did not name."""
_BEFORE_COLUMN = re.compile(r"""(?:\bcolumn(?: name| reference)?:? "?|['`]|(?:^|\bnear )'[^']*)$""", re.IGNORECASE)
"""What stands in a message before a column's name, or before a part of the statement that the message quotes.

Types stand in double quotes or none.
"""


def place_database(database: Database, dialect: Dialect) -> Database:
    """Split the default catalog and schema of a database, if its dialect has catalogs; return any other unchanged.

    They are given as `catalog/schema`, as in a URL, or by the only entry of `schemas`.
    """
    if Capability.CATALOGS not in dialect.capabilities:
        return database
    catalog, _, schema = (database.database or "").partition("/")
    only = parse_name(database.schemas[0], dialect.lexicon) or () if len(database.schemas) == 1 else ()
    if len(only) == 2:
        catalog = catalog or only[0].text
    if only and (len(only) == 1 or only[0].names(catalog, dialect)):
        schema = schema or only[-1].text
    return replace(database, database=catalog or None, schema=database.schema or schema or None)


class Places:
    """The part of one database that exists for its callers.

    What is outside appears nowhere: not by name, type, key or text.

    `narrowed`: something may be outside, because the configuration names `schemas` or because a policy `hides`
    relations. Otherwise everything is reported unchanged.
    """

    def __init__(self, database: Database, dialect: Dialect, *, hides: bool = False) -> None:
        self._dialect = dialect
        self._home = database.database if Capability.CATALOGS in dialect.capabilities else None
        self.configured = tuple(_schema_parts(text, dialect.lexicon) for text in database.schemas)
        self.hides = hides
        everything = not database.schemas or (dialect.only_schema and self.visible(dialect.default_schema, None))
        self.narrowed = hides or not everything
        self._chain = _chains(dialect.lexicon)
        self._engine: frozenset[str] = frozenset()

    def settle(self, engine: Iterable[str]) -> None:
        """Record the engine's own schemas. Everybody may know their contents, such as types."""
        self._engine = frozenset(engine)

    def settle_as(self, other: Places) -> None:
        """Record the engine's own schemas as another part of the database has them."""
        self._engine = other._engine

    def visible(self, schema: str | None, catalog: str | None) -> bool:
        """Return whether a schema, by its stored names, exists for callers."""
        return not self.configured or any(self._allows(parts, schema, catalog) for parts in self.configured)

    def _allows(self, parts: tuple[Part, ...], schema: str | None, catalog: str | None) -> bool:
        if len(parts) == 1 and self._home is not None and catalog is not None and catalog != self._home:
            return False
        stored = (schema, catalog)
        return len(parts) <= 2 and all(
            part.text == name or part.names(name, self._dialect)
            for part, name in zip(reversed(parts), stored, strict=False)
        )

    # The catalog

    def filter_tables(self, tables: Iterable[Table], known: Collection[Relation] | None = None) -> tuple[Table, ...]:
        """Return the visible relations without keys to others and without texts that name others.

        `known`: all visible relations, if `tables` are not all of them. Definitions stay: they must be parsed to be
        judged, which `catalog.behind` does one by one.
        """
        kept = [table for table in tables if self.visible(table.relation.schema, table.relation.catalog)]
        if not self.narrowed:
            return tuple(kept)
        known = {table.relation for table in kept} if known is None else known
        type_of = cache(self.type)  # 40,000 relations have a few types
        return tuple([table if table.system else self._prune(table, known, type_of) for table in kept])

    def _prune(self, table: Table, known: Collection[Relation], type_of: Callable[[str], str]) -> Table:
        return update(
            table,
            columns=tuple([self._column(column, type_of(column.type)) for column in table.columns]),
            constraints=tuple([self._constraint(each) for each in table.constraints]),
            foreign_keys=tuple([key for key in table.foreign_keys if key.references in known]),
            indexes=tuple([index for index in table.indexes if self._is_told(index)]),
            partition_of=table.partition_of if table.partition_of in known else None,
            shows=table.shows if table.shows in known else None,
            partitioned_by=tuple([part for part in table.partitioned_by if not self.leads_out(part)]),
        )

    def _column(self, column: TableColumn, type_: str) -> TableColumn:
        told = column if type_ == column.type else replace(column, type=type_, enum=())
        if self._outside(told.default):
            told = replace(told, default=None)
        # Roles must know that it is computed, perhaps from a column that they hide.
        return replace(told, generated=UNKNOWN_EXPRESSION) if self._outside(told.generated) else told

    def _constraint(self, constraint: Constraint) -> Constraint:
        return replace(constraint, definition=None) if self._outside(constraint.definition) else constraint

    def _is_told(self, index: Index) -> bool:
        return not any(self._outside(text) for text in (*index.parts, index.predicate))

    def _outside(self, text: str | None) -> bool:
        return text is not None and self.leads_out(text)

    # Texts

    def type(self, text: str) -> str:
        """Return a type as callers may see it."""
        hidden = self.leads_out(text) or self._is_of_hidden_rows(text)
        return UNKNOWN + "[]" * text.count("[]") if hidden else text

    def _is_of_hidden_rows(self, text: str) -> bool:
        """Return whether a type is that of the rows of a hidden relation, which has the relation's name."""
        return False

    def leads_out(self, text: str, aliases: Collection[str] = ()) -> bool:
        """Return whether an SQL text qualifies a name with something that is not a visible schema.

        `aliases` may qualify columns. Functions, types of casts and names in texts are qualified only by schemas.
        """
        if not self.narrowed or "." not in text:
            return False
        bare, named = separate_texts(text, self._dialect.lexicon)
        return any(
            not self._is_known(parts) and (parts[0].text not in aliases or self._is_schema(match, parts))
            for match, parts in self._names(bare)
        ) or any(not self._is_known(parts) for name in named for _, parts in self._names(name))

    def mask(self, text: str, written: Collection[str] = ()) -> str:
        """Return a text of the database in which every qualified name is masked, unless its schema is visible.

        `written`: the words of the caller's statement. The name of a column that consists of them stays.
        """
        pieces: list[str] = []
        position = 0
        for match, parts in self._names(text) if self.narrowed else ():
            known = not self.hides and self._is_known(parts)
            if not known and not (_is_of_column(match) and words_in(match[0]).issubset(written)):
                pieces += [text[position : match.start()], HIDDEN]
                position = match.end()
        return "".join((*pieces, text[position:]))

    def _names(self, text: str) -> Iterator[tuple[re.Match[str], Sequence[Part]]]:
        """Yield every qualified name, and its parts."""
        for match in self._chain.finditer(text):
            parts = parse_name(match[0].rstrip("."), self._dialect.lexicon)
            if parts:
                yield match, parts

    def _is_schema(self, name: re.Match[str], parts: Sequence[Part]) -> bool:
        """Return whether only a schema can stand before the dot: for functions, casts and operators."""
        text, before = name.string, name.string[: name.start()].rstrip()
        called = text.startswith("(", name.end()) or len(parts) == 1
        return called or before.endswith("::") or before[-7:].lower() == "collate"

    def _is_known(self, parts: Sequence[Part]) -> bool:
        first = parts[0].text
        if self._home is not None and len(parts) > 2:
            return self.visible(parts[1].text, first)
        return self.knows(first)

    def knows(self, schema: str) -> bool:
        """Return whether a schema, by its stored name, is visible or the engine's own."""
        return self.is_engine(schema) or self.visible(schema, self._home)

    def is_engine(self, schema: str) -> bool:
        """Return whether a schema, by its stored name, is one of the engine's own."""
        return schema in self._engine

    # Answers

    def columns(self, columns: Sequence[Column]) -> Sequence[Column]:
        """Return the columns of a result, with types that callers may know."""
        if not self.narrowed:
            return columns
        return tuple([replace(column, type=self.type(column.type)) for column in columns])

    def clean(self, error: DragomanError, written: str) -> DragomanError:
        """Return an error of the database without names from outside. `written`: the statement that failed.

        The message depends only on the kind of error, never on whether a name in the statement exists. An error about
        the statement itself shows the columns that the statement names: the caller must know which of them is wrong.
        Other names, such as those of types, would confirm what the caller guesses and writes as an alias.
        """
        if not self.narrowed:
            return error
        about_it = isinstance(error, ColumnNotFound | InvalidSql)
        return error.replace(
            message=self.mask(self._words(error), words_in(written) if about_it else ()),
            suggestion=self.mask(error.suggestion),
            context=_mask_json(error.context, self.mask),
        )

    def _words(self, error: DragomanError) -> str:
        state = str(error.context.get("sqlstate", ""))
        if isinstance(error, PermissionDenied):
            return "The role may not read something that the statement uses."
        if (isinstance(error, QueryError) and state[:2] not in _TELLING) or state in _ABOUT_OTHERS:
            return "The database could not run the statement."
        return error.message


def withhold(plan: Plan) -> Plan:
    """Return the part of a plan that may be shown if it reaches something outside: numbers, without names."""
    return replace(
        plan,
        plan=None,
        warnings=(),
        notices=("The query reads more than you may see, so only the costs of its plan are shown.",),
    )


def names_in(text: str, lexicon: Lexicon) -> frozenset[str]:
    """Return the names that stand alone or last in an SQL text: they may be called like columns' qualifiers."""
    found = re.finditer(rf"({name_pattern(lexicon)})(\s*\.)?", separate_texts(text, lexicon)[0])
    parts = (parse_name(match[1], lexicon) for match in found if not match[2])
    return frozenset(part.text for each in parts if each for part in each)


def _mask_json(value: Any, mask: Callable[[str], str]) -> Any:
    """Remove every text with a name to mask from a JSON value. A `detail` mixes names with other words and goes too."""
    if isinstance(value, dict):
        known: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        told = {key: _mask_json(each, mask) for key, each in known.items() if key != "detail"}
        return {key: each for key, each in told.items() if each not in (None, {})}
    return None if isinstance(value, str) and mask(value) != value else value


def _is_of_column(name: re.Match[str]) -> bool:
    """Return whether a name stands in a message where a column's does."""
    return _BEFORE_COLUMN.search(name.string[: name.start()]) is not None


def _chains(lexicon: Lexicon) -> re.Pattern[str]:
    """Return the pattern of names with dots between them, or of a name before a dot and a mark: OPERATOR(sales.=)."""
    name = f"(?:{name_pattern(lexicon)})"
    return re.compile(rf"(?<![\w.]){name}(?:(?:\.{name})+|\.(?=[-+*/<>=~!@#%^&|`?]+\)))")


def _schema_parts(text: str, lexicon: Lexicon) -> tuple[Part, ...]:
    return parse_name(text, lexicon) or (Part(text, quoted=True),)
