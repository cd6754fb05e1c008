"""`dragoman learn`: learn the values of columns in advance, or let a model describe what has no description."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
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
  dragoman learn shop --describe --to knowledge/shop.md
"""
AT_ONCE = 50
"""The number of relations in one request."""
SECONDS = 60.0
"""Seconds that one request may take."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    add_database_argument(parser, nargs="?", help="a configured name; without it, every database")
    parser.add_argument(
        "--describe",
        action="store_true",
        help="let the configured model describe what has no description, and write a file to review",
    )
    parser.add_argument("--to", metavar="FILE", help="the file for --describe (NAME.learned.md)")
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Learn, and print how much was learned about each database."""
    from dragoman.cli.output import put

    configuration = load_configuration(arguments)
    start_logging(configuration)
    if arguments.describe:
        for line in run_async(_describe(configuration, arguments.database, arguments.to)):
            put(line)
        return 0
    if configuration.server.state_dir is None:
        raise ConfigurationError(
            "server.state_dir is not set, so nothing could be kept.",
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


async def _describe(configuration: Configuration, name: str | None, to: str | None) -> list[str]:
    """Describe databases, each in a file of its own."""
    from dragoman.gateway import Gateway
    from dragoman.plugins.extensions import DESCRIBERS, load_extension

    describe = load_extension(DESCRIBERS, "describe", "ask")
    told: list[str] = []
    async with Gateway.open(configuration) as gateway:
        names = gateway.names if name is None else (gateway.resolve_name(name),)
        if to is not None and len(names) > 1:
            raise ConfigurationError("--to is the file of one database.", suggestion="Name the database.")
        for each in names:
            total = len((await gateway.database(each).catalog.snapshot()).listed)
            with _progress(each, total) as advance:
                told += await describe(gateway, each, Path(to or f"{each}.learned.md"), advance)
    return told


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
    """Show on a terminal's stderr how many are done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"learning {name}", total=total)
        yield lambda done: progress.advance(task, done)
