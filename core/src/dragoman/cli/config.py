"""`dragoman config`: show the merged configuration, check it, or write a starter file."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dragoman.cli.common import add_json_argument, add_source_arguments, load_configuration, run_async, warn
from dragoman.cli.output import put
from dragoman.config import STARTER, parse_named, show, split_name
from dragoman.config.readers import is_list, is_mapping
from dragoman.config.showing import MASK, mask_url
from dragoman.config.sources import Problem
from dragoman.config.urls import as_url
from dragoman.errors import ConfigurationError

EXAMPLES = """\
examples:
  dragoman config init
  dragoman config check --config dragoman.toml
  dragoman config show --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    actions = {
        "show": "print the merged configuration, secrets masked, with where each value came from",
        "check": "report every problem, with file, line, key and remedy; connects to the databases",
        "init": "write a starter file, ./dragoman.toml, with the databases of --url",
    }
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in actions.items():
        action = commands.add_parser(name, help=summary, description=summary)
        add_source_arguments(action)
        if name == "init":
            action.add_argument("--force", action="store_true", help="replace a file that exists")
            action.add_argument("--stdout", action="store_true", help="print it instead of writing a file")
        else:
            add_json_argument(action)


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action."""
    return {"show": _show, "check": _check, "init": _init}[arguments.action](arguments)


def _show(arguments: argparse.Namespace) -> int:
    shown = show(load_configuration(arguments))
    put(json.dumps(shown, indent=2, ensure_ascii=False) if arguments.json else "\n".join(as_toml(shown)))
    return 0


def as_toml(shown: Mapping[str, Any]) -> Iterable[str]:
    """Yield the result of `show` as lines of a configuration file. A comment names the source of each value."""
    sources: Mapping[str, str] = shown.get("sources", {})
    if source := shown.get("source"):
        yield f"# {source}"
    if default := shown.get("default_database"):
        yield _line("default_database", default, sources.get("default_database"))
    sections = {name: shown[name] for name in ("server", "audit") if name in shown}
    sections |= {f"databases.{name}": values for name, values in shown["databases"].items()}
    sections |= {f"policies.{name}": values for name, values in shown.get("policies", {}).items()}
    for section, values in sections.items():
        yield f"\n[{section}]"
        for key, value in values.items():
            if value is not None:
                yield _line(key, value, sources.get(f"{section}.{key}"))


def _line(key: str, value: Any, source: str | None) -> str:
    return f"{key} = {to_toml(value)}" + (f"  # {source}" if source else "")


def to_toml(value: Any) -> str:
    """Return a JSON value as TOML, on one line."""
    if is_mapping(value):
        pairs = [f"{json.dumps(key)} = {to_toml(each)}" for key, each in value.items() if each is not None]
        return "{ " + ", ".join(pairs) + " }"
    if is_list(value):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _check(arguments: argparse.Namespace) -> int:
    problems, warnings = _problems(arguments)
    if arguments.json:
        listed = [asdict(problem) for problem in problems]
        put(json.dumps({"problems": listed, "warnings": list(warnings)}, ensure_ascii=False))
    else:
        for problem in problems:
            put(f"{problem.sentence} {problem.remedy}".rstrip(), sys.stderr)
        for warning in warnings:
            warn(warning)
        if not problems:
            print("no problems found")
    return 2 if problems else 0


def _problems(arguments: argparse.Namespace) -> tuple[Sequence[Problem], Sequence[str]]:
    from dragoman.cli.checking import Check

    try:
        configuration = load_configuration(arguments)
    except ConfigurationError as error:
        unread = {"file": "configuration", "key": "", "message": error.message, "remedy": error.suggestion}
        return [Problem(**each) for each in error.context.get("problems", [unread])], ()
    check = Check(configuration, list(configuration.warnings))
    return run_async(check.problems()), check.warnings


def _init(arguments: argparse.Namespace) -> int:
    starter = _starter(arguments.urls)
    if arguments.stdout:
        print(starter, end="")
        return 0
    path = Path(arguments.config or "dragoman.toml")
    try:
        with path.open("w" if arguments.force else "x", encoding="utf-8") as file:
            file.write(starter)
    except FileExistsError:
        raise ConfigurationError(
            f"{path} exists already.", suggestion="Pass --force to replace it, or --stdout to print the starter."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}.") from None
    print(f"wrote {path}; edit it, then run: dragoman config check")
    return 0


def _starter(urls: Sequence[str]) -> str:
    """Return the starter file.

    With URLs, it has their databases instead of the examples, and variables for passwords.
    """
    if not urls:
        return STARTER
    return "\n".join([STARTER.partition("[databases.")[0], *map(_section, urls)])


def _section(text: str) -> str:
    """Return a database's section. Secrets in its URL become variables."""
    own, url = parse_named(text), as_url(split_name(text)[1]).replace("$", "$$")
    variable = re.sub(r"\W", "_", own.name).upper()
    body, mark, query = mask_url(url).partition("?")
    written = body.replace(MASK, f"${{{variable}_PASSWORD}}") + mark + query.replace(MASK, f"${{{variable}_SECRET}}")
    hint = "  # the variables are percent-encoded, in the environment or in .env" if MASK in mask_url(url) else ""
    return f"[databases.{own.name}]\nurl = {to_toml(written)}{hint}\n"
