"""Reads variants exactly. The driver's values lose what Python's types cannot hold; DuckDB's JSON loses the rest."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# (a value may be anything, and its JSON too)

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time, timedelta
from itertools import accumulate
from typing import Any
from uuid import UUID

Row = tuple[Any, ...]
_AS_WRITTEN = date, time, timedelta, UUID
"""Values that DuckDB writes better than Python holds them: months, infinite and far dates, nanoseconds."""
_GEOMETRY = b"\x00", b"\x01"
"""How the binary form of a geometry begins. As a blob, DuckDB writes these bytes with a backslash."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_DEEPEST = 100
"""Levels of nesting beyond which a variant stays JSON, as documents do: many JSON readers fail soon after."""


def merge_rows(rows: Iterable[Row], places: Sequence[int]) -> Iterator[Row]:
    """Yield rows without their last columns, which have those at `places` once more, with JSON for each variant."""
    for row in rows:
        merged = list(row[: len(row) - len(places)])
        for place, text in zip(places, row[len(merged) :], strict=True):
            merged[place] = _merge(merged[place], text)
        yield tuple(merged)


def _merge(value: Any, text: Any) -> Any:
    """Return a value with its dates, times, intervals and geometries as DuckDB writes them.

    `text`: the same value, in which each variant is JSON.
    """
    if isinstance(value, dict | list | tuple) and isinstance(text, str):
        if _is_deep(text):
            return text
        text = json.loads(text, parse_int=str, parse_float=str)
    if isinstance(value, dict):
        # By their order, since NaN as a key is not equal to itself.
        return {key: _merge(*pair) for key, *pair in zip(value, value.values(), text.values(), strict=True)}
    if isinstance(value, list | tuple):
        return [_merge(*pair) for pair in zip(value, text, strict=True)]
    is_written = isinstance(value, _AS_WRITTEN) or (isinstance(value, bytes) and _is_geometry(value, text))
    return _unquote(text) if is_written else value


def _is_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= _DEEPEST:
        return False
    levels = accumulate({"[": 1, "{": 1, "]": -1, "}": -1}.get(mark, 0) for mark in _STRING.sub("", text))
    return max(levels) > _DEEPEST


def _is_geometry(value: bytes, text: Any) -> bool:
    return isinstance(text, str) and value.startswith(_GEOMETRY) and not _unquote(text).startswith("\\")


def _unquote(text: str) -> str:
    """Return what a text in JSON says; DuckDB writes no date, time, interval or geometry with quotes itself."""
    return json.loads(text) if text.startswith('"') else text
