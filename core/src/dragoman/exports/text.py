"""CSV and JSON lines, by the standard library."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.exports.formats import Source
from dragoman.model import Column

_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def write_csv(path: Path, columns: Sequence[Column], source: Source) -> tuple[str, ...]:
    """Write CSV as RFC 4180 has it, in UTF-8: NULL is an empty cell, an empty text is `""`.

    A spreadsheet runs a text that begins like a formula, so that a `'` is put before it; the notices say where.
    """
    cells = _Cells(columns)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(_quote(column.name) for column in columns) + "\r\n")
        for rows in source():
            file.writelines(",".join(map(cells.text, range(len(row)), row)) + "\r\n" for row in rows)
    return cells.notices()


class _Cells:
    """Writes values as cells, remembering what was escaped."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._escaped = [0] * len(columns)

    def text(self, place: int, value: Any) -> str:
        match value:
            case None:
                return ""
            case bool():
                return "true" if value else "false"
            case str():
                return _quote(self._safe(place, value))
            case int() | float():
                return json.dumps(value)
            case _:
                return _quote(json.dumps(value, ensure_ascii=False))

    def _safe(self, place: int, value: str) -> str:
        if _FORMULA.match(value) and not _NUMBER.fullmatch(value):
            self._escaped[place] += 1
            return f"'{value}"
        return value

    def notices(self) -> tuple[str, ...]:
        return tuple(
            f"{count} values of the column {column.name!r} begin like a formula; a ' stands before them."
            for column, count in zip(self._columns, self._escaped, strict=True)
            if count
        )


def _quote(text: str) -> str:
    plain = text and not any(mark in text for mark in ',"\r\n') and text == text.strip()
    return text if plain else '"' + text.replace('"', '""') + '"'


def write_jsonl(path: Path, columns: Sequence[Column], source: Source) -> tuple[str, ...]:
    """Write a JSON object per row, keyed by column; of columns of one name the later ones get a number."""
    names = distinct([column.name for column in columns])
    with path.open("w", encoding="utf-8") as file:
        for rows in source():
            file.writelines(f"{_encode(dict(zip(names, row, strict=True)))}\n" for row in rows)
    renamed = [name for name, column in zip(names, columns, strict=True) if name != column.name]
    return (f"Columns of one name are written as {', '.join(renamed)}.",) if renamed else ()


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def distinct(names: Sequence[str]) -> list[str]:
    """Return names of which no two are one: the later ones get a number."""
    found: list[str] = []
    for name in names:
        number, own = 1, name
        while own in found:
            number += 1
            own = f"{name}_{number}"
        found.append(own)
    return found
