"""The file that descriptions are written into: markdown as `knowledge.files` takes it. What stands there is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.errors import ConfigurationError
from dragoman.meaning import Example, Meaning
from dragoman.meaning.markdown import read
from dragoman.meaning.values import WrongFile
from dragoman.private import write_private

LONGEST = 300
"""Characters of one description."""
_HEADING = re.compile(r"#{1,2}[ \t]")
_ANY_HEADING = re.compile(r"#{1,3}[ \t]")


@dataclass(slots=True)
class NewText:
    """What is to be added of one table. `values`: of those columns that hold nothing else."""

    description: str = ""
    columns: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


class DescribedFile:
    """One file. `origin`: what wrote, and when; it stands behind every line that is added.

    Raises `ConfigurationError` when made, where the file is there and cannot be read.
    """

    def __init__(self, path: Path, database: str, origin: str) -> None:
        self.path = path
        self._mark = f" <!-- {origin} -->"
        self._lines = (_read(path) if path.exists() else f"# {database}\n").splitlines()
        self._lines += [""] if self._lines and self._lines[-1] else []

    def meaning(self) -> Meaning:
        """Return what the file tells now. Raises `ConfigurationError`."""
        try:
            return read("\n".join(self._lines), self.path.name)
        except WrongFile as wrong:
            raise ConfigurationError(
                f"{self.path.name}:{wrong.line}: {wrong.message}.", suggestion=wrong.remedy
            ) from None

    def add_about(self, text: str) -> None:
        """Add what the database is, below the title."""
        first = next((place for place, line in enumerate(self._lines) if line.startswith("# ")), -1)
        self._lines[first + 1 : first + 1] = ["", one_line(text) + self._mark]

    def add_table(self, name: str, new: NewText) -> None:
        """Add what is new of a table, below what the file has of it."""
        items = [
            f"- `{column}`: {one_line(text)}{_braces(new.values.get(column, ()))}{self._mark}"
            for column, text in new.columns.items()
        ]
        heading = f"### {name}"
        if heading in self._lines:
            self._insert(self._lines.index(heading), items, _ANY_HEADING)
            return
        told = [one_line(new.description) + self._mark, ""] if new.description else []
        self._insert(self._section("## Tables"), [heading, "", *told, *items, ""], _HEADING)

    def add_example(self, example: Example) -> None:
        """Add a question with its query."""
        block = [f"### {one_line(example.question)}{self._mark}", "", "```sql", *example.sql.splitlines(), "```", ""]
        self._insert(self._section("## Examples"), block, _HEADING)

    def write(self) -> None:
        """Put the file in the place of the old one, whole. Raises `ConfigurationError` where it cannot be written."""
        self.meaning()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_private(self.path, ("\n".join(self._lines).rstrip("\n") + "\n").encode())
            self.path.chmod(0o644)
        except OSError as error:
            raise ConfigurationError(f"{self.path.name} cannot be written ({error.strerror}).") from None

    def _section(self, heading: str) -> int:
        """The line of a section, which is added where there is none."""
        if heading not in self._lines:
            self._lines += [heading, ""]
        return self._lines.index(heading)

    def _insert(self, start: int, lines: Sequence[str], until: re.Pattern[str]) -> None:
        """Insert lines at the end of the part that begins at a line."""
        end, fenced = start + 1, False
        while end < len(self._lines) and (fenced or not until.match(self._lines[end])):
            fenced ^= self._lines[end].startswith("```")
            end += 1
        while end > start + 1 and not self._lines[end - 1]:
            end -= 1
        before = [] if lines and lines[0].startswith("- ") and self._lines[end - 1].startswith("- ") else [""]
        self._lines[end:end] = [*before, *lines]


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(f"{path.name} cannot be read as UTF-8 text.") from None


def one_line(text: str) -> str:
    """Return a model's text as it may stand in the file: one line that is nothing but text, and not long."""
    plain = " ".join(re.sub(r"<!--|-->|[{}`\x00-\x1f]", " ", text).split()).lstrip("#-*+>~ ")
    return plain[:LONGEST]


def _braces(values: Sequence[str]) -> str:
    return f" {{{'|'.join(values)}}}" if values else ""


def names_of(meaning: Meaning) -> Mapping[str, frozenset[str]]:
    """Return which tables and columns a file tells of, all in lower case."""
    return {".".join(table.name).casefold(): frozenset(table.columns) for table in meaning.tables}
