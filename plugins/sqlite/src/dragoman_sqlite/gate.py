"""The gate: SQLite's own grammar reads a statement, and only a query through what the rules list may pass.

SQLite tells what a statement does only where its tables are; so here its tokens tell that, and an empty database
whether it parses. The worker's authorizer judges again, in the real one.
"""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache

import apsw
from dragoman import Database, InvalidSql, Reading, Relation, Statement, UnsafeSql, WriteDenied

from dragoman_sqlite.reading import Named, read
from dragoman_sqlite.reading import Reading as Names
from dragoman_sqlite.rules import RULES

READ_ONLY = "Only queries are run here: SELECT, VALUES, and WITH in front of them."
_QUERY_WORDS = frozenset({"select", "values", "with"})
# SQLite reserves them: no query holds them outside quotes.
_WRITE_WORDS = frozenset("alter create delete drop for insert into set update".split())
# Else it only misses the tables, which the real database has.
_NO_QUERY = re.compile(
    r"near \".*\": syntax error|incomplete input|unrecognized token: .*|Recursion limit|parser stack overflow"
    r"|Expression tree is too large.*|too many .*|at most .*|.* too big",
    re.DOTALL,
)
_ALLOWED = RULES.functions | RULES.table_functions
# A view is parsed and no more: compiling a query, which a thousand windows make last for seconds, is the worker's.
_AS_VIEW = "CREATE VIEW v AS "


def judge(statement: Statement, database: Database | None = None) -> Reading:
    """Return what a statement reads and calls; its configuration's `schemas` and `allow_...` count.

    Raises `WriteDenied` for what is no query, `UnsafeSql` for a query through what the rules do not list, `InvalidSql`
    for what SQLite cannot parse. No database is asked.
    """
    start = len(statement.text) - len(statement.text.lstrip())
    if any(pattern.fullmatch(statement.text, start) for pattern in RULES.statements):
        return Reading((), ())
    prefix = next((found for pattern in RULES.prefixes if (found := pattern.match(statement.text, start))), None)
    query = statement.after(prefix.end()) if prefix else statement
    _check_words(query)
    names = read(query)
    searched = {named.offset for named in names.everything() if _is_search(named)}
    called = [call for call in query.written_calls if call.offset not in names.aliases | searched]
    _check_functions({call.name: call.offset for call in reversed(called)}, database)
    _check_relations(names.everything(), database)
    _check_syntax(query.text)
    return Reading(_relations(names, searched), tuple(dict.fromkeys(call.name for call in called)))


def _check_words(query: Statement) -> None:
    first = query.verbs[0] if query.verbs else None
    if first is None or first.text.lower() not in _QUERY_WORDS:
        raise InvalidSql(
            "The statement does not begin as a query.", suggestion=READ_ONLY, offset=first.start if first else None
        )
    for token in query.tokens:
        if token.kind == "word" and token.text.lower() in _WRITE_WORDS:
            raise WriteDenied(f"{token.text.upper()} is not part of a query.", suggestion=READ_ONLY, offset=token.start)


def _is_search(named: Named) -> bool:
    """Whether it searches a table, as in notes('words'): a text, a column or a parameter, and perhaps a rank."""
    match named.arguments:
        case (first,) | (first, _):
            return first != "number" and named.relation.name.lower() not in _ALLOWED
        case _:
            return False


def _check_functions(calls: dict[str, int], database: Database | None) -> None:
    more = {name.lower() for name in database.allow_functions} if database else set[str]()
    for name, offset in calls.items():
        plain = name.removeprefix("main.")
        if plain not in _ALLOWED and plain not in more:
            near = get_close_matches(plain, _ALLOWED, n=3)
            hint = f"Did you mean {', '.join(near)}? " if near else "Write the query without it. "
            raise UnsafeSql(
                f"The function {name} is not on the list of functions known to be harmless.",
                suggestion=f"{hint}Its operator can allow it with allow_functions.",
                offset=offset,
            )


def _check_relations(named: Iterable[Named], database: Database | None) -> None:
    more = {name.lower() for name in database.allow_relations} if database else set[str]()
    schemas = {schema.lower() for schema in database.schemas} if database else set[str]()
    for each in named:
        name = str(each.relation).lower()
        if name in more:
            continue
        if any(pattern.fullmatch(name) for pattern in RULES.refused_relations):
            raise UnsafeSql(
                f"The relation {each.relation} is not open to queries.",
                suggestion="Query what list_tables shows. Its operator can allow it with allow_relations.",
                offset=each.offset,
            )
        if schemas and (each.relation.schema or "main").lower() not in schemas:
            raise UnsafeSql(
                f"The schema of {each.relation} is not open to queries.",
                suggestion=f"Query relations of {', '.join(sorted(schemas))}.",
                offset=each.offset,
            )


def _relations(names: Names, searched: set[int]) -> tuple[Relation, ...]:
    found = (named.relation for named in names.everything() if named.offset in searched)
    return tuple(dict.fromkeys((*names.relations(), *found)))


@cache
def _grammar() -> apsw.Connection:
    """An empty database that runs nothing: what parses in it is forgotten before its first step."""
    connection = apsw.Connection(":memory:")
    connection.exec_trace = _stop
    return connection


def _stop(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
    """Called by apsw before the first step; False keeps it from being made."""
    return False


def _check_syntax(text: str) -> None:
    try:
        with contextlib.suppress(apsw.ExecTraceAbort):
            _grammar().execute(_AS_VIEW + text)
    except apsw.Error as error:
        if _NO_QUERY.fullmatch(str(error)):
            offset = getattr(error, "error_offset", -1) - len(_AS_VIEW)
            raise InvalidSql(
                f"SQLite cannot parse it: {error}.",
                suggestion="Check its syntax.",
                offset=len(text.encode()[:offset].decode(errors="ignore")) if offset >= 0 else len(text),
            ) from None
