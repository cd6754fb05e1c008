"""Translates errors of the server, the driver and the network to dragoman's. Nothing else does."""

from __future__ import annotations

import contextlib
import re
import ssl
from collections.abc import Generator
from typing import Any, NoReturn, TypeVar

import asyncpg
from dragoman import (
    Busy,
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
    Unsupported,
    WriteDenied,
)

from dragoman_postgres.driver import TooMuch

E = TypeVar("E", bound=BaseException)

LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InFailedSQLTransactionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""Errors of a connection that is gone or unusable, since the rollback of the transaction before was cancelled.

`InternalClientError`: the server's last message has arrived, but not yet the end of the connection.
"""


class Internal(QueryError):
    """The server failed. A statement that was kept may name a type or function by the number of a dropped one."""


SLOW = QueryTimeout.remedy
_SYNTAX = "Check the statement against PostgreSQL's syntax."
_TYPES = "Check the types with describe_table and cast where they differ."

# For each SQLSTATE, or its class, the error and the remedy.
_STATES: dict[str, tuple[type[DragomanError], str]] = {
    "42P01": (TableNotFound, "Find its name with search_catalog or list_tables."),
    "42703": (ColumnNotFound, "Look at the columns with describe_table."),
    "3F000": (SchemaNotFound, "Find the schemas with list_schemas."),
    "3F": (SchemaNotFound, "Find the schemas with list_schemas."),
    "42501": (
        PermissionDenied,
        "The role may not read this; ask the administrator for the right, or query other tables.",
    ),
    "25006": (WriteDenied, "Only reading is allowed: send a SELECT."),
    "25": (WriteDenied, "Only reading is allowed: send one SELECT."),
    "0A": (InvalidSql, "PostgreSQL has no such feature here; write it in another way."),
    "42P02": (ParameterError, "Give one value for each of $1, $2, ... in order."),
    "42P08": (ParameterError, "Cast the parameter, for instance $1::text."),
    "42P18": (ParameterError, "Cast the parameter, for instance $1::text."),
    "42601": (InvalidSql, _SYNTAX),
    "42883": (InvalidSql, "Check the function's name and the types of its arguments; cast where they differ."),
    "42725": (InvalidSql, "Cast the arguments to the types that are meant, for instance date '2024-01-01'."),
    "42804": (InvalidSql, _TYPES),
    "42803": (InvalidSql, "Put the column into GROUP BY or into an aggregate."),
    "42702": (InvalidSql, "Write the table's name or alias before the column's."),
    "42": (InvalidSql, _SYNTAX),
    "44": (InvalidSql, _SYNTAX),
    "26": (InvalidSql, _SYNTAX),
    "34": (InvalidSql, _SYNTAX),
    "54000": (QueryError, "Make the values the query computes smaller."),
    "54": (InvalidSql, "Make the statement simpler: fewer columns, less nesting."),
    "22012": (QueryError, "Guard the divisor with NULLIF(divisor, 0)."),
    "22003": (QueryError, "Cast to a wider type, for instance numeric."),
    "22P02": (QueryError, "Check the value: its notation does not match its type."),
    "22021": (
        QueryError,
        "Some bytes are no text in this encoding: give convert_from that of its bytes. In a database in SQL_ASCII"
        " names, comments and values may be so, those of the catalog too: the administrator can correct them."
        " encode(convert_to(v, 'SQL_ASCII'), 'escape') reads a value.",
    ),
    "22": (QueryError, "Check the values the query computes with, and their casts."),
    "21": (QueryError, "A subquery used as a value must give one row: add LIMIT 1 or an aggregate."),
    "53100": (ResultTooLarge, "Make the query's intermediate results smaller."),
    "53200": (ResultTooLarge, "Make the query's values or intermediate results smaller."),
    "53400": (ResultTooLarge, "Make the query's intermediate results smaller."),
    "53300": (
        ConnectionFailed,
        "Try again in a moment; the administrator can lower pool_size or raise max_connections.",
    ),
    "55P03": (QueryTimeout, "Another session holds a lock on a table of the query; try again in a moment."),
    "57014": (QueryTimeout, SLOW),
    "57P01": (ConnectionFailed, "The server ended the connection; try again in a moment."),
    "57P02": (ConnectionFailed, "The server crashed; try again in a moment."),
    "57P03": (ConnectionFailed, "The server is starting up or shutting down; try again in a moment."),
    "57P05": (QueryTimeout, SLOW),
    "25P02": (ConnectionFailed, "Try again in a moment."),
    "25P03": (QueryTimeout, SLOW),
    "25P04": (QueryTimeout, SLOW),
    "40": (QueryError, "Try again: the server cancelled the query in favour of another session."),
    "08": (ConnectionFailed, "Try again in a moment; the administrator can check the server."),
    "28": (ConnectionFailed, "Check user and password in the configuration, and the server's pg_hba.conf."),
    "3D": (ConnectionFailed, "Check the name of the database in the configuration."),
    "58": (QueryError, "The server has trouble with its files; the administrator can see why in its log."),
    "XX": (Internal, "The server failed; the administrator can see why in its log."),
    "P0": (QueryError, "A function of the database raised this; check its arguments."),
}
_AWAY = frozenset({"08", "53", "57"})
"""Classes of SQLSTATE of a connection that breaks or is refused."""
_UNSUPPORTED_BY_SERVER: dict[str, tuple[type[DragomanError], str]] = {
    "data-modifying": (WriteDenied, "Only reading is allowed: send a SELECT."),
    "cannot display a value": (QueryError, "Leave the column of this type out: the server cannot write its values."),
}
# What to write instead, by the beginning of the server's message.
_REMEDIES = (
    (re.compile(r"function round\((?:double precision|real), integer\)"), "Round a numeric: round(x::numeric, 2)."),
    (
        re.compile(r"operator does not exist: timestamp with(?:out)? time zone [-+] integer"),
        "Add or subtract an interval: x - interval '7 days'.",
    ),
    (
        re.compile(
            r"operator (?:does not exist|is not unique): (?!.*\b(?:date|time|timestamp|interval)\b)(?=.* \+ )"
            r"(?:.* )?(?:text|unknown|varying)\b"
        ),
        "Join texts with ||, or concat(a, b).",
    ),
    (re.compile("aggregate functions are not allowed in WHERE"), "Filter groups with HAVING."),
    (re.compile("aggregate functions are not allowed in GROUP BY"), "Group by columns without aggregates."),
    (
        re.compile("TABLESAMPLE clause can only be applied to"),
        "Write ORDER BY random() LIMIT n: this is a view, or a table of which you see a part.",
    ),
    (re.compile("window functions are not allowed in"), "Compute it in a subquery, and use it outside."),
    (re.compile("aggregate function calls cannot be nested"), "Compute the inner aggregate in a subquery."),
    (
        re.compile("(?:missing FROM-clause entry|invalid reference to FROM-clause entry)"),
        "Name it in FROM: find_join_path shows how to join it. If it has an alias there, write the alias.",
    ),
)
_OTHER = (QueryError, "Check the query; the message is the database's own.")
_NAMED: dict[type[DragomanError], re.Pattern[str]] = {
    TableNotFound: re.compile(r'relation "(.+)" does not exist'),
    ColumnNotFound: re.compile(
        r'column "?(.{1,300}?)"? (?:of relation .{1,300}|specified in USING clause )?(?:does not exist|not found)'
    ),
    SchemaNotFound: re.compile(r'schema "(.+)" does not exist'),
}
MOST_WORDS = 2_000
"""The most characters that are read and shown of a text from the server."""
_PARAMETER = re.compile(r"portal (?:\S+ )?(?:with )?parameter \$(\d+)")
# The driver's own messages for a value it cannot send, whatever the class of the error.
_OWN_CERTIFICATE = re.compile("ALERT_(UNKNOWN_CA|(BAD|UNSUPPORTED)_CERTIFICATE|CERTIFICATE_)")
"""Alerts of a server that refuses the certificate of its client."""
_ARGUMENT = re.compile(r"invalid input for query argument \$(\d+):.*\((.*)\)", re.DOTALL)
_TEXT_ONLY = re.compile(r'cannot decode type "(.+)"\."(.+)": text encoding')
# The driver's own errors about types. Its other errors mean that the connection is out of step.
_OF_TYPES = re.compile(r"codec|coder|types?\b")
# These messages may contain an address, a user or a file, so they are replaced by our own.
_UNREACHABLE: dict[str, str] = {
    "28P01": "the password is wrong",
    "28": "the server refuses the user, or this way of connecting",
    "3D": "the server has no such database",
    "53300": "the server has no connection to spare",
    "57P03": "the server is starting up or shutting down",
    "57P01": "the server ended the connection",
    "57P02": "the server crashed",
}


_FOR_OTHERS = re.compile(
    "canceling statement due to conflict with recovery|deadlock detected|could not serialize access"
)
"""Messages of a query that the server ends for another session or, on a replica, for changes of the primary."""
_RAISED = "exec_stmt_raise"
"""The routine of the server behind RAISE: its message comes from the author of a function."""
_MOST_SAID = 500
"""The most characters of a hint or a detail."""


class Stale(QueryError):
    """A prepared statement or a type has changed: something was altered meanwhile."""


def stale() -> Stale:
    """Return the error of a statement that must be prepared again."""
    return Stale("A table or type of the query was altered meanwhile.", suggestion="Try again.")


class Unreadable(Unsupported):
    """The driver cannot decode a type: a composite with parts that it knows only as text."""

    def __init__(self, schema: str, name: str) -> None:
        super().__init__(
            f"Values of the type {schema}.{name} cannot be read.", suggestion="Cast it in the statement, ::text."
        )
        self.type = f'"{schema}"."{name}"'


@contextlib.contextmanager
def translate_errors(database: str, *, prefix: int = 0, length: int | None = None) -> Generator[None]:
    """Raise `DragomanError`s for any error inside.

    `prefix` and `length`, in characters: the place of the caller's statement in the sent text.
    """
    try:
        yield
    except Exception as error:
        raise_translated(error, database, prefix, length)


def raise_translated(error: Exception, database: str, prefix: int = 0, length: int | None = None) -> NoReturn:
    """Raise the error that `translate_errors` raises. Call it where the error is caught."""
    try:
        raise error
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
        _raise(error, database, prefix, length)
    except TimeoutError:
        raise unreachable(database, "it does not answer in time") from None
    except ssl.SSLCertVerificationError:
        raise unreachable(
            database,
            "no TLS connection can be made: the certificate belongs to another host, or its authority is not trusted",
            "Give the authority's file with sslrootcert, and the host's name as in the certificate.",
        ) from None
    except ssl.SSLError as error:
        raise _no_tls(error, database) from None
    except OSError as error:
        raise unreachable(database, *_reason(error)) from None
    except UnicodeDecodeError:
        # PostGIS cuts texts that it cannot read within a letter.
        raise QueryError(
            "The database could not run the statement, and its message cannot be read as UTF-8.",
            suggestion="Check the texts in the statement.",
        ) from None


def is_lost(error: Exception) -> bool:
    """Return whether a connection is gone, and not because we ended it."""
    return isinstance(error, LOST) and _find_cause(error, TooMuch) is None


def translate(error: Exception, database: str) -> Exception:
    """Return the error that `raise_translated` raises."""
    try:
        raise_translated(error, database)
    except Exception as translated:
        return translated


def _raise(error: Exception, database: str, prefix: int, length: int | None) -> NoReturn:
    if too_much := _find_cause(error, TooMuch):
        raise too_much from None
    alert = _find_cause(error, ssl.SSLError)
    if alert and _is_of_our_certificate(alert):  # with TLS 1.3 it comes after the handshake
        raise _no_tls(alert, database) from None
    if isinstance(error, asyncpg.InvalidCachedStatementError | asyncpg.OutdatedSchemaCacheError):
        raise stale() from None
    if isinstance(error, asyncpg.PostgresError) and not _ARGUMENT.match(_words(str(error))):
        raise _server_error(error, database, prefix, length) from None
    raise _driver_error(error, database) from None


def _find_cause(error: BaseException | None, kind: type[E]) -> E | None:
    """Return why the driver has lost its connection, if an error of this kind is the cause."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__
    return error


def _is_of_our_certificate(error: ssl.SSLError) -> bool:
    return _OWN_CERTIFICATE.search(error.reason or "") is not None


def _no_tls(error: ssl.SSLError, database: str) -> ConnectionFailed:
    if _is_of_our_certificate(error):
        return unreachable(
            database,
            "the server does not accept our certificate",
            "Check sslcert and sslkey: the server must trust its authority, and it must not have expired.",
        )
    return unreachable(
        database, "no TLS connection can be made", "Check sslmode, sslrootcert and the server's certificate."
    )


def _words(text: str | None) -> str:
    """Return a text from the server, shortened: it may quote values of any length."""
    return text if text and len(text) <= MOST_WORDS else f"{text[:MOST_WORDS]}..." if text else ""


def _server_error(error: Any, database: str, prefix: int, length: int | None) -> DragomanError:
    told: str = error.sqlstate or "XX000"
    raised = error.server_source_function == _RAISED
    state = "P0001" if raised else told  # RAISE may name any state
    kind, suggestion = _STATES.get(state) or _STATES.get(state[:2]) or _OTHER
    message = _words(error.message) or _words(str(error)).partition("\n")[0]
    if kind is ConnectionFailed and _is_of_statement(error):
        if state[:2] in _AWAY:
            return _other_server(told)
        kind, suggestion = QueryError, "Check the names that the query uses."
    if kind is ConnectionFailed:
        why = _UNREACHABLE.get(state) or _UNREACHABLE.get(state[:2]) or "the connection broke"
        return unreachable(database, why, suggestion)
    if state.startswith("40") and _FOR_OTHERS.match(message):
        kind = Busy
    if state == "57014" and "user request" in message:
        return QueryCancelled("The query was cancelled.")
    for phrase, unsupported in _UNSUPPORTED_BY_SERVER.items():
        if state == "0A000" and phrase in message:
            kind, suggestion = unsupported
    suggestion = next((remedy for pattern, remedy in _REMEDIES if pattern.match(message)), suggestion)
    sent = _PARAMETER.search(_words(error.context)) if state.startswith("22") else None
    if sent:
        message = f"Parameter {sent[1]}: {message}"
        kind, suggestion = (
            ParameterError,
            "Send a value of the type the statement needs, written as PostgreSQL reads it.",
        )
    named = _NAMED.get(kind)
    name = named.match(message) if named else None
    said = {"hint": error.hint, "detail": error.detail}
    own_words = {each: _words(words) for each, words in said.items() if words}
    if raised:
        message = f'A function of the database raised: "{message[:_MOST_SAID]}"'
    context: dict[str, Any] = {"sqlstate": told, **({"database": own_words} if own_words else {})}
    made = kind(
        message,
        suggestion=suggestion,
        identifier=name[1] if name else None,
        offset=_offset(error, prefix, length),
        context=context,
    )
    if sent and isinstance(made, ParameterError):
        made.parameter = int(sent[1])
    return made


def _is_of_statement(error: Any) -> bool:
    """Return whether our connection goes on. What ends it is fatal, or a transaction that has failed."""
    return error.severity_en == "ERROR" and not isinstance(error, asyncpg.InFailedSQLTransactionError)


def _other_server(state: str) -> QueryError:
    """Return the error of a foreign table. The server's own words may hold the address of the other server."""
    return QueryError(
        "Another server, which the query reads through a foreign table, could not be asked.",
        suggestion="Query other tables, or try again in a moment; the administrator can check that server.",
        context={"sqlstate": state},
    )


def _offset(error: Any, prefix: int, length: int | None) -> int | None:
    """Return the offset in the caller's statement. The server counts characters of the sent text, from 1."""
    if not error.position:
        return None
    offset = int(error.position) - 1 - prefix
    return offset if offset >= 0 and (length is None or offset <= length) else None


def _driver_error(error: Exception, database: str) -> DragomanError:
    if found := _ARGUMENT.match(_words(str(error))):
        return ParameterError(
            f"Parameter {found[1]} does not match the type that the statement needs: {found[2]}.",
            parameter=int(found[1]),
            suggestion="Send a value of that type, or cast the parameter, for instance $1::text.",
        )
    if isinstance(error, asyncpg.ClientConfigurationError):
        if "TLS version" in str(error):
            return unreachable(database, "its options do not name a version of TLS", "Write TLSv1.2 or TLSv1.3.")
        return unreachable(database, "its options cannot be combined", "Check its options in the configuration.")
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return unreachable(database, "none of its hosts matches target_session_attrs")
    unknown = isinstance(error, asyncpg.InternalClientError) and _OF_TYPES.search(str(error))
    if unknown or isinstance(error, asyncpg.UnsupportedClientFeatureError):
        found = _TEXT_ONLY.search(str(error))
        return (
            Unreadable(found[1], found[2])
            if found
            else Unsupported(
                "A column is of a type whose values cannot be read.",
                suggestion="Name the columns, and cast those of types such as anyarray: ::text.",
            )
        )
    return unreachable(database, "the connection broke", "Try again in a moment.")


def unreachable(database: str, why: str, remedy: str = "") -> ConnectionFailed:
    """Return the error for a database that cannot be reached: it names the database, never its address."""
    return ConnectionFailed(
        f"The database {database!r} cannot be reached: {why}.",
        suggestion=remedy or "Check that the server runs and that host and port are right in the configuration.",
    )


def _reason(error: OSError) -> tuple[str, ...]:
    """Return what is wrong and, if the usual remedy does not help, what to do."""
    match error:
        case ConnectionRefusedError():
            return ("nothing listens at its address",)
        case FileNotFoundError():
            return ("there is no socket, certificate or file at the configured path",)
        case ConnectionError() if "SSL" in str(error):
            return "the server speaks no TLS", "Enable TLS in the server; sslmode=disable does without."
        case ConnectionError():
            return ("the connection broke",)
        case _ if "getaddrinfo" in str(error) or type(error).__name__ == "gaierror":
            return ("its host is not known",)
        case _:
            return ("the network or the configuration does not allow it",)
