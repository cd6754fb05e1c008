"""A summary of audit files: usage by caller and database, and outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from dragoman.audit.file import audit_files
from dragoman.audit.record import Record

_decode = msgspec.json.Decoder(Record).decode


@dataclass(slots=True)
class Usage:
    """What one principal used of one database."""

    calls: int = 0
    refused: int = 0
    rows: int = 0
    bytes: int = 0
    ms: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    relations: Counter[str] = field(default_factory=Counter[str])
    acting: Counter[str] = field(default_factory=Counter[str])

    def add(self, record: Record) -> None:
        """Count a call."""
        self.calls += 1
        self.refused += record.verdict == "refused"
        self.rows += record.rows
        self.bytes += record.bytes
        self.ms += record.ms
        self.outcomes[record.outcome] += 1
        self.relations.update(record.relations)
        self.acting.update([record.acting] if record.acting else [])


@dataclass(slots=True)
class Report:
    """Usage by principal and database."""

    usage: dict[tuple[str, str], Usage] = field(default_factory=dict[tuple[str, str], Usage])


def records(path: Path, since: str = "", until: str = "") -> Iterator[Record]:
    """Yield the records of audit files at `path` from `since` on and before `until`.

    Both are times in ISO 8601, or the beginning of one.
    """
    for file in filter(Path.is_file, audit_files(path)):  # `verify` reports any other
        day = file.stem[-10:]
        if day < since[:10] or (until and day > until[:10]):
            continue
        with file.open("rb") as lines:
            for line in lines:
                if (record := _try_decode(line)) and _is_within(record, since, until):
                    yield record


async def stored_records(lines: AsyncIterator[tuple[int, str]], since: str = "", until: str = "") -> list[Record]:
    """Return the records of an audit's table, between the same times."""
    return [record async for _, line in lines if (record := _try_decode(line)) and _is_within(record, since, until)]


def _is_within(record: Record, since: str, until: str) -> bool:
    return record.ts >= since and (not until or record.ts < until)


def _try_decode(line: str | bytes) -> Record | None:
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # `verify` reports it


def report(found: Iterable[Record]) -> Report:
    """Return the usage in the given records."""
    made = Report()
    for record in found:
        if record.event == "call":
            made.usage.setdefault((record.principal, record.database), Usage()).add(record)
    return made
