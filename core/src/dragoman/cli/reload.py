"""`dragoman reload`: check the configuration, then tell a server that runs to take it."""

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
    parser.add_argument("pid", type=_number, help="the process id of `dragoman serve`")
    add_source_arguments(parser)


def _number(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,9}", text):
        raise argparse.ArgumentTypeError("expected the number of a process")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Send SIGHUP, unless the configuration is wrong; the server's log tells what it took."""
    load_configuration(arguments)
    # Another program would end at the signal.
    if not is_server(_command_of(arguments.pid)):
        raise ConfigurationError(
            f"The process {arguments.pid} is no `dragoman serve` that you may signal.",
            suggestion="Look for it: pgrep -af 'dragoman serve'.",
        )
    try:
        os.kill(arguments.pid, signal.SIGHUP)
    except (ProcessLookupError, PermissionError):
        raise ConfigurationError(
            f"There is no process {arguments.pid} that you may signal.", suggestion="Check the number with ps."
        ) from None
    put("The configuration is right, and the server was asked to take it; its log says what changed.")
    return 0


def is_server(command: Sequence[str]) -> bool:
    """Whether a process with this command line is a server: `dragoman serve`, whatever interpreter runs it."""
    words = list(command)
    if words and _INTERPRETER.fullmatch(PurePath(words[0]).name):
        place = next((place for place in range(1, len(words)) if _is_program(words, place)), len(words))
        words = words[place:]
    return bool(words) and bool(_PROGRAM.fullmatch(PurePath(words[0]).name)) and "serve" in words[1:]


def _is_program(words: Sequence[str], place: int) -> bool:
    """Whether the interpreter's own options end before this word: a module of -m, or the path of a script."""
    before = words[place - 1]
    return before == "-m" or not (words[place].startswith("-") or before in ("-X", "-W"))


def _command_of(process: int) -> list[str]:
    """The command line of a process; empty where it cannot be seen."""
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
