"""Reads text files that people write: knowledge, saved queries, prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def read_text(path: Path, most: int) -> str:
    """Return the text of a file of at most `most` bytes.

    Raises `ValueError` if the file is none such, with why, and `OSError` if it cannot be read.
    """
    if path.exists() and not path.is_file():  # reading a pipe would block
        raise ValueError("this is not a file")
    if path.stat().st_size > most:
        raise ValueError(f"the file is larger than {most} bytes")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8 text") from None


def find_visible(folder: Path, suffix: str) -> Iterator[Path]:
    """Yield the files of a folder that end in `suffix`, sorted, but for hidden ones, which editors leave there."""
    return (path for path in sorted(folder.glob(f"*{suffix}")) if not path.name.startswith("."))
