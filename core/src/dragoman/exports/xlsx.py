"""Excel's XLSX, for people. Numbers that Excel keeps exactly are numbers; everything else is text.

No cell is a formula or a link.
"""

# xlsxwriter has no type stubs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import xlsxwriter

from dragoman.errors import ResultTooLarge
from dragoman.exports.formats import Source, working_folder
from dragoman.model import Column

MAX_ROWS: Final = 1_048_575
"""The most rows of a sheet, without the row of names."""
MAX_COLUMNS: Final = 16_384
MAX_TEXT: Final = 32_767
"""The longest text of a cell. Excel counts UTF-16, in which some characters count twice."""
MAX_DIGITS: Final = 10**15
_OPTIONS: Final = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
    "nan_inf_to_errors": False,
}


def write_xlsx(path: Path, columns: Sequence[Column], source: Source) -> tuple[str, ...]:
    """Write one sheet. Temporary files are in the file's `working_folder`.

    Raises `ResultTooLarge` for more rows or columns than a sheet has.
    """
    if len(columns) > MAX_COLUMNS:
        raise _too_large(f"{MAX_COLUMNS} columns")
    folder = working_folder(path)
    folder.mkdir(mode=0o700)
    try:
        book = xlsxwriter.Workbook(str(path), {**_OPTIONS, "tmpdir": str(folder)})
        sheet: Any = book.add_worksheet("result")
        with closing(sheet.row_data_fh):  # the library does not close it after a failure
            cut = _fill(book, sheet, columns, source)
            book.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return (f"{cut} texts were cut to {MAX_TEXT} characters, the most a cell holds.",) if cut else ()


def _fill(book: Any, sheet: Any, columns: Sequence[Column], source: Source) -> int:
    """Write names and rows into a sheet; return how many texts were cut."""
    sheet.freeze_panes(1, 0)
    bold = book.add_format({"bold": True})
    for place, column in enumerate(columns):
        sheet.write_string(0, place, _cut(column.name), bold)
    number = cut = 0
    for rows in source():
        for row in rows:
            number += 1
            if number > MAX_ROWS:
                raise _too_large(f"{MAX_ROWS} rows")
            cut += sum(_write(sheet, number, place, value) for place, value in enumerate(row))
    return cut


def _write(sheet: Any, row: int, place: int, value: Any) -> bool:
    """Write a cell; return whether its text was cut."""
    match value:
        case None:
            return False
        case bool():
            sheet.write_boolean(row, place, value)
        case int() if abs(value) < MAX_DIGITS:
            sheet.write_number(row, place, value)
        case float() if not value or abs(value) >= sys.float_info.min:
            sheet.write_number(row, place, _Exact(value))
        case _:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            cell = _cut(text)
            sheet.write_string(row, place, cell)
            return cell != text
    return False


def _cut(text: str) -> str:
    """Return as much of a text as a cell holds."""
    if len(text) <= MAX_TEXT // 2:
        return text
    return text.encode("utf-16-le")[: 2 * MAX_TEXT].decode("utf-16-le", "ignore")


class _Exact(float):
    """A float that is written with all its digits, as Excel itself does. The library writes 16 of them."""

    def __format__(self, spec: str) -> str:
        """Return the shortest text that means this float."""
        return repr(float(self))


def _too_large(what: str) -> ResultTooLarge:
    return ResultTooLarge(f"An XLSX sheet holds at most {what}.", suggestion="Export csv or parquet instead.")
