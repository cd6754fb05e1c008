"""Arguments of tool calls: declared as data, checked with messages that an agent can act on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from dragoman.errors import ParameterError
from dragoman.tools.bounds import check_characters, check_keys, check_values
from dragoman.words import nearest

TypeName = Literal["string", "integer", "boolean", "strings", "string or strings", "values", "value", "object", "key"]

_STRINGS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_SCHEMAS: dict[TypeName, dict[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "strings": _STRINGS,
    "string or strings": {"anyOf": [{"type": "string"}, _STRINGS]},
    # Values of other types are taken, too. These have the fewest bytes in which every engine gets every value.
    "values": {"type": "array", "items": {"type": ["string", "number"]}},
    "value": {"type": "string"},
    "object": {"type": "object"},
    "key": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "object"}]},
}
_TEXTS: frozenset[TypeName] = frozenset(("string", "strings", "string or strings"))
_EMPTY: tuple[object, ...] = ("", [])
_WORDS: dict[TypeName, str] = {
    "string": "a string",
    "integer": "an integer",
    "boolean": "true or false",
    "strings": "an array of strings",
    "string or strings": "a string or an array of strings",
    "values": "an array",
    "value": "a single value",
    "object": "an object",
    "key": "a single value or an object",
}
MAX_ITEMS = 1000
"""The most items of a list argument. A dialect's own limit of bound parameters is lower or similar."""
MAX_LENGTH = 1000
"""The most characters of a text, unless its argument says otherwise. Names and words are shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a tool. `default` is used if it is not given.

    Some clients send every argument, so an optional one may be null, and an optional text or list may be empty.

    - `longest`: the most characters of a text, or of each text in a list. None where the gateway checks it itself.
    - `shape`: the JSON Schema of a `value`, which its handler checks.
    - `beside`: a tool without which the argument is not shown. It is accepted all the same.
    - `clears`: an empty text or list takes away what is set.
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
    beside: str = ""
    clears: bool = False

    @property
    def takes_empty_as_absent(self) -> bool:
        """Whether an empty text or list is the same as nothing."""
        return self.type in _TEXTS and not (self.required or self.clears)

    @property
    def schema(self) -> dict[str, Any]:
        """Return the argument as JSON Schema, in as few bytes as models and clients need.

        Every argument and every item has a type: Gemini and OpenAI's strict schemas refuse a tool without them, and one
        client sent the text 2024 as a number. Ranges are reported when a value is out of range.
        """
        if self.choices:
            listed = {"type": "string", "enum": list(self.choices)}
            return listed if self.type == "string" else {"type": "array", "items": listed}
        return dict(self.shape or _SCHEMAS[self.type])


def words_of(kind: TypeName) -> str:
    """Return a type in words."""
    return _WORDS[kind]


def check(given: Any, declared: Sequence[Argument]) -> dict[str, Any]:
    """Return the arguments of a call with defaults filled in. Raises `ParameterError`, which names the remedy."""
    by_name = {argument.name: argument for argument in declared}
    arguments: Any = {} if given is None else given
    if not isinstance(arguments, Mapping):
        raise ParameterError("Arguments must be an object.", suggestion='Send {"name": value, ...}.')
    if not by_name.keys() >= arguments.keys():
        raise _unknown(arguments, by_name)  # pyright: ignore[reportUnknownArgumentType]
    get: Callable[[str], Any] = arguments.get  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    filled: dict[str, Any] = {}
    for name, argument in by_name.items():
        value = get(name)  # pyright: ignore[reportUnknownVariableType]
        if value is not None and not (value in _EMPTY and argument.takes_empty_as_absent):
            filled[name] = _CHECKS[argument.type](argument, value)
        elif argument.required:
            raise _missing(argument)
        else:
            filled[name] = argument.default
    return filled


def _unknown(given: Mapping[Any, Any], known: Mapping[str, Argument]) -> ParameterError:
    check_keys(given)
    name, names = next(name for name in given if name not in known), list(known)
    close = nearest(name.lower(), names, 1, 0.5)
    remedy = f"Did you mean {close[0]}?" if close else f"Arguments: {', '.join(names)}." if names else "It takes none."
    return ParameterError(f"There is no argument {name[:100]!r}.", suggestion=remedy)


def _missing(argument: Argument) -> ParameterError:
    return ParameterError(
        f"The argument {argument.name} is missing.", suggestion=f"Send {argument.name}, {words_of(argument.type)}."
    )


def _string(argument: Argument, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong_type(argument, value)
    if argument.longest is not None and len(value) > argument.longest:
        raise ParameterError(
            f"{argument.name} is longer than {argument.longest} characters.",
            suggestion=f"Send a shorter {argument.name}.",
        )
    if not value.isascii():
        check_characters(value)
    if argument.choices and value not in argument.choices:
        raise _no_choice(argument, value)
    return value


def _integer(argument: Argument, value: Any) -> int:
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if not isinstance(number, int) or isinstance(number, bool):
        raise _wrong_type(argument, value)
    _check_range(argument, number, argument.maximum)
    return number


def _boolean(argument: Argument, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong_type(argument, value)
    return value


def _strings(argument: Argument, value: Any) -> list[str]:
    if not _is_list(value) or not all(isinstance(item, str) for item in value):
        raise _wrong_type(argument, value)
    _check_range(argument, len(value), MAX_ITEMS, " items")
    return [_string(argument, item) for item in value]


def _string_or_strings(argument: Argument, value: Any) -> str | list[str]:
    return _string(argument, value) if isinstance(value, str) else _strings(argument, value)


def _values(argument: Argument, value: Any) -> list[Any]:
    if not _is_list(value):
        raise _wrong_type(argument, value)
    _check_range(argument, len(value), MAX_ITEMS, " items")
    check_values(value)
    return value


def _single(argument: Argument, value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise _wrong_type(argument, value)
    check_values([value])
    return value


def _object(argument: Argument, value: Any) -> dict[str, Any]:
    if not _is_object(value):
        raise _wrong_type(argument, value)
    check_values([value])
    return value


def _key(argument: Argument, value: Any) -> Any:
    return _object(argument, value) if _is_object(value) else _single(argument, value)


_CHECKS: dict[TypeName, Callable[[Argument, Any], Any]] = {
    "string": _string,
    "integer": _integer,
    "boolean": _boolean,
    "strings": _strings,
    "string or strings": _string_or_strings,
    "values": _values,
    "value": _single,
    "object": _object,
    "key": _key,
}


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


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


def _check_range(argument: Argument, number: int, high: int | None, unit: str = "") -> None:
    low = argument.minimum
    if (low is None or number >= low) and (high is None or number <= high):
        return
    bounds = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
    raise ParameterError(
        f"{argument.name} must be {' and '.join(bounds)}{unit}.", suggestion=f"Send {argument.name} in that range."
    )


def _no_choice(argument: Argument, value: str) -> ParameterError:
    close = nearest(value.lower(), argument.choices, 1, 0.5)
    remedy = f"Did you mean {close[0]}?" if close else f"Choose from {', '.join(argument.choices)}."
    return ParameterError(f"{argument.name} cannot be {value[:100]!r}.", suggestion=remedy)
