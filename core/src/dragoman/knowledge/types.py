"""The family of values of a column's type, as far as its spelling in common databases shows it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Family = Literal["text", "integer", "number", "date", "boolean", "uuid", "other"]

_FAMILIES: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("other", re.compile(r"\[\]|\b(array|map|row|list|struct|json|xml|interval)")),
    ("boolean", re.compile(r"\bbool")),
    ("uuid", re.compile(r"\b(uuid|uniqueidentifier)")),
    ("integer", re.compile(r"\b(u?(tiny|small|medium|big|huge)?int(eger)?\d*|(big|small)?serial|year)\b")),
    ("number", re.compile(r"\b(numeric|decimal|real|float\d?|double|money|number)\b")),
    ("date", re.compile(r"\b(date|datetime|timestamp|timestamptz)")),
    ("text", re.compile(r"char|text|clob|string|enum|\bname\b|^$")),
)


@lru_cache(maxsize=1000)
def family(type_: str) -> Family:
    """Return the family of a type. A column without a type may hold text."""
    lower = type_.lower()
    for name, pattern in _FAMILIES:
        if pattern.search(lower):
            return name
    return "other"
