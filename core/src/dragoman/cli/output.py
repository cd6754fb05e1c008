"""Rows for people and programs: aligned text, rich tables in a terminal, CSV and Markdown."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from dragoman.words import visible, visible_lines

if TYPE_CHECKING:
    from rich.table import Table

Rows = Sequence[Sequence[Any]]

# Decimals and integers beyond 2^53 are texts in JSON.
_EXACT = re.compile(r"-?\d+\.\d+|-?\d{16,}")


def put(text: str, file: TextIO | None = None, end: str = "\n") -> None:
    """Write text that contains foreign text. In a terminal, escape sequences are shown, not executed.

    A file or a pipe gets them unchanged.
    """
    terminal = (file or sys.stdout).isatty()
    print(visible_lines(text) if terminal else text, file=file, end=end)


def text_of(value: Any) -> str:
    """Return a JSON value as text: strings unchanged, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _format(value: Any) -> str:
    return "NULL" if value is None else visible(text_of(value))


def print_table(columns: Sequence[str], rows: Rows) -> None:
    """Print rows as a table, drawn in a terminal. If it is too wide, print a record for each row."""
    if not sys.stdout.isatty():
        print("\n".join(plain_table(columns, rows)))
        return
    from rich.console import Console

    console = Console()
    if _table_width(columns, rows) <= console.width:
        console.print(rich_table(columns, rows))
    else:
        # Nothing is cut and no number is broken. Long text wraps at words.
        for line in record_lines(columns, rows):
            console.print(line, markup=False, highlight=False, soft_wrap=False)


def _table_width(columns: Sequence[str], rows: Rows) -> int:
    """Return the width of a table in a terminal, with two blanks between columns and one on either side."""
    cells = [[visible(name) for name in columns], *([_format(value) for value in row] for row in rows)]
    return sum(max(map(cell_width, place)) + 2 for place in zip(*cells, strict=True))


def cell_width(text: str) -> int:
    """Return the width of a text in a terminal. Wide letters count twice."""
    from rich.cells import cell_len

    return cell_len(text)


def record_lines(columns: Sequence[str], rows: Rows) -> Iterable[str]:
    """Yield each row as lines of a name and a value, below a line with its number."""
    names = [visible(name) for name in columns]
    width = max(map(cell_width, names), default=0)
    for number, row in enumerate(rows, 1):
        yield f"-- row {number} " + "-" * max(width - 4, 4)
        for name, value in zip(names, row, strict=True):
            yield f"{name}{' ' * (width - cell_width(name))}  {_format(value)}"


def plain_table(columns: Sequence[str], rows: Rows) -> Iterable[str]:
    """Yield the lines of an aligned table. Columns of numbers are right-aligned."""
    cells = [[visible(name) for name in columns], *([_format(value) for value in row] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    right = [numeric(rows, place) for place in range(len(columns))]

    def line(row: Sequence[str]) -> str:
        pairs = zip(row, widths, right, strict=True)
        return "  ".join(cell.rjust(width) if end else cell.ljust(width) for cell, width, end in pairs).rstrip()

    yield line(cells[0])
    yield "  ".join("-" * width for width in widths)
    yield from map(line, cells[1:])


def numeric(rows: Rows, place: int) -> bool:
    """Return whether a column holds numbers: JSON's own, or exact ones that JSON can carry only as text."""
    values = [row[place] for row in rows if row[place] is not None]
    return bool(values) and all(_is_number(value) for value in values)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _EXACT.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def rich_table(columns: Sequence[str], rows: Rows) -> Table:
    """Return rows as a table for a terminal. Columns of numbers are right-aligned."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(Text(visible(name)), justify="right" if numeric(rows, place) else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_format(value), style="dim" if value is None else "") for value in row))
    return table


def csv_lines(columns: Sequence[str], rows: Rows) -> Iterable[str]:
    """Yield CSV: NULL is empty, an empty text is `""`, every other value as in the result.

    A row of one NULL is `""` too, since many readers skip an empty line.
    """
    yield ",".join(map(_csv, columns))
    for row in rows:
        yield ",".join("" if value is None else _csv(text_of(value)) for value in row) or '""'


def _csv(text: str) -> str:
    plain = text and text == text.strip() and not any(mark in text for mark in ',"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'


def markdown_lines(columns: Sequence[str], rows: Rows) -> Iterable[str]:
    """Yield a Markdown table."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    yield line(_markdown(name) for name in columns)
    yield line("---:" if numeric(rows, place) else "---" for place in range(len(columns)))
    yield from (line(_markdown(value) for value in row) for row in rows)


def _markdown(value: Any) -> str:
    if value is None:
        return "NULL"
    broken = text_of(value).replace("\r\n", "\n").replace("\r", "\n").replace("\\", "\\\\").replace("|", "\\|")
    return "<br>".join(visible(line) for line in broken.replace("<", "&lt;").split("\n"))
