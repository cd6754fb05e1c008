"""Kept results that outlive their process: a header file beside the rows holds what is known about each."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from dragoman.model import Column, Truncation
from dragoman.private import write_private

SUFFIX: Final = ".kept"
LOCK: Final = "lock"
"""The file in a process's folder that is locked while the process lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Everything about a whole result except its rows. `ends` and `rows`: the index of its `Pages`."""

    name: str
    owner: tuple[str, str, str]
    database: str
    sources: tuple[tuple[str, str, str], ...]
    columns: tuple[Column, ...]
    truncated: Truncation | None
    notices: tuple[str, ...]
    timeout: float
    ends: list[int]
    rows: list[int]
    is_for_file: bool = False


_decode = msgspec.json.Decoder(Header).decode


def header_of(rows: Path) -> Path:
    """Return the path of the header for a file of rows.

    The header's modification time is when the result was last read.
    """
    return rows.with_suffix(SUFFIX)


def write_header(rows: Path, header: Header) -> None:
    """Write it atomically. Raises `OSError`."""
    write_private(header_of(rows), msgspec.json.encode(header))


def touch_header(rows: Path) -> None:
    """Record that the result was read now, if it has a header."""
    with suppress(OSError):
        os.utime(header_of(rows))


def read_headers(folder: Path, oldest: float) -> list[tuple[Path, float, Header]]:
    """Return the complete headers of a folder that were read since `oldest`, with their paths and times."""
    found: list[tuple[Path, float, Header]] = []
    for path in _lasting(folder, oldest):
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            header = _decode(path.read_bytes())
            rows = path.with_suffix(".rows").lstat()
            if stat.S_ISREG(rows.st_mode) and rows.st_size >= max(header.ends, default=0):
                found.append((path, path.stat().st_mtime, header))
    return found


def _lasting(folder: Path, oldest: float) -> list[Path]:
    return [path for path in folder.glob(f"*{SUFFIX}") if path.stat().st_mtime > oldest]


def tidy(folder: Path, oldest: float) -> None:
    """Remove files that belong to no result read since `oldest`, and the folder if it is then empty."""
    lasting = {path.stem for path in _lasting(folder, oldest)}
    if not lasting:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK and path.stem not in lasting:
            path.unlink(missing_ok=True)


def is_private(folder: Path) -> bool:
    """Return whether it is a folder of this user that nobody else can read or write, and not a link."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
