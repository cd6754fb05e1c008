"""A page of the documentation as one shell's work: each command runs and each file is written, in order."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
MARK = "@@ "


@dataclass(frozen=True)
class Step:
    """A command of a page, and the lines that the page says it prints."""

    command: str
    printed: tuple[str, ...]


class Page:
    """One page. `blocks`: language, title and body of each."""

    def __init__(self, name: str) -> None:
        self.text = (DOCS / name).read_text(encoding="utf-8")
        self.blocks: list[tuple[str, str, str]] = re.findall(
            r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', self.text, re.DOTALL | re.MULTILINE
        )
        self.files = {title: body for language, title, body in self.blocks if language == "python"}

    @property
    def steps(self) -> list[Step]:
        """Every command, in order."""
        return [step for language, _, body in self.blocks if language == "console" for step in _steps(body)]

    def script(self) -> str:
        """The whole page; each command is announced by its number."""
        lines, number = ["set -euo pipefail"], 0
        for language, title, body in self.blocks:
            if language == "python":
                lines.append(f"printf %s {shlex.quote(body)} > {shlex.quote(title)}")
            for step in _steps(body) if language == "console" else ():
                lines += [f"echo; echo '{MARK}{number}'", step.command]
                number += 1
        return "\n".join(lines)

    @staticmethod
    def outputs(printed: str) -> list[str]:
        """What each command printed, in order."""
        return [part.partition("\n")[2] for part in printed.split(f"\n{MARK}")[1:]]


def _steps(block: str) -> list[Step]:
    parts = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    return [Step(command, tuple(printed.splitlines())) for command, printed in parts]
