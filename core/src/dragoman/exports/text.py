"""CSV and JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from dragoman.exports.formats import Rows, Source
from dragoman.model import Column

_MARKS = re.compile(r'[,"\r\n]')
_WIDE: Final = "\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
"""Signs that a spreadsheet set to Japanese or Chinese reads as the ASCII ones."""
_UNSEEN: Final = (
    r"\s\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
"""White space, control characters and characters without a glyph: some programs remove them before they read a cell."""
_FORMULA = re.compile(rf"[\t\r\n]|[{_UNSEEN}]*[=+\-@{_WIDE}]")
_NUMBER = re.compile(rf"[{_UNSEEN}]*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_SPECIAL_START = re.compile(rf"\n[=+\-@{_WIDE}{_UNSEEN}]")
"""Matches the text after a line's end if it may be a formula, or is blank or empty."""


def write_csv(path: Path, columns: Sequence[Column], source: Source) -> tuple[str, ...]:
    """Write CSV according to RFC 4180, in UTF-8: NULL is an empty cell, an empty text is `""`.

    In a file of one column NULL is `""` too, since many readers skip an empty line.
    A spreadsheet would run a text that begins like a formula, so a `'` is written before it. The notices say where.
    """
    cells = _Cells(columns)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(cells.names() + "\r\n")
        for rows in source():
            file.write(cells.lines(rows))
    return cells.notices()


class _Cells:
    """Writes rows as lines, and remembers what was escaped."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._escaped = [0] * len(columns)
        self._renamed: list[str] = []
        self._blanks = set[str | None]()

    def names(self) -> str:
        """Return the first line."""
        self._renamed = [column.name for column in self._columns if _is_live(column.name)]
        return ",".join(_quote(f"'{each.name}" if _is_live(each.name) else each.name) for each in self._columns)

    def lines(self, rows: Rows) -> str:
        """Return a line per row. Cells are made column by column: values of one type usually need no separate check."""
        by_column = [self._column(place, values) for place, values in enumerate(zip(*rows, strict=True))]
        lines = map(",".join, zip(*by_column, strict=True))
        return "\r\n".join((*(self._alone(rows, lines) if len(self._columns) == 1 else lines), ""))

    def _alone(self, rows: Rows, lines: Iterable[str]) -> Iterable[str]:
        """Return the lines of a single column, none of which is empty."""
        self._blanks |= {value for (value,) in rows if value is None or value == ""}
        return (line or '""' for line in lines)

    def _column(self, place: int, values: Sequence[Any]) -> Iterable[str]:
        types = {*map(type, values)}
        if types <= _TEXTS and _are_plain([value for value in values if value is not None]):
            return values if types == {str} else [value or "" for value in values]
        if len(types) == 1 and types <= _OF_ONE_TYPE.keys():
            return map(_OF_ONE_TYPE[types.pop()], values)
        return [self._text(place, value) for value in values]

    def _text(self, place: int, value: Any) -> str:
        match value:
            case None:
                return ""
            case bool():
                return _boolean(value)
            case str():
                return _quote(self._safe(place, value))
            case int() | float():
                return repr(value)
            case _:
                return _quote(json.dumps(value, ensure_ascii=False))

    def _safe(self, place: int, value: str) -> str:
        if _is_live(value):
            self._escaped[place] += 1
            return f"'{value}"
        return value

    def notices(self) -> tuple[str, ...]:
        names = [f"The name {name!r} begins like a formula; a ' stands before it." for name in self._renamed]
        values = [
            f"{count} values of the column {column.name!r} begin like a formula; a ' stands before them."
            for column, count in zip(self._columns, self._escaped, strict=True)
            if count
        ]
        alone = ('NULL and an empty text are both "" in a file of one column.',) if len(self._blanks) > 1 else ()
        return (*names, *values, *alone)


def _is_live(text: str) -> bool:
    """Return whether a spreadsheet would run a text."""
    return _FORMULA.match(text) is not None and (text[0] in "\t\r\n" or not _NUMBER.fullmatch(text))


def _boolean(value: bool) -> str:
    return "true" if value else "false"


_TEXTS: Final = {str, type(None)}
_OF_ONE_TYPE: Final[dict[type, Callable[[Any], str]]] = {int: repr, float: repr, bool: _boolean}


def _are_plain(texts: Sequence[str]) -> bool:
    """Return whether no text needs quotes or a `'`. Searches all of them as one text."""
    together = "\n".join(("", *texts, ""))
    return (
        not ("," in together or '"' in together or "\r" in together)
        and together.count("\n") == len(texts) + 1
        and not _SPECIAL_START.search(together)
        and [*map(str.strip, texts)] == texts
    )


def _quote(text: str) -> str:
    plain = text and not _MARKS.search(text) and text == text.strip()
    return text if plain else '"' + text.replace('"', '""') + '"'


def write_jsonl(path: Path, columns: Sequence[Column], source: Source) -> tuple[str, ...]:
    """Write a JSON object per row, keyed by column. Of columns with the same name, the later ones get a number."""
    import msgspec  # only here: the list of tools needs the names of formats at the start, and not this import

    encode = msgspec.json.Encoder().encode_lines
    names = distinct([column.name for column in columns])
    with path.open("wb") as file:
        for rows in source():
            file.write(encode(dict(zip(names, row, strict=True)) for row in rows))
    return notices_of(columns, names)


def distinct(names: Sequence[str]) -> list[str]:
    """Return unique names: of equal names, the later ones get a number that makes none of the other names."""
    numbers: dict[str, int] = {}
    found: dict[str, None] = {}
    taken = set(names)
    for name in names:
        own = name
        while own in found or (own != name and own in taken):
            numbers[name] = numbers.get(name, 1) + 1
            own = f"{name}_{numbers[name]}"
        found[own] = None
    return list(found)


def notices_of(columns: Sequence[Column], names: Sequence[str]) -> tuple[str, ...]:
    """Return a notice of the columns that are written with a number, since others have the same name."""
    renamed = [name for name, column in zip(names, columns, strict=True) if name != column.name]
    return (f"Columns of one name are written as {', '.join(renamed)}.",) if renamed else ()
