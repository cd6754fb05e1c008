"""The text of a statement: allowed characters, tokens, and the text without its comments.

One scanner per lexicon reads a text as the database's own lexer does. If a database and a parser could read a text
differently, the text is refused: what is judged must be what runs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.errors import DragomanError, InvalidSql, UnsafeSql, WriteDenied
from dragoman.sql.lexicon import Lexicon

MAX_BYTES = 64 * 1024
"""Of a caller's statement."""
MOST_MADE = 4 * MAX_BYTES
"""Bytes of a statement that a database or a dialect made: it may name each of a thousand columns several times."""
MAX_NESTING = 40
CARET_WIDTH = 60

# Control characters and the byte order mark are refused everywhere, inside quotes too: no query needs them.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")

# White space, format characters and invisible fillers: a reader cannot see them, and lexers disagree about them.
INVISIBLE = (
    "\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ue000-\uf8ff\ufe00-\ufe0f\uffa0\ufff0-\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U0010ffff"
)
# Characters that look like SQL's punctuation or replace it elsewhere. To a lexer they are letters of a name.
LOOKALIKES = (
    "\xab\xb4\xbb\u037e\u2010-\u2027\u2030-\u205e\u2212\u2215-\u2217\u2223\u3001-\u3003\u3008-\u3011\u3014-\u301f"
    "\ufe10-\ufe1f\ufe30-\ufe6f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_NOT_IN_NAMES = "\x00-#%-/:-@\\[-^`{-\x7f" + INVISIBLE + LOOKALIKES
_NAME_START = f"[^{_NOT_IN_NAMES}$0-9]"
_NAME_PART = f"[^{_NOT_IN_NAMES}$]"


class Token(NamedTuple):
    """A token of comment-free text: `kind` is word, name (quoted), string, number, parameter, open, close or mark."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The place where the next token may start."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The reason why a character or a construct is refused at its place, and what to write instead."""

    message: str
    suggestion: str


_REFUSALS = {
    "unicode_escape": _Refusal(
        "U& escapes are not accepted", "Write the characters themselves inside ordinary quotes."
    ),
    "junk": _Refusal("A number runs into a name", "Put a space after the number, or quote the name."),
    "named": _Refusal("Named parameters are not accepted", "Write ? (or ?1, ?2) and pass the values in params."),
    "invisible": _Refusal(
        "An invisible or unusual white space character stands outside quotes", "Use ordinary spaces and line breaks."
    ),
    "lookalike": _Refusal(
        "A character that only looks like SQL punctuation stands outside quotes",
        "Use the ASCII character, or quote it.",
    ),
    "backslash": _Refusal(
        "A backslash stands outside quotes",
        "Remove it, or quote the text it belongs to. Commands of psql are not SQL: use list_tables or describe_table.",
    ),
    "brace": _Refusal(
        "A brace stands outside quotes",
        "Remove it, or quote the text it belongs to. Call a function to make a struct or a map.",
    ),
    "at": _Refusal("The @ sign is not accepted here", "Write a function such as abs()."),
    "unterminated": _Refusal("A quote is not closed", "Close it; write a quote inside a text twice."),
    "unterminated_escaped": _Refusal("A quote is not closed", "Close it; write a quote inside a text twice."),
    "stray": _Refusal("A character that SQL does not have stands outside quotes", "Remove it, or quote the text."),
    "dashes": _Refusal(
        "Two minus signs stand together, which is a comment to some", "Put a space after them, or between them."
    ),
    "comment_open": _Refusal("A comment is not closed", "Close it with */ or remove it."),
    "comment_return": _Refusal(
        "A lone carriage return stands in a comment, where databases disagree on the end of the line",
        "End lines with a line feed.",
    ),
}


def _pieces(lexicon: Lexicon) -> Iterator[tuple[str, str]]:
    """Yield the kinds of token of a lexicon, as pairs of kind and pattern. The first match wins."""
    quoted = r"{q}(?:[^{q}\\]|\\[\s\S]|{q}{q})*+{q}" if lexicon.backslash_escapes else "{q}(?:[^{q}]|{q}{q})*+{q}"
    yield "space", r"[ \t\r\n]+"
    if lexicon.spaced_comments:
        yield "dashes", r"--(?![ \t\r\n]|\Z)"
    yield "comment_return", r"--[^\r\n]*\r(?!\n)" + (r"|\#[^\r\n]*\r(?!\n)" if lexicon.hash_comments else "")
    yield "comment", r"--[^\n]*" + (r"|\#[^\n]*" if lexicon.hash_comments else "")
    if lexicon.nested_comments:
        yield "nested", r"/\*"
    else:
        yield "comment_block", r"/\*[\s\S]*?\*/" + (r"|/\*[\s\S]+" if lexicon.unclosed_comment_ends else "")
        yield "comment_open", r"/\*"
    yield "unicode_escape", "[uU]&(?=['\"])"
    if lexicon.escape_strings:
        yield "string_escaped", r"[eE]'(?:[^'\\]|\\[\s\S]|'')*+'"
        yield "unterminated_escaped", "[eE]'"
    yield "string", quoted.format(q="'")
    for quote in lexicon.identifier_quotes:
        pattern = r"\[[^\]]*\]" if quote == "[" else f"{quote}(?:[^{quote}]|{quote}{quote})*+{quote}"
        yield f"name_{ord(quote)}", pattern
    if '"' not in lexicon.identifier_quotes:
        yield "string_double", quoted.format(q='"')
    if lexicon.dollar_quotes:
        tag = rf"(?P<tag>(?:{_NAME_START}{_NAME_PART}*+)?)"
        yield "string_dollar", rf"\${tag}\$[\s\S]*?\$(?P=tag)\$"
    yield "word", _word(lexicon)
    number = r"(?>0[xX][0-9a-fA-F_]++|0[oObB][0-7_]++|(?:\d[\d_]*+(?:\.[\d_]*+)?+|\.\d[\d_]*+)(?:[eE][+-]?\d[\d_]*+)?+)"
    yield (
        "junk",
        rf"(?:{number}|\$\d+|\?\d+)(?={_NAME_START}|\$)"
        if lexicon.parameters == "?"
        else (rf"(?>{number}|\$\d+)(?={_NAME_START}|\$)"),
    )
    yield "number", number
    yield "parameter", r"\?\d*+|\$\d++" if lexicon.parameters == "?" else r"\$\d++"
    yield "open", r"\(" if "[" in lexicon.identifier_quotes else r"[(\[]"
    yield "close", r"\)" if "[" in lexicon.identifier_quotes else r"[)\]]"
    yield "semicolon", ";"
    if lexicon.parameters == "?":
        if lexicon.colon_casts:
            yield "mark_cast", "::"
        colon = "" if ":" in lexicon.marks else f":(?={_NAME_START}|:)|"
        yield "named", rf"{colon}\$(?=[\w:(])|@(?=\w)|\#(?=\w)"
        yield "at", "@"
    else:
        yield "at", r"(?<![-+*/<>=~!@#%^&|?])@(?![-+*/<>=~!@#%^&|?])"
    plain = r",.=<>+\-*/%&|~!:^?" if lexicon.parameters == "?" else r",.=<>+\-*/%&|~!:^?@#"
    yield "mark", f"[{plain}{re.escape(lexicon.marks)}]"
    yield "invisible", f"[{INVISIBLE}]"
    yield "lookalike", f"[{LOOKALIKES}]"
    yield "backslash", r"\\"
    yield "brace", "[{}]"
    yield "unterminated", "['\"`\\[]"
    yield "stray", r"[\s\S]"


def _word(lexicon: Lexicon) -> str:
    return f"{_NAME_START}{f'[^{_NOT_IN_NAMES}]' if lexicon.dollar_names else _NAME_PART}*+"


def _compile(pieces: Iterable[tuple[str, str]]) -> Callable[[str, int], Iterator[re.Match[str]]]:
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in pieces)).finditer


@functools.cache
def _token_scanner(lexicon: Lexicon) -> Callable[[str, int], Iterator[re.Match[str]]]:
    # The most frequent tokens come first. The other patterns match the rest.
    plain = (("space_plain", r"[ \t\r\n]+"), ("word_plain", rf"{_word(lexicon)}(?!['\"&])"), ("mark_plain", "[,=<>+*]"))
    return _compile((*plain, *_pieces(lexicon)))


@functools.cache
def _base(kind: str | None) -> str:
    """Return the kind of a token, given the name of the pattern that matched."""
    return (kind or "stray").partition("_")[0]


@functools.cache
def _clean_scanner(lexicon: Lexicon) -> Callable[[str, int], Iterator[re.Match[str]]]:
    # Cleaning changes few tokens, so runs of the plainest are matched in one step.
    plain = rf"(?:[ \t\r\n,.=<>+*]|{_word(lexicon)}(?!['\"&])|\d++(?!{_NAME_START}|[.$]))++"
    return _compile((("plain", plain), *_pieces(lexicon)))


_NESTED = re.compile(r"/\*|\*/")


def _end_of_nested(text: str, start: int) -> int:
    """Return the end of the nested comment that opens at `start`. Raises `InvalidSql` if there is none."""
    depth = 0
    for mark in _NESTED.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _refuse("comment_open", text, start)


def _refuse(reason: str, text: str, offset: int) -> DragomanError:
    refusal = _REFUSALS[reason]
    shown = text[offset]
    where = f" ({shown})" if reason == "stray" and shown.isprintable() else ""
    return InvalidSql(f"{refusal.message}{where}.", suggestion=refusal.suggestion, offset=offset)


def check_characters(text: str, most: int = MAX_BYTES) -> None:
    """Refuse text that no query needs: of more than `most` bytes, or with control characters. Raises `InvalidSql`."""
    bad = _CONTROLS.search(text)
    if bad:
        raise InvalidSql(
            f"The statement holds the control character U+{ord(bad[0]):04X}.",
            suggestion="Remove it; to search for it, pass it as a parameter.",
            offset=bad.start(),
        )
    size = len(text) if text.isascii() else len(text.encode())
    if size > most:
        raise InvalidSql(
            f"The statement has {size} bytes; at most {most} are accepted.",
            suggestion="Pass long values as parameters, or split the question.",
        )


_COMMENTS = frozenset({"comment", "comment_block", "nested"})
_NOT_BREAKS = re.compile(r"[^\r\n]")
_CREATE = re.compile(r"\s*(create)\b", re.IGNORECASE)


def clean(text: str, lexicon: Lexicon, most: int = MAX_BYTES) -> str:
    """Return `text` with comments blanked, without a trailing semicolon and white space. Offsets do not change.

    Raises `InvalidSql` for text that is too long, too deep, empty or without certain meaning, `UnsafeSql` for more than
    one statement, `WriteDenied` if it begins with CREATE.
    """
    check_characters(text, most)
    comments, end = _survey(text, lexicon)
    for start, stop in comments:
        text = text[:start] + _NOT_BREAKS.sub(" ", text[start:stop]) + text[stop:]
    if text[end + 1 :].strip(" \t\r\n"):
        if created := _CREATE.match(text):
            # The body of a trigger or a function contains semicolons, and is one statement all the same.
            raise WriteDenied("CREATE is not a query.", suggestion="Send one SELECT.", offset=created.start(1))
        raise UnsafeSql(
            "More than one statement was sent.",
            suggestion="Send one statement per call, without anything after the semicolon.",
            offset=end,
        )
    cleaned = text[:end].rstrip(" \t\r\n")
    if not cleaned.strip(" \t\r\n"):
        raise InvalidSql("The statement is empty.", suggestion="Send one SELECT statement.")
    return cleaned


def _survey(text: str, lexicon: Lexicon) -> tuple[list[tuple[int, int]], int]:
    """Return the places of the comments, and of the first semicolon or the end. Raises `InvalidSql`."""
    comments: list[tuple[int, int]] = []
    depth, end = 0, len(text)
    for kind, match in _steps(text, lexicon):
        if kind == "open":
            depth += 1
            if depth > MAX_NESTING:
                raise _too_deep(match.start())
        elif kind == "close":
            depth -= 1
        elif kind in _COMMENTS:
            stop = _end_of_nested(text, match.start()) if kind == "nested" else match.end()
            comments.append((match.start(), stop))
        elif kind == "semicolon":
            end = min(end, match.start())
        elif kind in _REFUSALS:
            raise _refuse(kind, text, match.start())
    return comments, end


def _steps(text: str, lexicon: Lexicon) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield what `_survey` looks at, in order. A nested comment is one step."""
    position, length = 0, len(text)
    find = _clean_scanner(lexicon)
    while position < length:
        for match in find(text, position):
            kind = match.lastgroup or "stray"
            yield kind, match
            position = match.end()
            if kind == "nested":
                position = _end_of_nested(text, match.start())
                break


def _too_deep(offset: int) -> DragomanError:
    return InvalidSql(
        f"The statement is nested more than {MAX_NESTING} levels deep.",
        suggestion="Use WITH to name inner queries instead of nesting them.",
        offset=offset,
    )


def tokens(text: str, lexicon: Lexicon) -> tuple[Token, ...]:
    """Return the tokens of text that `clean` returned. The text of a string or quoted name includes its quotes."""
    return tuple(each_token(text, lexicon))


def each_token(text: str, lexicon: Lexicon) -> Iterator[Token]:
    """Yield the tokens one by one, for callers that need only the first."""
    for match in _token_scanner(lexicon)(text, 0):
        if (kind := _base(match.lastgroup)) != "space":
            yield Token(kind, match[0], match.start())


def caret(text: str, offset: int) -> str:
    """Return the line around `offset`, cut to 60 characters, and below it a `^` under the character at `offset`."""
    offset = max(0, min(offset, len(text)))
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    ends = [end for end in (text.find("\n", offset), text.find("\r", offset)) if end >= 0]
    line = text[start : min(ends, default=len(text))].replace("\t", " ")
    at = offset - start
    first = max(0, min(at - CARET_WIDTH // 2, len(line) - CARET_WIDTH))
    return f"{line[first : first + CARET_WIDTH]}\n{' ' * (at - first)}^"


def named_parameters(text: str, lexicon: Lexicon) -> tuple[Token, ...]:
    """Return each `:name` outside quotes and comments, without judging the rest of the text."""
    word = re.compile(_word(lexicon))
    found: list[Token] = []
    for _, match in _steps(text, lexicon):
        # The second colon of a cast, `::`, does not begin a parameter.
        cast = match.start() > 0 and text[match.start() - 1] == ":"
        if match[0] == ":" and not cast and (name := word.match(text, match.end())):
            found.append(Token("named", f":{name[0]}", match.start()))
    return tuple(found)
