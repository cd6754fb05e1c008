"""The options of a DuckDB database beside those of every database."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dragoman import ConfigurationError


@dataclass(frozen=True, slots=True)
class Options:
    """`memory_mb`: the most memory of one statement, in MiB. `threads`: the processors it uses."""

    memory_mb: int = 1024
    threads: int = 2

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ConfigurationError(
                    f"The option {field.name} must be at least 1.", suggestion=f"Leave it out for {field.default}."
                )
