"""Translates errors of the server, the driver and the network to dragoman's. Nothing else does."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Mapping
from typing import Any

import msgspec
from dragoman import (
    ColumnNotFound,
    ConnectionFailed,
    DragomanError,
    InvalidSql,
    ParameterError,
    PermissionDenied,
    QueryCancelled,
    QueryError,
    QueryTimeout,
    ResultTooLarge,
    SchemaNotFound,
    TableNotFound,
    WriteDenied,
)

from dragoman_trino.parameters import parameter_at
from dragoman_trino.protocol import FORWARDED, Cancelled, HttpStatus, ServerError


class UnknownTransaction(ConnectionFailed):
    """The server does not know a transaction that it has begun: it is another server, or was restarted."""


_FUNCTION = "Check the function's name and the types of its arguments; CAST where they differ."
_TYPES = "Check the types with describe_table and CAST where they differ."
_VALUES = "Check the values the query computes with, and their casts; TRY_CAST or TRY give NULL instead."
_OUTSIDE = "Filter groups in HAVING; compute windows in a subquery, and filter them outside."
_SMALLER = "Make it smaller: filter earlier, join or sort fewer rows, or look at explain_query."
_WRITE = "Only reading is allowed: send a SELECT."
_SOURCE = "The data source behind this catalog failed; try again, or ask the administrator to look at it."

# For each error name of the server, the error of ours and the remedy.
_NAMED: dict[str, tuple[type[DragomanError], str]] = {
    "TABLE_NOT_FOUND": (TableNotFound, "Find its name with search_catalog or list_tables."),
    "COLUMN_NOT_FOUND": (ColumnNotFound, "Look at the columns with describe_table."),
    "SCHEMA_NOT_FOUND": (SchemaNotFound, "Find the schemas with list_schemas."),
    "CATALOG_NOT_FOUND": (SchemaNotFound, "Find the catalogs and their schemas with list_schemas."),
    "MISSING_CATALOG_NAME": (SchemaNotFound, "Write catalog.schema.table, or set `database` in the configuration."),
    "MISSING_SCHEMA_NAME": (SchemaNotFound, "Write catalog.schema.table, or set `schema` in the configuration."),
    "SYNTAX_ERROR": (InvalidSql, "Check the statement against Trino's syntax."),
    "FUNCTION_NOT_FOUND": (InvalidSql, _FUNCTION),
    "AMBIGUOUS_FUNCTION_CALL": (InvalidSql, _FUNCTION),
    "TYPE_MISMATCH": (InvalidSql, _TYPES),
    "TYPE_NOT_FOUND": (InvalidSql, "Name a type of Trino, such as varchar, bigint, decimal(10,2) or timestamp."),
    "AMBIGUOUS_NAME": (InvalidSql, "Write the table's name or alias before the column's."),
    "EXPRESSION_NOT_AGGREGATE": (InvalidSql, "Put the column into GROUP BY or into an aggregate."),
    "EXPRESSION_NOT_SCALAR": (InvalidSql, _OUTSIDE),
    "NESTED_AGGREGATION": (InvalidSql, "Compute the inner aggregate in a subquery."),
    "MISSING_OVER": (InvalidSql, "Write OVER (ORDER BY ...) behind it."),
    "MISMATCHED_COLUMN_ALIASES": (InvalidSql, "Give as many aliases as there are columns."),
    "INVALID_LITERAL": (InvalidSql, "Write the literal as its type needs it."),
    "INVALID_PARAMETER_USAGE": (ParameterError, "Give one value for each ? in order."),
    "NOT_SUPPORTED": (InvalidSql, "Trino, or this catalog, has no such feature; write it in another way."),
    "STACK_OVERFLOW": (InvalidSql, "Make the statement simpler: less nesting, fewer terms."),
    "COMPILER_ERROR": (InvalidSql, "Make the statement simpler: fewer columns, less nesting."),
    "QUERY_TEXT_TOO_LARGE": (InvalidSql, "Make the statement shorter."),
    "QUERY_HAS_TOO_MANY_STAGES": (InvalidSql, "Make the statement simpler: fewer joins and subqueries."),
    "READ_ONLY_VIOLATION": (WriteDenied, _WRITE),
    "NOT_IN_TRANSACTION": (WriteDenied, _WRITE),
    "INCOMPATIBLE_CLIENT": (WriteDenied, _WRITE),
    "MULTI_CATALOG_WRITE_CONFLICT": (WriteDenied, _WRITE),
    "AUTOCOMMIT_WRITE_CONFLICT": (WriteDenied, _WRITE),
    "PERMISSION_DENIED": (PermissionDenied, "Ask the administrator for the right, or query other tables."),
    "DIVISION_BY_ZERO": (QueryError, "Guard the divisor with NULLIF(divisor, 0)."),
    "INVALID_CAST_ARGUMENT": (QueryError, "Some value cannot be cast; TRY_CAST gives NULL instead."),
    "INVALID_FUNCTION_ARGUMENT": (QueryError, "Check the arguments; TRY(...) gives NULL instead of an error."),
    "NUMERIC_VALUE_OUT_OF_RANGE": (QueryError, "Cast to a wider type, for instance decimal(38, 2) or double."),
    "SUBQUERY_MULTIPLE_ROWS": (
        QueryError,
        "A subquery used as a value must give one row: add LIMIT 1 or an aggregate.",
    ),
    "MISSING_TABLE": (TableNotFound, "Find its name with search_catalog or list_tables."),
    "USER_CANCELED": (QueryCancelled, ""),
    "ADMINISTRATIVELY_KILLED": (QueryCancelled, "The server's administrator ended the query; ask for less."),
    "ADMINISTRATIVELY_PREEMPTED": (QueryCancelled, "The server made room for another query; try again later."),
    "EXCEEDED_TIME_LIMIT": (QueryTimeout, ""),
    "EXCEEDED_CPU_LIMIT": (QueryTimeout, _SMALLER),
    "ABANDONED_QUERY": (QueryTimeout, ""),
    "EXCEEDED_SCAN_LIMIT": (ResultTooLarge, "Read less: filter by partition columns, or select fewer columns."),
    "TRANSACTION_ALREADY_ABORTED": (ConnectionFailed, "Try again."),
    "QUERY_QUEUE_FULL": (ConnectionFailed, "The server's queue is full; try again in a moment."),
    "CLUSTER_OUT_OF_MEMORY": (ResultTooLarge, _SMALLER),
    "SERVER_STARTING_UP": (ConnectionFailed, "The server is starting up; try again in a moment."),
    "SERVER_SHUTTING_DOWN": (ConnectionFailed, "The server is shutting down; try again in a moment."),
    "NO_NODES_AVAILABLE": (ConnectionFailed, "The server has no workers; try again in a moment."),
    "INVALID_SESSION_PROPERTY": (ConnectionFailed, "Check session_properties in the configuration."),
    "ROLE_NOT_FOUND": (ConnectionFailed, "Check roles in the configuration."),
    "INVALID_ROLE": (ConnectionFailed, "Check roles in the configuration."),
}
_TYPED: dict[str, tuple[type[DragomanError], str]] = {
    "USER_ERROR": (QueryError, _VALUES),
    "INSUFFICIENT_RESOURCES": (ResultTooLarge, _SMALLER),
    "EXTERNAL": (QueryError, _SOURCE),
    "INTERNAL_ERROR": (QueryError, "The server failed; the administrator can see why in its log."),
}
# An error with a place, which only the statement itself can have: values of rows have none.
_LOCATED = (InvalidSql, "Change the statement at the place shown.")
# What to write instead, by the beginning of the server's message.
_REMEDIES = (
    (re.compile("mismatched input 'OFFSET'"), "Write OFFSET before LIMIT: OFFSET 20 LIMIT 10."),
    (re.compile("Unknown resolvedType: INTERVAL"), "Write the unit after the number: INTERVAL '7' DAY."),
    (
        re.compile(r"Cannot apply operator: (?!.*\b(?:date|time|timestamp|interval)\b)(?=.* \+ )(?:.* )?varchar"),
        "Join texts with ||, or concat(a, b).",
    ),
    (re.compile("GROUP BY clause cannot"), "Group by columns without aggregates; compute windows in a subquery."),
)
_NAMES = (
    re.compile(r"(?:Table|View) '(.+?)' does not exist"),
    re.compile(r"Column '(.+?)' (?:cannot be resolved|not found)"),
    re.compile(r"Schema '(.+?)' (?:does not exist|not found)"),
    re.compile(r"Catalog '(.+?)' (?:does not exist|not found)"),
)
# Packages for signing in: their messages may contain addresses and names.
_SIGNING_IN = ("trino.", "requests_kerberos.", "requests_gssapi.", "gssapi.", "krb5.", "spnego.")
MOST_WORDS = 2_000
"""The most characters that are read and shown of a message of the server."""
# What stands before a message: its place, or the class of a Java exception.
_POSITION = re.compile(r"(?:\A[\w.]+Exception: )?line \d+:\d+: |\A[\w.]+Exception: ")
# A statement that does not parse in a header is refused before it is a query.
_UNPREPARED = re.compile(r"Prepared-Statement header: line (\d+):(\d+): (.+)", re.DOTALL)
# The same holds for refused roles and users: the answer is the server's traceback, of which this is the first line.
_DENIED = re.compile(r"AccessDeniedException: (Access Denied: .+)")
_CONNECTOR = re.compile(r"io\.trino\.plugin\.(\w+)\.")
# Parts of messages from a source behind the server: URLs, addresses with a port, files.
_PRIVATE = re.compile(r"\b[a-z][a-z0-9+.:-]*://\S+|\b[\w.-]+:\d{2,5}\b|(?<![\w.])/[\w.-]+(?:/[\w.-]+)+")


@contextlib.contextmanager
def translate_errors(database: str, statement: str = "", about: str = "") -> Generator[None]:
    """Raise `DragomanError`s for any error inside.

    `statement`: the text that the server's positions refer to. `about`: the caller's part of it.
    """
    try:
        yield
    except RecursionError:
        raise QueryError(
            "A value, or its type, is nested too deeply to be read.",
            suggestion="Select parts of it, or cast it to JSON and that to varchar.",
        ) from None
    except ServerError as error:
        raise _server_error(error.error, database, statement, about) from None
    except Cancelled:
        raise QueryCancelled("The query was cancelled.") from None
    except HttpStatus as error:
        raise _translate_refusal(error, database, statement, about) from None
    except OSError as error:  # requests' own errors are of this kind
        raise _network_error(error, database) from None
    except msgspec.DecodeError:  # a page of a proxy, for instance
        raise unreachable(database, "what answers there does not speak Trino's protocol") from None
    except UnicodeError:
        raise unreachable(
            database, "a name in its options cannot be sent", "Use ASCII for user, source and tags."
        ) from None
    except Exception as error:
        if not type(error).__module__.startswith(_SIGNING_IN):
            raise
        raise unreachable(database, "signing in failed", "Check `auth` and its options in the configuration.") from None


def _server_error(error: Mapping[str, Any], database: str, statement: str, about: str) -> DragomanError:
    name: str = error.get("errorName") or "GENERIC_INTERNAL_ERROR"
    source: str = error.get("errorType") or "INTERNAL_ERROR"
    if name == "UNKNOWN_TRANSACTION":
        return UnknownTransaction(f"The server of the database {database!r} lost the query's transaction.")
    message = _POSITION.sub("", (error.get("message") or name)[:MOST_WORDS], count=1)
    location: Mapping[str, int] = error.get("errorLocation") or {}
    line, column = location.get("lineNumber", 0), location.get("columnNumber", 0)
    typed = _LOCATED if source == "USER_ERROR" and line else _TYPED.get(source) or _TYPED["INTERNAL_ERROR"]
    kind, suggestion = _NAMED.get(name) or typed
    number = parameter_at(line, statement) if statement else None
    if number is not None:
        return ParameterError(
            f"Parameter {number}: {message}",
            parameter=number,
            suggestion="Send a value of the type the statement needs, as Trino reads it.",
        )
    context: dict[str, Any] = {"error_name": name}
    if source in ("EXTERNAL", "INTERNAL_ERROR"):
        message = _PRIVATE.sub("...", message)
        context |= _connector(error)
    found = next((match for pattern in _NAMES if (match := pattern.search(message))), None)
    return kind(
        message,
        suggestion=next((remedy for pattern, remedy in _REMEDIES if pattern.match(message)), suggestion),
        identifier=found[1] if found else None,
        offset=_offset(line, column, statement, about),
        context=context,
    )


def _connector(error: Mapping[str, Any]) -> dict[str, str]:
    """Return the connector that failed, if the server's report shows it: the first whose code is in it."""
    failure: Mapping[str, Any] | None = error.get("failureInfo")
    while failure:
        for frame in failure.get("stack") or ():
            if found := _CONNECTOR.search(frame):
                return {"connector": found[1]}
        failure = failure.get("cause")
    return {}


def _offset(line: int, column: int, statement: str, about: str) -> int | None:
    """Return the offset in the caller's part of the statement. The server counts lines and characters from 1."""
    lines = statement.split("\n")
    if not 0 < line <= len(lines) or not column:
        return None
    place = sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
    offset = place - max(statement.find(about), 0)
    return offset if 0 <= offset <= len(about) else None


def _translate_refusal(refusal: HttpStatus, database: str, statement: str, about: str) -> DragomanError:
    status = refusal.status
    if status == 400 and (found := _UNPREPARED.search(refusal.text)):
        location = {"lineNumber": int(found[1]), "columnNumber": int(found[2])}
        report = {"errorName": "SYNTAX_ERROR", "errorType": "USER_ERROR", "errorLocation": location}
        report["message"] = found[3]
        return _server_error(report, database, statement, about)
    if found := _DENIED.search(refusal.text):
        return unreachable(database, found[1], "Check user, session_user and roles in the configuration.")
    if status == 401:
        return unreachable(
            database,
            "the server refuses the credentials, or this way of signing in",
            "Check user, password or token, and `auth`, in the configuration.",
        )
    if status == 403:
        return unreachable(
            database, "the server does not let this user in", "Check user and session_user in the configuration."
        )
    return unreachable(database, f"its address answers with HTTP status {status}", _ADDRESS)


_ADDRESS = "Check host, port and http_scheme in the configuration; the server may also be overloaded: try again."


def _network_error(error: OSError, database: str) -> DragomanError:
    import requests

    match error:
        case requests.exceptions.SSLError():
            return unreachable(
                database, "no TLS connection can be made", "Check verify, http_scheme and the server's certificate."
            )
        case requests.exceptions.ProxyError():
            return unreachable(database, "the proxy before it does not answer")
        case requests.exceptions.Timeout():
            return unreachable(database, "it does not answer in time")
        case requests.exceptions.ConnectionError():
            return unreachable(database, _reason(error))
        case requests.exceptions.InvalidSchema() if "No connection adapters" in str(error):
            return unreachable(
                database,
                "the server goes on at an address that is not encrypted",
                FORWARDED,
            )
        case requests.exceptions.RequestException():
            return unreachable(database, "its options cannot be used", "Check its options in the configuration.")
        case _ if isinstance(error, FileNotFoundError) or "certificate" in str(error):
            return unreachable(database, "a certificate or key is not at the configured path")
        case _:
            return unreachable(database, "the network or the configuration does not allow it")


def _reason(error: OSError) -> str:
    """Return why there is no connection. The driver has this only as text."""
    text = str(error)
    if "refused" in text:
        return "nothing listens at its address"
    if "resolve" in text or "Name or service" in text:
        return "its host is not known"
    return "the connection broke"


def unreachable(database: str, why: str, remedy: str = "") -> ConnectionFailed:
    """Return the error for a server that cannot be reached: it names the database, never its address."""
    return ConnectionFailed(
        f"The database {database!r} cannot be reached: {why}.",
        suggestion=remedy or "Check that the server runs and that host and port are right in the configuration.",
    )
