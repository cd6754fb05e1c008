"""Whether a JSON message has more values than any client needs, found without parsing it.

Parsers make an object of each value and hold the event loop meanwhile: a message of 1 MiB may have 340,000 of them,
which takes three quarters of a second and 20 MB.
"""

from __future__ import annotations

from typing import Final

MOST_VALUES: Final = 24_000
"""The most commas and opening brackets outside of texts. The 10,000 values that `params` may have are 20,000 of them,
if each is an empty list."""

_MARKS: Final = (b",", b"[", b"{")
_MOST_QUOTES: Final = 4 * MOST_VALUES
"""There are at most two texts to each value, a key and a text, with two quotes each."""


def has_too_many_values(message: bytes) -> bool:
    """Return whether a message has more than `MOST_VALUES`.

    What is no JSON as a whole is counted as a parser reads it, up to the place where the parser gives up.
    """
    if _count(message) <= MOST_VALUES:
        return False
    if b"\0" in message:  # no UTF-8, so the quotes may be others
        return True
    plain = message.replace(b"\\\\", b"").replace(b'\\"', b"")
    return plain.count(b'"') > _MOST_QUOTES or _count(b"".join(plain.split(b'"')[::2])) > MOST_VALUES


def _count(message: bytes) -> int:
    return sum(message.count(mark) for mark in _MARKS)
