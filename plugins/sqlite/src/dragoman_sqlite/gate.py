"""What SQLite's own grammar reads in a statement.

SQLite tells what a statement does only where its tables are; so here its tokens tell that, and an empty database
whether it parses. The core's rules judge what is read; the worker's authorizer judges again, in the real database.
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

# Else it only misses the tables, which the real database has.
_NO_QUERY = re.compile(
    r"near \".*\": syntax error|incomplete input|unrecognized token: .*|Recursion limit|parser stack overflow"
    r"|Expression tree is too large.*|too many .*|at most .*|.* too big",
    re.DOTALL,
)
_FUNCTIONS = RULES.functions | RULES.table_functions
# A view is parsed and no more: compiling a query, which a thousand windows make last for seconds, is the worker's.
_AS_VIEW = "CREATE VIEW v AS "


def read(statement: Statement) -> ParsedStatement:
    """Return what a query names; anything else does not parse."""
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
    """Whether it searches a table, as in notes('words'): a text, a column or a parameter, and perhaps a rank."""
    match named.arguments:
        case (first,) | (first, _):
            return first != "number" and lower_ascii(named.relation.name) not in _FUNCTIONS
        case _:
            return False


@cache
def _grammar() -> apsw.Connection:
    """An empty database that runs nothing: what parses in it is forgotten before its first step."""
    connection = apsw.Connection(":memory:")
    connection.exec_trace = _stop
    return connection


def _stop(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
    """Called by apsw before the first step; False keeps it from being made."""
    return False


def _remedy(text: str) -> str:
    shell = text.lstrip().startswith(".")
    return (
        "Commands of SQLite's shell are not SQL: use list_tables or describe_table." if shell else "Check its syntax."
    )


def _misfit(text: str) -> Refusal | None:
    """What SQLite says of a text that is no query, if it does."""
    try:
        with contextlib.suppress(apsw.ExecTraceAbort):
            _grammar().execute(_AS_VIEW + text)
    except apsw.Error as error:
        if _NO_QUERY.fullmatch(str(error)):
            offset = getattr(error, "error_offset", -1) - len(_AS_VIEW)
            place = len(text.encode()[:offset].decode(errors="ignore")) if offset >= 0 else len(text)
            return Refusal("invalid", f"SQLite cannot parse it: {error}.", _remedy(text), place)
    return None
