"""What could happen to a database's file if all protections failed. SQLite has no roles, so file permissions decide."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
from dragoman import ConnectionFailed, Database, Finding

_HEADER = 20
_FORMAT_VERSION = 18
"""The place in the header that says how the file is written: 2 for a write-ahead log."""
_ACTING = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "fsdir"})
"""Functions that reach files or load code, if SQLite has them."""


def examine(database: Database, path: Path) -> list[Finding]:
    """Return the findings about an existing file. Only looks at it. Raises `ConnectionFailed`."""
    try:
        status, folder = path.stat(), path.parent.stat()
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except OSError:
        raise ConnectionFailed(f"The file of the database {database.name!r} may not be read.") from None
    logged = len(header) == _HEADER and header[_FORMAT_VERSION] == 2
    return [
        *_file(path, status.st_mode),
        *_folder(path.parent, folder.st_mode),
        *_journals(path, logged=logged),
        *_process(database),
    ]


def _file(path: Path, mode: int) -> Iterator[Finding]:
    if _writable(path, mode):
        yield Finding(
            severity="danger",
            subject="file_writable",
            message="The gateway's user may write the database's file.",
            remedy="Run the gateway as a user who may only read it; or, when nobody needs to write it:\n"
            'chmod a-w "$FILE"',
        )
    if mode & stat.S_IWOTH:
        yield Finding(
            severity="danger",
            subject="file_writable_by_all",
            message="Everybody on this machine may write the database's file.",
            remedy='chmod o-w "$FILE"',
        )


def _folder(folder: Path, mode: int) -> Iterator[Finding]:
    shared = mode & stat.S_IWOTH and not mode & stat.S_ISVTX
    if shared or _writable(folder, mode):
        whose = "Everybody on this machine" if shared else "The gateway's user"
        yield Finding(
            severity="warning",
            subject="folder_writable",
            message=f"{whose} may write to the folder of the database, and so add files or replace the database.",
            remedy=f'chmod {"o-w" if shared else "u-w"} "$(dirname "$FILE")"',
        )


def _journals(path: Path, *, logged: bool) -> Iterator[Finding]:
    if logged:
        yield Finding(
            severity="note",
            subject="write_ahead_log",
            message="The database has a write-ahead log, whose index readers write too: without the right to, they fail"
            " once no writer has it open.",
            remedy="Before you remove the gateway's permission to write, and while nobody writes:\n"
            "sqlite3 \"$FILE\" 'PRAGMA journal_mode = delete'",
        )
    elif _size(path.with_name(path.name + "-journal")):
        yield Finding(
            severity="warning",
            subject="hot_journal",
            message="A journal is beside the file: a writer is working, or it died and left half "
            "a transaction, which readers cannot undo.",
            remedy="If nobody writes, open it once with permission to write:\nsqlite3 \"$FILE\" 'PRAGMA quick_check'",
        )


def _process(database: Database) -> Iterator[Finding]:
    if os.geteuid() == 0:
        yield Finding(
            severity="warning",
            subject="root",
            message="The gateway runs as root, which ignores file permissions.",
            remedy="Run it as a user of its own.",
        )
    if acting := sorted(name for name in database.allow_functions if name.lower() in _ACTING):
        yield Finding(
            severity="danger",
            subject="acting_functions",
            message=f"The configuration allows functions that reach files or load code: {', '.join(acting)}.",
            remedy=f"Remove them from databases.{database.name}.allow_functions.",
        )
    elif "OMIT_LOAD_EXTENSION" not in apsw.compile_options:
        yield Finding(
            severity="note",
            subject="extension_loading",
            message="This SQLite could load extensions; every connection of the gateway disables this.",
            remedy="Nothing needs to be done; a build with SQLITE_OMIT_LOAD_EXTENSION could not.",
        )


def _writable(path: Path, mode: int) -> bool:
    """Return whether our user may write to it. For root, who always may, return whether anybody is meant to."""
    return os.access(path, os.W_OK) and bool(os.geteuid() or mode & 0o222)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
