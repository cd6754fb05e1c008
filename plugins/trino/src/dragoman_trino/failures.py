"""The one boundary where the server's, the driver's and the network's errors become dragoman's."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from typing import Any

from dragoman import (
    ColumnNotFound,
    ConnectionFailed,
    DragomanError,
    InvalidSql,
    PermissionDenied,
    QueryCancelled,
    QueryError,
    QueryTimeout,
    SchemaNotFound,
    TableNotFound,
    WriteDenied,
)

from dragoman_trino.protocol import Cancelled, HttpStatus, ServerError

_NAMES: dict[str, tuple[type[DragomanError], str]] = {
    "TABLE_NOT_FOUND": (TableNotFound, ""),
    "COLUMN_NOT_FOUND": (ColumnNotFound, ""),
    "SCHEMA_NOT_FOUND": (SchemaNotFound, ""),
    "CATALOG_NOT_FOUND": (SchemaNotFound, ""),
    "SYNTAX_ERROR": (InvalidSql, "Check the statement against Trino's syntax."),
    "PERMISSION_DENIED": (PermissionDenied, ""),
    "READ_ONLY_VIOLATION": (WriteDenied, "Only reading is allowed: send a SELECT."),
    "USER_CANCELED": (QueryCancelled, ""),
    "EXCEEDED_TIME_LIMIT": (QueryTimeout, ""),
}


@contextlib.contextmanager
def translated(database: str) -> Generator[None]:
    """Raise `DragomanError`s for whatever goes wrong inside."""
    try:
        yield
    except ServerError as error:
        raise _server_error(error.error) from None
    except Cancelled:
        raise QueryCancelled("The query was cancelled.") from None
    except HttpStatus as error:
        raise unreachable(database, f"it answered with HTTP status {error.status}") from None
    except OSError:  # requests' own errors are OSErrors
        raise unreachable(database, "the network does not allow it") from None


def _server_error(error: Mapping[str, Any]) -> DragomanError:
    kind, suggestion = _NAMES.get(error.get("errorName", ""), (QueryError, ""))
    return kind(error.get("message", ""), suggestion=suggestion)


def unreachable(database: str, why: str, remedy: str = "") -> ConnectionFailed:
    """Return the error of a server that cannot be reached: it names the database, never its address."""
    return ConnectionFailed(
        f"The database {database!r} cannot be reached: {why}.",
        suggestion=remedy or "Check that the server runs and that host and port are right in the configuration.",
    )
