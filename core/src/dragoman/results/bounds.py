"""Reads a stream up to its limits, exactly: a result with exactly `max_rows` rows is not truncated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman.errors import ResultTooLarge
from dragoman.model import Column, Encoded, Limits, RowStream, Truncation
from dragoman.results.encoding import encode
from dragoman.shapes import Malformed, check_sequence
from dragoman.words import with_article

LEAST_FOR_COLUMNS = 16 * 1024
"""The bytes that names and types of columns may take in any case, however small the limit of rows is."""
REMEMBERED = 64
"""Headings of results that were checked lately: an agent's query is mostly one that ran before."""
EncodedRow: TypeAlias = bytes
_encode = msgspec.json.Encoder().encode
_AROUND: Final = len('["",""]')  # what JSON adds to a name and a type, at least
HINTS = {
    "rows": "Ask for more with `limit`, or for less with WHERE, LIMIT or an aggregate.",
    "bytes": "Select fewer columns or rows, or aggregate.",
}


@dataclass(frozen=True, slots=True)
class Collected:
    """What was read: the final columns, the rows as one JSON array, and what cut it short."""

    columns: tuple[Column, ...]
    rows_json: bytes
    row_count: int
    truncated: Truncation | None
    notices: tuple[str, ...]


@dataclass(slots=True)
class Bounded:
    """The rows of a checked `stream` in their final form, up to its limits. Iterate once; then see `truncated`.

    `rows` and `bytes` count what was yielded, `bytes` as one minified JSON array. Whoever opened the stream must leave
    it, which ends the database's work. Iterating raises `ResultTooLarge` if not even the first row fits.
    """

    _stream: RowStream
    _limits: Limits
    rows: int = 0
    bytes: int = 2  # the array's own brackets
    truncated: Truncation | None = None

    async def batches(self) -> AsyncIterator[Encoded]:
        """Yield the rows, as they arrive, until a limit cuts them."""
        async for batch in self._stream.batches:
            fitting = self.fit(batch)
            if fitting.count or fitting.notices:
                yield fitting
            if self.truncated:
                return
            if not fitting.count:
                await asyncio.sleep(0)  # a driver that yields nothing for ever would hold everybody up

    def fit(self, batch: Sequence[Sequence[Any]] | Encoded) -> Encoded:
        """Return the part of the next batch that fits, encoded. Nothing after a batch that is `truncated` fits."""
        encoded = batch if isinstance(batch, Encoded) else encode(self._stream.columns, batch)
        size = self.bytes + len(encoded.json) + (1 if self.rows and encoded.count else 0)
        if self.rows + encoded.count > self._limits.max_rows or size > self._limits.max_bytes:
            fitting = Encoded.of(list(self._first(encoded)), encoded.notices, encoded.octets)
        else:
            fitting = encoded
            self.rows += encoded.count
            self.bytes = size
        if encoded.oversized and not self.truncated:
            full = self.rows == self._limits.max_rows
            self.truncated = truncation("rows", self._limits) if full else self._full()
        return fitting

    def _first(self, encoded: Encoded) -> Iterator[EncodedRow]:
        # A row that does not fit may be many megabytes long: it is not looked at.
        for row in encoded.rows_within(max(self._limits.max_bytes - self.bytes, 0)):
            size = self.bytes + len(row) + (1 if self.rows else 0)
            if self.rows == self._limits.max_rows or size > self._limits.max_bytes:
                break
            self.rows += 1
            self.bytes = size
            yield row
        full = self.rows == self._limits.max_rows
        self.truncated = truncation("rows", self._limits) if full else self._full()

    def _full(self) -> Truncation:
        if self.rows == 0:
            raise ResultTooLarge(
                f"The first row alone is larger than {self._limits.max_bytes} bytes.",
                suggestion="Select fewer or shorter columns, for instance with substr().",
            )
        return truncation("bytes", self._limits)


def check_stream(stream: RowStream, limits: Limits) -> None:
    """Raise `Malformed` unless this is a stream of rows with columns, as the contract says.

    Raises what `check_columns` raises, too.
    """
    given: Any = stream
    if not isinstance(given, RowStream):
        raise Malformed(f"yielded {with_article(type(given).__name__)}, not a RowStream")
    check_columns(stream.columns, limits)
    if not hasattr(stream.batches, "__aiter__"):
        told = with_article(type(stream.batches).__name__)
        raise Malformed(f"gave RowStream.batches as {told}, not as an asynchronous iterator of batches")


def check_columns(columns: Sequence[Column], limits: Limits) -> None:
    """Raise `Malformed` unless these are columns; `ResultTooLarge` if they take more bytes than rows may."""
    most = max(limits.max_bytes, LEAST_FOR_COLUMNS)
    try:
        given = tuple(columns)
        if sum(len(column.name) + len(column.type) + _AROUND for column in given) > most:
            raise _too_large(len(given), most)  # before all else, which takes some microseconds for each column
        _check_columns(given, most)
    except (AttributeError, TypeError):  # these are not columns, which have names, types and a hash
        check_sequence(Column, columns, "RowStream.columns")
        raise


@lru_cache(REMEMBERED)
def _check_columns(columns: tuple[Column, ...], most: int) -> None:
    check_sequence(Column, columns, "RowStream.columns")
    if len(_encode([(column.name, column.type) for column in columns])) > most:
        raise _too_large(len(columns), most)


def _too_large(count: int, most: int) -> ResultTooLarge:
    return ResultTooLarge(
        f"The names and types of its {count} columns alone take more than {most} bytes.",
        suggestion="Select fewer columns, or give them short names with AS.",
    )


@dataclass(slots=True)
class Collector:
    """Reads one stream. `collected`: what was read of it, whatever ended the reading; None: nothing yet."""

    collected: Collected | None = None

    async def collect(self, stream: RowStream, limits: Limits) -> Collected:
        """Read `stream` until a limit cuts it. The caller must leave the stream.

        Raises `ResultTooLarge` if not even the first row fits `limits.max_bytes`.
        """
        check_stream(stream, limits)
        bounded = Bounded(stream, limits)
        parts: list[bytes] = []
        notices: list[str] = []
        try:
            async for batch in stream.batches:
                fitting = bounded.fit(batch)
                if fitting.count:
                    parts += (b",", fitting.json)
                notices += fitting.notices
                if bounded.truncated:
                    break
                if not fitting.count:
                    await asyncio.sleep(0)  # as in `Bounded.batches`
        finally:
            self.collected = found = Collected(
                columns=tuple(stream.columns),
                rows_json=b"".join((b"[", *parts[1:], b"]")),
                row_count=bounded.rows,
                truncated=bounded.truncated,
                notices=tuple(dict.fromkeys((*stream.notices, *notices))),
            )
        check_columns(found.columns, limits)  # their types may have come with the rows
        return found

    def collected_until(self, deadline: float, limits: Limits) -> Collected | None:
        """Return the rows that came before a deadline ended the reading, marked as truncated; None: there were none."""
        if self.collected is None or self.collected.row_count == 0:
            return None
        check_columns(self.collected.columns, limits)
        return replace(self.collected, truncated=Truncation.late(deadline))


def truncation(reason: Literal["rows", "bytes"], limits: Limits) -> Truncation:
    """Return the truncation by a limit."""
    return Truncation(reason, limits.max_rows if reason == "rows" else limits.max_bytes, HINTS[reason])
