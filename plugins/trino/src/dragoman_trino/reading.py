"""Turns a statement's answers into rows in their final form, up to a caller's limits.

Large answers are handled in threads.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from dragoman import Column, Encoded, Limits, ResultTooLarge, encode

from dragoman_trino.types import columns_of, has_ambiguous_keys

if TYPE_CHECKING:
    from dragoman_trino.client import Running
    from dragoman_trino.protocol import Page

PIECE: Final = 256 * 1024
"""The approximate bytes of a batch."""


class Reader:
    """The columns and rows of a running statement."""

    def __init__(self, running: Running, limits: Limits) -> None:
        self.columns: tuple[Column, ...] = ()
        self._running = running
        self._rows_left = limits.max_rows + 1
        self._bytes_left = limits.max_bytes
        self._pairs = False
        self._cut = False
        self._read: list[Encoded] | None = None

    async def start(self) -> None:
        """Wait for the columns. The first rows may come with them."""
        self._read = await self._running.page(self._take)

    async def batches(self) -> AsyncGenerator[Encoded]:
        """Yield the rows. Raises `ResultTooLarge` if no more can be read although the limits are not reached."""
        while self._read is not None:
            for batch in self._read:
                yield batch
            if self._rows_left == 0:
                return
            if self._cut:
                raise ResultTooLarge(
                    "The rows take more bytes than may be read at once, so only a part of them was read.",
                    suggestion="Select fewer or shorter columns, for instance with substr(), or aggregate.",
                )
            self._read = await self._running.page(self._take)

    def _take(self, page: Page) -> list[Encoded]:
        """Return a page's rows as batches, as far as they can be needed; in a thread."""
        if page.columns and not self.columns:
            self.columns = columns_of(page.columns)
            self._pairs = any(has_ambiguous_keys(column["typeSignature"]) for column in page.columns)
        rows = page.rows(pairs=self._pairs)
        step = max(1, PIECE * len(rows) // (page.size or 1))
        del rows[self._rows_left :]
        self._rows_left -= len(rows)
        self._cut = page.cut
        batches: list[Encoded] = []
        for start in range(0, len(rows), step):
            batch = encode(self.columns, rows[start : start + step])
            batches.append(batch)
            self._bytes_left -= len(batch.json)
            if self._bytes_left < 0:
                break  # the caller's limit cuts in this one
        return batches
