"""A saved query and its typed parameters, as they stand in a file."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from dragoman.errors import ParameterError
from dragoman.words import nearest

NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,48}")
_INTEGER: Final = re.compile("[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_LONGEST: Final = 20
"""The most characters, with a sign, of an integer of 64 bits."""
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9:]+)?)?"
)
REQUIRED: Final = object()
"""The default of a required parameter."""


@dataclass(frozen=True, slots=True)
class Type:
    """How a parameter's value is written in JSON, and what is bound. `read` raises `ValueError` for any other value."""

    schema: Mapping[str, str]
    words: str
    read: Callable[[Any], Any]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _integer(value: Any) -> int:
    if isinstance(value, str) and len(value) <= 1000 and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError
    return value


def _number(value: Any) -> float | int | str:
    """Return a decimal number. One given as text is bound as a number, unless only a text keeps its digits.

    SQLite orders every text after every number, so that a number bound as text would compare wrongly.
    """
    if isinstance(value, str):
        digits = value.strip()
        if not _NUMBER.fullmatch(digits):
            raise ValueError
        return _exact(digits)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError
    return value


def _exact(digits: str) -> float | int | str:
    """Return the integer of 64 bits or the float with these digits. SQLite refuses larger integers."""
    if len(digits) <= _LONGEST and _INTEGER.fullmatch(digits) and -(2**63) <= int(digits) < 2**63:
        return int(digits)
    near = float(digits)
    return near if Decimal(repr(near)) == Decimal(digits) else digits


def _boolean(value: Any) -> bool:
    words = {"true": True, "false": False}
    known = words.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(known, bool):
        raise ValueError
    return known


def _date(value: Any) -> str:
    """Return a date as it is usually written, since engines without dates compare texts: `20260131` is one too."""
    return datetime.date.fromisoformat(_text(value)).isoformat()


def _timestamp(value: Any) -> str:
    """Return a time as it was given, if that is the usual way to write it, else written so."""
    moment = datetime.datetime.fromisoformat(_text(value))
    return str(value) if _MOMENT.fullmatch(value) else moment.isoformat()


TYPES: Final[Mapping[str, Type]] = {
    "text": Type({"type": "string"}, "text", _text),
    "integer": Type({"type": "integer"}, "a whole number", _integer),
    "number": Type({"type": "number"}, "a number", _number),
    "boolean": Type({"type": "boolean"}, "true or false", _boolean),
    "date": Type({"type": "string", "format": "date"}, "a date such as 2026-01-31", _date),
    "timestamp": Type({"type": "string", "format": "date-time"}, "a time such as 2026-01-31T12:00:00", _timestamp),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a saved query: `:name` in its SQL. `type` is a key of `TYPES`."""

    name: str
    type: str
    default: Any = REQUIRED
    description: str = ""

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is REQUIRED

    @property
    def schema(self) -> dict[str, Any]:
        """The parameter as JSON Schema."""
        words = {"description": self.description} if self.description else {}
        default = {} if self.required or self.default is None else {"default": self.default}
        return {**TYPES[self.type].schema, **words, **default}

    def read(self, value: Any) -> Any:
        """Return the value to bind; None is NULL. Raises `ParameterError`."""
        if value is None:
            return None
        kind = TYPES[self.type]
        try:
            return kind.read(value)
        except ValueError:
            raise ParameterError(
                f"{self.name} must be {kind.words}.", suggestion=f"Send {self.name} as {kind.words}."
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedQuery:
    """A query of a file. `database`: None for the default one. `is_tool`: whether it is also a tool of its own."""

    name: str
    sql: str
    description: str = ""
    database: str | None = None
    parameters: tuple[Parameter, ...] = ()
    is_tool: bool = False
    path: Path | None = None

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of every parameter.

        Raises `ParameterError` for one that is unknown, missing or of another type.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                raise self._unknown(name, known)
        return {name: self._value(parameter, given) for name, parameter in known.items()}

    def _value(self, parameter: Parameter, given: Mapping[str, Any]) -> Any:
        if parameter.name in given:
            return parameter.read(given[parameter.name])
        if parameter.required:
            raise ParameterError(
                f"{self.name} needs the parameter {parameter.name}.",
                suggestion=f"Send {parameter.name}, {TYPES[parameter.type].words}.",
            )
        return parameter.default

    def _unknown(self, name: str, known: Mapping[str, Parameter]) -> ParameterError:
        near = nearest(name, known)
        remedy = f"Did you mean {near[0]}?" if near else f"Parameters: {', '.join(known) or 'none'}."
        return ParameterError(f"{self.name} has no parameter {name[:100]!r}.", suggestion=remedy)

    def examples(self) -> dict[str, Any]:
        """Return values with which a database can compile the query: the defaults, else NULL."""
        return {each.name: None if each.required else each.default for each in self.parameters}

    def facts(self) -> dict[str, Any]:
        """Return the facts that callers see."""
        parameters = [
            {"name": each.name, "type": each.type, "required": each.required}
            | ({"description": each.description} if each.description else {})
            | ({} if each.required else {"default": each.default})
            for each in self.parameters
        ]
        facts = {"name": self.name, "description": self.description, "database": self.database}
        return {key: value for key, value in facts.items() if value} | ({"params": parameters} if parameters else {})


def front_matter(query: SavedQuery) -> str:
    """Return the query's properties beside its SQL, as comments."""
    lines = [f"-- name: {query.name}"]
    lines += [f"-- description: {' '.join(query.description.split())}"] if query.description else []
    lines += [f"-- database: {query.database}"] if query.database else []
    lines += [_parameter_line(each) for each in query.parameters]
    lines += ["-- expose: tool"] if query.is_tool else []
    return "\n".join(lines)


def _parameter_line(parameter: Parameter) -> str:
    default = "" if parameter.required else f" = {_literal(parameter.default)}"
    words = f" {json.dumps(parameter.description, ensure_ascii=False)}" if parameter.description else ""
    return f"-- param: {parameter.name} {parameter.type}{default}{words}"


def _literal(value: Any) -> str:
    return "null" if value is None else json.dumps(value, ensure_ascii=False)
