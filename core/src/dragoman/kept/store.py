"""The kept results of every caller: their owners, their lifetime, and their limits."""

from __future__ import annotations

import asyncio
import contextvars
import math
import re
import resource
import secrets
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol
from weakref import ref

from dragoman.cleanup import finish
from dragoman.errors import Busy, DragomanError, ParameterError, QueryTimeout, ResultNotFound
from dragoman.kept.files import OpenFile
from dragoman.kept.folder import ProcessFolder
from dragoman.kept.lasting import Header, header_of, touch_header, write_header
from dragoman.kept.pages import PAGE_BYTES, Pages
from dragoman.model import Column, Encoded, Principal, RowStream, Truncation

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
# The engine's own relations, and names in place of which DuckDB would read a file.
_TAKEN: Final = re.compile(
    "(pg|sqlite|duckdb|pragma)_|(csv|tsv|json|ndjson|parquet|db|duckdb|sqlite|xlsx|gz|zst)$", re.IGNORECASE
)
LEAST_FREE: Final = 256 * 1024 * 1024
"""Bytes of the disk that are kept free."""
SOON: Final = 2.0
"""Seconds after which the caller gets an answer, although rows are still arriving."""
FLUSH_SECONDS: Final = 0.5
"""The most seconds that a row waits for its page to fill before it can be read."""
FILE_SECONDS: Final = 600
"""Seconds for which an exported file is certain to stay, as long as its address works."""
SWEEP_SECONDS: Final = (0.2, 3600.0)
"""The least and the most seconds after which results that nobody has read for too long are looked for."""
RUNNING_PER_CALLER: Final = 4
RESULTS_PER_CALLER: Final = 100
"""The most results of one caller, and never more than half of all."""
MOST_RESULTS: Final = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4
"""The most results in total: each has an open file, and connections need files too."""

Status = Literal["running", "complete", "failed"]
Open = Callable[[], AbstractAsyncContextManager[RowStream]]
Source = tuple[str, str, str]
"""A database, a statement as it was judged, and a key for where and as whom it ran, and on which parts of tables."""
Owner = tuple[str, str, str]
"""The identity of the principal that keeps a result."""


class HasRoom(Protocol):
    """Whether a caller may store another page and `more` bytes."""

    def __call__(self, owner: Owner, more: int = 0) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is kept, in bytes, and for how many seconds after it was last read."""

    max_bytes: int
    max_bytes_per_caller: int
    ttl: float


@dataclass(slots=True, kw_only=True)
class Kept:
    """One kept result.

    - `sources`: what it was made from, so that each reading is checked against today's policy. For a result made from
      kept results, these are their sources.
    - `same_as`: equal for statements whose answers are the same rows.
    - `is_for_file`: whether it was made for a file alone, so that its caller never named it.
    """

    name: str
    owner: Owner
    database: str
    sources: tuple[Source, ...]
    pages: Pages
    made_at: float
    read_at: float
    same_as: str = ""
    columns: tuple[Column, ...] = ()
    status: Status = "running"
    error: DragomanError | None = None
    truncated: Truncation | None = None
    notices: tuple[str, ...] = ()
    task: asyncio.Task[None] | None = None
    exports: dict[str, Path] = field(default_factory=dict[str, Path])
    is_dropped: bool = False
    is_for_file: bool = False
    timeout: float = 0.0

    @property
    def size(self) -> int:
        """The bytes it takes on disk, including the files it was exported to."""
        return self.pages.size + sum(map(size_of, list(self.exports.values())))

    @property
    def running(self) -> bool:
        """Whether rows may still arrive."""
        return self.status == "running"


class Store:
    """Keeps results in a folder of its own below `folder`, which is removed when the process ends.

    Folders that processes left behind are removed at the first use, and at the end.
    """

    def __init__(self, folder: Path | None, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = ProcessFolder(folder, bounds.ttl)
        self._bounds = bounds
        self._clock = clock
        self._kept: dict[tuple[Owner, str], Kept] = {}
        self._folders: dict[Owner, Path] = {}
        self._places: dict[tuple[str, int], asyncio.Semaphore] = {}
        self._entering = Counter[Owner]()
        self._lasts = False
        self._lent: list[tuple[Owner, ref[OpenFile]]] = []
        self._sweeping: asyncio.TimerHandle | None = None
        self.changed: Callable[[Owner], None] = lambda owner: None
        """Called with the owner whose results have changed. It must not raise."""

    async def adopt(self, is_own: Callable[[Owner], bool]) -> None:
        """Take over what ended processes kept for callers for whom `is_own` returns True.

        From now on whole results outlive this process, too. Raises `OSError`.
        """
        self._lasts = True
        for kept in await asyncio.to_thread(self._adopt, is_own):
            self._kept.setdefault(_key(kept.owner, kept.name), kept)
        self._sweep_later()

    def _adopt(self, is_own: Callable[[Owner], bool]) -> list[Kept]:
        found = [self._take(*each) for each in self._folder.left_behind() if is_own(each[2].owner)]
        newest = {(kept.owner, kept.name): kept for kept in sorted(found, key=lambda kept: kept.read_at)}
        for kept in found:
            if newest[kept.owner, kept.name] is not kept:
                _remove(kept)
        return list(newest.values())

    def _take(self, path: Path, read: float, header: Header) -> Kept:
        """Move a result to this process's folder.

        If this stops halfway nothing is lost, since the header is moved last.
        """
        rows = self._folder.ready() / f"{path.stem}.rows"
        path.with_suffix(".rows").rename(rows)
        path.rename(header_of(rows))
        return Kept(
            name=header.name,
            owner=header.owner,
            database=header.database,
            sources=header.sources,
            pages=Pages(rows, (header.ends, header.rows)),
            made_at=-math.inf,  # results that another process kept are not used to answer a repeated statement
            read_at=self._clock() - (time.time() - read),
            columns=header.columns,
            status="complete",
            truncated=header.truncated,
            notices=header.notices,
            timeout=header.timeout,
            is_for_file=header.is_for_file,
        )

    async def keep(
        self,
        principal: Principal,
        name: str,
        database: str,
        sources: tuple[Source, ...],
        open_stream: Open,
        places: int = 1,
        timeout: float = 600.0,
        *,
        notices: tuple[str, ...] = (),
        same_as: str = "",
        is_for_file: bool = False,
    ) -> Kept:
        """Start to keep the rows of a stream under the caller's name for it. Replaces a result of that name.

        At most `places` streams of a database are open at once, so that kept queries leave room for others; the rest
        wait, `running`. Returns when all rows have arrived, or after a short time with those that have. Raises
        `ParameterError` for a name that SQL would have to quote, `Busy` for too many at once, and whatever the stream
        raises meanwhile.
        """
        if not NAME.fullmatch(name) or _TAKEN.match(name):
            raise ParameterError(
                f"A result cannot be named {name[:100]!r}.",
                suggestion="Begin with a letter; then letters, digits and _, 63 characters at most. Names of "
                "an engine's own relations (pg_, sqlite_, duckdb_, pragma_) and of kinds of files (csv, json, parquet) "
                "are taken.",
            )
        owner = principal.identity
        self._check_room(owner, name)
        self._entering[owner] += 1
        try:
            kept = await self._enter(owner, name, database, sources)
        finally:
            self._entering[owner] -= 1
            self._entering += Counter()  # drops the counts that are zero
        kept.timeout, kept.notices, kept.same_as, kept.is_for_file = timeout, notices, same_as, is_for_file
        # A context of its own, since work that goes on after the call is not part of the call.
        kept.task = asyncio.create_task(
            self._fill(kept, open_stream, self._places.setdefault((database, places), asyncio.Semaphore(places))),
            context=contextvars.Context(),
        )
        try:
            await asyncio.wait({kept.task}, timeout=SOON)
        except asyncio.CancelledError:
            await finish(self._drop(kept))
            raise
        if kept.error is not None:
            await self._drop(kept)
            raise kept.error
        return kept

    def _check_room(self, owner: Owner, name: str) -> None:
        self.expire()
        entering = self._entering[owner]
        own = [kept for kept in self._kept.values() if kept.owner == owner]
        if sum(kept.running for kept in own) + entering >= RUNNING_PER_CALLER:
            raise Busy(f"{RUNNING_PER_CALLER} results are still being kept.", suggestion="Wait for one, or drop it.")
        if _key(owner, name) in self._kept:
            return
        if len(own) + entering >= min(RESULTS_PER_CALLER, MOST_RESULTS // 2):
            if self._forget_oldest_file(own):
                return
            raise Busy(f"You keep {len(own)} results already.", suggestion="Drop one that is no longer needed.")
        if len(self._kept) + self._entering.total() >= MOST_RESULTS:
            raise Busy("The server keeps as many results as it can.", suggestion="Try again in a while.")

    def _forget_oldest_file(self, own: Sequence[Kept]) -> bool:
        """Remove the oldest result that was made for a file alone and is not new. Return whether there was one."""
        made = [kept for kept in own if kept.is_for_file and kept.read_at < self._clock() - FILE_SECONDS]
        if made:
            self._forget(min(made, key=lambda kept: kept.read_at))
        return bool(made)

    async def _enter(self, owner: Owner, name: str, database: str, sources: tuple[Source, ...]) -> Kept:
        pages = await asyncio.to_thread(self._new_pages)
        now = self._clock()
        kept = Kept(name=name, owner=owner, database=database, sources=sources, pages=pages, made_at=now, read_at=now)
        try:
            while (older := self._kept.get(_key(owner, name))) is not None:
                await self._drop(older)
        except asyncio.CancelledError:
            pages.close()
            raise
        self._kept[_key(owner, name)] = kept
        self._sweep_later()
        self.changed(owner)
        return kept

    async def _fill(self, kept: Kept, open_stream: Open, places: asyncio.Semaphore) -> None:
        try:
            with _noticing_full_disk():
                async with places, open_stream() as stream:
                    kept.columns = tuple(stream.columns)
                    with _noticing_full_disk():  # here, too, so that the stream's record has the same outcome
                        await self._copy(kept, stream.batches)
                    kept.columns, kept.truncated = tuple(stream.columns), kept.truncated or _cut(stream.truncated)
                    kept.notices += tuple(stream.notices)
                await asyncio.to_thread(self._finish, kept)
        except DragomanError as error:
            await asyncio.to_thread(self._end_early, kept, error)
        except asyncio.CancelledError:
            kept.status = "failed"
            raise
        finally:
            with suppress(OSError, ValueError):  # the file may have been removed with the result
                kept.pages.flush()

    def _end_early(self, kept: Kept, error: DragomanError) -> None:
        """Keep the rows that came before a deadline, marked as a part. After any other error, keep nothing."""
        with suppress(OSError, ValueError):
            kept.pages.flush()
            if isinstance(error, QueryTimeout) and kept.pages.rows:
                kept.truncated = Truncation.late(kept.timeout)
                self._finish(kept)
                return
        kept.status, kept.error = "failed", error

    def _finish(self, kept: Kept) -> None:
        """Mark a result as kept only when all of it is on the disk, with its header. Raises `OSError`."""
        kept.pages.flush()
        if self._lasts:
            ends, rows = kept.pages.index
            header = Header(
                name=kept.name,
                owner=kept.owner,
                database=kept.database,
                sources=kept.sources,
                columns=kept.columns,
                truncated=kept.truncated,
                notices=kept.notices,
                timeout=kept.timeout,
                ends=ends,
                rows=rows,
                is_for_file=kept.is_for_file,
            )
            write_header(kept.pages.path, header)
        kept.status = "complete"

    async def _copy(self, kept: Kept, batches: AsyncIterator[Any]) -> None:
        flushed = self._clock()
        async for batch in batches:
            assert isinstance(batch, Encoded)  # a gateway's stream has only these
            # Checked only where rows would be missing. A whole result is not cut.
            if batch.count and kept.pages.rows and self._is_full(kept):
                kept.truncated = self._cut(kept)
                return
            kept.notices += tuple(notice for notice in batch.notices if notice not in kept.notices)
            await asyncio.to_thread(kept.pages.add, batch)
            if self._clock() - flushed > FLUSH_SECONDS:
                await asyncio.to_thread(kept.pages.flush)
                flushed = self._clock()

    def _is_full(self, kept: Kept) -> bool:
        """Return whether another page would not fit. A result is never removed before its time to make room."""
        self.expire()
        return not self.has_room(kept.owner)

    def _cut(self, kept: Kept) -> Truncation:
        """Return what says which limit cut a result: its caller's share, the room for all, or the disk."""
        bounds, more = self._bounds, PAGE_BYTES
        if self._size(kept.owner) + more > bounds.max_bytes_per_caller:
            hint = "Keep less at once, or drop results that are no longer needed."
            return Truncation("bytes", bounds.max_bytes_per_caller, hint)
        if self._size(None) + more > bounds.max_bytes:
            return Truncation("bytes", bounds.max_bytes, "All callers together keep too much. Try again in a while.")
        return Truncation("bytes", kept.pages.size, "The server's disk is nearly full. Tell its administrator.")

    def has_room(self, owner: Owner, more: int = 0) -> bool:
        """Return whether a caller may store another page and `more` bytes, and the disk has room.

        Any thread may call it.
        """
        return (
            self._size(owner) + PAGE_BYTES + more <= self._bounds.max_bytes_per_caller
            and self._size(None) + PAGE_BYTES + more <= self._bounds.max_bytes
            and self._folder.free() - more >= LEAST_FREE
        )

    def lend(self, file: OpenFile, owner: Owner) -> None:
        """Count an open file of a result in its owner's share until it is closed, even if it is removed before."""
        self._lent = [*(lent for lent in self._lent if lent[1]() is not None), (owner, ref(file))]

    def _size(self, owner: Owner | None) -> int:
        kept = sum(kept.size for kept in list(self._kept.values()) if owner in (None, kept.owner))
        lent = [lent() for lender, lent in self._lent if owner in (None, lender)]
        removed = dict(_measure(file) for file in lent if file is not None)
        return kept + sum(removed.values())

    def find(self, principal: Principal, name: str) -> Kept:
        """Return a caller's result and record that it was read. Raises `ResultNotFound`, whatever the reason."""
        self.expire()
        kept = self._kept.get(_key(principal.identity, name))
        if kept is None:
            raise ResultNotFound(f"There is no kept result {name[:100]!r}.")
        kept.read_at = self._clock()
        if self._lasts:
            touch_header(kept.pages.path)
        return kept

    def latest(self, principal: Principal, same_as: str, seconds: float) -> Kept | None:
        """Return a caller's whole result of a statement sent in the last `seconds`; record that it was read."""
        now = self._clock()
        for kept in reversed(self.of(principal)):
            whole = kept.status == "complete" and kept.truncated is None
            if whole and kept.same_as == same_as and now - kept.made_at < seconds:
                kept.read_at = now
                return kept
        return None

    def has(self, principal: Principal) -> bool:
        """Return whether a caller keeps any result."""
        return bool(self._kept) and any(kept.owner == principal.identity for kept in self._kept.values())

    def folder_of(self, principal: Principal) -> Path:
        """Return a caller's own folder, which holds nothing of other callers. May block for a moment."""
        owner = principal.identity
        folder = self._folders.get(owner)
        if folder is None or not folder.is_dir():
            folder = self._folders[owner] = Path(tempfile.mkdtemp(prefix="tables-", dir=self._folder.ready()))
        return folder

    def of(self, principal: Principal) -> tuple[Kept, ...]:
        """Return a caller's results."""
        self.expire()
        return tuple(kept for kept in self._kept.values() if kept.owner == principal.identity)

    def expires_in(self, kept: Kept) -> float:
        """Return the seconds until a result is removed, if nobody reads it."""
        return max(0.0, kept.read_at + self._bounds.ttl - self._clock())

    def is_expired(self, kept: Kept) -> bool:
        """Return whether nobody has read it for too long."""
        return not kept.running and self.expires_in(kept) <= 0

    def expire(self) -> None:
        """Remove the results that nobody has read for too long."""
        for kept in list(self._kept.values()):
            if self.is_expired(kept):
                self._forget(kept)
                self._leave(kept.owner)

    def _sweep_later(self) -> None:
        """Have results removed at the end of their time, also if nobody asks for any result then."""
        if self._kept and self._sweeping is None:
            least, most = SWEEP_SECONDS
            soonest = min(map(self.expires_in, self._kept.values()))
            self._sweeping = asyncio.get_running_loop().call_later(min(max(soonest, least), most), self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        try:
            self.expire()
        finally:
            self._sweep_later()

    async def drop(self, principal: Principal, name: str) -> None:
        """End and remove a result. Raises `ResultNotFound`."""
        await self._drop(self.find(principal, name))
        self._leave(principal.identity)

    def _leave(self, owner: Owner) -> None:
        """Remove the folder of a caller who keeps nothing any more."""
        keeps = owner in self._entering or any(kept.owner == owner for kept in self._kept.values())
        if not keeps and (folder := self._folders.pop(owner, None)):
            shutil.rmtree(folder, ignore_errors=True)

    async def _drop(self, kept: Kept) -> None:
        if kept.task is not None and not kept.task.done():
            kept.task.cancel()
            await asyncio.wait({kept.task})
        self._forget(kept)

    def _forget(self, kept: Kept) -> None:
        if self._kept.get(_key(kept.owner, kept.name)) is kept:
            del self._kept[_key(kept.owner, kept.name)]
            self.changed(kept.owner)
        kept.is_dropped = True
        _remove(kept)

    def _new_pages(self) -> Pages:
        return Pages(self._folder.ready() / f"{secrets.token_hex(16)}.rows")

    async def tidy(self) -> None:
        """Remove what ended processes left behind, such as a worker that was killed. Creates nothing."""
        with suppress(OSError):
            await asyncio.to_thread(self._folder.tidy)

    async def aclose(self) -> None:
        """End running work and remove everything but what outlives the process. Nobody is notified any more."""
        self.changed = lambda owner: None
        if self._sweeping is not None:
            self._sweeping.cancel()
        for kept in list(self._kept.values()):
            if self._lasts and kept.status == "complete":
                kept.pages.leave()
            else:
                await self._drop(kept)
        await asyncio.to_thread(self._folder.leave)
        await self.tidy()


@contextmanager
def _noticing_full_disk() -> Generator[None]:
    """Raise `Busy` instead of an `OSError`."""
    try:
        yield
    except OSError:
        raise Busy("The disk for kept results is full.", suggestion="Drop a result, or try again later.") from None


def _remove(kept: Kept) -> None:
    """Remove its files. The header goes first: rows without a header do not count."""
    header_of(kept.pages.path).unlink(missing_ok=True)
    kept.pages.close()
    for path in kept.exports.values():
        if not path.is_dir():  # a folder is removed together with the file that is made from it
            path.unlink(missing_ok=True)


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of the files of a folder; none if it no longer exists."""
    try:
        return sum(map(size_of, path.iterdir())) if path.is_dir() else path.stat().st_size
    except OSError:
        return 0


def _measure(file: OpenFile) -> tuple[int, int]:
    """Return the number of an open file on its disk, and the bytes that it takes without having a name."""
    try:
        status = file.stat()
    except OSError:  # it is closed
        return 0, 0
    return status.st_ino, 0 if status.st_nlink else status.st_size


def _cut(truncated: Truncation | None) -> Truncation | None:
    """Return what cut a stream, for its result: no `limit` of a caller gets more rows of it."""
    if truncated is None or truncated.reason != "rows":
        return truncated
    return replace(truncated, hint="No more rows are kept. Ask for less with WHERE, LIMIT or an aggregate.")


def _key(owner: Owner, name: str) -> tuple[Owner, str]:
    """Return the key of a result. Names that differ only in case are one table to SQL."""
    return owner, name.lower()
