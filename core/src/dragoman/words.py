"""Names from outside in messages: suggestions for misspelled ones, and how a name is shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

LONGEST: Final = 200
"""The most characters of a word that are compared. Longer names are not misspellings."""
SHOWN: Final = 100
"""The most characters of a foreign name in a message."""

# Characters that a terminal obeys or a reader does not see: C0, C1, line and paragraph separators, writing directions,
# zero-width characters, and the tags that spell invisible ASCII.
_UNSEEN: Final = (
    *range(0x20),
    *range(0x7F, 0xA0),
    0xAD,
    0x61C,
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0080),
)
_SPELLED: Final = {code: f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}" for code in _UNSEEN}
_PLAIN: Final = re.compile(r"-?[\w$]+(?:[.:-][\w$]+)*")
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*("?)|`(?:[^`]|``)*(`?)|\[[^\]]*(\]?)')
_CLOSING: Final = {'"': '"', "`": "`", "[": "]"}
_LINES: Final = {code: spelled for code, spelled in _SPELLED.items() if chr(code) not in "\n\t"}


_LOWER: Final = {code: code + 0x20 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {lower: upper for upper, lower in _LOWER.items()}


def lower_ascii(text: str) -> str:
    """Return text with A to Z in lower case, as engines fold names.

    `str.lower` turns the Kelvin sign (U+212A) into "k", and an A umlaut into an a umlaut. To most engines these are
    other names.
    """
    return text.lower() if text.isascii() else text.translate(_LOWER)


_LAST_ACCENTED: Final = "\u058f"
"""MariaDB ignores accents of Latin, Greek and Cyrillic letters. Beyond them stand syllables, of Hangul for instance."""
_SHARED: Final = frozenset({("i", 2), ("s", 2), ("\u03b9", 3)})
"""Letters whose accented forms of so many bytes mean them. MariaDB takes these forms for the dotless i, the long s and
the iota below, which some engine takes for the letter."""
_UNUSUAL: Final = {"\u03f2": "\u03c3"}  # the lunate sigma, whose capital is Σ for MariaDB


def fold_widely(name: str) -> str:
    """Return the form that all spellings of a name share which some engine takes for one name.

    MariaDB takes the dotted capital I (U+0130) for "i", and accents for nothing in wide tables. Trino takes the dotless
    i and the long s for "i" and "s".
    """
    if name.isascii():
        return name.lower()
    return "".join(map(_fold_letter, name)).replace("i\u0307", "i")


@lru_cache(maxsize=4096)
def _fold_letter(letter: str) -> str:
    """Return a letter without case and accent. NULs keep the length in UTF-8 that it has with its accent."""
    # By itself: within a word `str.lower` turns a sigma at the end into another letter.
    lower = _UNUSUAL.get(letter, letter).lower()[0]
    upper = lower.upper()
    lower = upper.lower() if len(upper) == 1 else lower
    bare = unicodedata.normalize("NFD", upper)[0].lower()
    if bare > _LAST_ACCENTED:
        return lower
    return bare if (bare, _bytes(lower)) in _SHARED else bare + "\0" * (_bytes(lower) - _bytes(bare))


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def upper_ascii(name: str) -> str:
    """Return a name with ASCII letters in upper case."""
    return name.upper() if name.isascii() else name.translate(_UPPER)


def words_in(text: str) -> frozenset[str]:
    """Return the words of a text, without case: to tell whether a name in one text may come from another."""
    return frozenset(re.findall(r"[\w$]+", text.casefold()))


def visible(text: str) -> str:
    """Return text with control and invisible characters spelled out."""
    return text if text.isascii() and text.isprintable() else text.translate(_SPELLED)


def visible_lines(text: str) -> str:
    """Return text of several lines with control and invisible characters spelled out; tabs stay."""
    return text.translate(_LINES)


def display(name: str, longest: int = SHOWN) -> str:
    """Return a foreign name as a message may hold it: one line of visible characters, at most `longest` of them."""
    line = visible(" ".join(name[: 2 * longest].split())) or "''"
    return line if len(line) <= longest else line[: longest - 3] + "..."


def mention(name: str) -> str:
    """Return a foreign name or value for use in a sentence of ours: a plain word unchanged, anything else in quotes."""
    return name if len(name) <= SHOWN and _PLAIN.fullmatch(name) else quote_foreign(name)


def quote_foreign(text: str) -> str:
    """Return foreign text in quotes, on one visible line, shortened. It is data, whatever it says."""
    doubled = display(text).replace('"', '""')
    return f'"{doubled}"'


def close_quotes(name: str) -> str:
    """Return a name, as in SQL, with its closing quote if shortening cut it off."""
    for quoted in _QUOTED.finditer(name):
        if not any(quoted.groups()):
            return name + _CLOSING[quoted[0][0]]
    return name


def nearest(word: str, known: Iterable[str], count: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return up to `count` known words that `word` may be a misspelling of, best first.

    The time grows with the known words, never with the misspelled one. `cutoff`: the least similarity, from 0
    (anything) to 1 (only the word itself): the share of letters that two words have in common in the same order.
    """
    from rapidfuzz import fuzz, process  # loaded only for misspelled names

    # Of equally near words the first wins. A set would have another order in each process.
    words = sorted(known) if isinstance(known, set | frozenset) else tuple(known)
    found = process.extract(word[:LONGEST], words, scorer=fuzz.ratio, score_cutoff=cutoff * 100, limit=count)
    return [each for each, _, _ in found]


def with_article(word: str) -> str:
    """Return a word with its indefinite article: a str, an int."""
    return f"{'an' if word[:1].upper() in {*'AEIOU'} else 'a'} {word}"
