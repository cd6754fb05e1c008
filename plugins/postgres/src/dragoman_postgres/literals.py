"""Splits the texts of arrays and composites, as PostgreSQL writes them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

Tree = list[Any]
"""Texts, None for NULL, and lists of these for further dimensions."""

# Possessive, since a long text would need many times its size for backtracking.
_SIMPLE = re.compile(r'\{[^{}"\\]*+\}')
_SPACES = " \t\n\r\v\f"
"""What the server leaves out around elements. It quotes an element that has one of these."""
_SPACE = re.compile(f"[{_SPACES}]")
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
        inside = text[1:-1].strip(_SPACES)
        items = inside.split(delimiter) if inside else []
        if "" in items or _SPACE.search(inside):  # never in the server's own texts
            return [_plain(item) for item in items]
        return [None if item.upper() == "NULL" else item for item in items]
    if not text.startswith("{"):  # its characters would be taken for elements
        raise ValueError("not an array")
    return _nest(text, delimiter)


def _nest(text: str, delimiter: str) -> Tree:
    token = _token(delimiter)
    root: Tree = []
    open_lists = [root]
    place, before = 0, delimiter
    while place < len(text):
        found = token.match(text, place)
        if found is None or not open_lists or not _follows(found[1], before, delimiter):
            raise ValueError("not an array")
        place, before = found.end(), found[1]
        mark, quoted, plain = found.groups()
        if mark == "{":
            deeper: Tree = []
            open_lists[-1].append(deeper)
            open_lists.append(deeper)
        elif mark == "}":
            open_lists.pop()
        elif mark is None:
            open_lists[-1].append(_element(quoted, plain))
    if len(open_lists) != 1 or len(root) != 1 or before != "}":
        raise ValueError("not an array")
    elements: Tree = root[0]
    return elements


def _follows(mark: str | None, before: str | None, delimiter: str) -> bool:
    """Return whether a mark, None for an element, may follow another."""
    if mark is None or mark == "{":
        return before in ("{", delimiter)
    return before != delimiter if mark == "}" else before in (None, "}")


def _element(quoted: str | None, plain: str | None) -> str | None:
    if quoted is not None:
        return _ESCAPED.sub(r"\1", quoted) if "\\" in quoted else quoted
    assert plain is not None
    return _plain(plain)


def _plain(written: str) -> str | None:
    """Return an element without quotes. Raises `ValueError` for an empty one, which the server quotes."""
    after = written.lstrip(_SPACES)
    item = after.rstrip(_SPACES)
    if "\\" in item:
        escapes = len(item) - len(item.rstrip("\\"))
        return _ESCAPED.sub(r"\1", after[: len(item) + escapes % 2])  # an escaped space belongs to the element
    if not item:
        raise ValueError("not an array")
    return None if item.upper() == "NULL" else item


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
