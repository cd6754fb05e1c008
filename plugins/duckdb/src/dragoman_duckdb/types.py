"""Turns DuckDB's types into columns, and casts values to text that Python's types cannot represent exactly."""

import re
from collections.abc import Sequence
from typing import Any

from dragoman import Column, Kind

# Python has no months, no infinite or far dates, no nanoseconds, and a variant may hold any of these. The first group
# is a quoted name or label, which may look like a type; the rest matches a type, not a field with its name.
_INEXACT = re.compile(
    r"""("(?:[^"]|"")*"|'(?:[^']|'')*')"""
    r"|\b(?:DATE|TIME(?:_NS)?|TIMESTAMP(?:_S|_MS|_NS|TZ_NS)?|INTERVAL|UUID|BIT|VARIANT)(?: WITH TIME ZONE)?(?=[,)\[]|$)"
)
_EXACT = {"VARIANT": "JSON"}
_SHORT = {"timestamp with time zone": "timestamptz", "time with time zone": "timetz"}
_INTEGERS = r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER"
_KINDS = (
    (r"VARCHAR|ENUM\(.*", Kind("text")),
    (r"BOOLEAN", Kind("boolean")),
    (_INTEGERS, Kind("integer")),
    (r"DOUBLE|FLOAT", Kind("float")),
    (r"BLOB", Kind("binary")),
    (r"JSON", Kind("json")),
)


def exact(type_: str) -> str:
    """Return the type to which a value must be cast for Python to represent it exactly; usually its own."""
    return _INEXACT.sub(lambda found: found[1] or _EXACT.get(found[0], "VARCHAR"), type_)


def columns(names: Sequence[str], types: Sequence[str]) -> list[Column]:
    """Return the columns of a result, from DuckDB's full names of their types."""
    # Of 10,000 columns most share a type.
    told = {type_: (_shorten(type_), _kind(exact(type_))) for type_ in set(types)}
    return [Column(name, *told[type_]) for name, type_ in zip(names, types, strict=True)]


def _shorten(type_: str) -> str:
    shown = type_ if "'" in type_ else type_.lower()
    return _SHORT.get(shown, shown)


def _kind(type_: str) -> Kind:
    for pattern, kind in _KINDS:
        if re.fullmatch(pattern, type_):
            return kind
    return Kind("native")


def add_casts(statement: str, described: list[tuple[Any, ...]]) -> str:
    """Return the statement to run: unchanged, or wrapped in the casts that its columns need."""
    casts = [(place, type_, exact(type_)) for place, (_, type_, *_) in enumerate(described, 1)]
    if all(type_ == wanted for _, type_, wanted in casts):
        return statement
    columns = (f"#{place}" if type_ == wanted else f"CAST(#{place} AS {wanted})" for place, type_, wanted in casts)
    return f"SELECT {', '.join(columns)} FROM (\n{statement}\n)"
