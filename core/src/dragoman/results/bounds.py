"""Reading a stream up to its limits, exactly: a result with exactly `max_rows` rows is not truncated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from dragoman.errors import ResultTooLarge
from dragoman.model import Column, Encoded, Limits, RowStream, Truncation
from dragoman.results.encoding import encode

HINTS = {
    "rows": "Ask for more with `limit`, or for less with WHERE, LIMIT or an aggregate.",
    "bytes": "Select fewer columns or rows, or aggregate.",
}


@dataclass(frozen=True, slots=True)
class Collected:
    """What was read: final columns, the rows as one JSON array, and what cut it short."""

    columns: tuple[Column, ...]
    rows_json: bytes
    row_count: int
    truncated: Truncation | None
    notices: tuple[str, ...]


@dataclass(slots=True)
class _Reader:
    limits: Limits
    rows: list[bytes] = field(default_factory=list[bytes])
    size: int = 2  # the array's own brackets
    cut: Literal["rows", "bytes"] | None = None

    def take(self, batch: Sequence[bytes]) -> None:
        for row in batch:
            size = self.size + len(row) + (1 if self.rows else 0)
            if len(self.rows) == self.limits.max_rows:
                self.cut = "rows"
            elif size > self.limits.max_bytes:
                self.cut = "bytes"
            if self.cut:
                return
            self.rows.append(row)
            self.size = size


async def collect(stream: RowStream, limits: Limits) -> Collected:
    """Read `stream` until a limit cuts it. Leaving the stream, which ends the database's work, is the caller's.

    Raises `ResultTooLarge` when not even the first row fits `limits.max_bytes`.
    """
    reader = _Reader(limits)
    notices: dict[str, None] = {}
    async for batch in stream.batches:
        encoded = batch if isinstance(batch, Encoded) else encode(stream.columns, batch)
        notices.update(dict.fromkeys(encoded.notices))
        reader.take(encoded.rows)
        if reader.cut:
            break
    if reader.cut == "bytes" and not reader.rows:
        raise ResultTooLarge(
            f"The first row alone is larger than {limits.max_bytes} bytes.",
            suggestion="Select fewer or shorter columns, for instance with substr().",
        )
    return Collected(
        columns=tuple(stream.columns),
        rows_json=b"[" + b",".join(reader.rows) + b"]",
        row_count=len(reader.rows),
        truncated=_truncation(reader.cut, limits),
        notices=(*notices, *stream.notices),
    )


def _truncation(cut: Literal["rows", "bytes"] | None, limits: Limits) -> Truncation | None:
    if cut is None:
        return None
    return Truncation(cut, limits.max_rows if cut == "rows" else limits.max_bytes, HINTS[cut])
