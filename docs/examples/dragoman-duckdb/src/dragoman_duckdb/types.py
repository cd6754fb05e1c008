"""From DuckDB's types to columns, and what must come as text because Python's values would lose something of it."""

import re
from typing import Any

from dragoman import Column, Kind

# Python knows no months, no infinite or far dates, no nanoseconds, and a variant may hold any of these. The first group
# is a quoted name or label, which may look like a type; the rest is a type where one stands, not a field of its name.
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
    (r"DOUBLE", Kind("float")),
    (r"BLOB", Kind("binary")),
    (r"JSON", Kind("json")),
)


def exact(type_: str) -> str:
    """Return the type that a value must be cast to for Python to have all of it; the same one, mostly."""
    return _INEXACT.sub(lambda found: found[1] or _EXACT.get(found[0], "VARCHAR"), type_)


def column(name: str, type_: str) -> Column:
    """Return a column of a result, from DuckDB's full name of its type."""
    shown = type_ if "'" in type_ else type_.lower()
    return Column(name, _SHORT.get(shown, shown), _kind(exact(type_)))


def _kind(type_: str) -> Kind:
    for pattern, kind in _KINDS:
        if re.fullmatch(pattern, type_):
            return kind
    return Kind("native")


def add_casts(statement: str, described: list[tuple[Any, ...]]) -> str:
    """Return the statement to run: as it came, or around it the casts its columns need."""
    casts = [(place, type_, exact(type_)) for place, (_, type_, *_) in enumerate(described, 1)]
    if all(type_ == wanted for _, type_, wanted in casts):
        return statement
    columns = (f"#{place}" if type_ == wanted else f"CAST(#{place} AS {wanted})" for place, type_, wanted in casts)
    return f"SELECT {', '.join(columns)} FROM (\n{statement}\n)"
