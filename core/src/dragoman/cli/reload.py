"""`dragoman reload`: check the configuration, then tell a server that runs to take it."""

from __future__ import annotations

import argparse
import os
import signal

from dragoman.cli.common import add_source_arguments, load_configuration
from dragoman.cli.output import put
from dragoman.errors import ConfigurationError

EXAMPLES = """\
examples:
  dragoman reload 4711 --config dragoman.toml
  dragoman reload $(systemctl show -p MainPID --value dragoman)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("pid", type=int, help="the process of `dragoman serve`")
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Send SIGHUP, unless the configuration is wrong; the server's log tells what it took."""
    load_configuration(arguments)
    try:
        if arguments.pid <= 0:
            raise ProcessLookupError
        os.kill(arguments.pid, signal.SIGHUP)
    except (ProcessLookupError, PermissionError):
        raise ConfigurationError(
            f"There is no process {arguments.pid} that you may signal.", suggestion="Check the number with ps."
        ) from None
    put("The configuration is right, and the server was asked to take it; its log says what changed.")
    return 0
