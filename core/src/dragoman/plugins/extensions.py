"""Parts of dragoman that are distributions of their own, found by entry point and imported on first use."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from dragoman.errors import ConfigurationError

ASKERS: Final = "dragoman.askers"
"""Answers questions in plain words. `ask` is a class with the methods of `dragoman.gateway.asking.Asker`."""
DESCRIBERS: Final = "dragoman.describers"
"""Describes a database by a model. `describe` is a function like `dragoman_ask.describing.describe`."""
COMMANDS: Final = "dragoman.commands"
"""Commands of the command line: modules with `add_arguments` and `run`."""


def has_extension(group: str, name: str) -> bool:
    """Return whether an installed distribution provides it."""
    return _find(group, name) is not None


def load_extension(group: str, name: str, extra: str) -> Any:
    """Import it and return it. Raises `ConfigurationError`, which names the extra that installs it."""
    found = _find(group, name)
    if found is None:
        raise ConfigurationError(
            f"{name} is not installed: it is a distribution of its own.",
            suggestion=f"Install the distribution dragoman with the extra {extra}: dragoman[{extra}].",
        )
    return found.load()


def _find(group: str, name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=group, name=name)), None)
