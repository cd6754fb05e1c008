"""Finds the texts that match a question: BM25 over their common words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from dragoman.catalog.search import words

T = TypeVar("T")
_K, _B = 1.2, 0.75
"""BM25's usual constants."""


def rank(question: str, things: Sequence[T], text_of: Callable[[T], str]) -> list[T]:
    """Return the things whose texts have words in common with a question, best first."""
    texts = [Counter(words(text_of(thing))) for thing in things]
    average = sum(text.total() for text in texts) / max(len(texts), 1) or 1
    wanted = set(words(question))
    known = Counter(word for text in texts for word in text if word in wanted)
    weights = {word: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in known.items()}

    def score(text: Counter[str]) -> float:
        length = _K * (1 - _B + _B * text.total() / average)
        shared = (word for word in text if word in wanted)
        return sum(weights[word] * text[word] * (_K + 1) / (text[word] + length) for word in shared)

    scored = sorted(((score(text), -place) for place, text in enumerate(texts)), reverse=True)
    return [things[-place] for points, place in scored if points > 0]
