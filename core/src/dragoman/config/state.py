"""Databases that administrators added while the server ran, kept in `server.state_dir` over restarts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import ConfigurationError
from dragoman.private import write_private

Settings = dict[str, Any]
State = dict[str, dict[str, Any]]
"""By the database's name: its `settings`, as under `[databases.NAME]`, and its `roles`, which may read all of it."""
_FILE = "databases.json"


def read_state(folder: Path) -> State:
    """Return the kept state. Raises `ConfigurationError` for a file that cannot be read."""
    try:
        state: State = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"server.state_dir: {_FILE} cannot be read ({type(error).__name__}).", suggestion="Restore or remove it."
        ) from None
    return state


def write_state(folder: Path, state: State) -> None:
    """Keep the state in a file that is replaced atomically and that only its owner can read: it holds passwords.

    Raises `ConfigurationError`.
    """
    try:
        write_private(folder / _FILE, json.dumps(state, indent=1).encode())
    except OSError as error:
        raise ConfigurationError(
            f"server.state_dir cannot be written ({error.strerror}).",
            suggestion="Name a folder that the server may write to.",
        ) from None


def settings_of(state: State) -> Mapping[str, Settings]:
    """Return the settings of each database."""
    return {name: kept["settings"] for name, kept in state.items()}


def grants_of(state: State) -> Mapping[str, list[dict[str, Any]]]:
    """Return the grants that come with them, by role."""
    grants: dict[str, list[dict[str, Any]]] = {}
    for name, kept in state.items():
        for role in kept.get("roles") or ():
            grants.setdefault(role, []).append({"database": name, "tables": ["*"]})
    return grants
