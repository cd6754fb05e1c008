"""Splits the texts of arrays and composites, as PostgreSQL writes them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

Tree = list[Any]
"""Texts, None for NULL, and lists of these for further dimensions."""

# Possessive, since a long text would need many times its size for backtracking.
_SIMPLE = re.compile(r'\{[^{}"\\]*+\}')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_FIELD = re.compile(r'((?:[^",()\\]++|"(?:[^"\\]++|\\.|"")*+"|\\.)*+)([,)])', re.DOTALL)
_PIECE = re.compile(r'"((?:[^"\\]++|\\.|"")*+)"|\\(.)|([^"\\]++)', re.DOTALL)
_INNER = re.compile(r'\\(.)|"(")', re.DOTALL)


@cache
def _token(delimiter: str) -> re.Pattern[str]:
    between = re.escape(delimiter)
    return re.compile(rf'([{{}}{between}])|"((?:[^"\\]++|\\.)*+)"|((?:[^{{}}"\\{between}]++|\\.)++)', re.DOTALL)


def split_array(text: str, delimiter: str = ",") -> Tree | None:
    """Return the elements of an array. None if it has lower bounds of its own, which only its text shows.

    Raises `ValueError` for a text that is not an array.
    """
    if text.startswith("["):
        return None
    if _SIMPLE.fullmatch(text):
        inside = text[1:-1]
        return [None if item.upper() == "NULL" else item for item in inside.split(delimiter)] if inside else []
    return _nest(text, delimiter)


def _nest(text: str, delimiter: str) -> Tree:
    token = _token(delimiter)
    root: Tree = []
    open_lists = [root]
    place = 0
    while place < len(text):
        found = token.match(text, place)
        if found is None or not open_lists:
            raise ValueError("not an array")
        place = found.end()
        mark, quoted, plain = found.groups()
        if mark == "{":
            deeper: Tree = []
            open_lists[-1].append(deeper)
            open_lists.append(deeper)
        elif mark == "}":
            open_lists.pop()
        elif mark is None:
            open_lists[-1].append(_element(quoted, plain))
    if len(open_lists) != 1 or len(root) != 1:
        raise ValueError("not an array")
    elements: Tree = root[0]
    return elements


def _element(quoted: str | None, plain: str | None) -> str | None:
    if quoted is not None:
        return _ESCAPED.sub(r"\1", quoted) if "\\" in quoted else quoted
    assert plain is not None
    return None if plain.upper() == "NULL" else _ESCAPED.sub(r"\1", plain)


def split_row(text: str) -> list[str | None]:
    """Return the fields of a composite. Raises `ValueError` for a text that is not a composite."""
    if text == "()":
        return [None]
    fields: list[str | None] = []
    place = 1
    while place < len(text):
        found = _FIELD.match(text, place)
        if found is None:
            break
        fields.append(_field(found[1]) if found[1] else None)
        place = found.end()
        if found[2] == ")" and place == len(text):
            return fields
    raise ValueError("not a composite")


def _field(written: str) -> str:
    if '"' not in written and "\\" not in written:
        return written
    return _PIECE.sub(_piece, written)


def _piece(found: re.Match[str]) -> str:
    quoted, escaped, plain = found.groups()
    if quoted is not None:
        return _INNER.sub(lambda inner: inner[1] or inner[2], quoted)
    return escaped or plain or ""
