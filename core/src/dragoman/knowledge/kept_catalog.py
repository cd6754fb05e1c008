"""A catalog kept over restarts. It is used again as long as the database reports no change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman.collection import pause_collection
from dragoman.dialect import Inspector, WrappedInspector
from dragoman.errors import DragomanError
from dragoman.knowledge.store import key_of, replace_file
from dragoman.model import Database, Inspection, Names, Scope, Table

FORMAT = 1
"""The version of the files. Files of another version are ignored."""
_log = logging.getLogger(__name__)


class _File(msgspec.Struct):
    format: int
    key: str
    scope: Scope
    fingerprint: str
    tables: tuple[Table, ...]


class KeptInspector(WrappedInspector):
    """Answers as `inner` did before the restart while the fingerprint is the same.

    Else asks `inner` and keeps the answer.
    """

    def __init__(self, inner: Inspector, folder: Path, database: Database) -> None:
        super().__init__(inner)
        self._key = key_of(database)
        self._path = folder / f"{self._key[:32]}.catalog"
        self._name = database.name
        self._first: Scope | None = None
        self._kept: _File | None = None
        self._read = False
        self._reading = asyncio.Lock()

    async def names(self, scope: Scope) -> Sequence[Names] | None:
        """Return `Inspector.names`; None if everything is available at once."""
        return None if await self._warm(scope) else await self.inner.names(scope)

    async def tables(self, scope: Scope) -> Inspection:
        """Return `Inspector.tables`. What was kept is used once; the next call asks the database."""
        if kept := await self._warm(scope):
            self._kept, self._first = None, scope
            return Inspection(kept.tables)
        # Before reading: a change meanwhile must make the kept catalog invalid.
        fingerprint = await self._fingerprint()
        seen = await self.inner.tables(scope)
        self._first = self._first or scope
        if fingerprint is not None and scope == self._first and not seen.notices:
            file = _File(FORMAT, self._key, scope, fingerprint, seen.tables)
            await asyncio.to_thread(lambda: replace_file(self._path, msgspec.msgpack.encode(file), self._name))
        return seen

    async def _warm(self, scope: Scope) -> _File | None:
        """Return what was kept of a scope, if it is still valid."""
        async with self._reading:  # concurrent callers wait: this is faster than the database's own answer
            if not self._read:
                self._read = True
                self._kept = await self._take()
        return self._kept if self._kept is not None and self._kept.scope == scope else None

    async def _take(self) -> _File | None:
        """Return the file, if it matches what the database holds now. It is decoded while the database is asked."""
        if not self._path.exists():
            return None
        file, told = await asyncio.gather(asyncio.to_thread(self._decode), self._fingerprint())
        return file if file is not None and file.fingerprint == told else None

    def _decode(self) -> _File | None:
        try:
            with pause_collection():
                file = msgspec.msgpack.decode(self._path.read_bytes(), type=_File)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("the catalog of %s that was kept could not be read: %s", self._name, type(error).__name__)
            return None
        return file if (file.format, file.key) == (FORMAT, self._key) else None

    async def _fingerprint(self) -> str | None:
        try:
            return await self.inner.fingerprint()
        except DragomanError:
            return None
