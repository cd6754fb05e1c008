"""The core's own rules: only queries pass, and only if they use the functions and relations that a dialect lists.

A grammar parses a statement: the dialect's own, or sqlglot. These rules judge what it found, in the same way for every
dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from dragoman.dialect import Call, Capability, Dialect, Form, Rules, Validator
from dragoman.errors import DragomanError, TableNotFound, UnsafeSql
from dragoman.model import Database, Relation
from dragoman.parsed import FunctionCall, Named, NamedRelation, ParsedStatement, Refusal
from dragoman.sql import Statement
from dragoman.sql.keywords import no_query
from dragoman.words import nearest

_AS_VALUE = frozenset({"call", "function"})
_ATTRIBUTES = frozenset({"attribute", "field"})


MOST_NAMES = 1_000
"""The most names in a statement (relations, calls, operators, types and others). They are judged on the event loop."""


def read(dialect: Dialect, statement: Statement) -> ParsedStatement:
    """Return what a statement names, without asking a database.

    A statement that the rules know as harmless inspection names nothing.

    A statement with more than `MOST_NAMES` names is refused, and none of them is returned. A statement that cannot be
    parsed but was meant as a write, in any SQL, gets an error that says so.
    """
    rules = dialect.loaded_rules
    if any(pattern.fullmatch(statement.text, _start(statement)) for pattern in rules.statements):
        return ParsedStatement()
    query = inner_query(statement, rules)
    parsed = read_query(dialect, query)
    refusal = parsed.refusal
    if refusal and refusal.kind == "invalid":
        told = no_query(query, dialect.reserved)
        refusal = told if told and told.kind != "invalid" else refusal
    once: dict[str, Any] = {kind: _name_once(getattr(parsed, kind)) for kind in _KINDS}
    if sum(map(len, once.values())) > MOST_NAMES:
        return ParsedStatement(refusal=refusal if refusal and refusal.kind == "write" else _TOO_MANY)
    changed = {kind: names for kind, names in once.items() if names is not getattr(parsed, kind)}
    # A copy takes as long as half of the rest of this.
    return replace(parsed, **changed, refusal=refusal) if changed or refusal else parsed


def read_view(dialect: Dialect, definition: str) -> ParsedStatement:
    """Return what the definition of a view names, as `read` does. Raises `InvalidSql` if it holds no query."""
    return read(dialect, view_query(dialect, definition))


def view_query(dialect: Dialect, definition: str) -> Statement:
    """Return the query in the definition of a view. Raises `InvalidSql` if it holds none."""
    from dragoman.sql.views import defining_query  # sqlglot is slow to import

    return defining_query(definition, dialect.sqlglot, dialect.lexicon)


def read_query(dialect: Dialect, query: Statement) -> ParsedStatement:
    """Return everything that a query names, as often as it does."""
    if dialect.read:
        return dialect.read(query)
    from dragoman.sql.parsed import read as read_by_sqlglot

    exact = dialect.folding == "exact"
    return read_by_sqlglot(query, reserved=dialect.reserved, default_schema=dialect.default_schema, exact=exact)


_TOO_MANY = Refusal(
    "unsafe",
    f"The statement names more than {MOST_NAMES} relations, functions, operators and types.",
    "Split it, or ask in several statements.",
)


_KINDS = ("relations", "other_names", "calls", "operators", "types", "others")


def _name_once(named: Sequence[Any]) -> tuple[Any, ...]:
    """Drop names that differ only in their place, and keep the first of them."""
    if len(named) < 2:  # as in most statements
        return tuple(named)
    at = named[0]._fields.index("offset")
    first: dict[Any, Any] = {}
    for each in named:
        first.setdefault(each[:at] + each[at + 1 :], each)
    return tuple(named) if len(first) == len(named) else tuple(first.values())


class ReadOnly(Validator):
    """Refuses every statement that is not a query, and every query that uses something the dialect's rules do not list.

    With `database`, its `schemas`, `allow_functions`, `allow_relations` and `allow_foreign_tables` apply too.
    """

    def __init__(self, dialect: Dialect, database: Database | None) -> None:
        self._dialect = dialect
        self._database = database
        self._relations = _lower(database.allow_relations if database else ())

    @cached_property
    def _rules(self) -> Rules:
        return self._dialect.loaded_rules

    @cached_property
    def _allowed_functions(self) -> frozenset[str]:
        """Return the functions that the configuration allows.

        A name without a schema also allows the one in the default schema.
        """
        names = _lower(self._database.allow_functions if self._database else ())
        schema = self._dialect.default_schema
        return names | {f"{schema}.{name}" for name in names if schema and "." not in name}

    @cached_property
    def _functions(self) -> frozenset[str]:
        return self._rules.functions | self._allowed_functions

    @cached_property
    def _table_functions(self) -> frozenset[str]:
        return self._rules.table_functions | self._allowed_functions

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise an error unless the statement is an allowed query.

        Raises `WriteDenied`, `UnsafeSql`, `InvalidSql` or `TableNotFound`.
        """
        self.judge(call.parsed)
        if self._database and self._database.schemas:
            await self._check_schemas(call, self._database)

    def judge(self, parsed: ParsedStatement) -> None:
        """Judge a parsed statement. Raises `WriteDenied`, `UnsafeSql` or `InvalidSql`. Asks no database."""
        refusal = parsed.refusal
        if refusal and refusal.kind != "invalid":
            raise refusal.error()
        # If the grammar could not parse the statement, a refused function is the better reason.
        self._check_calls(parsed.calls)
        if self._rules.operators is not None:
            self._check_operators(parsed.operators, self._rules.operators)
        self._check_relations(parsed.relations)
        self._check_relations(parsed.other_names)
        if refusal:
            raise refusal.error()

    # Functions and operators

    def _check_calls(self, calls: Iterable[FunctionCall]) -> None:
        functions = self._functions
        for call in calls:
            if not (call.dotted in functions and call.kind in _AS_VALUE) and not self._may_call(call):
                raise self._refuse(call)

    def _may_call(self, call: FunctionCall) -> bool:
        """Return whether a call is allowed although it is not one of a function in `functions`."""
        name, rules = call.dotted, self._rules
        match call.kind:
            case "syntax":
                return True
            case "attribute" | "field":
                return name not in rules.refused_attributes or name in self._allowed_functions
            case "function":
                return self._fits_form(call)
            case _:
                patterns = rules.table_function_patterns
                listed = name in self._table_functions or any(pattern.fullmatch(name) for pattern in patterns)
                return listed or (call.kind == "call" and self._fits_form(call))

    def _fits_form(self, call: FunctionCall) -> bool:
        return fits_form(call, self._rules.forms.get(call.dotted, ()))

    def _refuse(self, call: FunctionCall) -> DragomanError:
        if call.kind in _ATTRIBUTES:
            return UnsafeSql(
                f"A column {call.name} would call the function of that name, which is refused.",
                suggestion="Rename the column in a subquery: SELECT x AS other_name.",
                offset=call.offset,
            )
        if call.dotted in self._rules.forms:
            own = self._rules.substitutes.get(call.name.lower())
            instead = f", or {own}" if own else ""
            return UnsafeSql(
                f"The function {call.dotted} is allowed only with certain arguments, and not with these.",
                suggestion=f"Write plain literals for them{instead}. The server's administrator can allow it with"
                " allow_functions.",
                offset=call.offset,
            )
        kind = "table function" if call.kind == "table function" else "function"
        return UnsafeSql(
            f"The {kind} {call.dotted} is not on the list of functions known to be harmless.",
            suggestion=self._instead_of(call),
            offset=call.offset,
        )

    def _instead_of(self, call: FunctionCall) -> str:
        if own := self._rules.substitutes.get(call.name.lower()):
            return f"Write {own} instead."
        if call.kind == "table function":
            return "Query the tables themselves. The server's administrator can allow it with allow_functions."
        listed = self._functions if call.kind == "function" else self._functions | self._table_functions
        near = nearest(call.name, {name for name in listed if "." not in name}, 3, cutoff=0.75)
        hint = f"Did you mean {', '.join(near)}? " if near else "Write the query without it. "
        return f"{hint}The server's administrator can allow it with allow_functions."

    def _check_operators(self, operators: Iterable[Named], listed: frozenset[str]) -> None:
        for operator in operators:
            if operator.dotted not in listed and operator.dotted not in self._allowed_functions:
                raise UnsafeSql(
                    f"The operator {operator.dotted} is not on the list of operators known to be harmless.",
                    suggestion="Use an operator of the database itself. The server's administrator can allow it with"
                    " allow_functions.",
                    offset=operator.offset,
                )

    # Relations

    def _check_relations(self, named: Iterable[NamedRelation]) -> None:
        for relation, offset in named:
            if self._closes(relation):
                raise UnsafeSql(
                    f"The relation {relation} is not open to queries.",
                    suggestion="Query what list_tables shows. The server's administrator can allow it with"
                    " allow_relations.",
                    offset=offset,
                )

    def _closes(self, relation: Relation) -> bool:
        """Return whether a relation is refused, under any name that means it."""
        if self._is_opened(relation):
            return False
        rules, full = self._rules, self._full_name(relation)
        names = (full, relation.name.lower()) if relation.schema is None else (full,)
        if any(pattern.fullmatch(name) for pattern in rules.refused_relations for name in names):
            return True
        schema = (relation.schema or "").lower()
        return schema in rules.system_schemas and f"{schema}.{relation.name.lower()}" not in rules.system_relations

    def _is_opened(self, relation: Relation) -> bool:
        """Return whether the configuration allows it.

        It allows a relation by its full name, as written, and a system relation by its bare name too.
        """
        if not self._relations:
            return False
        names = {str(relation).lower(), self._full_name(relation)}
        if relation.schema and relation.schema.lower() in self._rules.system_schemas:
            names.add(relation.name.lower())
        return not self._relations.isdisjoint(names)

    def _full_name(self, relation: Relation) -> str:
        catalog, schema = self._place(relation)
        return str(Relation(relation.name, schema, catalog)).lower()

    def _place(self, relation: Relation) -> tuple[str | None, str | None]:
        """Return the catalog and the schema of a relation, as far as the configuration determines them."""
        database, dialect = self._database, self._dialect
        schema = relation.schema or (database and database.schema) or dialect.default_schema
        home = database.database if database and Capability.CATALOGS in dialect.capabilities else None
        return relation.catalog or home, schema

    # Schemas

    async def _check_schemas(self, call: Call, database: Database) -> None:
        parsed = call.parsed
        if parsed.lists_schemas:
            raise UnsafeSql(
                "It shows more schemas than are open to queries.",
                suggestion="Use list_schemas and list_tables.",
                offset=0,
            )
        for schema, catalog, offset in parsed.schemas:
            if not self._is_open(Relation("", schema, catalog), database):
                raise self._outside(f"The schema {schema or 'of this session'} is", database, offset)
        for relation, offset in await self._resolve(call):
            if not self._is_open(relation, database) and not self._is_opened(relation):
                raise self._outside(f"The schema of {relation} is", database, offset)

    async def _resolve(self, call: Call) -> Iterable[NamedRelation]:
        """Return the relations with their schemas. Asks the catalog only where the text does not show them."""
        parsed = call.parsed
        if self._dialect.read and not self._dialect.search_path:
            return (*parsed.relations, *parsed.other_names)
        if not parsed.relations:
            return ()
        return [self._find(relation) for relation in await call.relations()]

    def _find(self, relation: Relation) -> NamedRelation:
        if relation.schema is None and self._dialect.search_path and not self._is_opened(relation):
            # The catalog does not know it, so where the server would find it cannot be determined.
            raise TableNotFound(
                f"There is no relation {relation} in the schemas that are open to queries.",
                suggestion="Use list_tables to see what is there.",
                identifier=relation.name,
            )
        return NamedRelation(relation)

    def _outside(self, what: str, database: Database, offset: int | None) -> UnsafeSql:
        return UnsafeSql(
            f"{what} not open to queries.",
            suggestion=f"Query relations of {', '.join(database.schemas)}.",
            offset=offset,
        )

    def _is_open(self, relation: Relation, database: Database) -> bool:
        places = self._places(relation)
        return any(self._same(place, name) for name in database.schemas for place in places)

    def _same(self, place: str, name: str) -> bool:
        """Return whether a schema is the configured one, as the catalog sees it.

        The catalog sees a name as it is stored, or as the dialect folds it.
        """
        dialect = self._dialect
        if place == name:
            return True
        if dialect.folding != "insensitive" and any(mark in name for mark in dialect.lexicon.identifier_quotes):
            return False
        # The dialect's own grammar returns names as they are stored, sqlglot as they are written.
        return dialect.same(name, place) or (dialect.read is None and dialect.same(place, name))

    def _places(self, relation: Relation) -> list[str]:
        """Return how the configuration may write a relation's schema.

        A schema alone is in the default catalog, if there is one.
        """
        dialect = self._dialect
        catalog, schema = self._place(relation)
        schema = schema or ""
        if catalog is None:
            return [schema, *self._quote(schema)]
        home = self._place(Relation(""))[0]
        alone = [schema, *self._quote(schema)] if home is None or dialect.same(catalog, home) else []
        return [*alone, f"{catalog}.{schema}", f"{dialect.quote(catalog)}.{dialect.quote(schema)}"]

    def _quote(self, name: str) -> Iterable[str]:
        """Return a name in each of the dialect's quotes."""
        marks = self._dialect.lexicon.identifier_quotes
        return [f"{mark}{name.replace(mark, mark * 2)}{mark}" for mark in marks if mark != "["]


def find_telling(
    rules: Rules, calls: Iterable[FunctionCall], allowed: frozenset[str], *, path: bool = True
) -> FunctionCall | None:
    """Return a call that tells of objects by name or number, and that `allowed` does not name.

    `path`: or one that tells in which schemas names are looked up.
    """
    telling = {**rules.telling_path, **rules.telling} if path else rules.telling
    for call in calls:
        forms = telling.get(call.dotted, telling.get(f"*.{call.name}"))
        if forms is not None and call.dotted not in allowed and not fits_form(call, forms):
            return call
    return None


def fits_form(call: FunctionCall, forms: Iterable[Form]) -> bool:
    """Return whether the arguments of a call are known and match one of the forms."""
    arguments = call.arguments
    return arguments is not None and any(
        len(form) == len(arguments)
        and all(
            pattern is None or (text is not None and pattern.fullmatch(text))
            for pattern, text in zip(form, arguments, strict=True)
        )
        for form in forms
    )


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def inner_query(statement: Statement, rules: Rules) -> Statement:
    """Return the query to judge: what follows a prefix such as EXPLAIN, else the whole statement."""
    found = (prefix.match(statement.text, _start(statement)) for prefix in rules.prefixes)
    prefix = next(filter(None, found), None)
    return statement.after(prefix.end()) if prefix else statement


def _start(statement: Statement) -> int:
    return len(statement.text) - len(statement.text.lstrip())


def check_text(dialect: Dialect, text: str) -> None:
    """Judge a text without a database. Returns if it would pass, else raises as `ReadOnly.judge` does."""
    statement = Statement.parse(text, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon)
    ReadOnly(dialect, None).judge(read(dialect, statement))
