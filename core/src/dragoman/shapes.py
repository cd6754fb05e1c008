"""Checks that what plugins return has the types that the contract's dataclasses declare.

Types are exact: a subclass of `str`, or a bool for a number, would break the encoding later, far from its cause.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Final, Literal

from dragoman.words import with_article

_EXACT: Final = frozenset({str, int, float, bool, bytes})
_UNIONS: Final = (typing.Union, types.UnionType)
_NO_ROWS: Final = (Mapping, AbstractSet, str, bytes)


class Malformed(TypeError):
    """A plugin returned something of the wrong shape. The message may be shown: it names types, not values."""


def check(hint: Any, values: Sequence[Any], what: str) -> None:
    """Raise `Malformed`, which names the place below `what`, unless each of `values` has the type that `hint` declares.

    Checks the fields of dataclasses too.
    """
    if not values or hint is Any:
        return
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        _check_union(arguments, hint, values, what)
    elif origin is Literal:
        _refuse(hint, [value for value in values if type(value) is not str or value not in arguments], what)
    elif origin in (tuple, frozenset):
        _refuse(hint, [value for value in values if not isinstance(value, origin)], what)
        check(arguments[0], list(chain.from_iterable(values)), f"an element of {what}")
    elif origin is Mapping:
        _refuse(hint, _strangers(origin, values), what)
        check(arguments[0], list(chain.from_iterable(values)), f"a key of {what}")
        check(arguments[1], [each for value in values for each in value.values()], f"a value of {what}")
    elif dataclasses.is_dataclass(hint):
        _refuse(hint, [value for value in values if not isinstance(value, typing.cast(Any, hint))], what)
        _check_fields(hint, values)
    else:
        _refuse(hint, _strangers(origin or hint, values), what)


def check_sequence(kind: Any, values: Any, what: str) -> None:
    """Raise `Malformed` unless `values` is a sequence of that kind. A text does not count as a sequence."""
    if not _is_sequence(values):
        raise Malformed(f"gave {what} as {with_article(type(values).__name__)}, not as a sequence of {_words(kind)}")
    check(kind, list(values), f"an element of {what}")


def _is_sequence(values: object) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)


def check_rows(rows: Sequence[Any], width: int) -> None:
    """Raise `Malformed` unless each row is a sequence with one value per column."""
    kinds: set[type[Any]] = {*map(type, rows)}
    for kind in kinds:
        if issubclass(kind, _NO_ROWS) or not hasattr(kind, "__len__"):
            raise Malformed(
                f"gave a row as {with_article(kind.__name__)}, not as a sequence of values in the order of the columns"
            )
    for length in {*map(len, rows)} - {width}:
        raise Malformed(f"gave a row of {length} values, and there are {width} columns")


def _check_union(arguments: Sequence[Any], hint: Any, values: Sequence[Any], what: str) -> None:
    present = [value for value in values if value is not None or type(None) not in arguments]
    others = [argument for argument in arguments if argument is not type(None)]
    if len(others) == 1:
        return check(others[0], present, what)
    for value in present:
        if not any(_fits(argument, value, what) for argument in others):
            _refuse(hint, [value], what)
    return None


def _fits(hint: Any, value: Any, what: str) -> bool:
    try:
        check(hint, [value], what)
    except Malformed:
        # Its own fields are wrong, not its type.
        if dataclasses.is_dataclass(hint) and isinstance(value, typing.cast(Any, hint)):
            raise
        return False
    return True


def _check_fields(kind: Any, values: Sequence[Any]) -> None:
    for name, hint in _fields(kind):
        check(hint, [getattr(value, name) for value in values], f"{kind.__name__}.{name}")


@functools.cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind))


def _strangers(kind: Any, values: Sequence[Any]) -> list[Any]:
    if kind is Callable:
        return [value for value in values if not callable(value)]
    if kind in _EXACT:
        return [] if {*map(type, values)} == {kind} else [value for value in values if type(value) is not kind]
    return [value for value in values if not isinstance(value, kind)]


def _refuse(hint: Any, strangers: Sequence[Any], what: str) -> None:
    if not strangers:
        return
    given = strangers[0]
    if isinstance(given, str) and typing.get_origin(hint) is Literal and type(given) is str:
        raise Malformed(f"gave {what} as {given[:40]!r}, not as {_words(hint)}")
    told = with_article(type(given).__name__)
    if type(given) is not hint and any(isinstance(given, kind) for kind in _EXACT if kind is hint):
        raise Malformed(f"gave {what} as {told}, which is a subclass of {_words(hint)}, and must give {_words(hint)}")
    raise Malformed(f"gave {what} as {told}, not as {_words(hint)}")


def _words(hint: Any) -> str:
    """Return a type as its author would write it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return " or ".join(map(_words, arguments))
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin in (tuple, frozenset):
        return f"{with_article(origin.__name__)} of {_words(arguments[0])}"
    return "None" if hint is type(None) else str(getattr(origin or hint, "__name__", hint))
