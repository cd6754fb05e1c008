"""A plugin's own options: the values in the configuration, checked against the dataclass that the plugin declares."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.config.declared import reader_of
from dragoman.config.readers import Wrong
from dragoman.dialect import Dialect
from dragoman.errors import ConfigurationError, DragomanError
from dragoman.model import Database
from dragoman.words import nearest


def check_options(dialect: Dialect, database: Database) -> Mapping[str, Any]:
    """Return every option of a dialect in its declared type, including defaults.

    Raises `ConfigurationError` for an option that is unknown, missing, of a wrong type, or that administrators may not
    give. No message repeats a value.
    """
    of = _Options(f"databases.{database.name}.options", f"the dialect {database.dialect!r}", dialect.options)
    if database.administered:
        of.check_open(database.options, dialect.open_options)
    built = of.build(database.options)
    return types.MappingProxyType({key: getattr(built, key) for key in of.fields})


def policy_options(declared: type[Any] | None, name: str, given: Mapping[str, Any]) -> Any:
    """Return the options of the policy `name` as its own dataclass, or None if it declares none.

    Raises as `check_options` does.
    """
    return _Options(f"policies.{name}", f"the policy {name!r}", declared).build(given)


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of one plugin: their place in the configuration, their owner, and their dataclass."""

    place: str
    owner: str
    declared: type[Any] | None

    @property
    def fields(self) -> dict[str, dataclasses.Field[Any]]:
        return {field.name: field for field in dataclasses.fields(self.declared)} if self.declared else {}

    def check_open(self, given: Mapping[str, Any], allowed: frozenset[str]) -> None:
        """Raise for an option through which an address could use files or programs of this machine."""
        for key in given:
            if key in self.fields and key not in allowed:
                raise self._wrong(
                    f"{key} cannot be set for databases that administrators add",
                    f"Set it in the configuration file. Allowed here: {', '.join(sorted(allowed))}.",
                )

    def build(self, given: Mapping[str, Any]) -> Any:
        """Build the dataclass, or return None if there is none."""
        fields = self.fields
        for key in given:
            if key not in fields:
                raise self._unknown(key, sorted(fields))
        if self.declared is None:
            return None
        hints = typing.get_type_hints(self.declared)
        values = {key: self._convert(value, hints[key], key) for key, value in given.items()}
        for key, field in fields.items():
            if key not in values and field.default is field.default_factory is dataclasses.MISSING:
                raise self._wrong(f"{key} is missing", f"Add {key} under [{self.place}].")
        return self._make(values)

    def _make(self, values: Mapping[str, Any]) -> Any:
        assert self.declared is not None  # otherwise there are no values
        try:
            return self.declared(**values)
        except DragomanError:
            raise
        except Exception as error:  # from its own __post_init__; its message may repeat a value
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

    def _wrong(self, what: str, remedy: str) -> ConfigurationError:
        return ConfigurationError(f"{self.place}.{what}.", suggestion=remedy)

    def _convert(self, value: Any, wanted: Any, key: str) -> Any:
        """Return an option's value in its declared type. Values from a URL or the environment are texts."""
        try:
            return reader_of(wanted)(value)
        except Wrong as error:
            remedy = error.remedy or f"Give {key} as the documentation of {self.owner} says."
            raise self._wrong(f"{key}: {error.expected}", remedy) from None
