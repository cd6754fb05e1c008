"""Files that results are written to, and the signed addresses from which their owners fetch them for a limited time."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlencode
from zlib import crc32

from dragoman.errors import Busy, DragomanError, QueryTimeout, ResultNotFound, ResultTooLarge
from dragoman.exports import FORMATS, export, working_folder
from dragoman.kept import HasRoom, Kept, OpenFile, Owner, size_of

if TYPE_CHECKING:
    from dragoman.gateway.gateway import Gateway
    from dragoman.model import Principal

PATH: Final = "/exports"
SECONDS: Final = 600
"""Seconds for which an address is valid."""
MOST_READ: Final = 4 * 1024 * 1024
"""The most bytes of a file in one message."""
CELLS: Final = 16_384
"""The most cells that are written between two checks of the free room."""
origin: ContextVar[str] = ContextVar("origin", default="")
"""The scheme, host and port by which the current caller reaches this server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A file with a caller's result.

    - `expires`: the end of its address, in seconds since 1970.
    - `until`: the same moment by a clock that nobody sets back.
    - `tokens`: the hashes of the configured tokens with which its caller may have signed in.
    """

    kept: Kept
    form: str
    path: Path
    principal: Principal
    notices: tuple[str, ...] = ()
    expires: int = 0
    until: float = 0.0
    tokens: frozenset[str] = frozenset()


class Exports:
    """The exported files of a gateway. Only this class signs and verifies their addresses."""

    def __init__(self, gateway: Gateway, has_room: HasRoom, clock: Callable[[], float] = time.time) -> None:
        self._gateway = gateway
        self._has_room = has_room
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._exported: dict[str, Exported] = {}

    async def write(
        self, kept: Kept, form: str, principal: Principal, seconds: float, chart: str | None = None
    ) -> Exported:
        """Write a result to a file within `seconds`. Its rows must arrive in this time too. `chart`: for a picture.

        Raises what ended the query early, `QueryTimeout`, `Busy` if there is no room, and what `export` raises.
        """
        until = time.monotonic() + seconds
        if kept.task is not None:
            await asyncio.wait({kept.task}, timeout=seconds)
        if kept.running:
            raise _late(kept)
        if kept.error is not None:  # rows before the error are not an answer
            raise kept.error
        path = kept.pages.path.with_name(f"{kept.name}-{kept.pages.path.stem[:8]}.{form}")
        # Written beside its place first, so that a reader meanwhile gets the whole older file.
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        work = working_folder(part)
        kept.exports |= {part.name: part, work.name: work}  # both count in the caller's share
        left = Event()
        check = partial(_check_progress, kept, self._has_room, work, until, left)
        writing = asyncio.ensure_future(asyncio.to_thread(write, kept, part, form, check, chart))
        try:
            notices = await asyncio.shield(writing)
            part.replace(path)
        except OSError:
            raise full() from None
        finally:
            left.set()
            del kept.exports[part.name], kept.exports[work.name]
            part.unlink(missing_ok=True)
            # If the caller was cancelled, the thread goes on for a moment and may create the file at its end. Nobody
            # waits for its error any more.
            writing.add_done_callback(lambda done: done.cancelled() or done.exception())
            writing.add_done_callback(lambda _: part.unlink(missing_ok=True))
        kept.exports[form] = path
        if kept.is_dropped:  # it was dropped while the file was written
            path.unlink(missing_ok=True)
            raise missing()
        return Exported(kept=kept, form=form, path=path, principal=principal, notices=notices)

    def address(self, exported: Exported) -> str:
        """Return the address from which anyone who has it can fetch the file, for `SECONDS`."""
        now = self._clock()
        self._exported = {name: each for name, each in self._exported.items() if self._is_valid(each)}
        name = f"{home_of(exported.principal.identity):08x}{secrets.token_hex(16)}"
        tokens = self._tokens(exported.principal)
        until = time.monotonic() + SECONDS
        self._exported[name] = signed = replace(exported, expires=int(now) + SECONDS, until=until, tokens=tokens)
        query = {"file": name, "expires": signed.expires, "signature": self._sign(name, str(signed.expires), signed)}
        return f"{origin.get()}{PATH}?{urlencode(query)}"

    def _is_valid(self, exported: Exported) -> bool:
        return exported.expires > self._clock() and exported.until > time.monotonic()

    def _sign(self, name: str, expires: str, exported: Exported) -> str:
        signed = "\0".join((name, expires, exported.form, *exported.principal.identity))
        return hmac.new(self._key, signed.encode(), hashlib.sha256).hexdigest()

    async def open(self, query: Mapping[str, str], caller: Principal | None) -> tuple[Exported, OpenFile]:
        """Return the file of a signed address, if its owner may still read the result.

        `caller`: who fetches it, if known.

        Raises `ResultNotFound`, whatever the reason.
        """
        exported = self._verify(query, caller)
        try:
            async with self._gateway.call("export_result", exported.principal, exported.kept.database) as record:
                if await self._gateway.kept.find(exported.kept.name, exported.principal) is not exported.kept:
                    raise missing()
                file = await asyncio.to_thread(_open, exported.path)
                self._gateway.kept.lend(file, exported.kept)
                record.bytes = file.stat().st_size
                return exported, file
        except (DragomanError, OSError):
            raise missing() from None

    async def read(self, name: str, form: str, principal: Principal) -> bytes:
        """Return a file with a caller's result, if the caller may still read the result.

        Raises `ResultNotFound`, the refusal of its query today, and `ResultTooLarge` beyond `MOST_READ` bytes.
        """
        path = (await self._gateway.kept.find(name, principal)).exports.get(form)
        if path is None or form not in FORMATS:
            raise missing()
        if (size := path.stat().st_size) > MOST_READ:
            raise ResultTooLarge(
                f"The file has {size} bytes; {MOST_READ} are the most that are read at once.",
                suggestion="Fetch it from the address that export_result returned, or page the result with get_result.",
            )
        file = await asyncio.to_thread(_open, path)
        return await asyncio.to_thread(file.read, MOST_READ, 0)

    def _verify(self, query: Mapping[str, str], caller: Principal | None) -> Exported:
        name, expires = query.get("file", ""), query.get("expires", "")
        exported = self._exported.get(name)
        if exported is None:
            raise missing()
        signature = self._sign(name, expires, exported)
        if not hmac.compare_digest(signature.encode(), query.get("signature", "").encode()):
            raise missing()
        if not self._is_valid(exported) or (caller and caller.identity != exported.principal.identity):
            raise missing()
        if exported.principal.token and exported.tokens.isdisjoint(self._tokens(exported.principal)):
            raise missing()
        return exported

    def _tokens(self, owner: Principal) -> frozenset[str]:
        """Return the hashes of the configured tokens that are valid now and have the name of the owner's."""
        now, tokens = self._clock(), self._gateway.configuration.server.tokens
        valid = (token for token in tokens if token.expires is None or token.expires.timestamp() > now)
        return frozenset(token.hash for token in valid if token.name == owner.token)


def home_of(owner: Owner) -> int:
    """Return the number by which several processes agree which of them keeps a caller's results."""
    return crc32("\0".join(owner).encode())


def home_in(query: str) -> int | None:
    """Return this number for the owner that an address claims; None if it is not an address of ours."""
    name = parse_qs(query).get("file", [""])[0]
    return int(name[:8], 16) if re.fullmatch(r"[0-9a-f]{40}", name) else None


def missing() -> ResultNotFound:
    """Return the error for an address at which there is nothing for whoever asks."""
    return ResultNotFound("There is nothing at this address, or it is no longer valid.")


def _late(kept: Kept) -> QueryTimeout:
    return QueryTimeout(
        f"The result {kept.name!r} could not be written in time.",
        suggestion=f'Try again in a while with result="{kept.name}", or keep less.',
    )


def _open(path: Path) -> OpenFile:
    if not path.is_file():  # opening a pipe would wait for its writer
        raise missing()
    return OpenFile(path, os.O_RDONLY)


def full() -> Busy:
    """Return the error if neither a caller's share nor the disk has room for another file."""
    return Busy("There is no room for the file.", suggestion="Drop a result or export less, or try again later.")


def write(kept: Kept, part: Path, form: str, check: Callable[[], None], chart: str | None = None) -> tuple[str, ...]:
    """Write a result to a file that nobody else may read, and return notices. Blocks.

    `check` is called as the file grows, at least every `CELLS` cells; an exception of it ends the writing.
    """
    part.touch(0o600)
    return export(part, form, kept.columns, lambda: _pieces(kept, check), chart, check=check)


def _pieces(kept: Kept, check: Callable[[], None]) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield the rows in pieces: a row with many columns may take far more bytes in a file than in its page."""
    length = max(1, CELLS // max(1, len(kept.columns)))
    for rows in kept.pages.batches():
        for start in range(0, len(rows), length):
            check()
            yield rows[start : start + length]


def check_room(kept: Kept, has_room: HasRoom, more: int = 0) -> None:
    """Raise `OSError` if a caller's share or the disk has no room for `more` bytes."""
    if not has_room(kept.owner, more):
        raise OSError(errno.ENOSPC, "no space left")


def _check_progress(kept: Kept, has_room: HasRoom, work: Path, until: float, left: Event) -> None:
    if left.is_set() or time.monotonic() > until:
        raise _late(kept)
    check_room(kept, has_room, size_of(work))  # the contents of the folder are written into the file once more
