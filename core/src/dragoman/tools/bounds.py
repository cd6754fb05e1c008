"""Bounds of the arguments of a call, so that their cost does not grow with what a caller sends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeGuard

from dragoman.errors import ParameterError

MAX_DEPTH: Final = 32
MAX_VALUES: Final = 10_000
MAX_TEXT: Final = 1_000_000
MAX_BITS: Final = 3_322
"""The most bits of a whole number: 1,000 digits. The time to write a number grows faster than its length."""
MAX_KEY: Final = 1_000


def check_values(values: Iterable[Any]) -> None:
    """Raise `ParameterError` unless the values are JSON of a reasonable size.

    Bounds hold for all values together: their number, depth and characters.
    """
    left = list(values)
    following: list[Any] = []
    seen = length = depth = 0
    while left:
        depth += 1
        if depth > MAX_DEPTH:
            raise ParameterError(
                "The arguments are nested too deeply.", suggestion=f"Nest them at most {MAX_DEPTH} levels deep."
            )
        for value in left:
            seen += 1
            if isinstance(value, str):
                length += len(value)
                check_text(value)
            elif _is_object(value):
                following += value.values()
                seen += len(value)
                check_keys(value)
            elif _is_list(value):
                following += value
            else:
                _check_scalar(value)
            if seen > MAX_VALUES or length > MAX_TEXT:
                raise _too_much()
        left, following = following, []


def _too_much() -> ParameterError:
    return ParameterError(
        f"The arguments hold more than {MAX_VALUES} values or {MAX_TEXT} characters.",
        suggestion="Send less at once: read long lists and texts from a table of the database.",
    )


def check_text(text: str) -> None:
    """Raise `ParameterError` unless a text has a reasonable length and only valid characters."""
    if len(text) > MAX_TEXT:
        raise _too_much()
    check_characters(text)


def check_characters(text: str) -> None:
    """Raise `ParameterError` unless a text has only valid characters."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ParameterError(
            "An argument holds half of a surrogate pair, which is not a character.", suggestion="Send valid Unicode."
        ) from None


def check_keys(value: Mapping[Any, Any]) -> None:
    """Raise `ParameterError` unless the keys of an object are texts of a reasonable length."""
    for key in value:
        if not isinstance(key, str):
            raise _no_json()
        if len(key) > MAX_KEY:
            raise ParameterError(
                f"A key of an object is longer than {MAX_KEY} characters.", suggestion="Send shorter keys."
            )
        check_text(key)


def _check_scalar(value: Any) -> None:
    match value:
        case None | bool():
            return
        case int():
            if value.bit_length() > MAX_BITS:
                raise ParameterError("A number has more than 1,000 digits.", suggestion="Send it as text, or round it.")
        case float():
            if not math.isfinite(value):
                raise _no_json()
        case _:
            raise _no_json()


def _no_json() -> ParameterError:
    return ParameterError("An argument is not a JSON value.", suggestion="Send NaN and infinities as text.")


def _is_object(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_list(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple)
