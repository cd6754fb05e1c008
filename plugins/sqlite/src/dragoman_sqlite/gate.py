"""Parses statements with SQLite's own grammar.

SQLite reports what a statement does only in its own database. So here the statement's tokens are used for that, and an
empty database decides whether it parses. The core's rules judge the result; the worker's authorizer judges again, in
the real database.
"""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

import contextlib
import re
from functools import cache

import apsw
from dragoman import FunctionCall, NamedRelation, ParsedStatement, Refusal, Statement
from dragoman.words import lower_ascii

from dragoman_sqlite.names import Named, names_in
from dragoman_sqlite.rules import RULES

# Any other error is only about tables, which the real database has.
_NO_QUERY = re.compile(
    r"near \".*\": syntax error|incomplete input|unrecognized token: .*|Recursion limit|parser stack overflow"
    r"|Expression tree is too large.*|too many .*|at most .*|.* too big",
    re.DOTALL,
)
_FUNCTIONS = RULES.functions | RULES.table_functions
# A view is only parsed. Compiling a query takes seconds with a thousand windows, and is the worker's task.
_AS_VIEW = "CREATE VIEW v AS "


def read(statement: Statement) -> ParsedStatement:
    """Return what a query names. Any other text does not parse."""
    names = names_in(statement)
    everything = names.everything()
    searched = {named.offset for named in everything if _is_search(named)}
    not_called = names.aliases | searched
    read = names.read(searched)
    return ParsedStatement(
        relations=tuple(NamedRelation(named.relation, named.offset) for named in everything if named.offset in read),
        other_names=tuple(
            NamedRelation(named.relation, named.offset) for named in everything if named.offset not in read
        ),
        calls=tuple(
            FunctionCall(call.name, None if call.schema == "main" else call.schema, call.offset)
            for call in statement.written_calls
            if call.offset not in not_called
        ),
        refusal=_misfit(statement.text),
    )


def _is_search(named: Named) -> bool:
    """Return whether it searches a table, as in notes('words'): a text, a column or a parameter, and perhaps a rank."""
    match named.arguments:
        case (first,) | (first, _):
            return first != "number" and lower_ascii(named.relation.name) not in _FUNCTIONS
        case _:
            return False


@cache
def _grammar() -> apsw.Connection:
    """Return an empty database that runs nothing: a statement that parses is dropped before its first step."""
    connection = apsw.Connection(":memory:")
    connection.exec_trace = _stop
    return connection


def _stop(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
    """Return False, which keeps apsw from making the first step."""
    return False


def _remedy(text: str) -> str:
    shell = text.lstrip().startswith(".")
    return (
        "Commands of SQLite's shell are not SQL: use list_tables or describe_table." if shell else "Check its syntax."
    )


def _misfit(text: str) -> Refusal | None:
    """Return SQLite's error for a text that is not a query, or None."""
    try:
        with contextlib.suppress(apsw.ExecTraceAbort):
            _grammar().execute(_AS_VIEW + text)
    except apsw.Error as error:
        if _NO_QUERY.fullmatch(str(error)):
            offset = getattr(error, "error_offset", -1) - len(_AS_VIEW)
            place = len(text.encode()[:offset].decode(errors="ignore")) if offset >= 0 else len(text)
            return Refusal("invalid", f"SQLite cannot parse it: {error}.", _remedy(text), place)
    return None
