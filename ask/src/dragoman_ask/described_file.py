"""The file that descriptions are written to: markdown for `knowledge.files`. Its existing text is kept."""

from __future__ import annotations

import itertools
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
"""The most characters of one description."""
_HEADING = re.compile(r"#{1,2}[ \t]")
_SILENT = "nothing to say of "
_QUOTED = re.compile("`([^`]+)`")
_ANY_HEADING = re.compile(r"#{1,3}[ \t]")


@dataclass(slots=True)
class NewText:
    """The text to add about one table. `values`: of columns that hold nothing else.

    - `verdicts`: for people, why a column's values are such a list or not.
    - `silent`: columns about which there is nothing to say, so that nobody asks again.
    """

    description: str = ""
    columns: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    verdicts: dict[str, str] = field(default_factory=dict[str, str])
    silent: Sequence[str] = ()


class DescribedFile:
    """One file. `origin`: the writer and the time, added after every new line.

    Raises `ConfigurationError` when created, if the file exists and cannot be read.
    """

    def __init__(self, path: Path, database: str, origin: str) -> None:
        self.path = path
        self._origin = origin
        self._mark = f" <!-- {origin} -->"
        self._lines = (_read(path) if path.exists() else f"# {database}\n").splitlines()
        self._lines += [""] if self._lines and self._lines[-1] else []

    def meaning(self) -> Meaning:
        """Return the contents of the file. Raises `ConfigurationError`."""
        try:
            return read("\n".join(self._lines), self.path.name)
        except WrongFile as wrong:
            raise ConfigurationError(
                f"{self.path.name}:{wrong.line}: {wrong.message}.", suggestion=wrong.remedy
            ) from None

    def add_about(self, text: str) -> None:
        """Add the description of the database, below the title."""
        first = next((place for place, line in enumerate(self._lines) if line.startswith("# ")), -1)
        self._lines[first + 1 : first + 1] = ["", one_line(text) + self._mark]

    def add_table(self, name: str, new: NewText) -> None:
        """Add new text about a table, after the existing text."""
        told = {**dict.fromkeys(new.values, ""), **new.columns}
        items = [
            f"- `{column}`:{_indent(one_line(text))}{_braces(new.values.get(column, ()))}{self._mark}"
            for column, text in told.items()
        ]
        items += [self._remark(f"`{column}` {one_line(why)}") for column, why in new.verdicts.items()]
        if silent := [f"`{column}`" for column in new.silent if column == one_line(column)]:
            items.append(self._remark(f"{_SILENT}{', '.join(silent)}"))
        heading = f"### {name}"
        if heading in self._lines:
            self._insert(self._lines.index(heading), items, _ANY_HEADING)
            return
        about = [one_line(new.description) + self._mark, ""] if new.description else []
        self._insert(self._section("## Tables"), [heading, "", *about, *items, ""], _HEADING)

    def add_example(self, example: Example) -> None:
        """Add a question with its query."""
        block = [f"### {one_line(example.question)}{self._mark}", "", "```sql", *example.sql.splitlines(), "```", ""]
        self._insert(self._section("## Examples"), block, _HEADING)

    def silent_columns(self, name: str) -> frozenset[str]:
        """Return the columns of a table about which there was nothing to say."""
        heading = f"### {name}"
        if heading not in self._lines:
            return frozenset()
        start = self._lines.index(heading) + 1
        part = itertools.takewhile(lambda line: not _ANY_HEADING.match(line), self._lines[start:])
        marks = [line.partition(_SILENT)[2] for line in part if line.startswith("<!--")]
        return frozenset(column for mark in marks for column in _QUOTED.findall(mark))

    def _remark(self, text: str) -> str:
        """Return a line for people alone."""
        return f"<!-- {self._origin}: {text} -->"

    def write(self) -> None:
        """Replace the file atomically. Raises `ConfigurationError` if it cannot be written."""
        self.meaning()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_private(self.path, ("\n".join(self._lines).rstrip("\n") + "\n").encode())
            self.path.chmod(0o644)
        except OSError as error:
            raise ConfigurationError(f"{self.path.name} cannot be written ({error.strerror}).") from None

    def _section(self, heading: str) -> int:
        """Return the line of a section, which is added if it is missing."""
        if heading not in self._lines:
            self._lines += [heading, ""]
        return self._lines.index(heading)

    def _insert(self, start: int, lines: Sequence[str], until: re.Pattern[str]) -> None:
        """Insert lines at the end of the section that begins at a line."""
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
    """Return a model's text for the file: one short line that is only text."""
    plain = " ".join(re.sub(r"<!--|-->|[{}`\x00-\x1f]", " ", text).split()).lstrip("#-*+>~ ")
    return plain[:LONGEST]


def _indent(text: str) -> str:
    return f" {text}" if text else ""


def _braces(values: Sequence[str]) -> str:
    return f" {{{'|'.join(values)}}}" if values else ""


def names_of(meaning: Meaning) -> Mapping[str, frozenset[str]]:
    """Return the tables and columns that a file describes, all in lower case."""
    return {".".join(table.name).casefold(): frozenset(table.columns) for table in meaning.tables}
