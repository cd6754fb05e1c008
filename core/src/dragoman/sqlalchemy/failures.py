"""Translates a driver's exceptions to `DragomanError`s, by SQLSTATE, message pattern and class. Nothing else does."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import exc

from dragoman.errors import (
    ColumnNotFound,
    ConnectionFailed,
    DragomanError,
    InternalError,
    InvalidSql,
    ParameterError,
    PermissionDenied,
    QueryCancelled,
    QueryError,
    SchemaNotFound,
    TableNotFound,
    WriteDenied,
)

Failure = type[DragomanError]
Patterns = Sequence[tuple[str, Failure]]

# Longest prefix first: a class of SQLSTATEs has two characters, a state five.
_STATES: Final[tuple[tuple[str, Failure], ...]] = (
    ("42P01", TableNotFound),
    ("42S02", TableNotFound),
    ("42703", ColumnNotFound),
    ("42S22", ColumnNotFound),
    ("3F000", SchemaNotFound),
    ("3D000", SchemaNotFound),
    ("42501", PermissionDenied),
    ("42P02", ParameterError),
    ("25006", WriteDenied),
    ("57014", QueryCancelled),
    ("57P", ConnectionFailed),
    ("08", ConnectionFailed),
    ("28", ConnectionFailed),
    ("22", QueryError),
    ("07", ParameterError),
    ("42", InvalidSql),
)
_STATEMENT_IS_WRONG: Final = (exc.ProgrammingError, exc.NotSupportedError)
_SUGGESTIONS: Final[dict[Failure, str]] = {
    TableNotFound: "Use list_tables or search_catalog to find the table.",
    ColumnNotFound: "Use describe_table to see the columns.",
    SchemaNotFound: "Use list_schemas to see the schemas.",
    InvalidSql: "Correct the statement for this dialect and try again.",
    QueryError: "Correct the values the statement computes with and try again.",
    WriteDenied: "Only queries are run here; send a SELECT.",
    PermissionDenied: "Ask for other tables, or ask the administrator to grant the right.",
    ConnectionFailed: "Try again. If the error stays, tell the administrator.",
}
MAX_MESSAGE: Final = 500
MAX_LINES: Final = 6
_TRACE: Final = re.compile(r"Traceback \(most recent|^ *File \"", re.MULTILINE)
_PROPOSED: Final = re.compile(
    r"\s*\b(?:(?:did|maybe|perhaps) you meant?|(?:candidate|similar) (?:bindings?|columns?|tables?|names?))\b", re.I
)
_POINTING: Final = re.compile(r"LINE \d+:.*|[\s^~]+")


@contextmanager
def translate_errors(database: str, patterns: Patterns, hidden: Sequence[str]) -> Generator[None]:
    """Raise only `DragomanError`s. `hidden`: texts that no message may hold, such as a password, a host or a path."""
    try:
        yield
    except DragomanError:
        raise
    except exc.DBAPIError as error:
        raise _translate(error, database, patterns, hidden) from None
    except (OSError, exc.TimeoutError):
        raise unreachable(database) from None
    except exc.NoSuchModuleError as error:
        raise InternalError(f"SQLAlchemy has no driver for the database {database!r}: {error}") from None
    except Exception as error:
        raise _translate_unwrapped(error, patterns, hidden) from None


def unreachable(database: str) -> ConnectionFailed:
    """Return the error for a database that cannot be reached.

    Its message holds the name of the database and nothing else.
    """
    return ConnectionFailed(
        f"The database {database!r} cannot be reached.", suggestion=_SUGGESTIONS[ConnectionFailed], context={}
    )


def _translate(error: exc.DBAPIError, database: str, patterns: Patterns, hidden: Sequence[str]) -> DragomanError:
    words = _words(error.orig)
    state = _state(error.orig)
    by_pattern = _by_pattern(str(error.orig), patterns) or _by_pattern(words, patterns)
    failure, identifier = by_pattern or (_by_state(state) or _by_class(error), None)
    if failure is ConnectionFailed or error.connection_invalidated:
        return unreachable(database)
    return failure(
        _redact(words, hidden),
        suggestion=_SUGGESTIONS.get(failure, ""),
        identifier=identifier,
        context={"sqlstate": state} if state else {},
    )


def _translate_unwrapped(error: Exception, patterns: Patterns, hidden: Sequence[str]) -> DragomanError:
    """Translate an exception that SQLAlchemy did not wrap.

    The driver raised it in a hook of a subclass, or something is broken.
    """
    if found := _by_pattern(str(error), patterns):
        failure, identifier = found
        return failure(_redact(str(error), hidden), suggestion=_SUGGESTIONS.get(failure, ""), identifier=identifier)
    return QueryError(
        f"The driver could not carry out the query: {type(error).__name__}.",
        suggestion="Cast unusual columns or parameters to text and try again.",
    )


def _words(error: BaseException | None) -> str:
    """Return the driver's message alone. MySQL's family puts its number before it; pg8000 gives the server's fields."""
    match error.args if error else ():
        case (int(), str(message)) | ({"M": str(message)},):
            return message
        case _:
            return str(error)


def _state(error: Any) -> str:
    """Return the SQLSTATE, under whatever name the driver has it. pg8000 has it among the server's fields."""
    match getattr(error, "args", ()):
        case ({"C": str(state)},):
            return state
        case _:
            states = (getattr(error, name, None) for name in ("sqlstate", "pgcode"))
            return next((state for state in states if isinstance(state, str)), "")


def _by_state(state: str) -> Failure | None:
    return next((failure for prefix, failure in _STATES if state.startswith(prefix)), None)


def _by_pattern(message: str, patterns: Patterns) -> tuple[Failure, str | None] | None:
    for pattern, failure in patterns:
        if found := re.search(pattern, message):
            return failure, found.groupdict().get("name")
    return None


def _by_class(error: exc.DBAPIError) -> Failure:
    return InvalidSql if isinstance(error, _STATEMENT_IS_WRONG) else QueryError


def _redact(message: str, hidden: Sequence[str]) -> str:
    """Return the driver's message on one line, without what must not be shown.

    In some the cause stands below the first line. Names that the database proposes may be hidden from the caller.
    """
    told = _TRACE.split(message, maxsplit=1)[0]
    lines = [line.strip(" -\t") for line in told.strip().splitlines()[:MAX_LINES]]
    shown = " ".join(line for line in lines if line and not _POINTING.fullmatch(line))
    shown = _PROPOSED.split(shown, maxsplit=1)[0]
    for text in sorted(hidden, key=len, reverse=True):
        shown = shown.replace(text, "***")
    return shown[:MAX_MESSAGE]
