"""`dragoman dialects`: what is installed, and what is broken."""

from __future__ import annotations

import argparse
import dataclasses
import json

from dragoman.cli.common import add_json_argument, add_source_arguments

EXAMPLES = """\
examples:
  dragoman dialects
  dragoman dialects --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    add_json_argument(parser)
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print every installed dialect."""
    from dragoman.cli.output import print_table
    from dragoman.plugins import Plugins

    installed = Plugins.discover().installed()
    if arguments.json:
        print(json.dumps([dataclasses.asdict(each) for each in installed]))
        return 0
    rows = [
        [
            each.name,
            f"{each.distribution} {each.version}",
            each.driver,
            each.status,
            each.error or _words(each.capabilities),
        ]
        for each in installed
    ]
    print_table(["dialect", "distribution", "driver", "status", "capabilities"], rows)
    return 0


def _words(capabilities: tuple[str, ...]) -> str:
    return ", ".join(name.lower().replace("_", " ") for name in capabilities)
