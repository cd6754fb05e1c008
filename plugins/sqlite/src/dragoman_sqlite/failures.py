"""The one boundary where SQLite's errors become dragoman's."""

from __future__ import annotations

import re

import apsw
from dragoman import DragomanError

from dragoman_sqlite.frames import Failed

_NO_SUCH = re.compile(
    r"no such (table|column|function|module|collation sequence|index): (.+?)(?: - should this be.*)?$"
)
_REFUSED_FUNCTION = re.compile(r"not authorized to use function: (.+)$")
SLOW = "Narrow it with WHERE or LIMIT, look at explain_query, or raise timeout_ms."
_NOT_FOUND = {"table": "TableNotFound", "column": "ColumnNotFound"}
_UNREACHABLE: dict[type[Exception], tuple[str, str]] = {
    apsw.CantOpenError: ("its file cannot be opened", "Check that the file exists and may be read."),
    apsw.NotADBError: ("its file is not a SQLite database, or it is encrypted", "Check the file that is configured."),
    apsw.BusyError: ("it is locked by another process", "Try again when the other process has finished writing."),
    apsw.LockedError: ("it is locked by another process", "Try again when the other process has finished writing."),
    apsw.IOError: ("its file cannot be read", "Check the disk and the file's permissions."),
    apsw.PermissionsError: ("its file may not be read", "Check the file's permissions."),
}
_TOO_LARGE = (apsw.NoMemError, apsw.FullError, MemoryError)


def describe_failure(error: Exception, sql: str, *, late: bool, cancelled: bool, running: bool) -> Failed:
    """Return what to tell the executor of any exception; `running`: the statement had been compiled."""
    unreachable = _UNREACHABLE.get(type(error))
    match error:
        case DragomanError():
            return Failed(type(error).__name__, error.message, error.suggestion)
        case apsw.InterruptError() | apsw.BusyError() if late:
            return Failed("QueryTimeout", "The query ran into its deadline and was ended.", SLOW)
        case apsw.InterruptError() if cancelled:
            return Failed("QueryCancelled", "The query was cancelled.")
        case apsw.SQLError():
            return _sql_error(error, sql, running=running)
        case apsw.BindingsError():
            return Failed("ParameterError", f"{error}.", "Give one value for each ? of the statement.")
        case apsw.CorruptError():
            return Failed(
                "QueryError", f"{error}", "The file is damaged: PRAGMA integrity_check tells more to its owner."
            )
        case UnicodeDecodeError():
            return Failed("QueryError", "A text is not valid in its encoding.", "Read the column as CAST(... AS BLOB).")
        case apsw.TooBigError():
            return Failed(
                "ResultTooLarge",
                "A value is larger than a query may make or read.",
                "Read less of it; the operator can raise the option max_value_kb.",
            )
        case _ if isinstance(error, _TOO_LARGE):
            return Failed(
                "ResultTooLarge",
                "The query needs more memory than a query may take.",
                "Make its values or intermediate results smaller.",
            )
        case _ if unreachable:
            return Failed("ConnectionFailed", *unreachable)
        case apsw.Error():
            return Failed("QueryError", f"{error}")
        case _:
            return Failed("InternalError", f"The SQLite worker failed with {type(error).__name__}.")


def _sql_error(error: apsw.SQLError, sql: str, *, running: bool) -> Failed:
    message = str(error)
    offset = _characters(sql, getattr(error, "error_offset", -1))
    if function := _REFUSED_FUNCTION.match(message):
        return refused("FUNCTION", function[1])
    if found := _NO_SUCH.match(message):
        name = _NOT_FOUND.get(found[1], "InvalidSql")
        hint = "Write texts in single quotes." if "single-quotes" in message else ""
        return Failed(name, f"no such {found[1]}: {found[2]}", hint, identifier=found[2], offset=offset)
    return Failed("QueryError" if running else "InvalidSql", message, offset=offset)


def _characters(sql: str, offset: int) -> int | None:
    """SQLite counts bytes of UTF-8, callers count characters."""
    return len(sql.encode()[:offset].decode(errors="ignore")) if offset >= 0 else None


def refused(kind: str, name: str) -> Failed:
    """Return the refusal of what the authorizer denied: a function, or something that is not reading."""
    if kind == "FUNCTION":
        return Failed(
            "UnsafeSql",
            f"The function {name}() is not on the list of functions that may be called.",
            "Do without it, or have the operator add it to allow_functions.",
            identifier=name,
        )
    return Failed("WriteDenied", f"Only reading is allowed; {kind} {name} is not.".replace("  ", " "), "Send a SELECT.")
