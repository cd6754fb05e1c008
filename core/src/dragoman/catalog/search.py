"""Ranked search over the words of names and comments."""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from dragoman.catalog.listing import kind_of
from dragoman.model import Table, TableColumn
from dragoman.words import nearest

MatchKind = Literal["table", "view", "column", "value"]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_NAME, _COMMENT, _OWNER = 1.0, 0.5, 0.3


Rank = tuple[float, bool, int, str, bool, str]


@dataclass(frozen=True, slots=True)
class Match:
    """A relation or, with `column`, one of its columns or, with `value`, a value of that.

    `rank`: smaller is better, comparable between databases.
    """

    table: Table
    kind: MatchKind
    column: TableColumn | None = None
    rank: Rank = (0.0, False, 0, "", False, "")
    value: str | None = None

    @property
    def comment(self) -> str | None:
        """What the database says about it."""
        return self.table.comment if self.column is None else self.column.comment

    @property
    def name(self) -> str:
        """Its own name."""
        return self.table.relation.name if self.column is None else self.column.name


def words(text: str) -> tuple[str, ...]:
    """Split a name or a comment into lower-case words in the singular: `OrderItems_2` is order, item, 2."""
    return tuple(_singular(word.lower()) for word in _WORDS.findall(text))


_name_words = lru_cache(maxsize=50_000)(words)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


class Index:
    """The words of a snapshot's names and comments, and what bears them.

    `home`: the schema and catalog whose relations come first among those that fit alike.
    """

    def __init__(self, tables: Iterable[Table], home: tuple[str | None, str | None] = (None, None)) -> None:
        self._home = home
        self._entries: list[tuple[Table, TableColumn | None]] = []
        self._owners: list[int] = []
        self._words: dict[str, dict[int, float]] = {}
        for table in tables:
            owner = self._add(table, None, table.comment, table.relation.name, len(self._entries))
            for column in table.columns:
                self._add(table, column, column.comment, column.name, owner)

    def _add(self, table: Table, column: TableColumn | None, comment: str | None, name: str, owner: int) -> int:
        number = len(self._entries)
        self._entries.append((table, column))
        self._owners.append(owner)
        for word in words(comment) if comment else ():
            self._words.setdefault(word, {})[number] = _COMMENT
        for word in _name_words(name):
            self._words.setdefault(word, {})[number] = _NAME
        return number

    def _match(self, number: int) -> Match:
        table, column = self._entries[number]
        return Match(table, kind_of(table.type) if column is None else "column", column)

    def search(self, query: str, kinds: Collection[MatchKind], limit: int) -> list[Match]:
        """Return what fits `query`, best first, always in the same order."""
        wanted = tuple(dict.fromkeys(words(query)))[:20]
        per_word = [self._weights(word) for word in wanted]
        scores = {number: self._score(number, per_word) for weights in per_word for number in weights}
        fitting = ((score, self._match(number)) for number, score in scores.items())
        ranked = [
            replace(match, rank=self._rank(score, match, wanted)) for score, match in fitting if match.kind in kinds
        ]
        return heapq.nsmallest(limit, ranked, key=lambda match: match.rank)

    def _score(self, number: int, per_word: Sequence[dict[int, float]]) -> float:
        """Add what each word says about an entry; words the entry lacks count a little when its relation has them."""
        owner = self._owners[number]
        score = 0.0
        for weights in per_word:
            own = weights.get(number, 0.0)
            score += own or (weights.get(owner, 0.0) * _OWNER if owner != number else 0.0)
        return score

    def _weights(self, word: str) -> dict[int, float]:
        """Return how well each entry fits one word: the word itself, words that hold it, near spellings last."""
        found = dict(self._words.get(word, {}))
        for known, entries in self._words.items():
            if known != word and len(word) > 1 and word in known:
                _merge(found, entries, 0.8 if known.startswith(word) else 0.6)
        if not found:
            for known in nearest(word, self._words, 5, 0.75):
                _merge(found, self._words[known], 0.4)
        return found

    def _rank(self, score: float, match: Match, wanted: tuple[str, ...]) -> Rank:
        """Order by score, the exact name first; then relations before columns, shorter names, those at home."""
        own = _name_words(match.name)
        exact = 1.0 if own == wanted else 0.0
        relation = match.table.relation
        away = (relation.schema, relation.catalog) != self._home
        return (-score - exact, match.kind == "column", len(own), match.name, away, str(relation))


def _merge(found: dict[int, float], entries: dict[int, float], factor: float) -> None:
    for number, weight in entries.items():
        found[number] = max(found.get(number, 0.0), weight * factor)
