"""`dragoman databases`: show what agents get from `list_databases`."""

from __future__ import annotations

import argparse
import json

from dragoman.cli.common import (
    add_caller_argument,
    add_json_argument,
    add_source_arguments,
    call_tool,
    load_configuration,
    run_async,
    start_logging,
)
from dragoman.config import Configuration
from dragoman.model import Principal

EXAMPLES = """\
examples:
  dragoman databases
  dragoman databases --url sqlite:///shop.db --json
"""
COLUMNS = ("name", "dialect", "version", "status", "description")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    add_json_argument(parser)
    add_source_arguments(parser)
    add_caller_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the configured databases and whether they answer."""
    from dragoman.cli.output import print_table, put

    configuration = load_configuration(arguments)
    start_logging(configuration)
    text = run_async(_ask(configuration, arguments.principal))
    if arguments.json:
        put(text)
        return 0
    databases = json.loads(text)["databases"]
    rows = [[each.get(column) or "" for column in COLUMNS] for each in databases]
    print_table(COLUMNS, rows)
    for each in databases:
        if each.get("error"):
            put(f"{each['name']}: {each['error']}")
    return 0


async def _ask(configuration: Configuration, principal: Principal) -> str:
    from dragoman.gateway import Gateway

    async with Gateway.open(configuration) as gateway:
        return await call_tool(gateway, "list_databases", {}, principal)
