"""Reads what only the text of a CREATE statement shows: checks, generated columns, constraint names, index parts.

Also the comment after a column, on its line, which is how people document tables in SQLite. SQLite keeps the text as it
was written and has checked it, so a scanner is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from dragoman.words import lower_ascii

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
      | (?P<text>'(?:[^']|'')*')
      | (?P<word>[A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)

_TELLING = re.compile(r"--|\b(?:CHECK|CONSTRAINT|AS)\b", re.IGNORECASE)
"""Matches texts that say more than the pragmas.

Most tables do not, and skipping them makes a large catalog several times faster.
"""
_COMMENT = re.compile(r"[ \t]*,?[ \t]*--([^\n]*)")
"""A comment that begins on the line on which an item ends, after its comma."""


@dataclass(slots=True)
class Item:
    """One item between the commas of CREATE TABLE: a column or a table constraint."""

    column: str | None = None
    comment: str | None = None
    checks: list[tuple[str | None, str]] = field(default_factory=list[tuple[str | None, str]])
    generated: str | None = None
    references: list[str | None] = field(default_factory=list[str | None])


class Token(NamedTuple):
    """A word, a quoted name, a text or another character of SQL, without comments and white space."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in upper case; empty if it is quoted."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """The name, without its quotes."""
        if self.kind not in ("name", "text"):
            return self.text
        closing = self.text[-1]
        return self.text[1:-1].replace(closing * 2, closing)


def tokens(sql: str) -> list[Token]:
    """Return the tokens of `sql`."""
    found = ((match, str(match.lastgroup)) for match in _TOKEN.finditer(sql))
    return [Token(kind, match[0], match.start(), match.end()) for match, kind in found if kind != "space"]


def items(sql: str) -> list[Item]:
    """Return the columns and table constraints of a CREATE TABLE, in order.

    Returns none if they say nothing more than the pragmas.
    """
    if not _TELLING.search(sql):
        return []
    parts = split(body(tokens(sql)))
    return [_item(sql, part) for part in parts if part]


def body(all_tokens: list[Token]) -> list[Token]:
    """Return the tokens in the first parentheses."""
    start = next((index for index, token in enumerate(all_tokens) if token.text == "("), len(all_tokens))
    return all_tokens[start + 1 : closing(all_tokens, start)]


def closing(all_tokens: list[Token], start: int) -> int:
    """Return the index of the parenthesis that closes the one at `start`."""
    depth = 0
    for index in range(start, len(all_tokens)):
        depth += {"(": 1, ")": -1}.get(all_tokens[index].text, 0)
        if depth == 0:
            return index
    return len(all_tokens)


def split(part: list[Token]) -> list[list[Token]]:
    """Split at the commas outside parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in part:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


_TABLE_CONSTRAINTS = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"}


def _item(sql: str, part: list[Token]) -> Item:
    item = Item(None if part[0].word in _TABLE_CONSTRAINTS else part[0].name, _comment(sql, part[-1].end))
    name: str | None = None
    for index, inner in _clauses(part):
        word = part[index].word
        if word == "CONSTRAINT" and index + 1 < len(part):
            name = part[index + 1].name
            continue
        if word == "CHECK":
            item.checks.append((name, inner_text(inner)))
        elif word == "AS" and inner:
            item.generated = inner_text(inner)
        elif word == "REFERENCES":
            item.references.append(name)
        if word in ("CHECK", "REFERENCES", "UNIQUE", "NOT", "DEFAULT", "COLLATE", "AS"):
            name = None
    return item


def _comment(sql: str, end: int) -> str | None:
    found = _COMMENT.match(sql, end)
    return found[1].strip() or None if found else None


def _clauses(part: list[Token]) -> Iterator[tuple[int, list[Token]]]:
    """Yield every word outside parentheses, with the tokens of the parentheses directly after it."""
    index = 0
    while index < len(part):
        following = index + 1
        if following < len(part) and part[following].text == "(":
            end = closing(part, following)
            yield index, part[following + 1 : end]
            index = end + 1
        else:
            yield index, []
            index += 1


def inner_text(inner: list[Token]) -> str:
    """Return the text from the first to the last token, with one space for anything between two tokens."""
    text = ""
    end = inner[0].start if inner else 0
    for token in inner:
        text += (" " if token.start > end else "") + token.text
        end = token.end
    return text


_ORDERED = re.compile(r"\b(?:WHERE|COLLATE|ASC|DESC)\b", re.IGNORECASE)


def index_parts(sql: str, columns: tuple[str | None, ...]) -> tuple[tuple[str, ...], str | None]:
    """Return the columns or expressions of a CREATE INDEX, as text, and its WHERE if it is partial.

    `columns`: as the pragma reports them, None for expressions.
    """
    if all(columns) and not _ORDERED.search(sql):
        return tuple(column for column in columns if column), None
    all_tokens = tokens(sql)
    on = next(index for index, token in enumerate(all_tokens) if token.word == "ON")
    start = next(index for index in range(on, len(all_tokens)) if all_tokens[index].text == "(")
    end = closing(all_tokens, start)
    parts = split(all_tokens[start + 1 : end])
    where = all_tokens[end + 1 :]
    predicate = inner_text(where[1:]) if where and where[0].word == "WHERE" else None
    return tuple(_part(part) for part in parts), predicate


def _part(part: list[Token]) -> str:
    return part[0].name if len(part) == 1 else inner_text(part)


def allowed_values(check: str, column: str) -> tuple[str, ...]:
    """Return the texts of a check of the form `column IN ('a', 'b')`, which makes the column an enum; else nothing."""
    found = tokens(check)
    if (
        len(found) < 4
        or lower_ascii(found[0].name) != lower_ascii(column)
        or found[1].word != "IN"
        or found[2].text != "("
    ):
        return ()
    if closing(found, 2) != len(found) - 1:
        return ()
    values = split(found[3:-1])
    texts = all(len(value) == 1 and value[0].kind == "text" for value in values)
    return tuple(value[0].name for value in values) if texts else ()


_ALONE = {"fts5vocab": 2, "fts4aux": 1}
"""Modules that show the words of another table. With more arguments than this, the schema comes before its name."""


def find_source(sql: str) -> str | None:
    """Return the table whose rows or words a virtual table shows, from its CREATE text; None if it shows its own."""
    all_tokens = tokens(sql)
    module = next((index + 1 for index, token in enumerate(all_tokens) if token.word == "USING"), len(all_tokens))
    if module >= len(all_tokens):
        return None
    arguments = [part for part in split(body(all_tokens[module:])) if part]
    alone = _ALONE.get(all_tokens[module].name.lower())
    if alone is not None:
        return _join_names(arguments[len(arguments) > alone]) if arguments else None
    found = (_join_names(part[2:]) for part in arguments if part[0].name.lower() == "content" and len(part) > 2)
    return next(filter(None, found), None)


def _join_names(part: list[Token]) -> str:
    return "".join(token.name for token in part)
