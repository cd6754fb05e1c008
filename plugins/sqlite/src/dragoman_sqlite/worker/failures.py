"""Translates SQLite's errors to dragoman's. Nothing else does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import apsw
from dragoman import DragomanError
from dragoman.workers.frames import Failed

_NO_SUCH = re.compile(
    r"no such (table|column|function|module|collation sequence|index): (.+?)(?: - should this be.*)?$"
)
_QUOTED_TEXT = re.compile(r'no such column: ".*" - should this be')
_AMBIGUOUS = re.compile(r"ambiguous column name: (.+)")
_MISUSED = re.compile(r"misuse of (?:aliased )?(aggregate|window function)")
_OF_MISUSE = {
    "aggregate": "Use an aggregate in the selected columns or in HAVING, not in WHERE.",
    "window function": "Compute a window function in a subquery, and filter it outside.",
}
_REFUSED_FUNCTION = re.compile(r"not authorized to use function: (.+)$")
_BINDINGS = re.compile(r".*statement uses (\d+) and there are (\d+) supplied")
_NOT_FOUND = {"table": "TableNotFound", "column": "ColumnNotFound"}
_LOCKED = ("it is locked by another process", "Try again when the other process has finished writing.")
_DAMAGED = ("its file is damaged", "Its owner may learn more from PRAGMA integrity_check.")
_NAMES_MAIN = (
    "a view or trigger of it writes the schema main before a name, so that it cannot be attached",
    "Have its owner write the name alone.",
)
UNREACHABLE: Final[Mapping[type[Exception], tuple[str, str]]] = {
    apsw.BusyError: _LOCKED,
    apsw.CantOpenError: (
        "its file cannot be opened",
        "Check that it may be read; one in WAL mode needs its -shm file, or a folder that may be written to.",
    ),
    apsw.CorruptError: _DAMAGED,
    apsw.IOError: ("its file cannot be read", "Check the disk and the file's permissions."),
    apsw.LockedError: _LOCKED,
    apsw.NotADBError: ("its file is not a SQLite database, or it is encrypted", "Check the file that is configured."),
    apsw.PermissionsError: ("its file may not be read", "Check the file's permissions."),
    apsw.ProtocolError: _LOCKED,
    apsw.ReadOnlyError: (
        "a write to it was interrupted",
        "Have its owner open it once with a program that may write, which completes or undoes that write.",
    ),
}
"""For errors that are the file's: what is wrong with the database, and what to do."""
_TOO_LARGE = (apsw.NoMemError, apsw.FullError, MemoryError)


def describe_failure(
    error: Exception, sql: str, *, late: bool, cancelled: bool, running: bool, reached: bool = False
) -> Failed:
    """Return the failure to send for any exception.

    `running`: the statement had been compiled. `reached`: the file had been opened.
    """
    match error:
        case DragomanError():
            return Failed(type(error).__name__, error.message, error.suggestion)
        case apsw.BusyError() if late:
            return Failed("QueryTimeout", "The database was locked by another process until the deadline.", _LOCKED[1])
        case apsw.InterruptError() if late:
            return Failed("QueryTimeout", "The query ran into its deadline and was ended.")
        case apsw.InterruptError() | apsw.BusyError() if cancelled:
            return Failed("QueryCancelled", "The query was cancelled.")
        case apsw.SQLError():
            return _sql_error(error, sql, running=running)
        case apsw.BindingsError():
            return _bindings_error(error)
        case apsw.CorruptError() if "cannot reference objects in database" in str(error):
            return Failed("ConnectionFailed", *_NAMES_MAIN)
        case apsw.CorruptError() if running:
            return Failed("QueryError", f"{error}", _DAMAGED[1])
        case UnicodeDecodeError():
            return Failed("QueryError", "A text is not valid in its encoding.", "Read the column as CAST(... AS BLOB).")
        case apsw.TooBigError():
            return Failed(
                "ResultTooLarge",
                "A value is larger than a query may create or read.",
                "Read less of it; the administrator can raise the option max_value_kb.",
            )
        case _ if isinstance(error, _TOO_LARGE) or _has_spilled_too_much(error):
            return Failed(
                "ResultTooLarge",
                "The query needs more memory than a query may take.",
                "Make its values or intermediate results smaller.",
            )
        case _ if unreachable := UNREACHABLE.get(type(error)):
            return Failed("ConnectionFailed", *unreachable, reached=reached and unreachable != _LOCKED)
        case apsw.Error():
            return Failed("QueryError", f"{error}")
        case _:
            return Failed("InternalError", f"The SQLite worker failed with {type(error).__name__}.")


def _has_spilled_too_much(error: Exception) -> bool:
    """Return whether a write failed. A query writes only its own temporary files, whose size is limited."""
    return isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_WRITE


def _sql_error(error: apsw.SQLError, sql: str, *, running: bool) -> Failed:
    message = str(error)
    offset = _characters(sql, getattr(error, "error_offset", -1))
    if function := _REFUSED_FUNCTION.match(message):
        return refuse("FUNCTION", function[1])
    if found := _NO_SUCH.match(message):
        kind, name = found[1], found[2].strip('"')
        hint = "Write texts in single quotes." if "single-quotes" in message else ""
        return Failed(
            _NOT_FOUND.get(kind, "InvalidSql"), f"no such {kind}: {name}", hint, identifier=name, offset=offset
        )
    if ambiguous := _AMBIGUOUS.match(message):
        return Failed("InvalidSql", message, identifier=ambiguous[1], offset=offset)
    misused = _MISUSED.match(message)
    hint = _OF_MISUSE[misused[1]] if misused else ""
    return Failed("QueryError" if running else "InvalidSql", message, hint, offset=offset)


def is_quoted_by_view(error: apsw.SQLError, sql: str) -> bool:
    """Return whether a text in double quotes is in a view's definition, and certainly not in `sql`.

    SQLite used to accept such texts.
    """
    return '"' not in sql and _QUOTED_TEXT.match(str(error)) is not None


def _bindings_error(error: apsw.BindingsError) -> Failed:
    counted = _BINDINGS.match(str(error))
    message = f"Values needed by the statement: {counted[1]}; given: {counted[2]}." if counted else f"{error}."
    return Failed("ParameterError", message, "Give one value for each ? of the statement.")


def _characters(sql: str, offset: int) -> int | None:
    """Return an offset in characters. SQLite counts bytes of UTF-8."""
    return len(sql.encode()[:offset].decode(errors="ignore")) if offset >= 0 else None


def refuse(kind: str, name: str) -> Failed:
    """Return the refusal of what the authorizer denied: a function, or something that does not only read."""
    if kind == "FUNCTION":
        return Failed(
            "UnsafeSql",
            f"The function {name}() is not on the list of functions that may be called.",
            "Write the query without it, or ask the administrator to add it to allow_functions.",
            identifier=name,
        )
    return Failed("WriteDenied", f"Only reading is allowed; {kind} {name} is not.".replace("  ", " "), "Send a SELECT.")
