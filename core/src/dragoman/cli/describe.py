"""`dragoman describe`: show what agents get from `list_tables` and `describe_table`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from dragoman.cli.common import (
    add_caller_argument,
    add_database_argument,
    add_json_argument,
    add_source_arguments,
    call_tool,
    load_configuration,
    resolve_database,
    run_async,
    start_logging,
    warn,
)
from dragoman.cli.output import put
from dragoman.config import Configuration
from dragoman.words import visible

EXAMPLES = """\
examples:
  dragoman describe shop
  dragoman describe shop orders
  dragoman describe sqlite:///shop.db orders --full --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    add_database_argument(parser)
    parser.add_argument("table", metavar="TABLE", nargs="?", help="a table or view; without it, all are listed")
    parser.add_argument("--schema", metavar="S", help="the schema to look in")
    parser.add_argument("--full", action="store_true", help="every fact, as JSON")
    add_json_argument(parser)
    add_source_arguments(parser)
    add_caller_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the tables of a database, or the columns, keys, indexes and checks of one table."""
    database = resolve_database(arguments)
    configuration = load_configuration(arguments)
    start_logging(configuration)
    text = run_async(_ask(configuration, database, arguments))
    if arguments.json:
        put(text)
    elif arguments.full:
        put(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
    else:
        _show(json.loads(text), listing=arguments.table is None)
    return 0


async def _ask(configuration: Configuration, database: str, arguments: argparse.Namespace) -> str:
    from dragoman.gateway import Gateway

    asked: dict[str, Any] = {"database": database, "detail": "full" if arguments.full else "compact"}
    if arguments.schema:
        asked["schema_name"] = arguments.schema
    if arguments.table:
        asked |= {"table_name": arguments.table, "include_indexes": True, "include_constraints": True}
    async with Gateway.open(configuration) as gateway:
        tool = "describe_table" if arguments.table else "list_tables"
        return await call_tool(gateway, tool, asked, arguments.principal)


def _show(answer: dict[str, Any], *, listing: bool) -> None:
    groups: list[tuple[str, list[str]]] = list(answer["tables"].items())
    groups += [(f"{schema} (views)", names) for schema, names in answer.get("views", {}).items()] if listing else []
    if not groups:
        warn("there are no tables or views, or this role and `schemas` show none")
    for number, (title, lines) in enumerate(groups):
        if number:
            print()
        _print_group(title, lines)
        if not lines and not answer.get("notices"):
            warn(f"no columns of {visible(title)} are known")
    for notice in answer.get("notices", []):
        warn(notice)
    if answer.get("omitted"):
        warn(f"left out: {answer['omitted']}. {answer.get('hint', '')}")


def _print_group(title: str, lines: list[str]) -> None:
    bold, plain = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    print(f"{bold}{visible(title)}{plain}")
    for line in lines:
        print(f"  {visible(line)}")
