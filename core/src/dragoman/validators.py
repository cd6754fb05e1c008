"""The core's own validator: only queries pass, and only through functions and relations the dialect's rules allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from dragoman.dialect import Call, Capability, Dialect, Reading, Rules, Validator
from dragoman.errors import InvalidSql, UnsafeSql, WriteDenied
from dragoman.model import Database, Relation
from dragoman.sql import Statement
from dragoman.sql.calls import FunctionCall, verbs, written_calls

if TYPE_CHECKING:
    from dragoman.sql.facts import Effect

_QUERY_WORDS = frozenset({"select", "values", "with", "from"})
# What begins a statement that is no query, in any of the SQLs we know. The first word tells what was meant even where
# no parser of ours reads the rest.
_OTHER_WORDS = frozenset(
    "abort alter analyse analyze attach backup begin cache call checkpoint checksum clear close cluster comment commit"
    " copy create deallocate declare delete deny desc describe detach discard do drop dump end exec execute explain"
    " export fetch flush grant handler import insert install kill listen load lock merge move msck notify optimize"
    " pragma prepare purge reassign refresh reindex release rename repair replace reset resignal restore revoke"
    " rollback savepoint security set show shutdown signal start summarize truncate uncache undrop unlisten unload"
    " unlock update upsert use vacuum".split()
)
# Where a dialect reserves them they cannot be names: no query holds them outside quotes.
_WRITE_WORDS = frozenset("alter create delete drop insert into set update".split())
_READ_ONLY = "Only queries are run here: SELECT, VALUES, and WITH in front of them."
_TOOLS = {
    "explain": "Use explain_query with the query itself.",
    "describe": "Use describe_table.",
    "desc": "Use describe_table.",
    "show": "Use list_tables, describe_table or list_schemas.",
    "pragma": "Use list_databases, list_tables or describe_table; only PRAGMAs that read the catalog are run.",
}


class ReadOnly(Validator):
    """Refuses every statement that is not a query, and every query through what the dialect's rules do not list.

    With `database`, its `schemas`, `allow_functions` and `allow_relations` count too. A dialect with its own grammar
    (`Capability.GRAMMAR`) judges its statements by itself, by `Dialect.judge` or by a validator of its own; the guards
    of `Statement.parse` still hold.
    """

    def __init__(self, dialect: Dialect, database: Database | None) -> None:
        self._dialect = dialect
        self._database = database
        rules = dialect.rules
        self._functions = rules.functions | rules.table_functions | _lower(database.allow_functions if database else ())
        self._relations = _lower(database.allow_relations if database else ())
        self._write_words = _WRITE_WORDS & dialect.reserved

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `WriteDenied`, `UnsafeSql` or `InvalidSql` for anything but an allowed query."""
        self.judge(statement)
        if self._database and self._database.schemas and Capability.GRAMMAR not in self._dialect.capabilities:
            self._check_schemas((await call.resolve()).relations, self._database)

    def judge(self, statement: Statement) -> None:
        """Judge what the text alone tells; raises as `check` does."""
        if self._dialect.judge:
            self._judge_by_grammar(statement, self._dialect.judge)
            return
        if Capability.GRAMMAR in self._dialect.capabilities:
            return
        rules = self._dialect.rules
        if any(pattern.fullmatch(statement.text, _start(statement)) for pattern in rules.statements):
            return
        query = inner_query(statement, rules)
        self._check_kind(query)
        try:
            effect = query.effect
        except InvalidSql:
            # Where the tree cannot tell, the tokens still do: a refused function is the better reason.
            self._check_functions(written_calls(query.tokens), frozenset())
            raise
        self._check_effect(effect)
        self._check_functions(query.calls, query.table_calls)
        self._check_relations(query.relations())

    def _judge_by_grammar(self, statement: Statement, judge: Callable[[Statement, Database | None], Reading]) -> None:
        try:
            judge(statement, self._database)
        except InvalidSql:
            # What was meant as a write, in this SQL or another, is told so.
            self._check_verbs(statement)
            raise

    def _check_kind(self, statement: Statement) -> None:
        """Refuse what does not begin as a query, by its words, whether or not it parses."""
        self._check_verbs(statement)
        first = next(verbs(statement.tokens), None)
        if first is None or first.text.lower() not in _QUERY_WORDS:
            raise InvalidSql(
                "The statement does not begin as a query.",
                suggestion=_READ_ONLY,
                offset=first.start if first else None,
            )
        for token in statement.tokens:
            if token.kind == "word" and token.text.lower() in self._write_words:
                raise WriteDenied(
                    f"{token.text.upper()} is not part of a query.", suggestion=_READ_ONLY, offset=token.start
                )

    def _check_verbs(self, statement: Statement) -> None:
        for verb in verbs(statement.tokens):
            word = verb.text.lower()
            if word in _OTHER_WORDS:
                raise WriteDenied(
                    f"{word.upper()} is not a query.", suggestion=_TOOLS.get(word, _READ_ONLY), offset=verb.start
                )

    def _check_effect(self, effect: Effect | None) -> None:
        if effect:
            raise WriteDenied(
                f"The statement holds {effect.what}, which is not part of a query.",
                suggestion=_READ_ONLY,
                offset=effect.offset,
            )

    def _check_functions(self, calls: Iterable[FunctionCall], relations: frozenset[int]) -> None:
        """Refuse functions that are not listed; calls at the offsets `relations` are judged as relations."""
        for call in calls:
            schema, _, name = call.name.rpartition(".")
            plain = name if schema and schema == self._dialect.default_schema else call.name
            if plain not in self._functions and call.offset not in relations:
                raise UnsafeSql(
                    f"The function {call.name} is not on the list of functions known to be harmless.",
                    suggestion=self._instead_of(name),
                    offset=call.offset,
                )

    def _instead_of(self, name: str) -> str:
        near = get_close_matches(name, self._functions, n=3)
        hint = f"Did you mean {', '.join(near)}? " if near else "Write the query without it. "
        return f"{hint}Its operator can allow it with allow_functions."

    def _check_relations(self, relations: Iterable[Relation]) -> None:
        patterns = self._dialect.rules.refused_relations
        for relation in relations:
            name = str(relation).lower()
            if name not in self._relations and any(pattern.fullmatch(name) for pattern in patterns):
                raise UnsafeSql(
                    f"The relation {relation} is not open to queries.",
                    suggestion="Query what list_tables shows. Its operator can allow it with allow_relations.",
                )

    def _check_schemas(self, relations: Iterable[Relation], database: Database) -> None:
        for relation in relations:
            places = self._places(relation, database)
            allowed = any(
                place == name or self._dialect.same(place, name) for name in database.schemas for place in places
            )
            if not allowed and str(relation).lower() not in self._relations:
                raise UnsafeSql(
                    f"The schema of {relation} is not open to queries.",
                    suggestion=f"Query relations of {', '.join(database.schemas)}.",
                )

    def _places(self, relation: Relation, database: Database) -> list[str]:
        """How the configuration may write a relation's schema; alone it is the default catalog's, if there is one."""
        dialect = self._dialect
        schema = relation.schema or database.schema or dialect.default_schema or ""
        home = database.database if Capability.CATALOGS in dialect.capabilities else None
        catalog = relation.catalog or home
        if catalog is None:
            return [schema]
        alone = [schema] if home is None or dialect.same(catalog, home) else []
        return [*alone, f"{catalog}.{schema}", f"{dialect.quote(catalog)}.{dialect.quote(schema)}"]


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def inner_query(statement: Statement, rules: Rules) -> Statement:
    """Return the query that is judged by itself: what follows a prefix such as EXPLAIN, else the whole statement."""
    found = (prefix.match(statement.text, _start(statement)) for prefix in rules.prefixes)
    prefix = next(filter(None, found), None)
    return statement.after(prefix.end()) if prefix else statement


def _start(statement: Statement) -> int:
    return len(statement.text) - len(statement.text.lstrip())


def check_text(dialect: Dialect, text: str) -> None:
    """Judge a text without a database. Returns when it would pass, else raises as `ReadOnly.check` does."""
    ReadOnly(dialect, None).judge(Statement.parse(text, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon))
