"""`dragoman queries`: list the saved queries of a folder, check them against their databases, or run one."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dragoman.cli.common import (
    add_caller_argument,
    add_json_argument,
    add_source_arguments,
    load_configuration,
    run_async,
    start_logging,
    warn,
)
from dragoman.cli.query import MAX_BYTES, parameter, print_result
from dragoman.config import Configuration
from dragoman.errors import ConfigurationError, DragomanError, ParameterError
from dragoman.model import LOCAL, Principal
from dragoman.saved import SavedQueries, SavedQuery

if TYPE_CHECKING:
    from dragoman.model import Result

EXAMPLES = """\
examples:
  dragoman queries list
  dragoman queries check --config dragoman.toml
  dragoman queries run revenue --param since=2026-01-01 --format csv
  dragoman queries run revenue --as ann:analysts
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    actions = {
        "list": "list the saved queries",
        "check": "let each database compile its saved queries, without running them",
        "run": "run a saved query",
    }
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in actions.items():
        action = commands.add_parser(name, help=summary, description=summary)
        if name == "run":
            action.add_argument("name", metavar="NAME", help="a saved query")
        add_source_arguments(action)
        action.add_argument("--dir", metavar="FOLDER", help="the folder (server.queries_dir)")
        _add_options(action, name)


def _add_options(action: argparse.ArgumentParser, name: str) -> None:
    if name != "list":
        add_caller_argument(action)
    if name != "run":
        add_json_argument(action)
        return
    action.add_argument(
        "--param",
        metavar="NAME=V",
        action="append",
        default=[],
        help="a value, read as JSON, or as text where it is no JSON; repeatable",
    )
    action.add_argument("--limit", metavar="N", type=int, help="at most this many rows")
    action.add_argument(
        "--format", choices=["table", "json", "csv", "markdown"], default="table", help="how rows are printed"
    )
    action.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action."""
    overrides = {"server": {"queries_dir": arguments.dir}} if arguments.dir else None
    configuration = load_configuration(arguments, overrides)
    start_logging(configuration)
    return {"list": _list, "check": _check, "run": _run}[arguments.action](configuration, arguments)


def _read(configuration: Configuration) -> SavedQueries:
    if configuration.server.queries_dir is None:
        raise ConfigurationError(
            "No folder of saved queries is configured.",
            suggestion='Set server.queries_dir = "queries", or pass --dir FOLDER.',
        )
    return SavedQueries.read(configuration.server.queries_dir)


def _list(configuration: Configuration, arguments: argparse.Namespace) -> int:
    from dragoman.cli import output

    saved = _read(configuration)
    facts = [query.facts() for query in saved.queries.values()]
    if arguments.json:
        output.put(json.dumps({"queries": facts}, indent=2, ensure_ascii=False))
    else:
        rows = [[each["name"], each.get("database"), _parameters(each), each.get("description")] for each in facts]
        output.print_table(["name", "database", "params", "description"], rows)
    for problem in saved.problems:
        warn(str(problem))
    return 0


def _parameters(facts: dict[str, Any]) -> str:
    return ", ".join(f"{each['name']} {each['type']}" for each in facts.get("params", ()))


def _check(configuration: Configuration, arguments: argparse.Namespace) -> int:
    from dragoman.cli import output

    saved = _read(configuration)
    problems = [{"file": each.file, "line": each.line, "message": str(each)} for each in saved.problems]
    problems += run_async(_compile(configuration, saved, arguments.principal))
    if arguments.json:
        output.put(json.dumps({"checked": len(saved.queries), "problems": problems}, indent=2, ensure_ascii=False))
    else:
        for problem in problems:
            output.put(str(problem["message"]), sys.stderr)
        output.put(f"saved queries: {len(saved.queries)}, problems: {len(problems)}")
    return 1 if problems else 0


async def _compile(configuration: Configuration, saved: SavedQueries, caller: Principal) -> list[dict[str, Any]]:
    """Return the problems of queries. Unless a caller is named, roles do not matter, since nothing runs."""
    from dragoman.gateway import Gateway

    if caller == LOCAL:
        configuration = replace(configuration, roles={})
    async with Gateway.open(configuration) as gateway:
        return [found for query in saved.queries.values() if (found := await _problem(gateway, query, caller))]


async def _problem(gateway: Any, query: SavedQuery, caller: Principal) -> dict[str, Any] | None:
    from dragoman.tools.saved_queries import check

    file = query.path.name if query.path else query.name
    try:
        await check(gateway, query, caller)
    except DragomanError as error:
        message = f"{file}: {error.code}: {error.message} {error.suggestion}".rstrip()
        return {"file": file, "message": message, "code": error.code}
    return None


def _run(configuration: Configuration, arguments: argparse.Namespace) -> int:
    query = _read(configuration).find(arguments.name)
    given = dict(_pair(each) for each in arguments.param)
    print_result(run_async(_answer(configuration, query, given, arguments)), arguments.format)
    return 0


async def _answer(
    configuration: Configuration, query: SavedQuery, given: dict[str, Any], arguments: argparse.Namespace
) -> Result:
    from dragoman.gateway import Gateway
    from dragoman.tools.saved_queries import run as run_saved

    caller, limit = arguments.principal, arguments.limit
    async with Gateway.open(configuration) as gateway:
        return await run_saved(gateway, query, given, principal=caller, limit=limit, max_bytes=MAX_BYTES)


def _pair(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator:
        raise ParameterError(f"--param {text} has no value.", suggestion="Write --param NAME=VALUE.")
    return name, parameter(value)
