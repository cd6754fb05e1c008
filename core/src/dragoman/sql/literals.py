"""Writes out literals with a type before them, which sqlglot takes for something else.

In `date '2024-01-31'::text` the date becomes a text. sqlglot reads the text as cast first, and then as a date.
In Trino `decimal '1.50'` has two decimal places. sqlglot reads it as `CAST('1.50' AS DECIMAL)`, which has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from dragoman.sql.text import Token

_TRINO = frozenset({"trino", "presto", "athena"})
_ZONE = r"(?:\s+with(?:out)?\s+time\s+zone)?"
_TYPE = re.compile(
    r"(?<![\w.$\"])(?:double\s+precision|(?:national\s+)?char(?:acter)?(?:\s+varying)?|bit(?:\s+varying)?"
    rf"|timestamp\s*(?:\(\s*\d+\s*\))?{_ZONE}|(?<!at )time\s*(?:\(\s*\d+\s*\))?{_ZONE}|[a-z]\w*)"
    r"\s*(?:\(\s*\d+\s*(?:,\s*-?\d+\s*)?\))?\s*\Z",
    re.IGNORECASE,
)
# What may stand before a text and is no type.
_OTHERS = frozenset(
    "all and any as between both by case collate distinct else escape except for from having ilike in intersect is"
    " leading like limit not offset on or order overlaps placing regexp return returning rlike select similar some then"
    " to trailing uescape union using values when where window with zone e".split()
)
_NUMBER = re.compile(r"'[+-]?(\d*)\.?(\d*)'")


class Change(NamedTuple):
    """A part of the text, and what stands for it."""

    start: int
    end: int
    text: str


def written_out(text: str, tokens: tuple[Token, ...], source: str) -> Iterator[Change]:
    """Return the literals with a type before them that sqlglot would read otherwise, as it reads them rightly."""
    for token, after in pairwise((*tokens, Token("mark", "", len(text)))):
        start = _start_of_type(text, token) if token.kind == "string" else None
        if start is None:
            continue
        if text.startswith(("::", "["), after.start):
            yield Change(start, start, "(")
            yield Change(token.end, token.end, ")")
        elif source in _TRINO and (found := _NUMBER.fullmatch(token.text)) and _is_decimal(text[start : token.start]):
            digits, places = len(found[1]), len(found[2])
            yield Change(start, token.end, f"CAST({token.text} AS DECIMAL({max(digits + places, 1)}, {places}))")


def _start_of_type(text: str, literal: Token) -> int | None:
    found = _TYPE.search(text, max(0, literal.start - 200), literal.start)
    if found is None or found[0].strip().lower() in _OTHERS | {"interval"}:
        return None
    return found.start()


def _is_decimal(written: str) -> bool:
    return written.strip().lower() in {"decimal", "dec", "numeric"}
