"""Names of types: declared types in their shortest spelling, and observed storage classes."""

from __future__ import annotations

import functools
import re

_TEXT = re.compile(r"char|clob|text", re.IGNORECASE)
_LENGTH = re.compile(r"\s*\([^)]*\)")
_STORAGE = {int: "integer", float: "real", str: "text", bytes: "blob"}


@functools.cache  # a database has few types and many columns
def short_type(declared: str | None) -> str:
    """Return a declared type in lower case, without the length of texts, with the precision of numbers.

    SQLite's affinity rules ("Determination Of Column Affinity") decide what is a text. Without a declared type it is
    empty.
    """
    words = " ".join((declared or "").split()).lower()
    return _LENGTH.sub("", words) if _TEXT.search(words) else re.sub(r"\s*([(,)])\s*", r"\1", words)


def storage_class(seen: set[type]) -> str:
    """Return the one storage class among the observed ones, ignoring NULLs, or `any`."""
    classes = {_STORAGE[kind] for kind in seen if kind in _STORAGE}
    return classes.pop() if len(classes) == 1 else "any"
