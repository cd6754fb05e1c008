"""`dragoman doctor`: show what the configured roles could do if all protections failed, and how to prevent it."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from dragoman.cli.common import (
    add_database_argument,
    add_json_argument,
    add_source_arguments,
    load_configuration,
    resolve_database,
    run_async,
    start_logging,
    warn,
)
from dragoman.cli.output import put
from dragoman.config import Configuration
from dragoman.errors import ConfigurationError, DialectError, DragomanError

if TYPE_CHECKING:
    from dragoman.gateway import Gateway
    from dragoman.model import Finding, Severity

EXAMPLES = """\
examples:
  dragoman doctor
  dragoman doctor shop
  dragoman doctor postgresql://reader@db/shop --json

Connects as the gateway does, reads what the role may do and changes nothing.
Exit status: 1 danger found, else 2 a database could not be examined, else 0.
"""
DANGER, NOT_EXAMINED = 1, 2
STYLES: dict[Severity, str] = {"danger": "bold red", "warning": "yellow", "note": "cyan"}


@dataclass(frozen=True, slots=True)
class Report:
    """The report about one database. `error`: why it was not examined."""

    database: str
    dialect: str
    version: str = ""
    findings: tuple[Finding, ...] = ()
    error: DragomanError | None = None

    @property
    def status(self) -> Literal["examined", "unreachable", "broken"]:
        """Whether the database was examined, did not answer, or has no working plugin."""
        if self.error is None:
            return "examined"
        return "broken" if isinstance(self.error, DialectError | ConfigurationError) else "unreachable"

    def as_dict(self) -> dict[str, Any]:
        """Return the report as `--json` prints it."""
        known = {"database": self.database, "dialect": self.dialect, "version": self.version, "status": self.status}
        shown: dict[str, Any] = {**known, "findings": [asdict(finding) for finding in self.findings]}
        return shown if self.error is None else {**shown, "error": self.error.as_dict()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    add_database_argument(parser, nargs="?", help="a configured name, a URL, or the path of a file; without it, all")
    add_json_argument(parser)
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings. The exit status says whether there is danger."""
    chosen = resolve_database(arguments) if arguments.database else None
    configuration = load_configuration(arguments)
    start_logging(configuration)
    reports = run_async(_examine(configuration, chosen))
    if arguments.json:
        put(json.dumps([report.as_dict() for report in reports], ensure_ascii=False))
    else:
        _show(reports)
    if any(finding.severity == "danger" for report in reports for finding in report.findings):
        return DANGER
    return NOT_EXAMINED if any(report.error for report in reports) else 0


async def _examine(configuration: Configuration, chosen: str | None) -> list[Report]:
    """Examine one database, or all of them concurrently."""
    import asyncio

    from dragoman.gateway import Gateway

    async with Gateway.open(configuration) as gateway:
        if chosen is None:
            names = gateway.names
            _report_broken(gateway)
        else:
            names = (gateway.resolve_name(chosen),)
        with _progress(len(names)) as advance:
            return await asyncio.gather(*(_report(gateway, name, advance) for name in names))


async def _report(gateway: Gateway, name: str, done: Callable[[], None]) -> Report:
    dialect = gateway.configuration.databases[name].dialect
    try:
        opened = gateway.database(name)
        version = await opened.inspector.version()
        return Report(name, dialect, version, await opened.doctor())
    except DragomanError as error:
        return Report(name, dialect, error=error)
    finally:
        done()


def _report_broken(gateway: Gateway) -> None:
    """Report installed dialects that do not work, except those whose databases report it themselves."""
    used = {database.dialect for database in gateway.configuration.databases.values()}
    for installed in gateway.plugins.list_installed():
        if installed.status == "broken" and installed.name not in used:
            warn(f"the dialect {installed.name} of {installed.distribution} is broken: {installed.error}")


@contextmanager
def _progress(total: int) -> Generator[Callable[[], None]]:
    """Show on a terminal's stderr how many are done."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("examining", total=total)
        yield lambda: progress.advance(task)


def _show(reports: list[Report]) -> None:
    from rich.console import Console
    from rich.text import Text

    from dragoman.words import visible

    console = Console(highlight=False)
    for line, style in (line for report in reports for line in _lines(report)):
        # Nothing is wrapped or framed, so that remedies can be copied.
        console.print(Text(visible(line), style=style), soft_wrap=True)


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the lines about a database, each with its style."""
    server = " ".join(word for word in (report.dialect, report.version) if word)
    yield f"{report.database} ({server}): {_summary(report)}", "bold"
    if report.error is not None:
        yield f"  {report.error.code}: {report.error.message}", STYLES["danger"]
        yield f"      {report.error.suggestion}", ""
    for finding in report.findings:
        yield f"  {finding.severity}: {finding.message} [{finding.subject}]", STYLES[finding.severity]
        yield from ((f"      {line}", "") for line in finding.remedy.splitlines())


def _summary(report: Report) -> str:
    if report.error is not None:
        return "not examined"
    counts = Counter(finding.severity for finding in report.findings)
    told = [f"{counts[severity]} {severity}{'s' * (counts[severity] > 1)}" for severity in STYLES if counts[severity]]
    return ", ".join(told) or "nothing found"
