"""`dragoman learn`: learn ahead what the columns of databases hold, and keep it over restarts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.cli.common import (
    add_database_argument,
    add_source_arguments,
    load_configuration,
    run_async,
    start_logging,
)
from dragoman.errors import ConfigurationError

if TYPE_CHECKING:
    from dragoman.config import Configuration
    from dragoman.gateway.opened import OpenDatabase

EXAMPLES = """\
examples:
  dragoman learn
  dragoman learn shop
"""
AT_ONCE = 50
"""Relations that are asked about together."""
SECONDS = 60.0
"""That these may take."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    add_database_argument(parser, nargs="?", help="a configured name; else every database")
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Learn, and print how much was learned of each database."""
    from dragoman.cli.output import put

    configuration = load_configuration(arguments)
    start_logging(configuration)
    if configuration.server.state_dir is None:
        raise ConfigurationError(
            "server.state_dir is not set: nothing that is learned would be kept.",
            suggestion='Set server.state_dir = "state".',
        )
    for line in run_async(_learn(configuration, arguments.database)):
        put(line)
    return 0


async def _learn(configuration: Configuration, name: str | None) -> list[str]:
    from dragoman.gateway import Gateway

    async with Gateway.open(configuration) as gateway:
        names = gateway.names if name is None else (gateway.resolve_name(name),)
        return [await _learn_one(gateway.database(each)) for each in names]


async def _learn_one(opened: OpenDatabase) -> str:
    tables = (await opened.catalog.snapshot()).listed
    known = 0
    with _progress(opened.config.name, len(tables)) as advance:
        for start in range(0, len(tables), AT_ONCE):
            few = tables[start : start + AT_ONCE]
            told = await opened.knowledge.of(few, SECONDS)
            known += sum(bool(insight.profiles) for insight in told.values())
            advance(len(few))
    await opened.knowledge.save()
    return f"{opened.config.name}: {len(tables)} relations, values known of {known}"


@contextmanager
def _progress(name: str, total: int) -> Generator[Callable[[int], None]]:
    """Show on stderr how many are done, in a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"learning {name}", total=total)
        yield lambda done: progress.advance(task, done)
