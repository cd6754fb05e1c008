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
_ZONE = "(?:with(?:out)? time zone )?"
# In tokens before the literal, each with a space after it.
_TYPE = re.compile(
    r"(?<![^ ])(?<!\. )((?:double precision |(?:national )?char(?:acter)? varying |national char(?:acter)? "
    rf"|bit varying |time(?:stamp)? (?:\( \d+ \) )?{_ZONE}|[a-z]\w* ))(?:\( \d+ (?:, (?:- )?\d+ )?\) )?\Z"
)
_LONGEST = 10  # tokens of a type
# What may stand before a text and is no type.
_OTHERS = frozenset(
    "all and any as asymmetric between both by case collate distinct else escape except for from glob groups having"
    " ilike in intersect interval is isnull leading like limit not notnull of offset on or order overlaps placing"
    " qualify range regexp return returning rlike rows select similar some symmetric then to trailing uescape union"
    " using values variadic when where window with zone e".split()
)
_NUMBER = re.compile(r"'[+-]?(\d*)\.?(\d*)'")


class Change(NamedTuple):
    """A part of the text, and what stands for it."""

    start: int
    end: int
    text: str


def written_out(text: str, tokens: tuple[Token, ...], source: str) -> Iterator[Change]:
    """Return the literals with a type before them that sqlglot would read otherwise, as it reads them rightly."""
    for index, (token, after) in enumerate(pairwise((*tokens, Token("mark", "", len(text))))):
        if token.kind != "string":
            continue
        is_cast = text.startswith(("::", "["), after.start)
        number = _NUMBER.fullmatch(token.text) if source in _TRINO and not is_cast else None
        kind = _type_before(tokens[max(0, index - _LONGEST) : index]) if is_cast or number else ()
        if kind and is_cast:
            yield Change(kind[0].start, kind[0].start, "(")
            yield Change(token.end, token.end, ")")
        elif number and len(kind) == 1 and kind[0].text.lower() in {"decimal", "dec", "numeric"}:
            digits, places = len(number[1]), len(number[2])
            written = f"CAST({token.text} AS DECIMAL({max(digits + places, 1)}, {places}))"
            yield Change(kind[0].start, token.end, written)


def _type_before(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return the last tokens that are a type, or none."""
    written = "".join(f"{token.text.lower() if _may_be_of_type(token) else '?'} " for token in tokens)
    found = _TYPE.search(written)
    if found is None or found[1].strip() in _OTHERS:
        return ()
    return tokens[-found[0].count(" ") :]


def _may_be_of_type(token: Token) -> bool:
    return token.kind not in {"string", "name"} and len(token.text) <= 64
