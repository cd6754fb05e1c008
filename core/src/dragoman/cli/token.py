"""`dragoman token`: static tokens for programs that cannot sign in by themselves."""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from dragoman.auth.tokens import hash_token, make_token
from dragoman.cli.common import add_json_argument, add_source_arguments
from dragoman.cli.output import put

EXAMPLES = """\
examples:
  dragoman token create reports --group analysts --expires 90d
  dragoman token create ci >> dragoman.toml
  dragoman token create ci --json
"""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_AGE = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    summary = "create a token; the configuration keeps only its hash"
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = commands.add_parser("create", help=summary, description=summary, epilog=EXAMPLES)
    create.add_argument("name", metavar="NAME", type=_name, help="who or what the token is for; logs show it")
    create.add_argument(
        "--group", metavar="G", action="append", default=[], dest="groups", help="a group of the caller; repeatable"
    )
    create.add_argument(
        "--expires", metavar="AGE", type=_age, help="how long the token is valid: 12h, 90d or 52w; without it, for ever"
    )
    add_json_argument(create)
    add_source_arguments(create)


def run(arguments: argparse.Namespace) -> int:
    """Print the text for the configuration to stdout, and the token, only this once, to stderr."""
    token = make_token()
    entry: dict[str, Any] = {"name": arguments.name, "hash": hash_token(token)}
    if arguments.expires:
        entry["expires"] = (datetime.now(UTC) + arguments.expires).strftime("%Y-%m-%dT%H:%M:%SZ")
    if arguments.groups:
        entry["groups"] = arguments.groups
    if arguments.json:
        put(json.dumps({"token": token, "entry": entry}))
        return 0
    put("\n".join(["[[server.tokens]]", *(_line(key, value) for key, value in entry.items())]))
    put("The token is shown only now. Clients send it as `Authorization: Bearer TOKEN`:", sys.stderr)
    put(token, sys.stderr)
    return 0


def _line(key: str, value: Any) -> str:
    # A time is written in TOML's own form; everything else is spelled as in JSON.
    return f"{key} = {value}" if key == "expires" else f"{key} = {json.dumps(value)}"


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError("a name has letters, digits and . _ @ -, at most 64 of them")
    return text


def _age(text: str) -> timedelta:
    if not (age := _AGE.fullmatch(text)):
        raise argparse.ArgumentTypeError("write a number and h, d or w: 12h, 90d, 52w")
    return int(age[1]) * _UNITS[age[2]]
