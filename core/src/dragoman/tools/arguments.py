"""Arguments of tool calls: declared as data, checked with words an agent can act on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from dragoman.errors import ParameterError
from dragoman.tools.bounds import check_characters, check_keys, check_values
from dragoman.words import nearest

TypeName = Literal["string", "integer", "boolean", "strings", "string or strings", "values", "value", "object"]

_SCHEMAS: dict[TypeName, dict[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "strings": {"type": "array", "items": {}},
    "string or strings": {"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]},
    "values": {"type": "array", "items": {}},
    "value": {"type": "string"},
    "object": {"type": "object"},
}
_WORDS: dict[TypeName, str] = {
    "string": "a string",
    "integer": "an integer",
    "boolean": "true or false",
    "strings": "an array of strings",
    "string or strings": "a string or an array of strings",
    "values": "an array",
    "value": "a single value",
    "object": "an object",
}
MAX_ITEMS = 1000
"""Of an argument that is a list. Bound parameters have the dialect's own limit below it or near it."""
MAX_LENGTH = 1000
"""Characters of a text, unless its argument says otherwise: names and words are shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a tool. `default` stands in when it is not given; an optional argument may be null.

    `longest`: characters of a text or of each text in a list; None where the gateway has a bound and words of its own.
    `shape`: the JSON Schema of a `value`, which its handler checks.
    """

    name: str
    type: TypeName = "string"
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    longest: int | None = MAX_LENGTH
    shape: Mapping[str, Any] | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """The argument as JSON Schema, in as few bytes as models and clients need.

        Every argument has a type and every array its `items`: some clients refuse a tool without, and one sent the
        text 2024 as a number. Ranges are told when they are overstepped.
        """
        if self.choices:
            listed = {"enum": list(self.choices)}
            return {"type": "string", **listed} if self.type == "string" else {"type": "array", "items": listed}
        return dict(self.shape or _SCHEMAS[self.type])


def words_of(kind: TypeName) -> str:
    """Return a type in words."""
    return _WORDS[kind]


def check(given: Any, declared: Sequence[Argument]) -> dict[str, Any]:
    """Return the arguments of a call with defaults filled in. Raises `ParameterError`, naming the remedy."""
    arguments = _object(given)
    by_name = {argument.name: argument for argument in declared}
    for name in arguments:
        if name not in by_name:
            raise _unknown(name, by_name)
    return {argument.name: _value(argument, arguments.get(argument.name)) for argument in declared}


def _object(given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not _is_object(given):
        raise ParameterError("Arguments must be an object.", suggestion='Send {"name": value, ...}.')
    check_keys(given)
    return given


def _is_object(given: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(given, Mapping)


def _unknown(name: str, known: Iterable[str]) -> ParameterError:
    names = list(known)
    close = nearest(name.lower(), names, 1, 0.5)
    remedy = f"Did you mean {close[0]}?" if close else f"Arguments: {', '.join(names)}." if names else "It takes none."
    return ParameterError(f"There is no argument {name[:100]!r}.", suggestion=remedy)


def _value(argument: Argument, value: Any) -> Any:
    if value is None:
        if argument.required:
            raise ParameterError(
                f"The argument {argument.name} is missing.",
                suggestion=f"Send {argument.name}, {words_of(argument.type)}.",
            )
        return argument.default
    if argument.type == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _fits(argument.type, value):
        raise _wrong_type(argument, value)
    _check_range(argument, value)
    _check_length(argument, value)
    _check_choices(argument, value)
    return value


def _fits(kind: TypeName, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "values":
            return isinstance(value, list)
        case "value":
            return isinstance(value, str | int | float)
        case "object":
            return isinstance(value, dict)
        case "strings":
            return isinstance(value, list) and all(isinstance(item, str) for item in _items(value))
        case "string or strings":
            return _fits("string", value) or _fits("strings", value)


def _items(value: Any) -> list[Any]:
    return list(value) if _is_list(value) else []


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _wrong_type(argument: Argument, value: Any) -> ParameterError:
    quoted = argument.type in ("integer", "boolean") and isinstance(value, str)
    remedy = f"Send {argument.name} without quotes." if quoted else f"Send {words_of(argument.type)}."
    return ParameterError(f"{argument.name} must be {words_of(argument.type)}, not {_kind(value)}.", suggestion=remedy)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "an array with other values" if value else "an array"
        case _:
            return "an object"


def _check_range(argument: Argument, value: Any) -> None:
    number = len(_items(value)) if isinstance(value, list) else value
    unit = " items" if isinstance(value, list) else ""
    if not isinstance(number, int) or isinstance(number, bool):
        return
    low = argument.minimum
    high = MAX_ITEMS if unit else argument.maximum
    if (low is None or number >= low) and (high is None or number <= high):
        return
    bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
    raise ParameterError(
        f"{argument.name} must be {' and '.join(bounds)}{unit}.", suggestion=f"Send {argument.name} in that range."
    )


def _check_length(argument: Argument, value: Any) -> None:
    if argument.type in ("values", "value", "object"):
        check_values(_items(value) or [value])
        return
    for text in [value] if isinstance(value, str) else _items(value):
        if argument.longest is not None and len(text) > argument.longest:
            raise ParameterError(
                f"{argument.name} is longer than {argument.longest} characters.",
                suggestion=f"Send a shorter {argument.name}.",
            )
        # How long SQL may be is the statement's own rule, with a code of its own.
        check_characters(text)


def _check_choices(argument: Argument, value: Any) -> None:
    if not argument.choices:
        return
    for item in [value] if isinstance(value, str) else _items(value):
        if item not in argument.choices:
            close = nearest(item.lower(), argument.choices, 1, 0.5)
            remedy = f"Did you mean {close[0]}?" if close else f"Choose from {', '.join(argument.choices)}."
            raise ParameterError(f"{argument.name} cannot be {item[:100]!r}.", suggestion=remedy)
