"""What may change while a gateway runs. Any other change needs a restart, and the error names it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dragoman.config import Configuration
from dragoman.errors import ConfigurationError, DragomanError

_log = logging.getLogger("dragoman.mcp")  # where servers say that a configuration was applied
_TAKEN = frozenset(
    {"databases", "default_database", "roles", "audit", "source", "sources", "warnings", "variables", "secrets"}
)
_TAKEN_OF_SERVER = frozenset({"token", "tokens", "auth"})


def check_rest(before: Configuration, after: Configuration) -> None:
    """Raise `ConfigurationError`, naming the keys, if more has changed than a running gateway can apply.

    The last role does not go either: without roles everybody may use everything, and a file that was read while a
    program wrote it may end before its roles.
    """
    changed = list(_differences(before, after))
    if changed:
        raise ConfigurationError(
            f"{', '.join(changed)} cannot change while the server runs.",
            suggestion="Restart the server to apply them.",
        )
    if before.roles and not after.roles:
        raise ConfigurationError(
            "The configuration has no roles any more. Without roles, everybody may use everything.",
            suggestion="Restart the server to apply that.",
        )


def _differences(before: Configuration, after: Configuration) -> Iterator[str]:
    for field in dataclasses.fields(Configuration):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if field.name in _TAKEN or old == new:
            continue
        if dataclasses.is_dataclass(old) and type(old) is type(new):
            taken = _TAKEN_OF_SERVER if field.name == "server" else frozenset[str]()
            names = [each.name for each in dataclasses.fields(old) if each.name not in taken]
            yield from (f"{field.name}.{name}" for name in names if getattr(old, name) != getattr(new, name))
        else:
            yield field.name


def changed_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of what was added, changed or removed, in order."""
    return tuple(name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name))


def changed_keys(before: Configuration, after: Configuration, other_files: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the dotted keys that a running gateway can apply and that have changed. Their values are not shown.

    `other_files`: the databases whose knowledge files have changed.
    """
    databases = changed_names(before.databases, after.databases)
    return (
        *(f"databases.{name}" for name in databases),
        *(f"databases.{name}.knowledge.files" for name in other_files if name not in databases),
        *(f"roles.{name}" for name in changed_names(before.roles, after.roles)),
        *(f"server.{name}" for name in sorted(_TAKEN_OF_SERVER) if _differ(before.server, after.server, name)),
        *(name for name in ("default_database", "audit") if _differ(before, after, name)),
    )


def _differ(before: object, after: object, name: str) -> bool:
    return bool(getattr(before, name) != getattr(after, name))


def log_failure(error: Exception) -> None:
    """Log why a configuration was not applied."""
    if isinstance(error, DragomanError):
        _log.error("the configuration was not applied: %s %s", error.message, error.suggestion)
    else:
        _log.error("the configuration was not applied, because of a bug in dragoman: %s", type(error).__name__)
