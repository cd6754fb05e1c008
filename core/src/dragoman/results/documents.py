"""JSON documents, passed on as JSON values if that loses nothing."""

from __future__ import annotations

import decimal
import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

MAX_SAFE = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (RFC 8259, section 6)."""
DEEPEST = 100
"""Levels of nesting beyond which a document stays a text: many JSON readers fail soon after."""

_SEPARATOR = "".join(chr(ord("g") + octet % 20) for octet in os.urandom(10))
"""A document that stands between two: found at every other place, none gave a part to another or was empty. Nobody
who writes documents knows it, and nothing in it looks like a part of a number."""
_BETWEEN = f'\n"{_SEPARATOR}"\n'
_IN_LIST = f',"{_SEPARATOR}",'
_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines
_decode_lines = msgspec.json.Decoder().decode_lines
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_INEXACT = re.compile(rb"[0-9.]{16}|[0-9][eE]|-0(?![.0-9])")
"""Numbers of which a parser may lose a digit or the sign. Fifteen digits come back from any double."""
_MINUS_ZERO = re.compile(rb"-0(?![.0-9])")
_SPACE = b" \t\r"
_DIGITS_AS_0 = bytes.maketrans(b"123456789", b"000000000")
_NUMBERS_AS_0 = bytes.maketrans(b".123456789E", b"0000000000e")
_LONG_INTEGER = re.compile(rb"(?<![0-9.])[0-9]{16,}(?![0-9.])")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def plain_documents(texts: Sequence[str], *, unique_keys: bool = False) -> list[Any] | None:
    """Return the values of JSON documents, parsed in one go, if that plainly loses nothing of any of them.

    None: some document needs a closer look, by `exact_json`. `unique_keys`: no object has a key twice, so that they
    need not be parsed.
    """
    if _may_be_deep(texts):
        return None
    if unique_keys and (found := _minify(texts)) is not None:
        return found
    try:
        whole = _BETWEEN.join(texts).encode()
        values: list[Any] = _decode_lines(whole)
    except (ValueError, RecursionError):
        return None
    if len(values) != 2 * len(texts) - 1 or values[1::2] != [_SEPARATOR] * (len(texts) - 1):
        return None
    again = _encode_lines(values)
    return values[::2] if _comes_back(whole, again) or _loses_nothing(whole, again) else None


def _minify(texts: Sequence[str]) -> list[Any] | None:
    """The documents as they are written, but for space, if all of them are JSON and no number may lose anything."""
    try:
        whole = f"[{_IN_LIST.join(texts)}]".encode()
        if _may_be_inexact(whole):
            return None
        values = _split(msgspec.json.format(whole, indent=-1))
    except (ValueError, RecursionError):
        return None
    between = [msgspec.Raw(_IN_LIST[1:-1].encode())] * (len(texts) - 1)
    return values[::2] if len(values) == 2 * len(texts) - 1 and values[1::2] == between else None


def _may_be_inexact(documents: bytes) -> bool:
    """Whether something in them looks as if a parser may lose a digit or the sign of it, in a string too."""
    zeros = documents.translate(_NUMBERS_AS_0)
    return b"0" * 16 in zeros or b"0e" in zeros or bool(_MINUS_ZERO.search(documents))


def _may_be_deep(texts: Sequence[str]) -> bool:
    longest = max(map(len, texts), default=0)
    return longest > DEEPEST and any(text.count("[") + text.count("{") > DEEPEST for text in texts)


def _comes_back(whole: bytes, again: bytes) -> bool:
    """Return whether documents were encoded `again` to the same tokens, and have no integer that readers may round.

    Space is ignored in both, in strings too: it separates no tokens that could become one. A duplicate key would be
    missing, and any spelling but the encoder's own would differ: -0, 1.10, 1e5, an escaped surrogate.
    """
    tokens = whole.translate(None, _SPACE)
    if tokens + b"\n" != again.translate(None, _SPACE):
        return False
    has_digits = b"0" * 16 in tokens.translate(_DIGITS_AS_0)
    return not has_digits or _LONG_INTEGER.search(_outside_strings(tokens)) is None


def _loses_nothing(whole: bytes, again: bytes) -> bool:
    """Return whether no number of documents lost a digit or its sign, and no object a key, whatever the spelling."""
    outside = _outside_strings(whole)
    if _INEXACT.search(outside) or _SURROGATE.search(whole):
        return False
    # Usually only the space between tokens is gone, and a line's end was added.
    if len(again) == len(whole) + 1 - sum(map(outside.count, (b" ", b"\t", b"\r"))):
        return True
    return outside.count(b":") == _outside_strings(again).count(b":")


def _outside_strings(documents: bytes) -> bytes:
    if b"\\" in documents:
        return _STRINGS.sub(b"", documents)
    return b"".join(documents.split(b'"')[::2])  # every quote begins or ends a string; takes a sixth of the time


def exact_json(text: str) -> msgspec.Raw:
    """Return JSON minified, with every digit and key, if other readers will read it so.

    Raises `ValueError`, `ArithmeticError` or `RecursionError`.
    """
    value = json.loads(
        text, parse_int=_exact_int, parse_float=_exact_float, parse_constant=_refuse, object_pairs_hook=_unique
    )
    if text.count("[") + text.count("{") > DEEPEST and _deeper(value, DEEPEST):
        raise ValueError("too deep")
    return msgspec.Raw(_encode(value))  # encoded now, since this may fail too: a lone surrogate, written as \ud800


def _deeper(value: Any, levels: int) -> bool:
    layer: list[Any] = [value]
    for _ in range(levels):
        layer = [inner for outer in layer for inner in _inside(outer)]
    return any(isinstance(inner, list | dict) for inner in layer)


def _inside(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return cast(dict[str, Any], value).values()
        case list():
            return value  # pyright: ignore[reportUnknownVariableType]
        case _:
            return ()


def _exact_int(text: str) -> int:
    value = int(text) if len(text) < 18 else MAX_SAFE + 1
    if not -MAX_SAFE <= value <= MAX_SAFE or text == "-0":
        raise ValueError(text)
    return value


def _exact_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or decimal.Decimal(text) != decimal.Decimal(repr(value)):
        raise ValueError(text)
    return value


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found
