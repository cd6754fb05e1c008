"""Turns DuckDB's types into columns, and casts values to text that Python's types cannot represent exactly."""

import re
from collections.abc import Sequence
from typing import Any

from dragoman import Column, Kind

# Python has no months, no infinite or far dates, no nanoseconds, and hands out a geometry as bytes. The first group is
# a quoted name or label, which may look like a type; the rest matches a type, not a field with its name.
_QUOTED = r"""("(?:[^"]|"")*"|'(?:[^']|'')*')"""
_QUOTES = re.compile(_QUOTED)
_ENDS = r"(?=[,)\[]|$)"
_INEXACT = re.compile(
    rf"{_QUOTED}|\bGEOMETRY(?:\('(?:[^']|'')*'\))?{_ENDS}"
    rf"|\b(?:DATE|TIME(?:_NS)?|TIMESTAMP(?:_S|_MS|_NS|TZ_NS)?|INTERVAL|UUID|BIT)(?: WITH TIME ZONE)?{_ENDS}"
)
_VARIANT = re.compile(rf"{_QUOTED}|\bVARIANT{_ENDS}")
_MAP = re.compile(rf"{_QUOTED}|\bMAP\(")
_PARTS = re.compile(rf"{_QUOTED}|[(),]")
_UNTOLD_KEY = re.compile(r"(?:STRUCT|TUPLE|MAP)\(.*|.*\]|BIGNUM", re.DOTALL)
"""Keys of which Python makes none."""
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
    return _INEXACT.sub(lambda found: found[1] or "VARCHAR", _write_keys(type_))


def _write_keys(type_: str) -> str:
    """Return the type with texts in place of keys that Python cannot have, such as structs and lists."""
    written, place = list[str](), 0
    for found in _MAP.finditer(type_):
        start = found.end()
        if found[1] or start < place:  # a name, or a map inside a key
            continue
        key = type_[start : _find_comma(type_, start)]
        if (text := _write_key(key)) != key:
            written += type_[place:start], text
            place = start + len(key)
    return "".join((*written, type_[place:]))


def _write_key(key: str) -> str:
    """Return the type to which a key is cast. Of variants JSON tells apart what is one text: 1 and '1'."""
    if _VARIANT.search(_QUOTES.sub("", key)):
        return "JSON"
    return "VARCHAR" if _UNTOLD_KEY.fullmatch(key) else key


def _find_comma(type_: str, start: int) -> int:
    """Return the place of the comma that ends the part that begins at `start`."""
    depth = 0
    for found in _PARTS.finditer(type_, start):
        if found[0] == "," and not depth:
            return found.start()
        depth += {"(": 1, ")": -1}.get(found[0], 0)
    return len(type_)


def write_variants(type_: str) -> str:
    """Return the type with JSON in place of each variant: the same type if there is none."""
    return _VARIANT.sub(lambda found: found[1] or "JSON", type_)


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


def add_casts(statement: str, described: list[tuple[Any, ...]]) -> tuple[str, list[int]]:
    """Return the statement to run: unchanged, or wrapped in the casts that its columns need.

    Each column with variants, whose places are returned too, comes once more at the end, with JSON in their place.
    """
    types = [type_ for _, type_, *_ in described]
    wanted = [exact(type_) for type_ in types]
    variants = [place for place, type_ in enumerate(wanted) if write_variants(type_) != type_]
    if wanted == types and not variants:
        return statement, []
    casts = [_cast(place, *pair) for place, pair in enumerate(zip(types, wanted, strict=True))]
    casts += [_cast(place, types[place], write_variants(wanted[place])) for place in variants]
    return f"SELECT {', '.join(casts)} FROM (\n{statement}\n)", variants


def _cast(place: int, type_: str, wanted: str) -> str:
    column = f"#{place + 1}"
    return column if type_ == wanted else f"CAST({column} AS {wanted})"
