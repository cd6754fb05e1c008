"""Verifies audit files: finds every edited, dropped, added or swapped record."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from dragoman.audit.chain import BEGIN, Link, Sealed, unseal
from dragoman.audit.file import audit_files, lock

TABLE = "calls"
"""The table of an audit in a database."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A difference from what was written: its file, its line from 1, and a description."""

    file: str
    line: int
    what: str


@dataclass(slots=True)
class Verification:
    """The result of a verification. `head`: the last record.

    `begins`: the number of the first one, 1 unless files are missing.
    """

    records: int = 0
    faults: list[Fault] = field(default_factory=list[Fault])
    notes: list[str] = field(default_factory=list[str])
    begins: int = 0
    head: Link = BEGIN


class _First(msgspec.Struct):
    event: str = "call"
    detail: str = ""


_first = msgspec.json.Decoder(_First).decode


def verify_files(path: Path, heads: Sequence[Link] = ()) -> Verification:
    """Verify the files of `path`. `heads`: records that must exist, noted elsewhere, such as in the log of the calls.

    Raises `OSError` if a file cannot be read.
    """
    found = Verification()
    links: dict[int, str] = {}
    wanted = {head.seq for head in heads}
    for file, lines in _read(path):
        _verify_file(file, lines, found, links, wanted)
    _check_heads(path.name, heads, links, found)
    return found


def _check_heads(place: str, heads: Sequence[Link], links: Mapping[int, str], found: Verification) -> None:
    for head in heads:
        if head.seq < found.begins:
            found.notes.append(f"record {head.seq} is in missing files")
        elif not links.get(head.seq, "").startswith(head.seal) or not head.seal:
            found.faults.append(Fault(place, 0, f"record {head.seq} with the seal {head.seal[:16]} is missing"))


def _read(path: Path) -> Iterator[tuple[str, list[bytes]]]:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        for file in audit_files(path):
            if not file.is_file():  # opening a pipe would wait for its writer
                yield file.name, []
                continue
            with lock(folder), file.open("rb") as opened:
                end = os.fstat(opened.fileno()).st_size
            # Lines that arrive meanwhile are for the next time.
            with file.open("rb") as opened:
                yield file.name, opened.read(end).split(b"\n")
    finally:
        os.close(folder)


def _verify_file(
    file: str, lines: list[bytes], found: Verification, links: dict[int, str], wanted: Iterable[int]
) -> None:
    if not lines:
        found.faults.append(Fault(file, 0, "this is not a regular file"))
        return
    if lines[-1]:
        found.notes.append(f"{file} ends with an incomplete record: its answer was never sent")
    if len(lines) == 1:
        found.faults.append(Fault(file, 1, "the file holds no record"))
    for number, line in enumerate(lines[:-1], 1):
        intact = _verify_line(Place(file, number), line, found)
        if number == 1 and intact and not _names(line, file):
            found.faults.append(Fault(file, number, "the file does not begin with the record that names it"))
        if found.head.seq in wanted:
            links[found.head.seq] = found.head.seal


class Place(NamedTuple):
    """The place of a record: a file and a line, or a table and a number."""

    file: str
    line: int


def _verify_line(place: Place, line: bytes, found: Verification) -> bool:
    """Verify the next record. Return whether it follows the one before it."""
    sealed = unseal(line)
    if sealed is None:
        found.faults.append(Fault(*place, "the record does not match its seal"))
        # The next record names the original seal, which nobody knows any more.
        found.head = Link(found.head.seq + 1, "")
        return False
    what = _misfit(sealed, found)
    if what:
        found.faults.append(Fault(*place, what))
    found.begins = found.begins or sealed.link.seq
    found.head = sealed.link
    found.records += 1
    return not what


async def verify_stored(lines: AsyncIterator[tuple[int, str]], heads: Sequence[Link] = ()) -> Verification:
    """Verify the records of an audit's table, ordered by number. `heads`: as for files."""
    found = Verification()
    links: dict[int, str] = {}
    wanted = {head.seq for head in heads}
    async for seq, line in lines:
        _verify_line(Place(TABLE, seq), line.encode(errors="surrogatepass"), found)
        if found.head.seq != seq:
            found.faults.append(Fault(TABLE, seq, f"record {found.head.seq} stands under the number {seq}"))
        if seq in wanted:
            links[seq] = found.head.seal
    _check_heads(TABLE, heads, links, found)
    return found


def _misfit(sealed: Sealed, found: Verification) -> str:
    """Return why a record does not follow the one before it; empty if it does."""
    head = found.head
    if head == BEGIN:
        return ""
    if sealed.link.seq != head.seq + 1:
        return f"record {sealed.link.seq} follows record {head.seq}"
    if head.seal and sealed.prev != head.seal:
        return "the record does not follow the one before it"
    return ""


def _names(line: bytes, file: str) -> bool:
    try:
        first = _first(line)
    except msgspec.DecodeError:
        return False
    return first.event == "file" and first.detail == file
