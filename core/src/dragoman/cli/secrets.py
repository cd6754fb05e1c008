"""`dragoman secrets`: encrypt passwords and tokens for a configuration file. Only a key decrypts them."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from dragoman.cli.common import add_source_arguments
from dragoman.cli.output import put
from dragoman.config.secrets import SecretError, encrypt, make_key, read_key
from dragoman.config.sources import key_file, read_dotenv
from dragoman.errors import ConfigurationError

EXAMPLES = """\
examples:
  dragoman secrets init
  dragoman secrets encrypt databases.shop.password
  pass shop | dragoman secrets encrypt databases.shop.password
"""
_SETTING = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    summary = "write a new key to the user's configuration folder, readable only by the user"
    init = commands.add_parser("init", help=summary, description=summary)
    add_source_arguments(init)
    summary = "encrypt a secret, asked for or read from stdin, for one setting of the configuration"
    command = commands.add_parser("encrypt", help=summary, description=summary, epilog=EXAMPLES)
    command.add_argument(
        "setting", metavar="SETTING", type=_setting, help="the setting's key, such as databases.shop.password"
    )
    add_source_arguments(command)


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action."""
    environ = {**read_dotenv(Path.cwd()), **os.environ}
    path = key_file(environ)
    try:
        if arguments.action == "init":
            make_key(path)
            put(str(path))
        else:
            key = read_key(environ, path)
            put(encrypt(_secret(), arguments.setting, key))
    except SecretError as error:
        raise ConfigurationError(f"{str(error)[0].upper()}{str(error)[1:]}.", suggestion=error.remedy) from None
    return 0


def _secret() -> str:
    if sys.stdin.isatty():
        from getpass import getpass

        return getpass("The secret: ")
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")


def _setting(text: str) -> str:
    if not _SETTING.fullmatch(text):
        raise argparse.ArgumentTypeError("name a setting by its path in the file: databases.shop.password")
    return text
