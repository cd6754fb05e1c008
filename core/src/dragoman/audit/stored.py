"""The audit in a database: the same chain as in files, in the table that a dialect's `AuditStore` keeps."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Final

from dragoman.audit.chain import BEGIN, Link, seal, unseal
from dragoman.dialect import AuditStore

_NUL: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
"""NUL in JSON. After an odd number of backslashes `u0000` is one, else it is text."""
Waiting = tuple[bytes, asyncio.Future[Link]]


class StoredAudit:
    """Appends records to a store. Records that wait are written together in one transaction.

    If records are missing at the end of the table, the next one still follows the last one that this process wrote: the
    gap shows.
    """

    def __init__(self, store: AuditStore) -> None:
        self._store = store
        self._ready = False
        self._head = BEGIN
        self._waiting: list[Waiting] = []
        self._writer: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Create the table if it does not exist. Raises a `DragomanError`."""
        await self._store.open()
        self._ready = True

    async def append(self, body: bytes) -> Link:
        """Write one record, a JSON object, and return its place in the chain. Raises a `DragomanError`."""
        link: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
        self._waiting.append((_storable(body), link))
        self._writer = self._writer or asyncio.create_task(self._write_all())
        return await link

    async def aclose(self) -> None:
        """Write waiting records and close the store."""
        if self._writer is not None:
            await self._writer
        await self._store.aclose()

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                links = await self._write([body for body, _ in batch])
            except Exception as error:
                _settle(batch, error)
            else:
                _settle(batch, links)
        self._writer = None

    async def _write(self, bodies: Sequence[bytes]) -> Sequence[Link]:
        if not self._ready:
            await self.open()
        links: list[Link] = []

        def seal_all(last: tuple[int, str] | None) -> Sequence[tuple[int, str]]:
            links.clear()
            return list(_seal_all(bodies, max(_link(last), self._head), links))

        try:
            await self._store.append(seal_all)
        except Exception:
            self._ready = False  # the table may be gone; it is created again
            raise
        self._head = links[-1]
        return links


def _seal_all(bodies: Iterable[bytes], head: Link, links: list[Link]) -> Iterable[tuple[int, str]]:
    """Yield the records that follow a link, and store their links."""
    for body in bodies:
        line, head = seal(body, head)
        links.append(head)
        yield head.seq, line.rstrip(b"\n").decode()


def _link(last: tuple[int, str] | None) -> Link:
    """Return the link of the last record of a table, if it has one.

    If the record does not match its seal, a new chain begins after it, with the next number.
    """
    if last is None:
        return BEGIN
    seq, line = last
    sealed = unseal(line.encode(errors="surrogatepass"))
    return sealed.link if sealed and sealed.link.seq == seq else Link(seq, BEGIN.seal)


def _settle(batch: Sequence[Waiting], outcome: Sequence[Link] | Exception) -> None:
    for place, (_, waiting) in enumerate(batch):
        if waiting.done():
            continue  # nobody waits for it any more
        if isinstance(outcome, Exception):
            waiting.set_exception(outcome)
        else:
            waiting.set_result(outcome[place])


def _storable(body: bytes) -> bytes:
    """Return a record without NUL, the only character that databases refuse in a text."""
    return _NUL.sub(rb"\1\\ufffd", body)
