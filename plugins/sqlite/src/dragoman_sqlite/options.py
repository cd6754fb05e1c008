"""What an operator may set for a SQLite database beside what every database has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """`memory_mb`: what one statement may take, in MiB. `max_value_kb`: the largest text or blob, in KiB."""

    memory_mb: int = 512
    max_value_kb: int = 1024
