"""Names of types: declared ones in their shortest spelling, and storage classes seen."""

from __future__ import annotations

import functools
import re

_TEXT = re.compile(r"char|clob|text", re.IGNORECASE)
_LENGTH = re.compile(r"\s*\([^)]*\)")
_STORAGE = {int: "integer", float: "real", str: "text", bytes: "blob"}


@functools.cache  # a database has few types and many columns
def short_type(declared: str | None) -> str:
    """Return a declared type in lower case, without the length of texts, with the precision of numbers.

    Affinity rules of SQLite ("Determination Of Column Affinity") say what is a text. No declared type is an empty text.
    """
    words = " ".join((declared or "").split()).lower()
    return _LENGTH.sub("", words) if _TEXT.search(words) else re.sub(r"\s*([(,)])\s*", r"\1", words)


def storage_class(seen: set[type]) -> str:
    """Return the one storage class among the values seen, NULLs aside, or `any`."""
    classes = {_STORAGE[kind] for kind in seen if kind in _STORAGE}
    return classes.pop() if len(classes) == 1 else "any"
