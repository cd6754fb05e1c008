"""Names in a database without UTF8 encoding. The server may read another name than the grammar, which reads UTF-8.

The server converts a statement to the database's encoding first. It cuts names at 63 bytes of that, and in an encoding
of single bytes its locale decides about the lower case of letters beyond ASCII. Conversions lose nothing except for two
characters of EUC_JP, and bytes grow in only three encodings: `tests/test_encodings.py` asks a server about every
character.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dragoman import Statement, UnsafeSql

from dragoman_postgres.reading import LONGEST_NAME

SAME: Final = "UTF8"
WIDEST: Final = {"EUC_JP": 3, "EUC_TW": 4, "MULE_INTERNAL": 4}
"""The most bytes of a character beyond ASCII, if these may be more than in UTF-8."""
MERGED: Final = {"EUC_JP": "¦\N{FULLWIDTH BROKEN BAR}"}
"""Different characters that are the same in the encoding."""
_KNOWN: Final = (
    "EUC_CN EUC_JP EUC_JIS_2004 EUC_KR EUC_TW ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8 KOI8R KOI8U MULE_INTERNAL"
    " LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 SQL_ASCII"
    " WIN866 WIN874 WIN1250 WIN1251 WIN1252 WIN1253 WIN1254 WIN1255 WIN1256 WIN1257 WIN1258"
)
KNOWN: Final = frozenset(_KNOWN.split())
"""The encodings that PostgreSQL's own servers have, besides UTF8."""
_QUOTED: Final = f"in double quotes, and at most {LONGEST_NAME} bytes long in UTF-8"
_WAY_OUT: Final = "The server's administrator can move the data to a database in UTF8, where all names are accepted."


def check_names(statement: Statement, encoding: str) -> None:
    """Raise `UnsafeSql` for a name that a database in this encoding may read as another name than the judged one."""
    if encoding == SAME or statement.text.isascii():
        return
    check = _CHECKS
    for token in statement.tokens:
        reason = None if token.text.isascii() or token.kind not in check else check[token.kind](token.text, encoding)
        if reason:
            raise UnsafeSql(
                f"{reason}, and this database is in {encoding}: it may read another name than was judged.",
                suggestion=f"Write names with letters beyond ASCII {_QUOTED}. {_WAY_OUT}",
                offset=token.start,
            )


def _check_plain(text: str, encoding: str) -> str:
    return "A name with letters beyond ASCII stands outside quotes"


def _check_quoted(text: str, encoding: str) -> str | None:
    name = text[1:-1].replace('""', '"')
    beyond = sum(character > "\x7f" for character in name)
    widest = len(name) + (WIDEST.get(encoding, 1) - 1) * beyond
    if max(len(name.encode()), widest) > LONGEST_NAME:
        return "A name is longer than is known to be read in full"
    return _check_characters(name, encoding)


def _check_characters(name: str, encoding: str) -> str | None:
    if encoding not in KNOWN or not set(MERGED.get(encoding, "")).isdisjoint(name):
        return "A name has letters that not every database tells apart"
    return None


def _check_string(text: str, encoding: str) -> str | None:
    """Check the tag of a string between dollar signs. It ends the string, so it is read like a name."""
    tagged = text.startswith("$") and not text[: text.index("$", 1)].isascii()
    return "A string between dollar signs has a tag with letters beyond ASCII" if tagged else None


_CHECKS: Final[dict[str, Callable[[str, str], str | None]]] = {
    "word": _check_plain,
    "name": _check_quoted,
    "string": _check_string,
}
