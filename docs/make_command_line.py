"""Write docs/command-line.md from the parsers of the command line: `python docs/make_command_line.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).with_name("command-line.md")
HEAD = """\
# Command line

What every command says of itself. `python docs/make_command_line.py` writes this page; a test compares it with the
code.

`DATABASE` is a configured name, a URL, or the path of a file. Data goes to stdout, everything else to stderr. Exit
codes: 0 done, 1 refused or failed, 2 usage or configuration, 130 interrupted. `python -m dragoman` is the same program.

Tab completion: `eval "$(dragoman completion bash)"`, likewise for zsh; `dragoman completion -h` has fish's line.
"""
ACTIONS = {
    "queries": ("list", "check", "run"),
    "audit": ("verify", "tail", "report"),
    "config": ("show", "check", "init"),
    "token": ("create",),
    "secrets": ("init", "encrypt"),
}


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *_sections()])


def _sections() -> Iterator[str]:
    from dragoman.cli import COMMANDS

    yield f"```\n{_help()}```\n"
    for command in COMMANDS:
        yield f"## dragoman {command}\n\n```\n{_help(command)}```\n"
        for action in ACTIONS.get(command, ()):
            yield f"```\n{_help(command, action)}```\n"


def _help(*words: str) -> str:
    environ = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "dragoman", *words, "-h"]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
