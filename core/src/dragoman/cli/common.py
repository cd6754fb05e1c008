"""Shared code of the commands: the options that name databases, and running asynchronous work to its end."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.cli.output import put
from dragoman.config import Configuration, is_path, load, parse_named, split_name
from dragoman.errors import ConfigurationError, DragomanError, PermissionDenied
from dragoman.model import Principal
from dragoman.words import nearest

if TYPE_CHECKING:
    from dragoman.gateway import Gateway
    from dragoman.tools import Answer

T = TypeVar("T")


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--config` and `--url`, which every command accepts."""
    parser.add_argument("--config", metavar="FILE", help="the configuration file (TOML or YAML)")
    parser.add_argument(
        "--url",
        metavar="NAME=URL",
        action="append",
        default=[],
        dest="urls",
        help="another database, beside the configured ones; repeatable",
    )


def add_caller_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--as`, which names the caller. `arguments.principal` is that caller, or the local one."""
    parser.add_argument(
        "--as",
        metavar="USER[:GROUP,...]",
        type=principal,
        default=Principal(),
        dest="principal",
        help="call as this user, a member of these groups",
    )


def add_param_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--param`, which may be repeated: the values to bind, in order."""
    parser.add_argument(
        "--param",
        metavar="V",
        action="append",
        default=[],
        help="a value to bind, read as JSON, or as text where it is no JSON; repeatable",
    )


def principal(text: str) -> Principal:
    """Return the principal that `USER[:GROUP,...]` names."""
    user, _, groups = (part.strip() for part in text.partition(":"))
    if not user:
        raise argparse.ArgumentTypeError("name a user: USER or USER:GROUP,...")
    named = frozenset(filter(None, (group.strip() for group in groups.split(","))))
    return Principal(user, subject=user, groups=named)


def add_database_argument(parser: argparse.ArgumentParser, **options: Any) -> None:
    """Add the positional argument DATABASE, with completion of configured names."""
    help_text = options.pop("help", "a configured name, a URL, or the path of a file")
    action: Any = parser.add_argument("database", metavar="DATABASE", help=help_text, **options)
    action.completer = _complete_database  # argcomplete reads it; argparse does not know it


def _complete_database(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    try:
        return list(load(getattr(parsed_args, "config", None)).databases)
    except DragomanError:
        return []


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="answer in JSON")


def load_configuration(arguments: argparse.Namespace, overrides: Mapping[str, Any] | None = None) -> Configuration:
    """Return the configuration of this call. Raises `ConfigurationError`."""
    return load(arguments.config, urls=arguments.urls, overrides=overrides)


def resolve_database(arguments: argparse.Namespace) -> str:
    """Return the name of the database that an argument means. A URL or a path is added to the configuration.

    Raises `ConfigurationError` for the path of a missing file.
    """
    place: str = arguments.database
    if "://" not in place and not is_path(place):
        return place
    database = parse_named(place)
    # Named, so that it is used even if the configuration has another database of its name.
    arguments.urls.append(place if split_name(place)[0] else f"{database.name}={place}")
    if not database.host and database.database:
        _check_file(Path.cwd() / database.database)
    return database.name


def _check_file(path: Path) -> None:
    if is_path(path.as_posix()) and path.suffix and not os.path.exists(path):
        near = nearest(path.name, [each.name for each in path.parent.glob("[!.]*")])
        raise ConfigurationError(
            f"There is no file {path}.",
            suggestion=f"Did you mean {near[0]}?" if near else "Check the path; a relative one starts at this folder.",
        )


def read_sql(given: str) -> str:
    """Return the SQL of an argument; of stdin if it is `-`, which may never end: no more than is sure to be refused."""
    from dragoman.sql.text import MAX_BYTES

    return sys.stdin.read(MAX_BYTES + 1) if given == "-" else given


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run asynchronous work. SIGINT and SIGTERM cancel it first, so that no work goes on in a database."""
    import asyncio
    import signal

    async def cancellable() -> T:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def render_answer(answer: Answer) -> str:
    """Return a tool's answer as JSON text. Raises the error, if it is one."""
    import json

    if not answer.is_error:
        return answer.text
    error: dict[str, Any] = json.loads(answer.text)["error"]
    kinds = {kind.code: kind for kind in _kinds(DragomanError)}
    raise kinds[error["code"]](error["message"], suggestion=error.get("suggestion", ""))


async def call_tool(gateway: Gateway, name: str, arguments: Mapping[str, Any], caller: Principal) -> str:
    """Return a tool's answer as JSON text. Raises the error that it is, and `PermissionDenied` without such a tool."""
    from dragoman.tools import Toolbox, UnknownTool

    try:
        return render_answer(await Toolbox(gateway).call(name, arguments, principal=caller))
    except UnknownTool:
        raise PermissionDenied(
            f"No role grants the tool {name} to the caller {caller.name}.",
            suggestion="Say who calls with --as USER:GROUP; `dragoman may USER:GROUP` shows what a caller may do.",
        ) from None


def _kinds(kind: type[DragomanError]) -> Iterator[type[DragomanError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _kinds(narrower)


def start_logging(configuration: Configuration) -> None:
    """Log to stderr if the configuration asks for it. Otherwise people see errors in words, without tracebacks."""
    from dragoman.cli.logs import log_to_stderr

    if "server.log_level" in configuration.sources:
        log_to_stderr(configuration.server.log_format, configuration.server.log_level)


# Hints for agents name tools and arguments. People have commands and options.
_WORDS = {
    "Use list_tables, describe_table or list_schemas.": (
        "`dragoman describe DATABASE` lists the tables, `dragoman describe DATABASE TABLE` the columns of one."
    ),
    "use list_tables or describe_table": "use `dragoman describe DATABASE [TABLE]`",
    "Use search_catalog to find tables by name.": "`dragoman describe DATABASE` lists the tables.",
    "list_tables or search_catalog": "`dragoman describe DATABASE`",
    "search_catalog or list_tables": "`dragoman describe DATABASE`",
    "list_schemas and list_tables": "`dragoman describe DATABASE`",
    "list_tables, describe_table and search_catalog": "`dragoman describe DATABASE [TABLE]`",
    "explain_query": '`dragoman query DATABASE "EXPLAIN ..."`',
    "`timeout_ms`": "--timeout",
    "timeout_ms": "--timeout",
    "`limit`": "--limit",
    "`params`": "--param",
    "`from_dialect`": "--from-dialect",
    "list_databases": "`dragoman databases`",
    "list_tables": "`dragoman describe DATABASE`",
    "describe_table": "`dragoman describe DATABASE TABLE`",
    "list_schemas": "`dragoman describe DATABASE`",
    "search_catalog": "`dragoman describe DATABASE`",
    "execute_query": "`dragoman query`",
    "find_join_path": "`dragoman describe DATABASE TABLE`",
    "list_queries": "`dragoman queries list`",
}
_TOOL_WORD = re.compile("|".join(re.escape(word) + (r"\b" if word[-1].isalpha() else "") for word in _WORDS))


def in_our_words(text: str) -> str:
    """Return a hint for an agent as a hint for a person at the command line."""
    return _TOOL_WORD.sub(lambda found: _WORDS[found[0]], text)


def warn(message: str) -> None:
    """Write a note to stderr."""
    put(f"note: {in_our_words(message)}", sys.stderr)


LOGGER = logging.getLogger("dragoman.cli")
