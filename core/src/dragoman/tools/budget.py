"""The bytes that an answer may have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dragoman.tools.answer import size

T = TypeVar("T")
ENVELOPE = 400
"""Bytes reserved for what surrounds the parts of an answer: keys, counts, a hint, the database's name."""


@dataclass(slots=True)
class Budget:
    """The bytes of minified JSON that are left."""

    left: int
    spent: int = field(default=0, init=False)

    def take(self, value: Any) -> bool:
        """Spend the bytes of `value` and a comma. Return False, and spend nothing, if that is more than is left."""
        return self.spend(size(value) + 1)

    def spend(self, needed: int) -> bool:
        """Spend `needed` bytes. Return False, and spend nothing, if that is more than is left."""
        if needed > self.left:
            return False
        self.left -= needed
        self.spent += needed
        return True

    def fitting(self, values: Iterable[T]) -> list[T]:
        """Return the values in order, up to the first that does not fit, and spend their bytes."""
        taken: list[T] = []
        for value in values:
            if not self.take(value):
                break
            taken.append(value)
        return taken
