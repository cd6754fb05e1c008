"""`dragoman dialects`: list the installed plugins, and the broken ones."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING

from dragoman.cli.common import add_json_argument, add_source_arguments

if TYPE_CHECKING:
    from dragoman.plugins.plugins import Installed

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
    """Print every installed dialect, and every policy."""
    from dragoman.cli.output import print_table
    from dragoman.plugins import Plugins

    installed = Plugins.discover().list_installed()
    if arguments.json:
        print(json.dumps([dataclasses.asdict(each) for each in installed]))
        return 0
    dialects = [each for each in installed if each.kind == "dialect"]
    rows = [[*_who(each), each.driver, each.status, each.error or _words(each.capabilities)] for each in dialects]
    print_table(["dialect", "distribution", "driver", "status", "capabilities"], rows)
    if policies := [each for each in installed if each.kind == "policy"]:
        rows = [[*_who(each), each.status, each.error or "applies to every database"] for each in policies]
        print_table(["policy", "distribution", "status", ""], rows)
    return 0


def _who(each: Installed) -> tuple[str, str]:
    return each.name, f"{each.distribution} {each.version}"


def _words(capabilities: tuple[str, ...]) -> str:
    return ", ".join(name.lower().replace("_", " ") for name in capabilities)
