"""A plugin's own options: what the configuration says, checked against the dataclass the plugin declares."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dragoman.config.readers import Wrong, texts
from dragoman.errors import ConfigurationError, DragomanError
from dragoman.model import Database, Secret
from dragoman.words import nearest

_LISTS = (list, tuple, set, frozenset)


def check_options(declared: type[Any] | None, database: Database) -> Mapping[str, Any]:
    """Return every option of a dialect in its declared type, defaults included.

    Raises `ConfigurationError` for one that is unknown, missing or of a wrong type. No message repeats a value.
    """
    of = _Options(f"databases.{database.name}.options", f"the dialect {database.dialect!r}", declared)
    built = of.build(database.options)
    return types.MappingProxyType({key: getattr(built, key) for key in of.fields})


def policy_options(declared: type[Any] | None, name: str, given: Mapping[str, Any]) -> Any:
    """Return the options of the policy `name` as its own dataclass, None when it declares none.

    Raises as `checked_options`.
    """
    return _Options(f"policies.{name}", f"the policy {name!r}", declared).build(given)


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of one plugin: where they stand in the configuration, whose they are, and their dataclass."""

    place: str
    owner: str
    declared: type[Any] | None

    @property
    def fields(self) -> dict[str, dataclasses.Field[Any]]:
        return {field.name: field for field in dataclasses.fields(self.declared)} if self.declared else {}

    def build(self, given: Mapping[str, Any]) -> Any:
        """The dataclass, or None."""
        fields = self.fields
        for key in given:
            if key not in fields:
                raise self._unknown(key, sorted(fields))
        if self.declared is None:
            return None
        hints = typing.get_type_hints(self.declared)
        values = {key: self._converted(value, hints[key], key) for key, value in given.items()}
        for key, field in fields.items():
            if key not in values and field.default is field.default_factory is dataclasses.MISSING:
                raise self._wrong(key, "is missing", hints[key])
        return self._made(values)

    def _made(self, values: Mapping[str, Any]) -> Any:
        assert self.declared is not None  # else there are no values
        try:
            return self.declared(**values)
        except DragomanError:
            raise
        except Exception as error:  # its own __post_init__: what it says may repeat a value
            raise ConfigurationError(
                f"{self.place}: {self.owner} refuses them ({type(error).__name__}).",
                suggestion=f"Compare them with the documentation of {self.owner}: {', '.join(values)}.",
            ) from None

    def _unknown(self, key: str, known: Sequence[str]) -> ConfigurationError:
        near = nearest(key, known)
        return ConfigurationError(
            f"{self.place}: unknown option {key!r} for {self.owner}.",
            suggestion=f"Did you mean {near[0]!r}?" if near else f"Known options: {', '.join(known) or 'none'}.",
        )

    def _wrong(self, key: str, what: str, wanted: Any) -> ConfigurationError:
        return ConfigurationError(f"{self.place}: {key} {what}.", suggestion=f"Give {key} as {_spelled(wanted)}.")

    def _converted(self, value: Any, wanted: Any, key: str) -> Any:
        """An option's value in its declared type; a URL and the environment bring texts."""
        import msgspec  # only when there are options

        try:
            if isinstance(value, str) and typing.get_origin(wanted) in _LISTS:
                value = list(texts(value))
            return msgspec.convert(value, wanted, strict=not isinstance(value, str), dec_hook=_custom)
        except (msgspec.ValidationError, Wrong):
            raise self._wrong(key, "has a value it cannot have", wanted) from None


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
