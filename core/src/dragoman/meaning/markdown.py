"""Markdown files about a database: its description, glossary, metrics, conventions, tables and example questions.

Headings of the second level name the sections; those of the third level, a table or a question. `<!-- ... -->` is
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from dragoman.meaning.values import ColumnText, Example, Meaning, Note, NoteKind, TableText, WrongFile
from dragoman.words import nearest

SECTIONS: Final = ("about", "glossary", "metrics", "conventions", "tables", "examples")
_NAMED: Final[dict[str, NoteKind]] = {"glossary": "term", "metrics": "metric"}
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*")
_ITEM = re.compile(r"[-*+][ \t]+(.*)")
_ENTRY = re.compile(
    r"(?:\*\*(?P<bold>[^*]+)\*\*|`(?P<code>[^`]+)`|(?P<plain>[^:`*]{1,80}))"
    r"[ \t]*(?::|--|\u2013|\u2014)[ \t]+(?P<text>.+)"
)
_VALUES = re.compile(r"(?P<text>.*?)[ \t]*\{(?P<values>[^{}]+)\}")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
"""Matches a comment.

A comment without an end runs to the end of the file, as in HTML; otherwise matching could take forever.
"""
_FENCE = re.compile(r"(```+|~~~+)[ \t]*(\w*)")


@dataclass(slots=True)
class _Part:
    """A heading with the text below it. `line`: the heading's line."""

    title: str
    line: int
    lines: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    parts: list[_Part] = field(default_factory=list["_Part"])


def read(text: str, name: str) -> Meaning:
    """Return the contents of a file. Raises `WrongFile`."""
    head, sections = _sections(_COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text))
    about = _prose(head.lines)
    tables: list[TableText] = []
    notes: list[Note] = []
    examples: list[Example] = []
    for section in sections:
        match _kind(section):
            case "about":
                about = about or _prose(section.lines)
            case "tables":
                tables += [_table(part, name) for part in section.parts]
            case "examples":
                examples += [_example(part, name) for part in section.parts]
            case "glossary" | "metrics" as kind:
                notes += [Note(_NAMED[kind], told, called) for called, told in _entries(section)]
            case _:
                notes += [Note("convention", told) for told in _statements(section)]
    return Meaning(about, tuple(tables), tuple(notes), tuple(examples))


def _sections(text: str) -> tuple[_Part, list[_Part]]:
    """Return the text before the first heading of the second level, and the sections below such headings."""
    head, sections = _Part("", 1), list[_Part]()
    here, fence = head, ""
    for number, line in enumerate(text.splitlines(), 1):
        heading = None if fence else _HEADING.fullmatch(line)
        if mark := _FENCE.match(line.strip()):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        if heading is None or len(heading[1]) > 3:
            here.lines.append((number, line))
        elif len(heading[1]) == 2:
            here = _Part(heading[2], number)
            sections.append(here)
        elif len(heading[1]) == 3:
            if not sections:
                raise WrongFile(
                    number, f"### {heading[2]} stands in no section", "Put it below ## Tables or ## Examples."
                )
            here = _Part(heading[2], number)
            sections[-1].parts.append(here)
    return head, sections


def _kind(section: _Part) -> str:
    """Return the kind of a section. An unknown title is a convention; a misspelled one is an error."""
    title = section.title.casefold()
    if title in SECTIONS:
        return title
    if near := nearest(title, SECTIONS, 1, 0.75):
        raise WrongFile(section.line, f"there is no part {section.title!r}", f"Did you mean ## {near[0].capitalize()}?")
    return ""


def _prose(lines: Sequence[tuple[int, str]]) -> str:
    return " ".join(" ".join(line for _, line in lines).split())


def _items(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the items of a list. An item with its continuation lines becomes one line."""
    item: tuple[int, list[str]] | None = None
    for number, line in lines:
        if found := _ITEM.fullmatch(line.strip()):
            if item:
                yield item[0], " ".join(item[1])
            item = number, [found[1].strip()]
        elif item and line.strip():
            item[1].append(line.strip())
    if item:
        yield item[0], " ".join(item[1])


def _entries(section: _Part) -> Iterator[tuple[str, str]]:
    """Yield the entries of a list `- **name**: text`, or below headings of the third level."""
    for number, item in _items(section.lines):
        yield _entry(number, item)
    for part in section.parts:
        yield part.title, _prose(part.lines)


def _entry(number: int, item: str) -> tuple[str, str]:
    found = _ENTRY.fullmatch(item)
    if found is None:
        raise WrongFile(number, "this entry has no name", "Write `- **name**: what it means`.")
    return (found["bold"] or found["code"] or found["plain"]).strip().rstrip(":"), found["text"].strip()


def _statements(section: _Part) -> Iterator[str]:
    """Yield the items of a section's list; without a list, its text. Text below further headings follows."""
    items = [item for _, item in _items(section.lines)]
    before = _prose(section.lines[: _first_item(section.lines)])
    yield from ([before] if before else [])
    yield from items
    for part in section.parts:
        if text := _prose(part.lines):
            yield f"{part.title}: {text}"


def _first_item(lines: Sequence[tuple[int, str]]) -> int:
    return next((place for place, (_, line) in enumerate(lines) if _ITEM.fullmatch(line.strip())), len(lines))


def _table(part: _Part, file: str) -> TableText:
    """Return a table: its description, then a list of its columns, `- name: text {its|only|values}`."""
    first = _first_item(part.lines)
    columns: dict[str, ColumnText] = {}
    for number, item in _items(part.lines[first:]):
        name, text = _entry(number, item)
        if name.casefold() in columns:
            raise WrongFile(number, f"the column {name} is described twice", "Remove one.")
        columns[name.casefold()] = _column(text)
    path = tuple(piece.strip().strip('`"') for piece in part.title.strip("`").split("."))
    if not all(path):
        raise WrongFile(part.line, f"this is not the name of a table: {part.title!r}", "Write ### schema.table.")
    return TableText(path, _prose(part.lines[:first]), MappingProxyType(columns), place=f"{file}:{part.line}")


def _column(text: str) -> ColumnText:
    found = _VALUES.fullmatch(text)
    if found is None:
        return ColumnText(text)
    return ColumnText(found["text"], tuple(value.strip() for value in found["values"].split("|") if value.strip()))


def _example(part: _Part, file: str) -> Example:
    """Return an example: a question as a heading, and one query in a fence below it."""
    lines, fence = list[str](), ""
    blocks: list[str] = []
    for _, line in part.lines:
        mark = _FENCE.match(line.strip())
        if mark and not fence:
            fence, lines = mark[1], []
        elif mark and mark[1].startswith(fence):
            blocks.append("\n".join(lines))
            fence = ""
        elif fence:
            lines.append(line)
    if len(blocks) != 1 or fence or not blocks[0].strip():
        raise WrongFile(
            part.line, "an example must have exactly one query", "Write it between ```sql and ```, below the question."
        )
    return Example(part.title, blocks[0].strip().rstrip(";").rstrip(), f"{file}:{part.line}")
