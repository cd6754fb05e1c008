"""The options of a SQLite database beside those of every database."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dragoman import ConfigurationError


@dataclass(frozen=True, slots=True)
class Options:
    """`memory_mb`: the most memory of one statement, in MiB. `max_value_kb`: the largest text or blob, in KiB."""

    memory_mb: int = 512
    max_value_kb: int = 1024

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ConfigurationError(
                    f"The option {field.name} must be at least 1.", suggestion=f"Leave it out for {field.default}."
                )
