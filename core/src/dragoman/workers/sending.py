"""Sends rows from a worker process: encoded, in batches, one row beyond the limits so that truncation is exact."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dragoman.model import Column, Encoded
from dragoman.model.columns import Octets, join_octets
from dragoman.results import encode
from dragoman.workers.frames import Report, Rows, Run

Send = Callable[[Report], None]
FIRST_CHUNK, CHUNK = 8, 256
"""The number of rows that are fetched and encoded at once: the first and the largest."""
BATCH_BYTES = 64 * 1024


class Sender:
    """Sends the rows of one statement. A dialect may override `note` and `tell` to look at them first."""

    def __init__(self, order: Run, columns: Sequence[Column], send: Send) -> None:
        self._columns = columns
        self._order = order
        self._send = send
        self._waiting: list[Encoded] = []
        self._waiting_bytes = 0
        self._bytes = 0
        self._full = False
        self.seen = 0

    def note(self, rows: Sequence[Any]) -> None:
        """Called after rows were fetched."""

    def tell(self) -> None:
        """Called before rows are sent."""

    def send_all(self, rows: Iterator[Any]) -> None:
        """Send rows until they or the limits end."""
        try:
            while self._send_chunk(rows):
                pass
        finally:
            self.flush()  # sends what arrived before a deadline, too

    def _send_chunk(self, rows: Iterator[Any]) -> bool:
        """Send a chunk of rows, including those before an error; return whether more are wanted."""
        chunk: list[Any] = []
        try:
            chunk.extend(itertools.islice(rows, self._chunk()))
        finally:
            if chunk:
                self._encode(chunk)
        if self._waiting_bytes >= BATCH_BYTES or self._full:
            self.flush()
        return bool(chunk) and self.seen <= self._order.max_rows and not self._full

    def _chunk(self) -> int:
        """Return how many rows to fetch next.

        This is about one batch by the width of the rows so far, so that wide rows stay few.
        """
        fitting = BATCH_BYTES * self.seen // (self._bytes or 1) if self.seen else FIRST_CHUNK
        return min(max(fitting, 1), CHUNK, self._order.max_rows + 1 - self.seen)

    def _encode(self, chunk: list[Any]) -> None:
        self.note(chunk)
        encoded = encode(self._columns, chunk)
        if self._bytes + len(encoded.json) > self._order.max_bytes:
            encoded = self._up_to_the_limit(chunk)
        self._waiting.append(encoded)
        self._waiting_bytes += len(encoded.json)
        self._bytes += len(encoded.json)
        self.seen += encoded.count

    def _up_to_the_limit(self, chunk: list[Any]) -> Encoded:
        """Return the rows up to the one that exceeds the limit.

        A row that exceeds it alone is announced and not sent.
        """
        most, taken = self._order.max_bytes, self._bytes
        fitting: list[Encoded] = []
        oversized = False
        for row in chunk:
            one = encode(self._columns, [row])
            oversized = len(one.json) > most
            if not oversized:
                fitting.append(one)
                taken += len(one.json)
            if oversized or taken > most:
                break
        notices = dict.fromkeys(notice for one in fitting for notice in one.notices)
        self._full = oversized or taken > most
        text = b",".join(one.json for one in fitting)
        return Encoded(text, len(fitting), tuple(notices), oversized, _octets(fitting))

    def flush(self) -> None:
        """Send pending rows."""
        if self._waiting:
            notices = dict.fromkeys(notice for encoded in self._waiting for notice in encoded.notices)
            self.tell()
            text = b",".join(encoded.json for encoded in self._waiting if encoded.count)
            count = sum(encoded.count for encoded in self._waiting)
            oversized = self._waiting[-1].oversized
            self._send(Rows(text, count, tuple(notices), oversized, _octets(self._waiting)))
        self._waiting, self._waiting_bytes = [], 0


def _octets(batches: Sequence[Encoded]) -> Octets:
    return functools.reduce(join_octets, [batch.octets for batch in batches], ())
