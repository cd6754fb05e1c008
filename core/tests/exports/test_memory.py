"""Files of any size are written in memory that has a bound."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MOST = 64
"""MiB that a process may grow by while it writes a large file, after a small one that loaded the format's library."""
_EXPORT = """
import sys
from pathlib import Path
from dragoman import Column, Kind
from dragoman.exports import export

TEXT = Kind("text")
COLUMNS = [
    Column("id", "bigint", Kind("integer")), Column("name", "text", TEXT), Column("total", "numeric(12,2)", TEXT),
    Column("exact", "numeric(20,4)", TEXT), Column("at", "timestamptz", TEXT), Column("day", "date", TEXT),
    Column("token", "uuid", TEXT), Column("paid", "boolean", Kind("boolean")), Column("note", "text", TEXT),
    Column("more", "integer[]", Kind.array(Kind("integer"))),
]
NARROW, WIDE = (1000, 100), (12, 200)

def row(number, note):
    token = f"9b2d6c1e-4f0a-4a53-8a51-{number:012}"
    return [number, f"customer {number}", f"{number}.25", f"{number}.0001", "2026-01-02 03:04:05.123456+00",
            "2026-01-02", token, True, note, [number, None]]

def pages(rows, pages, note):
    for page in range(pages):
        yield [row(page * rows + number, note) for number in range(rows)]

def status(key):
    text = Path("/proc/self/status").read_text()
    return int(text.split(key + ":")[1].split()[0])

export(Path(sys.argv[1]), sys.argv[2], COLUMNS, lambda: pages(10, 1, "a note"))
before = status("VmRSS")
export(Path(sys.argv[1]), sys.argv[2], COLUMNS, lambda: pages(*NARROW, "a note"))
export(Path(sys.argv[1]), sys.argv[2], COLUMNS, lambda: pages(*WIDE, "long " * 4000))
print((status("VmHWM") - before) >> 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells a process's peak here")
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow", "xlsx"])
def test_a_file_of_any_size_is_written_in_bounded_memory(tmp_path: Path, form: str):
    """100,000 narrow rows, then 50 MB of wide ones, whose groups end by their bytes."""
    command = [sys.executable, "-c", _EXPORT, str(tmp_path / "out"), form]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < MOST
