"""Answers that somebody marked. Right ones are examples for later questions; wrong ones are cases for `dragoman eval`.

Both are YAML lists that people can read and edit, `NAME.yaml` and `NAME.wrong.yaml` in the configured folder, in the
format of `dragoman eval`.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from dragoman.cooperative import in_thread_if_many
from dragoman.errors import Busy, ConfigurationError, DragomanError
from dragoman.gateway.opened import OpenDatabase
from dragoman.meaning.search import rank

from dragoman_ask.evaluation import Case, load_cases
from dragoman_ask.session import Session
from dragoman_ask.trying import explain

_log = logging.getLogger(__name__)
SHOWN = 3
FULL = 500_000
"""A file of so many bytes takes no more marks: every caller's question would wait until it is read."""
PATIENCE = 2.0
"""Seconds that a mark waits for others before it."""


def add(folder: Path, database: str, question: str, sql: str, *, right: bool) -> str:
    """Add a marked answer to its file and remove the opposite mark; return the file's name.

    Raises `ConfigurationError` if that fails, `Busy` if another process keeps the files locked.
    """
    file, other = _file(folder, database, right=right), _file(folder, database, right=not right)
    entry = _entry(database, question, sql, right=right)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            _take_back(other, _entry(database, question, sql, right=not right))
            known = _read(file)
            if entry not in known:
                if len(known) + len(entry) > FULL:
                    raise ConfigurationError(f"{file.name} is full.", suggestion="Take out examples that help least.")
                with file.open("a", encoding="utf-8") as opened:
                    opened.write(entry)
    except OSError as error:
        raise ConfigurationError(f"model.examples_dir cannot be written ({error.strerror}).") from None
    return file.name


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Keep every other mark out meanwhile, also those of other processes with this folder."""
    with (folder / ".lock").open("ab") as lock:
        _lock(lock)
        yield  # closing the file gives the lock back


def _lock(file: BinaryIO) -> None:
    """Lock a file. The process that has the lock may be stopped, so the wait has an end. Raises `Busy`."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise Busy("Another process is writing the marks.", suggestion="Try again in a moment.") from None
        time.sleep(0.005)


def _file(folder: Path, database: str, *, right: bool) -> Path:
    return folder / (f"{database}.yaml" if right else f"{database}.wrong.yaml")


def _entry(database: str, question: str, sql: str, *, right: bool) -> str:
    import yaml

    entry = {"question": question, "database": database, "sql": sql, **({} if right else {"expect": "other"})}
    return yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=120)


def _take_back(path: Path, entry: str) -> None:
    """Remove an entry as it was added. The rest of the file, which people may have edited, does not change."""
    text = _read(path)
    if text == entry:
        path.unlink()
    elif entry in text:
        path.write_text(text.replace(entry, ""), encoding="utf-8")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _load_marked(folder: Path | None, database: str) -> list[Case]:
    """Return the answers of a database that were marked right."""
    file = None if folder is None else _file(folder, database, right=True)
    if file is None or not file.is_file():
        return []
    try:
        with _reading:
            status = file.stat()
            return _load(str(file), status.st_mtime_ns, status.st_size)
    except ConfigurationError as error:
        _log.warning("examples are not used: %s", error.message)
        return []


_reading = threading.Lock()
"""Held while a changed file is read: questions at once do not all read it, which would slow every other call down."""


@lru_cache(16)
def _load(file: str, changed: int, size: int) -> list[Case]:
    """Return the cases of a file, which is read once for each of its states."""
    return [case for case in load_cases(file) if case.expect == "rows"]


async def tell(session: Session, opened: OpenDatabase, folder: Path | None) -> str:
    """Return the examples that match the question, as the model sees them; only those that the caller may run now.

    Callers who see a part of the database get none: questions and queries of others may name anything of the rest.
    """
    told = await opened.read_files()
    if told is None:
        return ""
    written = [Case(question=each.question, sql=each.sql) for each in await told.examples()]
    marked = [] if opened.vetoes_values else await asyncio.to_thread(_load_marked, folder, opened.config.name)
    known = [*marked, *written]
    nearest = (await in_thread_if_many(len(known), rank, session.question.text, known, _question))[:SHOWN]
    cases = [case for case in nearest if await _compiles(session, opened, case.sql)]
    if not cases:
        return ""
    listed = "\n\n".join(f"Question: {case.question}\nQuery: {case.sql.strip()}" for case in cases)
    fenced = session.fence.around(listed, "examples")
    return f"Questions that were answered correctly before:\n\n{fenced}"


def _question(case: Case) -> str:
    return case.question


async def _compiles(session: Session, opened: OpenDatabase, sql: str) -> bool:
    """Return whether a caller may run a query, and the database compiles it: names in it may be gone, or hidden.

    It does not run: another caller may have marked a query that takes long.
    """
    try:
        await explain(session, opened, sql)
    except DragomanError:
        return False
    return True
