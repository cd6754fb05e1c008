"""Patterns of names in grants and denials: `sales.*`, `sales.orders`, `*.ssn`, `"Odd Name".*`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Generic, TypeVar

from dragoman.dialect import Dialect
from dragoman.model import Relation
from dragoman.words import fold_widely

T = TypeVar("T")
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".\s][^".]*)')
ANY = "*"


@dataclass(frozen=True)
class NamePattern:
    """A pattern of one name. Quoted patterns are exact.

    In others `*` matches any characters, and case folds as in SQL.
    """

    text: str
    quoted: bool = False

    @property
    def exact(self) -> bool:
        """Whether it matches one name only."""
        return self.quoted or ANY not in self.text

    def fits(self, stored: str, dialect: Dialect) -> bool:
        """Return whether it matches the stored name `stored`."""
        if self.quoted and dialect.folding != "insensitive":
            return self.text == stored
        if self.exact:
            return dialect.same(self.text, stored)
        return _glob(dialect.fold(self.text), key_of(stored, dialect))

    def fits_in_any_case(self, stored: str) -> bool:
        """Return whether it matches a name without regard to case."""
        text, name = fold_widely(self.text), fold_widely(stored)
        return text == name if self.exact else _glob(text, name)

    def key(self, dialect: Dialect) -> str | None:
        """Return the `key_of` the name it matches; None if it may match several."""
        if not self.exact:
            return None
        return self.text if self.quoted and dialect.folding != "insensitive" else dialect.fold(self.text)


def key_of(stored: str, dialect: Dialect) -> str:
    """Return the key that all stored names share which one exact pattern matches."""
    return dialect.fold(stored) if dialect.folding == "insensitive" else stored


class ByName(Generic[T]):
    """Things indexed by a pattern of a name, so that a name is compared with few patterns."""

    def __init__(self, dialect: Dialect, things: Iterable[tuple[NamePattern, T]]) -> None:
        self._dialect = dialect
        self._several: dict[int, T] = {}
        self._exact: dict[str, dict[int, T]] = {}
        for place, (pattern, thing) in enumerate(things):
            key = pattern.key(dialect)
            some = self._several if key is None else self._exact.setdefault(key, {})
            some[place] = thing

    def find(self, stored: str) -> list[T]:
        """Return the things whose pattern may match a stored name, in the order in which they were added."""
        found = self._several | self._exact.get(key_of(stored, self._dialect), {})
        return [thing for _, thing in sorted(found.items(), key=itemgetter(0))]


def _glob(pattern: str, name: str) -> bool:
    return _expression(pattern).fullmatch(name) is not None


@lru_cache(maxsize=1_000)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split(ANY))), re.DOTALL)


@dataclass(frozen=True)
class RelationPattern:
    """A pattern of relations: `*`, or names of a schema and a relation, optionally after a catalog's name."""

    parts: tuple[NamePattern, ...]

    @classmethod
    def read(cls, text: str) -> RelationPattern | None:
        """Return the pattern in a text; None if it is not a pattern."""
        parts = name_patterns(text)
        return cls(parts) if parts and (len(parts) in (2, 3) or text.strip() == ANY) else None

    def fits(self, relation: Relation, dialect: Dialect, home: str | None = None) -> bool:
        """Return whether it matches a relation. Without a catalog, it matches only in `home`, the default catalog."""
        if len(self.parts) == 1:
            return True
        stored = (relation.name, relation.schema or "", relation.catalog or "")
        if len(self.parts) == 2 and home is not None and relation.catalog not in (None, home):
            return False
        if len(self.parts) == 3 and relation.catalog is None:
            return False
        return all(part.fits(name, dialect) for part, name in zip(reversed(self.parts), stored, strict=False))

    def reaches(self, schema: str | None, catalog: str | None, dialect: Dialect, home: str | None = None) -> bool:
        """Return whether it may match a relation in a schema."""
        if len(self.parts) == 1:
            return True
        return RelationPattern((*self.parts[:-1], _ANYTHING)).fits(Relation("", schema, catalog), dialect, home)

    @property
    def exact(self) -> bool:
        """Whether it matches one relation only."""
        return len(self.parts) > 1 and all(part.exact for part in self.parts)


_ANYTHING = NamePattern(ANY)


@dataclass(frozen=True)
class ColumnPattern:
    """A pattern of columns: of any relation, or of the relations that match the pattern before the last dot."""

    text: str
    relations: tuple[NamePattern, ...]
    column: NamePattern

    @classmethod
    def read(cls, text: str) -> ColumnPattern | None:
        """Return the pattern in a text; None if it is not a pattern."""
        parts = name_patterns(text)
        if not parts or parts[4:]:
            return None
        *relations, column = parts
        return cls(text, tuple(relations), column)

    @property
    def relation(self) -> NamePattern:
        """The pattern of the relation's own name."""
        return self.relations[-1] if self.relations else _ANYTHING

    def fits(self, relation: Relation, column: str, dialect: Dialect) -> bool:
        """Return whether it matches a column of a relation."""
        return self.column.fits(column, dialect) and self.fits_relation(relation, dialect)

    def hides(self, relation: Relation, column: str, dialect: Dialect) -> bool:
        """Return whether a denial or mask of it means a column of a relation.

        Dialects that compare the names of relations exactly may ignore the case of columns, as MariaDB does.
        """
        means = self.column.fits(column, dialect)
        means = means or (dialect.folding == "exact" and self.column.fits_in_any_case(column))
        return means and self.fits_relation(relation, dialect)

    def fits_relation(self, relation: Relation, dialect: Dialect) -> bool:
        """Return whether it may match a column of a relation."""
        stored: Sequence[str | None] = (relation.name, relation.schema, relation.catalog)
        return all(part.fits(name or "", dialect) for part, name in zip(reversed(self.relations), stored, strict=False))

    @cached_property
    def exact(self) -> bool:
        """Whether it matches one column only."""
        return self.column.exact and len(self.relations) > 1 and all(part.exact for part in self.relations)


def name_patterns(text: str) -> tuple[NamePattern, ...]:
    """Return the parts of a dotted pattern; none if it cannot be parsed."""
    parts: list[NamePattern] = []
    position = 0
    while found := _PART.match(text, position):
        quoted = found[1] is not None
        parts.append(NamePattern(found[1].replace('""', '"') if quoted else found[2].strip(), quoted))
        position = found.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            break
        position += 1
    return ()
