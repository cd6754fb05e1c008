"""`dragoman reload`: check the configuration, then make a running server apply it."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePath

from dragoman.cli.common import add_source_arguments, load_configuration
from dragoman.cli.output import put
from dragoman.errors import ConfigurationError

EXAMPLES = """\
examples:
  dragoman reload 4711 --config dragoman.toml
  dragoman reload $(systemctl show -p MainPID --value dragoman)
"""
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*(\.exe)?", re.IGNORECASE)
_PROGRAM = re.compile(r"dragoman(\.exe)?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("pid", metavar="PID", type=_number, help="the process id of `dragoman serve`")
    add_source_arguments(parser)


def _number(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,9}", text):
        raise argparse.ArgumentTypeError("expected the number of a process")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Send SIGHUP, unless the configuration is wrong. The server's log says what it applied."""
    load_configuration(arguments)
    # The signal would end another program.
    if not is_server(_command_of(arguments.pid)):
        raise ConfigurationError(
            f"The process {arguments.pid} is not a `dragoman serve` that you may signal.",
            suggestion="Find it with: pgrep -af 'dragoman serve'.",
        )
    try:
        os.kill(arguments.pid, signal.SIGHUP)
    except (ProcessLookupError, PermissionError):
        raise ConfigurationError(
            f"There is no process {arguments.pid} that you may signal.", suggestion="Check the number with ps."
        ) from None
    put("The configuration is valid, and the server was told to apply it. Its log says what changed.")
    return 0


def is_server(command: Sequence[str]) -> bool:
    """Return whether a process with this command line is a server: `dragoman serve`, with any interpreter."""
    words = list(command)
    if words and _INTERPRETER.fullmatch(PurePath(words[0]).name):
        place = next((place for place in range(1, len(words)) if _is_program(words, place)), len(words))
        words = words[place:]
    return bool(words) and bool(_PROGRAM.fullmatch(PurePath(words[0]).name)) and "serve" in words[1:]


def _is_program(words: Sequence[str], place: int) -> bool:
    """Return whether only the interpreter's own options come before this word.

    The word is then the module of -m, or the path of a script.
    """
    before = words[place - 1]
    return before == "-m" or not (words[place].startswith("-") or before in ("-X", "-W"))


def _command_of(process: int) -> list[str]:
    """Return the command line of a process; empty if it cannot be read."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return []
    try:
        told = subprocess.run(["ps", "-o", "args=", "-p", str(process)], capture_output=True, text=True, check=False)
    except OSError:
        return []
    return told.stdout.split()
