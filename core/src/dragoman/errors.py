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

An executor raises these at one boundary, in the database's own words; `identifier` and `offset` let the gateway add
near names and a caret line. No message may hold a URL, a password, a path or a traceback. A suggestion is in our words:
what the database says stands in the message, and beyond that in `context["database"]`; names in quotes.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from dragoman.words import display, visible_lines

_LONGEST: Final = 2_000
"""Characters of a message: a name in it may be as long as a statement."""
_ADVICE: Final = 1_000
"""Characters of a suggestion."""


class DragomanError(Exception):
    """What went wrong, in words an agent can act on.

    `code`: stable, upper case. `suggestion`: the next action; the kind's own `remedy` when none is given. `identifier`:
    the name the database did not know, as written. `offset`: where in the statement, in characters from 0. `context`:
    JSON-safe facts that add something, such as `sqlstate`.
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
        """Return another error of this kind, which differs in what is given."""
        other = type(self).__new__(type(self), self.message if message is None else message)
        given = {"message": message, "suggestion": suggestion, "context": context, "offset": offset}
        other.__dict__.update(self.__dict__, **{name: value for name, value in given.items() if value is not None})
        return other.with_traceback(self.__traceback__)

    def as_dict(self) -> dict[str, Any]:
        """Return `{"code", "message"}` and, when they say something, `suggestion` and `context`."""
        message, suggestion = visible_lines(self.message), display(self.suggestion, _ADVICE) if self.suggestion else ""
        known = {"code": self.code, "message": message, "suggestion": suggestion, "context": self.context}
        return {key: value for key, value in known.items() if value}


class ConfigurationError(DragomanError):
    """The configuration cannot be used; the message names file, key and remedy."""

    code = "CONFIGURATION_ERROR"


class NotFound(DragomanError):
    """Something was named that is not there."""


class UnknownDatabase(NotFound):
    """No database of that name is configured."""

    code = "UNKNOWN_DATABASE"


class SchemaNotFound(NotFound):
    """No such schema, or no such catalog."""

    code = "SCHEMA_NOT_FOUND"
    remedy = "list_schemas tells which there are."


class TableNotFound(NotFound):
    """No such relation."""

    code = "TABLE_NOT_FOUND"
    remedy = "search_catalog finds tables by name."


class ColumnNotFound(NotFound):
    """No such column."""

    code = "COLUMN_NOT_FOUND"
    remedy = "describe_table tells the columns."


class InvalidSql(DragomanError):
    """The statement does not parse, does not type-check, or is nothing a query needs."""

    code = "INVALID_SQL"
    remedy = "Check the statement against this database's SQL."


class Refused(DragomanError):
    """The statement was understood and will not be run."""


class WriteDenied(Refused):
    """Not a query."""

    code = "WRITE_OPERATION_DENIED"
    remedy = "Only queries are run here."


class UnsafeSql(Refused):
    """A query, but through something the policy refuses."""

    code = "UNSAFE_SQL"
    remedy = "Write the query without it."


class QueryError(DragomanError):
    """The database failed the query while running it."""

    code = "QUERY_ERROR"
    remedy = "Fix the expression, or filter such rows out with WHERE."


class QueryTimeout(DragomanError):
    """The deadline passed; the database's work was ended."""

    code = "QUERY_TIMEOUT"
    remedy = "Narrow it with WHERE or LIMIT, look at explain_query, or raise timeout_ms."


class QueryCancelled(DragomanError):
    """The caller cancelled; the database's work was ended."""

    code = "QUERY_CANCELLED"
    remedy = "Ask again when the answer is wanted."


class ResultTooLarge(DragomanError):
    """Not even one row fits the byte limit, or the answer needs more memory than allowed."""

    code = "RESULT_TOO_LARGE"
    remedy = "Select fewer or shorter columns, or aggregate."


class ResultNotFound(DragomanError):
    """The caller keeps no result of that name: it expired, was dropped, or is another caller's."""

    code = "RESULT_NOT_FOUND"
    remedy = "Run the query again with keep."


class ParameterError(DragomanError):
    """An argument or a bound parameter is missing, unknown, of a wrong type or out of range.

    `parameter`: which of the values that were sent with a statement it is about, from 1. The message calls it
    "Parameter 1", where it does. A value may be the gateway's own, of a filter or a mask: without the number, callers
    who bind values too would be told that theirs is wrong.
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
    """The dialect cannot, or a translation would not be right."""

    code = "UNSUPPORTED"


class Busy(DragomanError):
    """The queue is full; try again."""

    code = "BUSY"


class QuotaExceeded(DragomanError):
    """The caller has used up what it gets in a while; `context["retry_after"]`: seconds to wait."""

    code = "QUOTA_EXCEEDED"
    remedy = "Try again later, or ask the administrator for more."


class CostExceeded(DragomanError):
    """The database expects the query to cost more than the caller's roles allow; nothing ran."""

    code = "COST_EXCEEDED"
    remedy = "Narrow it with WHERE, aggregate less, or look at explain_query."


class DialectError(DragomanError):
    """A plugin is missing, broken, claimed twice or of a wrong version; distribution and remedy are named."""

    code = "DIALECT_ERROR"


class PermissionDenied(DragomanError):
    """The database's role lacks a right."""

    code = "PERMISSION_DENIED"
    remedy = "Ask the administrator to grant the right, or do without."


class ConnectionFailed(DragomanError):
    """The database cannot be reached. The message names the database, never its address."""

    code = "CONNECTION_ERROR"
    remedy = "Try again; if it stays so, tell the administrator."


class AmbiguousQuery(DragomanError):
    """A question may mean several things; `context["ask"]` is what to ask back."""

    code = "AMBIGUOUS_QUERY"
    remedy = "Ask again, and answer that in the question."


class ModelError(DragomanError):
    """The language model cannot be reached, failed, or did not give what was asked for."""

    code = "MODEL_ERROR"
    remedy = "Try again in a moment, or write the SQL and use execute_query."


class InternalError(DragomanError):
    """A bug in dragoman; the message holds a reference id, the log the details."""

    code = "INTERNAL_ERROR"
