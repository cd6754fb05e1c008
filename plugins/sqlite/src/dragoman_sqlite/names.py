"""Finds what a query reads and calls, from its tokens.

SQLite's grammar makes this possible: FROM stands only before tables (and in IS DISTINCT FROM), a name before a
parenthesis is a call or a member of WITH, and the words of writes are reserved.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dragoman import Relation, Statement
from dragoman.words import lower_ascii

# Words that end a FROM clause: names after them are columns.
_ENDS = frozenset("where group having window order limit union except intersect select values".split())
_SUBQUERY = frozenset({"select", "values", "with"})
_NAMES = frozenset({"word", "name", "string"})


@dataclass(slots=True)
class _Level:
    """The contents of one pair of parentheses. `tables`: a FROM clause is open in it.

    `defining`: a WITH clause is open.
    """

    outer: _Level | None = None
    tables: bool = False
    defining: bool = False
    members: set[str] = field(default_factory=set[str])

    def defines(self, name: str) -> bool:
        """Return whether WITH defines the name here. SQLite folds only ASCII letters."""
        name = lower_ascii(name)
        level: _Level | None = self
        while level is not None:
            if name in level.members:
                return True
            level = level.outer
        return False


@dataclass(frozen=True, slots=True)
class Named:
    """A name in the place of a table, and its offset.

    `arguments`: for a table-valued function, or a search in a full-text table, the kind of each argument's first token.
    None: it is not called.
    """

    relation: Relation
    offset: int
    arguments: tuple[str, ...] | None = None


@dataclass(slots=True)
class Names:
    """Names in the place of tables, and in `aliases` the members of WITH, which look like calls."""

    named: list[tuple[Named, _Level]] = field(default_factory=list[tuple[Named, _Level]])
    aliases: set[int] = field(default_factory=set[int])

    def everything(self) -> list[Named]:
        """Return every name in the place of a table, including those that WITH defines."""
        return [named for named, _ in self.named]

    def read(self, searched: set[int]) -> set[int]:
        """Return the places of relations: not of names that WITH defines or of calls, but of the `searched` ones."""
        return searched | {
            named.offset
            for named, level in self.named
            if named.arguments is None and (named.relation.schema or not level.defines(named.relation.name))
        }


def names_in(statement: Statement) -> Names:
    """Return what a query names. A text that SQLite could not parse gets some result."""
    return _Reader(statement).read()


class _Reader:
    """Walks the tokens once, with the open parentheses on a stack."""

    def __init__(self, statement: Statement) -> None:
        self._tokens = statement.tokens
        self._words = [lower_ascii(token.text) if token.kind == "word" else "" for token in self._tokens]
        self._found = Names()
        self._closing = self._pairs()

    def _pairs(self) -> dict[int, int]:
        """Return for each opening parenthesis the place where it closes."""
        opened: list[int] = []
        pairs: dict[int, int] = {}
        for index, token in enumerate(self._tokens):
            if token.kind == "open":
                opened.append(index)
            elif token.kind == "close" and opened:
                pairs[opened.pop()] = index
        return pairs

    def read(self) -> Names:
        level = _Level()
        wanted = False
        index = 0
        while index < len(self._tokens):
            token, word = self._tokens[index], self._words[index]
            if token.kind == "open":
                inner = self._word(index + 1)
                level = _Level(level, tables=wanted and inner not in _SUBQUERY)
                wanted = level.tables
            elif token.kind == "close":
                level, wanted = level.outer or level, False
            elif wanted and token.kind in _NAMES and word not in _SUBQUERY:
                index = self._table(index, level)
                wanted = False
                continue
            elif word == "in":
                wanted = self._kind(index + 1) in _NAMES
            elif word in {"from", "join"}:
                wanted = self._word(index - 1) != "distinct"
                level.tables = level.tables or wanted
            elif token.text == ",":
                wanted = level.tables
            elif word in _ENDS:
                level.tables = level.defining = wanted = False
            elif word == "with":
                level.defining = True
            elif level.defining and self._is_member(index):
                level.members.add(lower_ascii(_plain(token.text)))
                self._found.aliases.add(token.start)
            index += 1
        return self._found

    def _table(self, index: int, level: _Level) -> int:
        """Record the name that begins at `index`; return where it ends."""
        first = index
        while self._text(index + 1) == "." and self._kind(index + 2) in _NAMES:
            index += 2
        schema = _plain(self._tokens[index - 2].text) if index > first else None
        relation = Relation(_plain(self._tokens[index].text), schema)
        named = Named(relation, self._tokens[index].start, self._arguments(index + 1))
        self._found.named.append((named, level))
        return index + 1

    def _arguments(self, opening: int) -> tuple[str, ...] | None:
        if self._text(opening) != "(":
            return None
        kinds: list[str] = []
        depth = 0
        for index in range(opening, self._closing.get(opening, len(self._tokens))):
            token = self._tokens[index]
            if depth == 1 and (token.text == "," or index == opening + 1):
                kinds.append(self._kind(index + (token.text == ",")))
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
        return tuple(kinds)

    def _is_member(self, index: int) -> bool:
        """Return whether WITH defines a name here: `name AS (`, `name (columns) AS MATERIALIZED (`."""
        after = index + 1
        if self._text(after) == "(":
            after = self._closing.get(after, len(self._tokens)) + 1
        if self._word(after) != "as":
            return False
        after += 1
        while self._word(after) in {"not", "materialized"}:
            after += 1
        return self._text(after) == "("

    def _word(self, index: int) -> str:
        return self._words[index] if 0 <= index < len(self._words) else ""

    def _text(self, index: int) -> str:
        return self._tokens[index].text if 0 <= index < len(self._tokens) else ""

    def _kind(self, index: int) -> str:
        return self._tokens[index].kind if 0 <= index < len(self._tokens) else ""


def _plain(text: str) -> str:
    """Return a name without its quotes."""
    mark = text[0]
    if mark == "[":
        return text[1:-1]
    return text[1:-1].replace(mark * 2, mark) if mark in "\"'`" else text
