"""Translates a driver's exception to one of dragoman's. Nothing else does."""

from __future__ import annotations

import re

import dragoman
import duckdb

NARROW = "Narrow the query with WHERE, or aggregate."
# Tried in order. A group `name` is what the database did not know.
FAILURES = (
    (r"because schema", dragoman.SchemaNotFound, "Use list_schemas to see the schemas."),
    (r"Table with name \"?(?P<name>\S+?)\"? does not exist", dragoman.TableNotFound, "Use list_tables to find it."),
    (r"column \"(?P<name>[^\"]+)\" not found", dragoman.ColumnNotFound, "Use describe_table to see the columns."),
    (
        r"Referenced table \".+\" not found",
        dragoman.TableNotFound,
        "Name it in FROM: find_join_path shows how to join it. If it has an alias there, write the alias.",
    ),
    (r"does not have a column named \"(?P<name>[^\"]+)\"", dragoman.ColumnNotFound, "Use describe_table."),
    (
        r"following parameters|excess parameters|argument count mismatch for prepared",
        dragoman.ParameterError,
        "Give one value for each placeholder.",
    ),
    (
        r"must appear in the GROUP BY clause",
        dragoman.InvalidSql,
        "Put the column into GROUP BY or into an aggregate.",
    ),
    (
        r"^Binder Error: GROUP BY clause cannot",
        dragoman.InvalidSql,
        "Group by columns without aggregates; compute windows in a subquery.",
    ),
    (
        r"cannot contain (aggregates|window functions)|WHERE clause cannot",
        dragoman.InvalidSql,
        "Filter groups with HAVING, and windows with QUALIFY.",
    ),
    (
        r"Ambiguous reference to column",
        dragoman.InvalidSql,
        "Write the table's name or alias before the column's.",
    ),
    (
        r"argument types '\+\((?!.*(DATE|TIME|INTERVAL)).*(VARCHAR|STRING_LITERAL)",
        dragoman.InvalidSql,
        "Join texts with ||, or concat(a, b).",
    ),
    (
        r"No function matches the given name and argument types",
        dragoman.InvalidSql,
        "Check the function's name and the types of its arguments; cast where they differ.",
    ),
    (r"^Conversion Error", dragoman.QueryError, "Check the values and their casts; TRY_CAST gives NULL instead."),
    (r"^(Parser|Binder|Catalog|Syntax) Error", dragoman.InvalidSql, "Correct the statement and try again."),
    (r"read-only mode|configuration has been locked", dragoman.WriteDenied, "Only queries are run here."),
    (
        r"schema mismatch in glob: column",
        dragoman.QueryError,
        "Not every file of the table has this column: name the columns that you need.",
    ),
    (r"^Out of Memory Error", dragoman.QueryError, NARROW),
    (
        r"^(IO|Connection|Fatal) Error|^Invalid Input Error: (Failed to read file|No magic bytes)|^TProtocolException",
        dragoman.ConnectionFailed,
        "Try again. If the error stays, tell the administrator.",
    ),
)
QUERY = "Correct the values the statement computes with and try again."


def translate(error: Exception) -> dragoman.DragomanError:
    """Return dragoman's error for one of DuckDB's, with its own first line, but never with a path."""
    if isinstance(error, duckdb.PermissionException):
        return dragoman.PermissionDenied(
            "Files, the network and extensions are closed to queries.", suggestion="Query the tables of list_tables."
        )
    if isinstance(error, MemoryError):
        return dragoman.QueryError("The query took more memory than it may.", suggestion=NARROW)
    if isinstance(error, OSError):
        return dragoman.ConnectionFailed("a file of it was changed meanwhile", suggestion="Try again.")
    if not isinstance(error, duckdb.Error | UnicodeError):
        return dragoman.InternalError("The process that runs queries failed.")
    message = str(error).partition("\n")[0]
    for pattern, kind, suggestion in FAILURES:
        if found := re.search(pattern, message):
            if kind is dragoman.ConnectionFailed:
                message = "its file cannot be read"
            return kind(message, suggestion=suggestion, identifier=found.groupdict().get("name"))
    return dragoman.QueryError(message, suggestion=QUERY)
