"""A dialect's own options: what the configuration says, checked against the dataclass the dialect declares."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from dragoman.errors import ConfigurationError, DragomanError
from dragoman.model import Database, Secret


def checked_options(declared: type[Any] | None, database: Database) -> Mapping[str, Any]:
    """Return every option in its declared type, defaults included.

    Raises `ConfigurationError` for one that is unknown, missing or of a wrong type. No message repeats a value.
    """
    fields = {field.name: field for field in dataclasses.fields(declared)} if declared else {}
    for key in database.options:
        if key not in fields:
            raise _unknown(key, sorted(fields), database)
    if declared is None:
        return types.MappingProxyType({})
    hints = typing.get_type_hints(declared)
    given = {key: _converted(value, hints[key], key, database) for key, value in database.options.items()}
    for key, field in fields.items():
        if key not in given and field.default is field.default_factory is dataclasses.MISSING:
            raise _wrong(key, "is missing", hints[key], database)
    built = _built(declared, given, database)
    return types.MappingProxyType({key: getattr(built, key) for key in fields})


def _built(declared: type[Any], given: Mapping[str, Any], database: Database) -> Any:
    try:
        return declared(**given)
    except DragomanError:
        raise
    except Exception as error:  # its own __post_init__: what it says may repeat a value
        raise ConfigurationError(
            f"databases.{database.name}.options: the dialect {database.dialect!r} refuses them"
            f" ({type(error).__name__}).",
            suggestion=f"Compare them with the documentation of the dialect: {', '.join(given)}.",
        ) from None


def _unknown(key: str, known: Sequence[str], database: Database) -> ConfigurationError:
    near = difflib.get_close_matches(key, known, n=1)
    return ConfigurationError(
        f"databases.{database.name}.options: unknown option {key!r} for the dialect {database.dialect!r}.",
        suggestion=f"Did you mean {near[0]!r}?" if near else f"Known options: {', '.join(known) or 'none'}.",
    )


def _wrong(key: str, what: str, wanted: Any, database: Database) -> ConfigurationError:
    return ConfigurationError(
        f"databases.{database.name}.options: {key} {what}.", suggestion=f"Give {key} as {_spelled(wanted)}."
    )


def _converted(value: Any, wanted: Any, key: str, database: Database) -> Any:
    """An option's value in its declared type; a URL brings texts."""
    import msgspec  # only when there are options

    try:
        return msgspec.convert(value, wanted, strict=not isinstance(value, str), dec_hook=_custom)
    except msgspec.ValidationError:
        raise _wrong(key, "has a value it cannot have", wanted, database) from None


def _custom(kind: type[Any], value: Any) -> Any:
    """Types of ours that a text can become."""
    if isinstance(value, kind):
        return value
    if kind in (Secret, Path) and isinstance(value, str):
        return kind(value)
    raise ValueError(kind)


def _spelled(wanted: Any) -> str:
    origin, of = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is Literal:
        return " or ".join(map(repr, of))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_spelled(kind) for kind in of if kind is not type(None))
    return wanted.__name__ if isinstance(wanted, type) and not of else str(wanted)
