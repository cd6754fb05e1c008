"""`dragoman export`: write the whole answer of a query to a file, of any size, in bounded memory."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import stat
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.cli.common import (
    add_caller_argument,
    add_database_argument,
    add_param_argument,
    add_source_arguments,
    load_configuration,
    read_sql,
    resolve_database,
    run_async,
    start_logging,
    warn,
)
from dragoman.cli.output import put
from dragoman.cli.query import parameter
from dragoman.config import Configuration
from dragoman.errors import ParameterError

if TYPE_CHECKING:
    from types import FrameType

    from rich.progress import Progress

    from dragoman.kept import Pages
    from dragoman.model import Column, RowStream

EXAMPLES = """\
examples:
  dragoman export shop 'select * from orders' orders.parquet
  dragoman export shop 'select * from orders where day = ?' orders.csv --param 2026-01-31
  dragoman export shop - report.out --format xlsx < report.sql
"""
ANY_SIZE = 2**62


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from dragoman.exports import CHARTS, FORMATS

    parser.epilog = EXAMPLES
    add_database_argument(parser)
    parser.add_argument("sql", metavar="SQL", help="the query; with -, stdin is read")
    parser.add_argument("file", metavar="FILE", help="the file to write; its suffix tells the format")
    add_source_arguments(parser)
    add_caller_argument(parser)
    parser.add_argument("--format", choices=list(FORMATS), help="the format, whatever the suffix of the file")
    parser.add_argument(
        "--chart", choices=CHARTS, help="what a picture (svg, png) shows; without it, what suits the columns"
    )
    add_param_argument(parser)
    parser.add_argument(
        "--timeout", metavar="S", type=float, default=3600.0, help="end the query after so many seconds"
    )
    parser.add_argument("--from-dialect", metavar="D", help="the dialect the SQL is written in; it is translated")
    parser.add_argument("--force", action="store_true", help="replace a file that exists")


def run(arguments: argparse.Namespace) -> int:
    """Write the file."""
    from dragoman.exports import format_of
    from dragoman.kept import Pages

    path = Path(arguments.file)
    form = format_of(path, arguments.format)
    _check_place(path, replace=arguments.force)
    database = resolve_database(arguments)
    configuration = load_configuration(arguments)
    start_logging(configuration)
    with tempfile.TemporaryDirectory(prefix="dragoman-export-") as folder:
        pages = Pages(Path(folder) / "rows")
        try:
            columns, notices = run_async(_receive_all(configuration, database, arguments, pages))
            notices += _write(path, form, columns, pages, arguments.chart)
        finally:
            pages.close()
    for notice in notices:
        warn(notice)
    rows = pages.rows
    put(f"{rows} {'row' if rows == 1 else 'rows'}, {path.stat().st_size} bytes: {path}", sys.stderr)
    return 0


def _check_place(path: Path, *, replace: bool) -> None:
    """Raise `ParameterError` where no file can be written, before the query runs."""
    if not os.path.isdir(path.parent):
        raise ParameterError(f"There is no folder {path.parent}.", suggestion="Make it, or choose another place.")
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):  # root would replace even /dev/null
        raise ParameterError(f"{path} is there already, and is not a file.", suggestion="Choose another name.")
    if mode is not None and not replace:
        raise ParameterError(f"{path} is there already.", suggestion="Choose another name, or pass --force.")


def _mode(path: Path) -> int | None:
    """Return the kind and the rights of what has a name, without following a link; None: nothing has it."""
    try:
        return path.lstat().st_mode
    except OSError:  # also a name that is too long for the system: writing tells of it
        return None


async def _receive_all(
    configuration: Configuration, database: str, arguments: argparse.Namespace, pages: Pages
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Receive the rows into a temporary file: a format may need to see all of them before it writes one.

    Returns columns and notices.
    """
    from dragoman.gateway import Gateway
    from dragoman.model import Limits

    sql = read_sql(arguments.sql)
    ceiling = Limits(max_rows=ANY_SIZE, max_bytes=ANY_SIZE, timeout=arguments.timeout)
    async with (
        Gateway.open(configuration) as gateway,
        gateway.stream(
            database,
            sql,
            [parameter(value) for value in arguments.param],
            ceiling=ceiling,
            principal=arguments.principal,
            from_dialect=arguments.from_dialect,
        ) as stream,
    ):
        await _receive(stream, pages)
        return tuple(stream.columns), tuple(stream.notices)


async def _receive(stream: RowStream, pages: Pages) -> None:
    from dragoman.model import Encoded

    with _progress() as progress:
        task = progress.add_task("rows received", total=None) if progress else None
        async for batch in stream.batches:
            assert isinstance(batch, Encoded)  # a gateway's stream has only these
            pages.add(batch)
            if progress and task is not None:
                progress.update(task, completed=pages.rows)
    pages.flush()


def _write(path: Path, form: str, columns: Sequence[Column], pages: Pages, chart: str | None) -> tuple[str, ...]:
    """Write the file beside its place first, so that nobody ever sees a part of it."""
    from dragoman.exports import export

    part = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.part")
    replaced = _mode(path)
    try:
        part.touch(0o666 if replaced is None else 0o600, exist_ok=False)
        with end_on_signals(), _progress() as progress:
            notices = export(part, form, columns, _Shown(pages, form, progress), chart)
        if replaced is not None and stat.S_ISREG(replaced):  # whoever may not read that file reads none of this
            part.chmod(replaced & 0o777)
        part.replace(path)
    except OSError as error:
        raise ParameterError(
            f"{path} cannot be written: {error.strerror}.", suggestion="Choose another name or place."
        ) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return notices


class _Shown:
    """The rows of pages, with a progress bar for each reading if there is a display."""

    def __init__(self, pages: Pages, form: str, progress: Progress | None) -> None:
        from dragoman.exports import READ_TWICE

        self._pages = pages
        self._progress = progress
        self._readings = iter(("rows looked at", "rows written") if form in READ_TWICE else ("rows written",))

    def __call__(self) -> Iterator[list[list[Any]]]:
        if self._progress is None:
            yield from self._pages.batches()
            return
        task = self._progress.add_task(next(self._readings), total=self._pages.rows)
        for rows in self._pages.batches():
            yield rows
            self._progress.advance(task, len(rows))


@contextmanager
def end_on_signals() -> Generator[None]:
    """Let SIGINT and SIGTERM end the work with `KeyboardInterrupt`, so that nothing is left behind.

    Python drops one that is raised while it frees an object. It is raised again at the end of the work.
    """
    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise KeyboardInterrupt


def _progress() -> AbstractContextManager[Progress | None]:
    """Return a progress display on a terminal, and none elsewhere."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.completed:,.0f} {task.description}")
    columns = (SpinnerColumn(), text, BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
