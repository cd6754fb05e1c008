"""Ranked search over the words of names and comments."""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    """A relation, or one of its columns (`column`), or a value of that column (`value`).

    `rank`: smaller is better, comparable between databases.
    """

    table: Table
    kind: MatchKind
    column: TableColumn | None = None
    rank: Rank = (0.0, False, 0, "", False, "")
    value: str | None = None

    @property
    def comment(self) -> str | None:
        """The database's comment on it."""
        return self.table.comment if self.column is None else self.column.comment


def words(text: str) -> tuple[str, ...]:
    """Split a name or a comment into lower-case words in the singular: `OrderItems_2` gives order, item, 2."""
    return tuple(map(_singular, split(text)))


def split(text: str) -> Iterator[str]:
    """Yield the words of a name or a comment in lower case, otherwise unchanged."""
    return (word.lower() for word in _WORDS.findall(text))


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
    """The words of a snapshot's names and comments, and what they belong to.

    `home`: the schema and catalog whose relations come first among equally good matches. Entries are numbered in the
    order in which equally good ones are returned.
    """

    def __init__(self, tables: Iterable[Table], home: tuple[str | None, str | None] = (None, None)) -> None:
        self._home = home
        self._entries = self._in_order(tables)
        owners = {id(table): number for number, (table, column) in enumerate(self._entries) if column is None}
        self._owners = [owners[id(table)] for table, _ in self._entries]
        self._kinds: list[MatchKind] = [
            kind_of(table.type) if column is None else "column" for table, column in self._entries
        ]
        self._named: dict[tuple[str, ...], set[int]] = {}
        self._words: dict[str, dict[int, float]] = {}
        for number, (table, column) in enumerate(self._entries):
            self._add(number, table.comment if column is None else column.comment, _name(table, column))
        self._vocabulary = "\n".join(["", *self._words, ""])

    def _in_order(self, tables: Iterable[Table]) -> list[tuple[Table, TableColumn | None]]:
        entries = [entry for table in tables for entry in ((table, None), *((table, each) for each in table.columns))]
        return sorted(entries, key=lambda entry: self._place(*entry))

    def _place(self, table: Table, column: TableColumn | None) -> tuple[bool, int, str, bool, str]:
        """Return the sort key among equally good entries: relations before columns, shorter names, those at home."""
        name, relation = _name(table, column), table.relation
        away = (relation.schema, relation.catalog) != self._home
        return column is not None, len(_name_words(name)), name, away, str(relation)

    def _add(self, number: int, comment: str | None, name: str) -> None:
        for word in words(comment) if comment else ():
            self._words.setdefault(word, {})[number] = _COMMENT
        named = _name_words(name)
        self._named.setdefault(named, set()).add(number)
        for word in named:
            self._words.setdefault(word, {})[number] = _NAME

    def search(self, query: str, kinds: Collection[MatchKind], limit: int) -> list[Match]:
        """Return the matches of `query`, best first, in a stable order."""
        wanted = tuple(dict.fromkeys(words(query)))[:20]
        return [self._match(number, score) for score, number in self._best(wanted, frozenset(kinds), limit)]

    def _best(self, wanted: tuple[str, ...], kinds: frozenset[MatchKind], limit: int) -> list[tuple[float, int]]:
        """Return the best entries, each with its negative score. Rare words are evaluated first, as far as they matter.

        An exact name adds one.
        """
        per_word = [self._weights(word) for word in wanted]
        best: list[tuple[float, int]] = []
        seen: set[int] = set()
        exact = self._named.get(wanted, frozenset[int]())
        for done, weights in enumerate(sorted(per_word, key=len)):
            # An entry with none of the words so far gets at most this: one for each remaining word, and the share of
            # its relation.
            most = (len(wanted) - done) * _NAME + done * _OWNER
            if done and len(best) == limit and -best[-1][0] > most:
                break
            fitting = [number for number in weights if number not in seen and self._kinds[number] in kinds]
            seen.update(weights)
            scored = ((self._score(number, per_word) - (number in exact), number) for number in fitting)
            best = heapq.nsmallest(limit, (*best, *scored))
        return best

    def _score(self, number: int, per_word: Sequence[dict[int, float]]) -> float:
        """Return the negative sum of what each word contributes to an entry.

        A word that the entry lacks counts a little if its relation has it.
        """
        owner, score = self._owners[number], 0.0
        for weights in per_word:
            own = weights.get(number, 0.0)
            score -= own or (weights.get(owner, 0.0) * _OWNER if owner != number else 0.0)
        return score

    def _weights(self, word: str) -> dict[int, float]:
        """Return how well each entry matches one word.

        The word itself comes first, then words that contain it, then similar spellings.
        """
        found = dict(self._words.get(word, {}))
        for known in self._holding(word) if len(word) > 1 else ():
            if known != word:
                _merge(found, self._words[known], 0.8 if known.startswith(word) else 0.6)
        if not found:
            for known in nearest(word, self._words, 5, 0.75):
                _merge(found, self._words[known], 0.4)
        return found

    def _holding(self, word: str) -> Iterator[str]:
        """Yield the known words that contain a word. Each is a line of one text, which is searched as a whole."""
        text = self._vocabulary
        place = text.find(word)
        while place != -1:
            end = text.index("\n", place)
            yield text[text.rindex("\n", 0, place) + 1 : end]
            place = text.find(word, end)

    def _match(self, number: int, score: float) -> Match:
        table, column = self._entries[number]
        return Match(table, self._kinds[number], column, (score, *self._place(table, column)))


def _name(table: Table, column: TableColumn | None) -> str:
    return table.relation.name if column is None else column.name


def _merge(found: dict[int, float], entries: dict[int, float], factor: float) -> None:
    for number, weight in entries.items():
        found[number] = max(found.get(number, 0.0), weight * factor)
