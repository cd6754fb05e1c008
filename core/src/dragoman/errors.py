"""The exceptions of dragoman. Every one has a stable code and says what to do next.

DragomanError
 ├── ConfigurationError      CONFIGURATION_ERROR   (command line and start-up only)
 ├── NotFound
 │    ├── UnknownDatabase    UNKNOWN_DATABASE
 │    ├── SchemaNotFound     SCHEMA_NOT_FOUND
 │    ├── TableNotFound      TABLE_NOT_FOUND
 │    └── ColumnNotFound     COLUMN_NOT_FOUND
 ├── InvalidSql              INVALID_SQL
 ├── Refused
 │    ├── WriteDenied        WRITE_OPERATION_DENIED
 │    └── UnsafeSql          UNSAFE_SQL
 ├── QueryError              QUERY_ERROR
 ├── QueryTimeout            QUERY_TIMEOUT
 ├── QueryCancelled          QUERY_CANCELLED
 ├── ResultTooLarge          RESULT_TOO_LARGE
 ├── ResultNotFound          RESULT_NOT_FOUND
 ├── ParameterError          PARAMETER_ERROR
 ├── PathNotFound            PATH_NOT_FOUND
 ├── Unsupported             UNSUPPORTED
 ├── Busy                    BUSY
 ├── QuotaExceeded           QUOTA_EXCEEDED
 ├── CostExceeded            COST_EXCEEDED
 ├── DialectError            DIALECT_ERROR
 ├── PermissionDenied        PERMISSION_DENIED
 ├── ConnectionFailed        CONNECTION_ERROR
 ├── AmbiguousQuery          AMBIGUOUS_QUERY
 ├── ModelError              MODEL_ERROR
 └── InternalError           INTERNAL_ERROR

An executor translates each driver error into one of these, once, and keeps the database's own message. `identifier` and
`offset` let the gateway add similar names and a caret line. No message may hold a URL, a password, a path or a
traceback. A suggestion is written by us, never by the database. What the database says goes into the message, the rest
of it into `context["database"]`. Names stand in quotes.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from dragoman.words import display, visible_lines

_LONGEST: Final = 2_000
"""The most characters of a message. A message may quote a name, and a name may be as long as a statement."""
_ADVICE: Final = 1_000
"""The most characters of a suggestion."""


class DragomanError(Exception):
    """An error, in words an agent can act on.

    - `code`: the stable code, in upper case.
    - `suggestion`: the next action. Defaults to the `remedy` of the class.
    - `identifier`: the name the database did not know, as it was written.
    - `offset`: the place in the statement, in characters from 0.
    - `context`: further facts, as JSON values, such as `sqlstate`.
    """

    code: ClassVar[str] = "INTERNAL_ERROR"
    remedy: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        suggestion: str = "",
        identifier: str | None = None,
        offset: int | None = None,
        context: dict[str, Any] | None = None,
    ) -> None:
        if len(message) > _LONGEST:
            message = f"{message[:_LONGEST]}..."
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion or self.remedy
        self.identifier = identifier
        self.offset = offset
        self.context = context or {}

    def replace(
        self,
        *,
        message: str | None = None,
        suggestion: str | None = None,
        context: dict[str, Any] | None = None,
        offset: int | None = None,
    ) -> Self:
        """Return a copy of this error in which the given parts are replaced."""
        other = type(self).__new__(type(self), self.message if message is None else message)
        given = {"message": message, "suggestion": suggestion, "context": context, "offset": offset}
        other.__dict__.update(self.__dict__, **{name: value for name, value in given.items() if value is not None})
        return other.with_traceback(self.__traceback__)

    def as_dict(self) -> dict[str, Any]:
        """Return `{"code", "message"}`, and `suggestion` and `context` only if not empty."""
        message, suggestion = visible_lines(self.message), display(self.suggestion, _ADVICE) if self.suggestion else ""
        known = {"code": self.code, "message": message, "suggestion": suggestion, "context": self.context}
        return {key: value for key, value in known.items() if value}


class ConfigurationError(DragomanError):
    """The configuration cannot be used. The message names the file, the key and the remedy."""

    code = "CONFIGURATION_ERROR"


class NotFound(DragomanError):
    """A name that was given does not exist."""


class UnknownDatabase(NotFound):
    """No database of that name is configured."""

    code = "UNKNOWN_DATABASE"


class SchemaNotFound(NotFound):
    """No such schema, or no such catalog."""

    code = "SCHEMA_NOT_FOUND"
    remedy = "Use list_schemas to see which schemas exist."


class TableNotFound(NotFound):
    """No such relation."""

    code = "TABLE_NOT_FOUND"
    remedy = "Use search_catalog to find tables by name."


class ColumnNotFound(NotFound):
    """No such column."""

    code = "COLUMN_NOT_FOUND"
    remedy = "Use describe_table to see the columns."


class InvalidSql(DragomanError):
    """The statement does not parse, has a type error, or is not a query."""

    code = "INVALID_SQL"
    remedy = "Check the statement against this database's SQL."


class Refused(DragomanError):
    """The statement was understood and is not allowed to run."""


class WriteDenied(Refused):
    """The statement is not a query."""

    code = "WRITE_OPERATION_DENIED"
    remedy = "Only queries are run here."


class UnsafeSql(Refused):
    """The statement is a query that uses something the policy refuses."""

    code = "UNSAFE_SQL"
    remedy = "Write the query without it."


class QueryError(DragomanError):
    """The database raised an error while it ran the query."""

    code = "QUERY_ERROR"
    remedy = "Fix the expression, or filter such rows out with WHERE."


class QueryTimeout(DragomanError):
    """The deadline passed, and the work in the database was ended."""

    code = "QUERY_TIMEOUT"
    remedy = "Narrow it with WHERE or LIMIT, look at explain_query, or raise timeout_ms."


class QueryCancelled(DragomanError):
    """The caller cancelled, and the work in the database was ended."""

    code = "QUERY_CANCELLED"
    remedy = "Send the query again if you still need the answer."


class ResultTooLarge(DragomanError):
    """Not even one row fits the byte limit, or the answer needs more memory than is allowed."""

    code = "RESULT_TOO_LARGE"
    remedy = "Select fewer or shorter columns, or aggregate."


class ResultNotFound(DragomanError):
    """The caller has no kept result of that name: it expired, was dropped, or belongs to another caller."""

    code = "RESULT_NOT_FOUND"
    remedy = "Run the query again with keep."


class ParameterError(DragomanError):
    """An argument or a bound parameter is missing, unknown, of a wrong type or out of range.

    `parameter`: the number, from 1, of the bound value that the error is about. A message says "Parameter 1" where it
    names one. The gateway binds values of its own for filters and masks. The number lets it tell them from the
    caller's, so that no caller is blamed for a value of the gateway.
    """

    code = "PARAMETER_ERROR"
    remedy = "Check the arguments and the parameters against the statement."

    def __init__(
        self,
        message: str,
        *,
        parameter: int | None = None,
        suggestion: str = "",
        identifier: str | None = None,
        offset: int | None = None,
        context: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message, suggestion=suggestion, identifier=identifier, offset=offset, context=context)
        self.parameter = parameter


class PathNotFound(DragomanError):
    """No chain of foreign keys joins the two tables."""

    code = "PATH_NOT_FOUND"


class Unsupported(DragomanError):
    """The dialect cannot do this, or a translation would not be exact."""

    code = "UNSUPPORTED"


class Busy(DragomanError):
    """The queue is full. Try again."""

    code = "BUSY"


class QuotaExceeded(DragomanError):
    """The caller has used up a quota. `context["retry_after"]`: the seconds to wait."""

    code = "QUOTA_EXCEEDED"
    remedy = "Try again later, or ask the administrator for more."


class CostExceeded(DragomanError):
    """The database estimates a higher cost than the caller's roles allow. The query did not run."""

    code = "COST_EXCEEDED"
    remedy = "Narrow it with WHERE, aggregate less, or look at explain_query."


class DialectError(DragomanError):
    """A plugin is missing, broken, claimed twice or of a wrong version.

    The message names the distribution and the remedy.
    """

    code = "DIALECT_ERROR"


class PermissionDenied(DragomanError):
    """The role that the database connection uses lacks a right."""

    code = "PERMISSION_DENIED"
    remedy = "Ask the administrator to grant the right, or write the query without it."


class ConnectionFailed(DragomanError):
    """The database cannot be reached. The message names the database, never its address.

    `reached`: it had answered in the same call, and the connection broke afterwards, perhaps because of the statement.
    The gateway then does not count this among the failures after which nobody's call is tried for a while.
    """

    code = "CONNECTION_ERROR"
    remedy = "Try again. If the error stays, tell the administrator."
    reached: bool = False


class AmbiguousQuery(DragomanError):
    """A question may mean several things. `context["ask"]`: the question to ask back."""

    code = "AMBIGUOUS_QUERY"
    remedy = "Ask again, with the answer to this in the question."


class ModelError(DragomanError):
    """The language model cannot be reached, failed, or did not return what was asked for."""

    code = "MODEL_ERROR"
    remedy = "Try again in a moment, or write the SQL and use execute_query."


class InternalError(DragomanError):
    """A bug in dragoman. The message holds a reference id; the log holds the details."""

    code = "INTERNAL_ERROR"
