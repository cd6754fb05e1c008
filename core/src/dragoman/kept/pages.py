"""The rows of one result in a file: exact JSON, cut into pages that are found by their offsets."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from dragoman.errors import ResultNotFound
from dragoman.kept.files import OpenFile
from dragoman.model import Encoded

Row = TypeVar("Row", msgspec.Raw, list[Any])
PAGE_ROWS: Final = 1024
PAGE_BYTES: Final = 256 * 1024
_raw_rows = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_rows = msgspec.json.Decoder(list[list[Any]]).decode


class Pages:
    """A file of rows that grows while it is read. Its methods block: call them in a thread.

    Memory: one page, and 16 bytes for each page of the file.
    """

    def __init__(self, path: Path, index: tuple[Iterable[int], Iterable[int]] | None = None) -> None:
        """Create a file, or open an existing one whose `index` says where its pages are."""
        self.path = path
        ends, rows = index or ((), ())
        self._ends = array("Q", ends)  # the end of each page, in bytes
        self._rows = array("Q", rows)  # the number of rows up to the end of each page
        how = os.O_CREAT | os.O_EXCL if index is None else 0
        self._file = OpenFile(path, os.O_RDWR | how)
        self._waiting: list[bytes] = []
        self._waiting_rows = self._waiting_bytes = 0

    @property
    def index(self) -> tuple[list[int], list[int]]:
        """The ends of its pages, and the number of rows up to each. With them the file can be opened again."""
        return self._ends.tolist(), self._rows.tolist()

    @property
    def rows(self) -> int:
        """The number of rows that can be read."""
        return self._rows[-1] if self._rows else 0

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._ends[-1] if self._ends else 0

    def add(self, batch: Encoded) -> None:
        """Add rows. They can be read once their page is full, or after `flush`. Raises `OSError`."""
        if batch.count > PAGE_ROWS or len(batch.json) > PAGE_BYTES:
            self._add_parts(batch)
        elif batch.count:
            self._add(batch.json, batch.count)

    def _add_parts(self, batch: Encoded) -> None:
        rows = _raw_rows(b"[%b]" % batch.json)
        for start in range(0, len(rows), PAGE_ROWS):
            part = rows[start : start + PAGE_ROWS]
            json = b",".join(part)
            if len(json) <= PAGE_BYTES:
                self._add(json, len(part))
            else:
                for row in part:
                    self._add(bytes(row), 1)

    def _add(self, json: bytes, count: int) -> None:
        if self._waiting_rows + count > PAGE_ROWS or self._waiting_bytes + len(json) > PAGE_BYTES:
            self.flush()
        self._waiting.append(json)
        self._waiting_rows += count
        self._waiting_bytes += len(json)

    def flush(self) -> None:
        """Write added rows. Raises `OSError`, also after `leave`; what was written before stays readable."""
        if not self._waiting:
            return
        page = b",".join(self._waiting)
        self._file.write(page, self.size)
        self._ends.append(self.size + len(page))
        self._rows.append(self.rows + self._waiting_rows)
        self._waiting = []
        self._waiting_rows = self._waiting_bytes = 0

    def read(self, offset: int, limit: int, max_bytes: int) -> Encoded:
        """Return rows from `offset` on: at most `limit` rows and `max_bytes` bytes, but at least one row.

        Raises `ResultNotFound` if it was dropped meanwhile, or if its file is damaged.
        """
        found: list[bytes] = []
        taken = 0
        for row in self._from(offset):
            taken += len(row) + 1
            if len(found) == limit or (found and taken > max_bytes):
                break
            found.append(row)
        return Encoded.of(found)

    def _from(self, offset: int) -> Iterator[bytes]:
        page = bisect_right(self._rows, offset)
        skipped = offset - (self._rows[page - 1] if page else 0)
        for number in range(page, len(self._rows)):
            for row in self._decode(number, _raw_rows)[skipped:]:
                yield bytes(row)
            skipped = 0

    def batches(self) -> Iterator[list[list[Any]]]:
        """Yield all rows as JSON values, page by page."""
        for number in range(len(self._rows)):
            yield self._decode(number, _decode_rows)

    def _decode(self, number: int, decode: Callable[[bytes], list[Row]]) -> list[Row]:
        """Return the rows of a page. Raises `ResultNotFound` if the file has no longer what was written."""
        try:
            rows = decode(b"[%b]" % self._page(number))
        except (msgspec.MsgspecError, OSError):
            rows = []
        if len(rows) != self._rows[number] - (self._rows[number - 1] if number else 0):
            raise ResultNotFound("The file of the result is damaged.")
        return rows

    def _page(self, number: int) -> bytes:
        start = self._ends[number - 1] if number else 0
        try:
            return self._file.read(self._ends[number] - start, start)
        except OSError:
            if self._file.closed:
                raise ResultNotFound("The result was dropped while it was read.") from None
            raise

    def leave(self) -> None:
        """Close the file without removing it, once no thread reads or writes it any more."""
        self._file.close()

    def close(self) -> None:
        """Leave the file, and remove it."""
        self.leave()
        self.path.unlink(missing_ok=True)
