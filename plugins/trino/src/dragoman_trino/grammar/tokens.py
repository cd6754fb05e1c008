"""Trino's own tokens, exactly, in text without comments that the core's guard has accepted."""

from __future__ import annotations

import re
from typing import NamedTuple

from dragoman_trino.reserved import RESERVED

STRING, NUMBER, QUOTED, OTHER = "'", "0", '"', "\x00"
END = ""

_TOKENS = re.compile(
    r"""[ \t\r\n]++
    |(?P<string>[xX]'[^']*+'|'(?:[^']|'')*+')
    |(?P<quoted>"(?:[^"]|"")*+")
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    |(?P<number>0[xX][0-9A-Fa-f_]++|0[oObB][0-7_]++|(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?+|\.[0-9][0-9_]*+)(?:[eE][+-]?[0-9]++)?+)
    |(?P<mark>->|=>|<>|!=|<=|>=|\|\||\{-|-\}|[-+*/%=<>()\[\],.?:|^${}])
    |(?P<other>[\s\S])""",
    re.VERBOSE,
)
_RESERVED = frozenset(word.upper() for word in RESERVED)
_SYMBOLS = {"string": STRING, "number": NUMBER, "quoted": QUOTED, "other": OTHER}


class Token(NamedTuple):
    """A token. `symbol`: a word in upper case, a mark, or the kind of anything else.

    `name`: whether it can be a name.
    """

    symbol: str
    text: str
    start: int
    name: bool


def tokens(text: str) -> list[Token]:
    """Return the tokens of `text`, followed by an end token."""
    found: list[Token] = []
    for match in _TOKENS.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        written = match[0]
        if kind == "word":
            symbol = written.upper()
            found.append(Token(symbol, written, match.start(), symbol not in _RESERVED))
        else:
            symbol = written if kind == "mark" else _SYMBOLS[kind]
            found.append(Token(symbol, written, match.start(), kind == "quoted"))
    found.append(Token(END, "", len(text), False))
    return found
