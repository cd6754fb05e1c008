"""Text literals of an SQL text, as an engine writes it: which are names, and what is left without them."""

from __future__ import annotations

import functools
import re

from dragoman.catalog.names import quoted_name_patterns
from dragoman.sql.lexicon import Lexicon


def separate_texts(text: str, lexicon: Lexicon) -> tuple[str, tuple[str, ...]]:
    """Return an SQL text with empty text literals, and the names that stood in them.

    A text is a name in `nextval('sales.numbers')`, `'sales.orders'::regclass` and `('sales.orders'::text)::regclass`.
    """
    names: list[str] = []

    def empty(found: re.Match[str]) -> str:
        if found["quoted"]:
            return found[0]
        if found["sequence"] or found["cast"]:
            names.append(found["text"])
        return f"{found['sequence'] or ''}''{found['cast'] or ''}"

    return _pattern(lexicon).sub(empty, text), tuple(names)


@functools.cache
def _pattern(lexicon: Lexicon) -> re.Pattern[str]:
    """Return the pattern of a quoted name, which may contain an apostrophe, or of a text with what makes it a name."""
    quoted = "|".join(quoted_name_patterns(lexicon))
    inside = r"[^'\\]|\\.|''" if lexicon.backslash_escapes else "[^']|''"
    sequence = r"(?:next|curr|set)val\s*\([\s(]*"
    cast = r"\s*::\s*(?:text[\s)]*::\s*)?reg"
    return re.compile(
        rf"(?P<quoted>{quoted})|(?P<sequence>{sequence})?'(?P<text>(?:{inside})*+)'(?P<cast>{cast})?",
        re.IGNORECASE | re.DOTALL,
    )
