"""Databases that administrators added while the server ran, kept in `server.state_dir` over restarts."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from dragoman.errors import ConfigurationError
from dragoman.private import write_private

Settings = dict[str, Any]
State = dict[str, dict[str, Any]]
"""By the database's name: its `settings`, as under `[databases.NAME]`, and its `roles`, which may read all of it."""
_FILE = "databases.json"
_LOCK = "databases.lock"
_SUPPOSED: ContextVar[State | None] = ContextVar("supposed", default=None)


@contextmanager
def suppose(state: State) -> Generator[None]:
    """Make `read_state` return this state in the caller's context: a change is checked before it is kept."""
    token = _SUPPOSED.set(state)
    try:
        yield
    finally:
        _SUPPOSED.reset(token)


@contextmanager
def lock_state(folder: Path) -> Generator[bool]:
    """Try to lock the state against changes by other processes; yield whether that succeeded.

    Raises `ConfigurationError` if the folder cannot be written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise _cannot_write(error) from None
    try:
        yield _hold(lock)
    finally:
        os.close(lock)


def _hold(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise _cannot_write(error) from None
    return True


def read_state(folder: Path) -> State:
    """Return the kept state, or the supposed one. Raises `ConfigurationError` for a file that cannot be read."""
    if (supposed := _SUPPOSED.get()) is not None:
        return supposed
    try:
        state: State = _read(json.loads((folder / _FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"server.state_dir: {_FILE} cannot be read ({type(error).__name__}).", suggestion="Restore or remove it."
        ) from None
    return state


def _read(value: Any) -> State:
    if not isinstance(value, dict) or not all(
        isinstance(kept, dict) for kept in cast("dict[str, Any]", value).values()
    ):
        raise ValueError("not an object of objects")
    return cast("State", value)


def write_state(folder: Path, state: State) -> None:
    """Keep the state in a file that is replaced atomically and that only its owner can read: it holds passwords.

    Raises `ConfigurationError`.
    """
    try:
        write_private(folder / _FILE, json.dumps(state, indent=1).encode())
    except OSError as error:
        raise _cannot_write(error) from None


def _cannot_write(error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"server.state_dir cannot be written ({error.strerror}).",
        suggestion="Name a folder that the server may write to.",
    )


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
